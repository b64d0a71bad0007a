// SPDX-License-Identifier: BSD-3-Clause
#include "match/configuration.hpp"

#include <cstdlib>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "match/concurrent.hpp"
#include "match/profile.hpp"
#include "match/structures.hpp"

namespace tagline {

template class QueueMatcher<IndexedQueue>;
template class QueueMatcher<ArrayQueue>;
template class QueueMatcher<VectorQueue>;
template class QueueMatcher<FuzzyQueue<std::uint8_t>>;
template class QueueMatcher<FuzzyQueue<std::uint16_t>>;
template class QueueMatcher<FuzzyQueue<std::uint32_t>>;
template class QueueMatcher<SourceQueue>;
template class QueueMatcher<LinearQueue>;

namespace {

const char* name_of(const char* name) { return name; }
const char* name_of(const simd::Kernels& kernels) { return kernels.isa; }

// What a user asked for, and where.
struct Wish {
  std::string text;    // empty: no wish
  std::string origin;  // " in VARIABLE", empty if an option said so
};

Wish wish(const char* option, const char* variable) {
  const char* from_environment = std::getenv(variable);
  if (from_environment != nullptr && *from_environment != '\0') {
    return {from_environment, std::string(" in ").append(variable)};
  }
  return {option == nullptr ? "" : option, ""};
}

// The entry of a catalogue (index -> pointer, nullptr behind the last) that has
// the name; the first one for no name.
template <class Catalogue>
const auto& choose(Catalogue catalogue, const std::string& name, const Wish& wish,
                   const char* what) {
  if (name.empty()) return *catalogue(0);
  std::string names;
  for (unsigned i = 0; const auto* entry = catalogue(i); ++i) {
    if (name == name_of(*entry)) return *entry;
    if (i > 0) names.append(", ");
    names.append(name_of(*entry));
  }
  throw std::invalid_argument(std::string("unknown ")
                                  .append(what)
                                  .append(" \"")
                                  .append(name)
                                  .append("\"")
                                  .append(wish.origin)
                                  .append(": valid here are ")
                                  .append(names));
}

}  // namespace

const char* structure_name(unsigned index) noexcept {
  return index < std::size(kStructures) ? kStructures[index] : nullptr;
}

const char* threading_name(unsigned index) noexcept {
  return index < std::size(kThreadings) ? kThreadings[index].name : nullptr;
}

const char* lock_name(unsigned index) noexcept {
  return index < std::size(kLockNames) ? kLockNames[index] : nullptr;
}

namespace {

// "tail@mcs:linear:x" is {"tail", "mcs"} and "linear:x"; without a threading's name in
// front all of it is the structure's.
struct QueueText {
  std::string threading;  // empty: none
  std::string argument;
  std::string structure;
  std::string parameter;
};

QueueText parse(const std::string& text) {
  QueueText parts;
  std::string rest = text;
  const std::string first = text.substr(0, text.find_first_of("@:"));
  for (const Threading& threading : kThreadings) {
    if (first != threading.name) continue;
    parts.threading = first;
    const std::size_t end = text.find(':');
    rest = end == std::string::npos ? "" : text.substr(end + 1);
    if (text.size() > first.size() && text[first.size()] == '@') {
      parts.argument = text.substr(first.size() + 1, end - first.size() - 1);
    }
  }
  const std::size_t colon = rest.find(':');
  parts.structure = rest.substr(0, colon);
  if (colon != std::string::npos) parts.parameter = rest.substr(colon + 1);
  return parts;
}

// A structure alone in the environment leaves several threads served in the way that the option
// names.
Wish wish_for_queue(const char* option) {
  Wish queue = wish(option, "TAGLINE_QUEUE");
  const QueueText own = parse(option == nullptr ? "" : option);
  if (own.threading.empty() || !parse(queue.text).threading.empty()) return queue;
  const std::string lock_or_shards = own.argument.empty() ? "" : "@" + own.argument;
  queue.text = own.threading + lock_or_shards + ":" + queue.text;
  queue.origin = " (structure: TAGLINE_QUEUE)";
  return queue;
}

tagline_matcher* make_plain(const std::string& structure, const std::string& parameter,
                            const simd::Kernels& kernels, const tagline_options& options) {
  return with_structure(
      structure, parameter,
      [&]<class Queue>(const typename Queue::Parameters& parameters) -> tagline_matcher* {
        auto* const matcher =
            new QueueMatcher<Queue>(parameters, kernels, options.pool_bytes, options.first_handle);
        matcher->is_default = std::is_same_v<Queue, AdaptiveQueue>;
        return matcher;
      });
}

// What the options and the environment ask for, or nothing: a profile is not asked then.
tagline_matcher* make_matcher(const Wish& queue, const Wish& isa, const tagline_options& options) {
  const simd::Kernels& kernels = choose(simd::available_kernels, isa.text, isa, "instruction set");
  QueueText text = parse(queue.text);
  text.structure =
      choose([](unsigned i) { return i < std::size(kStructures) ? &kStructures[i] : nullptr; },
             text.structure, queue, "queue structure");
  std::string name = queue.text.empty() ? text.structure : queue.text;
  if (text.threading.empty() && options.threads != 0) {
    text.threading = kThreadings[0].name;
    name = text.threading + ":" + name;
  }
  try {
    std::unique_ptr<tagline_matcher> matcher(
        text.threading.empty()
            ? make_plain(text.structure, text.parameter, kernels, options)
            : threading(text.threading)
                  .make(text.structure, text.parameter, text.argument, kernels, options));
    matcher->about->queue_name = name;
    matcher->about->reason = queue.text.empty() ? "default" : "asked for";
    matcher->about->is_for_threads = !text.threading.empty();
    return matcher.release();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("queue \"")
                                    .append(queue.text)
                                    .append("\"")
                                    .append(queue.origin)
                                    .append(": ")
                                    .append(error.what()));
  }
}

// nullptr: the profile does not say, or not what is possible here.
tagline_matcher* make_by_profile(const std::string& path, const Wish& isa,
                                 const tagline_options& options) {
  const std::string kind = profile_kind(options);
  const ProfileChoice* choice = profile_choice(path, kind);
  if (choice == nullptr) return nullptr;
  const std::string origin = " in the profile " + path;
  try {
    tagline_matcher* const matcher = make_matcher(
        {choice->queue, origin}, isa.text.empty() ? Wish{choice->isa, origin} : isa, options);
    matcher->about->reason = "profile " + path + " for " + kind;
    return matcher;
  } catch (const std::invalid_argument& error) {
    if (!isa.text.empty()) choose(simd::available_kernels, isa.text, isa, "instruction set");
    report_profile(path, error.what());
    return nullptr;
  }
}

}  // namespace

tagline_matcher* make_matcher(const tagline_options& options) {
  const Wish isa = wish(options.isa, "TAGLINE_ISA");
  const Wish queue = wish_for_queue(options.queue);
  const Wish profile = wish(options.profile, "TAGLINE_PROFILE");
  if (queue.text.empty() && !profile.text.empty()) {
    if (tagline_matcher* matcher = make_by_profile(profile.text, isa, options)) return matcher;
  }
  return make_matcher(queue, isa, options);
}

}  // namespace tagline
