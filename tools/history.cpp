// SPDX-License-Identifier: BSD-3-Clause
#include "history.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>
#include <tuple>

namespace tagline::tools {

namespace {

using Kind = Operation::Kind;

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

std::uint64_t mail_key(std::uint64_t context_id, std::uint64_t rank) {
  return (context_id ^ (rank + 1) * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
}

bool wanted(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// A message that a receive or a claim of this rank got.
struct Consumption {
  std::uint64_t order;  // of the receives: by number; a claim comes before the next receive
  std::int64_t ns;
  std::uint64_t bytes;
};
using Envelope = std::tuple<std::uint32_t, std::int32_t, std::int32_t>;  // context, source, tag

void set_counts(History& history) {
  for (const Operation& operation : history.operations) {
    history.posts += operation.kind == Kind::post;
    history.arrivals += operation.kind == Kind::arrive;
  }
  if (!history.operations.empty()) {
    history.duration_ns = std::max(history.duration_ns, history.operations.back().ns);
  }
}

}  // namespace

TraceSet::TraceSet(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error(path.string() + ": there is no such file or folder");
  }
  if (std::filesystem::is_directory(path)) {
    open_folder(path);
  } else if (path.extension() == ".csv") {
    csv_ = path;
    for (const History& history : read_csv(path)) {
      ranks_.push_back(history.rank);
      records_ += history.operations.size();
    }
    bytes_ = std::filesystem::file_size(path);
  } else {
    TraceFile file(path);
    Process process;
    process.rank = file.header().rank;
    (file.header().origin == TraceOrigin::matching ? process.matching : process.calls)
        .push_back(std::move(file));
    processes_.push_back(std::move(process));
  }
  for (const Process& process : processes_) {
    ranks_.push_back(process.rank);
    for (const auto* files : {&process.calls, &process.matching}) {
      for (const TraceFile& file : *files) {
        bytes_ += file.bytes();
        records_ += file.records();
      }
    }
  }
}

void TraceSet::open_folder(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == kTraceSuffix) names.push_back(entry.path());
  }
  if (names.empty()) {
    throw std::runtime_error(path.string() + ": no traces (*" + kTraceSuffix +
                             ") in this folder; `tagline record` writes them");
  }
  std::sort(names.begin(), names.end());
  // A matcher's trace belongs to the rank of the same process.
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> by_process;
  std::map<std::uint64_t, std::uint32_t> first_rank;  // by world: those spawned come behind
  std::uint32_t next_rank = 0;
  for (const bool matching : {false, true}) {
    for (const auto& name : names) {
      TraceFile file(name);
      const TraceHeader& header = file.header();
      if ((header.origin == TraceOrigin::matching) != matching) continue;
      const auto [at, added] =
          by_process.try_emplace({header.host, header.process}, processes_.size());
      // Simulated ranks are of no process.
      if (added || header.origin == TraceOrigin::simulated) {
        at->second = processes_.size();
        processes_.emplace_back();
        std::uint32_t& rank = processes_.back().rank;
        if (header.ranks == 0) {
          rank = next_rank++;
        } else {
          const auto [world, is_new] = first_rank.try_emplace(header.world, next_rank);
          if (is_new) next_rank += header.ranks;
          rank = world->second + header.rank;
        }
      }
      Process& process = processes_[at->second];
      if (matching && !process.calls.empty()) file.set_start(process.calls[0].header().start_ns);
      (matching ? process.matching : process.calls).push_back(std::move(file));
    }
  }
  std::stable_sort(processes_.begin(), processes_.end(),
                   [](const Process& a, const Process& b) { return a.rank < b.rank; });
}

void TraceSet::for_each(const std::vector<std::uint32_t>& ranks,
                        const std::function<void(const History&)>& visit,
                        std::uint64_t most) const {
  for (const std::uint32_t rank : ranks) {
    if (!wanted(ranks_, rank)) {
      throw std::runtime_error("rank " + std::to_string(rank) + " is not in the trace, which has " +
                               std::to_string(ranks_.size()) + " ranks");
    }
  }
  if (!csv_.empty()) {
    for (const History& history : read_csv(csv_)) {
      if (wanted(ranks, history.rank)) visit(history);
    }
    return;
  }
  Mail mail = collect_mail(ranks, most);
  for (const Process& process : processes_) {
    if (!wanted(ranks, process.rank)) continue;
    const TraceFile& file = process.matching.empty() ? process.calls[0] : process.matching[0];
    const End end = end_of(file, most);
    History history =
        process.matching.empty() ? from_calls(file, end, mail) : from_matching(file, end);
    history.left_out = end.left_out;
    history.rank = process.rank;
    if (!process.calls.empty()) {
      const TraceFile& calls = process.calls[0];
      history.ranks = calls.header().ranks;
      history.library = calls.header().library;
      if (end.left_out == 0) history.duration_ns = std::max(history.duration_ns, calls.last_ns());
    }
    visit(history);
  }
}

TraceSet::End TraceSet::end_of(const TraceFile& file, std::uint64_t most) {
  if (most == 0 || file.records() <= most) return {file.last_ns(), 0};
  End end = {0, file.records() - most};
  std::uint64_t count = 0;
  file.for_each([&](const TraceEvent& event) {
    if (event.is_record() && count++ < most) end.ns = event.ns;
  });
  return end;
}

TraceSet::Mail TraceSet::collect_mail(const std::vector<std::uint32_t>& ranks,
                                      std::uint64_t most) const {
  // Who wants mail, and until when: communicator and rank in it.
  std::unordered_map<std::uint64_t, std::int64_t> addresses;
  for (const Process& process : processes_) {
    if (!process.matching.empty() || !wanted(ranks, process.rank)) continue;
    const End end = end_of(process.calls[0], most);
    const std::int64_t until = end.left_out > 0 ? end.ns : kForever;
    process.calls[0].for_each([&](const TraceEvent& event) {
      if (event.kind == TraceKind::context && event.ranks > 0) {
        addresses[mail_key(event.id, event.own_rank)] = until;
      }
    });
  }
  Mail mail;
  for (const Process& process : processes_) {
    if (process.calls.empty() || addresses.empty()) continue;
    struct Context {
      std::uint64_t id = 0;
      std::uint64_t ranks = 0;
      std::int32_t own = 0;
    };
    std::vector<Context> contexts;
    process.calls[0].for_each([&](const TraceEvent& event) {
      if (event.kind == TraceKind::context) {
        if (contexts.size() <= event.context) contexts.resize(event.context + 1);
        contexts[event.context] = {event.id, event.ranks,
                                   static_cast<std::int32_t>(event.own_rank)};
      } else if (event.kind == TraceKind::send && event.context < contexts.size()) {
        const Context& context = contexts[event.context];
        const std::uint64_t key = mail_key(context.id, static_cast<std::uint32_t>(event.source));
        if (context.ranks == 0) return;
        const auto address = addresses.find(key);
        if (address == addresses.end() || event.ns > address->second) return;
        mail[key].push_back({event.ns, context.own, event.tag, event.value});
      }
    });
  }
  return mail;
}

History TraceSet::from_calls(const TraceFile& file, const End& end, Mail& mail) const {
  History history;
  history.ranks = file.header().ranks;
  history.origin = file.header().origin;
  history.source = file.path().filename().string();
  history.library = file.header().library;
  history.lost = file.lost();
  history.cut = file.cut();
  history.duration_ns = end.ns;

  std::uint64_t left = file.records() - end.left_out;
  std::vector<Operation> calls;
  std::vector<std::vector<Sent>*> boxes;  // by context
  std::vector<TraceEvent> posted;
  std::map<Envelope, std::vector<Consumption>> consumed;
  const auto add = [&](Kind kind, const TraceEvent& event, std::uint64_t bytes,
                       std::uint64_t number) {
    calls.push_back({kind, static_cast<std::uint32_t>(event.context), event.source, event.tag,
                     event.ns, bytes, number});
  };
  file.for_each([&](const TraceEvent& event) {
    if (left == 0 || !event.is_record()) return;
    --left;
    const std::uint64_t posts = posted.size();
    switch (event.kind) {
      case TraceKind::context: {
        if (boxes.size() <= event.context) boxes.resize(event.context + 1);
        history.context_ranks.resize(boxes.size());
        history.context_ranks[event.context] = event.ranks;
        const auto box = mail.find(mail_key(event.id, event.own_rank));
        if (event.ranks > 0 && box != mail.end()) boxes[event.context] = &box->second;
        break;
      }
      case TraceKind::post:
        add(Kind::post, event, event.value, posts);
        posted.push_back(event);
        break;
      case TraceKind::arrive:
        add(Kind::arrive, event, event.value, 0);
        break;
      case TraceKind::complete: {
        if (event.id >= posts) break;
        const std::uint64_t number = posts - 1 - event.id;
        history.got.resize(posts);
        history.got[number] = {event.source, event.tag};
        consumed[{static_cast<std::uint32_t>(posted[number].context), event.source, event.tag}]
            .push_back({number * 2 + 1, event.ns, event.value});
        break;
      }
      case TraceKind::claim:
        if (event.source != TAGLINE_ANY_SOURCE && event.tag != TAGLINE_ANY_TAG) {
          consumed[{static_cast<std::uint32_t>(event.context), event.source, event.tag}].push_back(
              {posts * 2, event.ns, event.value});
        }
        add(Kind::claim, event, event.value, 0);
        break;
      case TraceKind::probe:
        add(Kind::probe, event, 0, event.value);
        break;
      case TraceKind::cancel:
        if (event.value < posts) {
          TraceEvent cancel = posted[posts - 1 - event.value];
          cancel.ns = event.ns;
          add(Kind::cancel, cancel, 0, posts - 1 - event.value);
        }
        break;
      case TraceKind::drop_context:
        add(Kind::drop_context, event, 0, 0);
        break;
      default:
        break;
    }
  });

  // A simulated trace has its arrivals.
  if (history.origin == TraceOrigin::simulated) {
    history.operations = std::move(calls);
    set_counts(history);
    return history;
  }

  for (auto& [envelope, list] : consumed) {
    std::stable_sort(list.begin(), list.end(),
                     [](const Consumption& a, const Consumption& b) { return a.order < b.order; });
  }
  std::vector<Operation> arrivals;
  const auto arrive = [&](std::uint32_t context, const Sent& sent) {
    arrivals.push_back({Kind::arrive, context, sent.source, sent.tag, sent.ns, sent.bytes, 0});
  };
  std::map<Envelope, std::size_t> taken;
  for (std::uint32_t context = 0; context < boxes.size(); ++context) {
    if (boxes[context] == nullptr) continue;
    std::vector<Sent>& box = *boxes[context];
    // In the order of each sender, which is how they lie there.
    for (Sent& sent : box) {
      const Envelope envelope = {context, sent.source, sent.tag};
      const auto list = consumed.find(envelope);
      std::size_t& count = taken[envelope];
      if (list != consumed.end() && count < list->second.size()) {
        sent.ns = std::min(sent.ns, list->second[count].ns);
      }
      ++count;
    }
    std::unordered_map<std::int32_t, std::int64_t> before;
    for (auto sent = box.rbegin(); sent != box.rend(); ++sent) {
      const auto [next, is_last] = before.try_emplace(sent->source, sent->ns);
      next->second = sent->ns = std::min(sent->ns, next->second);
    }
    for (const Sent& sent : box) arrive(context, sent);
    std::vector<Sent>().swap(box);
  }
  for (const auto& [envelope, list] : consumed) {
    const auto& [context, source, tag] = envelope;
    for (std::size_t i = taken[envelope]; i < list.size(); ++i) {
      arrive(context, {list[i].ns, source, tag, list[i].bytes});
      ++history.guessed_arrivals;
    }
  }
  const auto earlier = [](const Operation& a, const Operation& b) { return a.ns < b.ns; };
  std::stable_sort(arrivals.begin(), arrivals.end(), earlier);
  // Of the same moment the arrival comes first: what took it came after it.
  std::merge(arrivals.begin(), arrivals.end(), calls.begin(), calls.end(),
             std::back_inserter(history.operations), earlier);
  set_counts(history);
  return history;
}

History TraceSet::from_matching(const TraceFile& file, const End& end) {
  History history;
  history.origin = TraceOrigin::matching;
  history.source = file.path().filename().string();
  history.library = file.header().library;
  history.lost = file.lost();
  history.cut = file.cut();
  std::vector<std::uint64_t> matcher_of;           // by context
  std::vector<std::vector<std::uint64_t>> queued;  // by matcher: receives that had to wait
  std::vector<TraceEvent> posted;
  std::uint64_t left = file.records() - end.left_out;
  file.for_each([&](const TraceEvent& event) {
    if (left == 0 || !event.is_record()) return;
    --left;
    Operation operation = {Kind::post,
                           static_cast<std::uint32_t>(event.context),
                           event.source,
                           event.tag,
                           event.ns,
                           event.value,
                           0};
    switch (event.kind) {
      case TraceKind::context:
        if (matcher_of.size() <= event.context) matcher_of.resize(event.context + 1);
        if (queued.size() <= event.matcher) queued.resize(event.matcher + 1);
        matcher_of[event.context] = event.matcher;
        history.context_ranks.resize(matcher_of.size());
        history.context_ranks[event.context] = event.ranks;
        return;
      case TraceKind::post:
        operation.number = posted.size();
        posted.push_back(event);
        if (event.flag && event.context < matcher_of.size()) {
          queued[matcher_of[event.context]].push_back(operation.number);
        }
        break;
      case TraceKind::arrive:
        operation.kind = Kind::arrive;
        break;
      case TraceKind::probe:
        operation.kind = Kind::probe;
        operation.number = event.value;
        operation.bytes = 0;
        break;
      case TraceKind::claim:
        operation.kind = Kind::claim;
        break;
      case TraceKind::cancel_queued: {
        if (event.context >= matcher_of.size()) return;
        const auto& waiting = queued[matcher_of[event.context]];
        if (event.value >= waiting.size()) return;
        operation.kind = Kind::cancel;
        operation.number = waiting[event.value];
        operation.context = static_cast<std::uint32_t>(posted[operation.number].context);
        operation.source = posted[operation.number].source;
        operation.tag = posted[operation.number].tag;
        operation.bytes = 0;
        break;
      }
      case TraceKind::cancel_envelope:
        operation.kind = Kind::cancel_envelope;
        break;
      case TraceKind::drop_context:
        operation.kind = Kind::drop_context;
        break;
      case TraceKind::drop_source:
        operation.kind = Kind::drop_source;
        break;
      default:
        return;
    }
    history.operations.push_back(operation);
  });
  history.duration_ns = end.ns;
  set_counts(history);
  return history;
}

}  // namespace tagline::tools
