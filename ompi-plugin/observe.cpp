// SPDX-License-Identifier: BSD-3-Clause
#include "observe.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include "request.hpp"

namespace tagline::pml {
namespace {

struct Counts {
  tagline_statistics queues = {};
  std::uint64_t unexpected_bytes = 0;
  std::uint64_t match_nanoseconds[2] = {};  // by side
};

std::mutex list_lock;
CommunicatorState* first_state = nullptr;
Counts freed;  // what communicators had counted that are gone

void add(tagline_side_statistics& sum, const tagline_side_statistics& side) {
  sum.length += side.length;
  sum.high_water = std::max(sum.high_water, side.high_water);
  sum.searches += side.searches;
  sum.matches += side.matches;
  sum.search_depth_sum += side.search_depth_sum;
  sum.search_depth_max = std::max(sum.search_depth_max, side.search_depth_max);
  sum.false_positives += side.false_positives;
}

void add(Counts& sum, const Counts& counts) {
  add(sum.queues.posted, counts.queues.posted);
  add(sum.queues.unexpected, counts.queues.unexpected);
  sum.queues.pool_bytes += counts.queues.pool_bytes;
  sum.unexpected_bytes += counts.unexpected_bytes;
  for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
    sum.match_nanoseconds[side] += counts.match_nanoseconds[side];
  }
}

std::size_t bytes_of(tagline_side side, void* cookie) {
  return side == TAGLINE_POSTED ? static_cast<ReceiveRequest*>(cookie)->layout.bytes
                                : static_cast<StoredArrival*>(cookie)->view().message_bytes();
}

void add_stored_bytes(void* sum, tagline_side side, tagline_envelope, void* cookie) {
  if (side != TAGLINE_UNEXPECTED) return;
  *static_cast<std::uint64_t*>(sum) += static_cast<StoredArrival*>(cookie)->segment.seg_len;
}

// `bytes`: also what a walk through the messages tells; nothing is counted while they come and go.
Counts count(CommunicatorState& state, bool bytes) {
  Counts counts;
  Guard guard(state.arrival_lock);
  tagline_get_statistics(state.matcher, &counts.queues);
  for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
    counts.match_nanoseconds[side] = state.match_nanoseconds[side].load(std::memory_order_relaxed);
  }
  if (bytes) tagline_for_each(state.matcher, add_stored_bytes, &counts.unexpected_bytes);
  return counts;
}

Counts count_all(bool bytes) {
  Guard guard(list_lock);
  Counts counts = freed;
  for (CommunicatorState* state = first_state; state != nullptr; state = state->next) {
    add(counts, count(*state, bytes));
  }
  return counts;
}

/* ---- Performance variables ---- */

struct Variable {
  const char* name;
  const char* help;
  int kind;  // MCA_BASE_PVAR_CLASS_*
  std::uint64_t (*whole)(const Counts&);
  double (*fraction)(const Counts&);  // instead
};

double mean(const tagline_side_statistics& side) {
  if (side.searches == 0) return 0;
  return static_cast<double>(side.search_depth_sum) / static_cast<double>(side.searches);
}

std::uint64_t unexpected_bytes(const Counts& counts) { return counts.unexpected_bytes; }

#define TAGLINE_OF_SIDE(side, field) \
  [](const Counts& counts) -> std::uint64_t { return counts.queues.side.field; }, nullptr
#define TAGLINE_TIME_OF_SIDE(side) \
  [](const Counts& counts) { return counts.match_nanoseconds[side]; }, nullptr
#define TAGLINE_MEAN_OF_SIDE(side) \
  nullptr, [](const Counts& counts) { return mean(counts.queues.side); }

const Variable variables[] = {
    {"posted_length", "Receives that wait for a message now", MCA_BASE_PVAR_CLASS_LEVEL,
     TAGLINE_OF_SIDE(posted, length)},
    {"posted_high_water",
     "Most receives that have waited at once on one communicator; with MPI_THREAD_MULTIPLE an "
     "upper bound, the sum over the parts of its queue",
     MCA_BASE_PVAR_CLASS_HIGHWATERMARK, TAGLINE_OF_SIDE(posted, high_water)},
    {"posted_matches", "Messages that found a waiting receive", MCA_BASE_PVAR_CLASS_COUNTER,
     TAGLINE_OF_SIDE(posted, matches)},
    {"posted_searches",
     "Searches of the receives when there were any; with MPI_THREAD_MULTIPLE two for a message "
     "that finds none",
     MCA_BASE_PVAR_CLASS_COUNTER, TAGLINE_OF_SIDE(posted, searches)},
    {"posted_search_depth_mean", "Receives looked at per search as posted_searches counts them",
     MCA_BASE_PVAR_CLASS_GENERIC, TAGLINE_MEAN_OF_SIDE(posted)},
    {"posted_search_depth_max", "Most receives looked at in one search",
     MCA_BASE_PVAR_CLASS_HIGHWATERMARK, TAGLINE_OF_SIDE(posted, search_depth_max)},
    {"posted_false_positives",
     "Receives whose fingerprint fitted a message that they did not accept (queue fuzzy)",
     MCA_BASE_PVAR_CLASS_COUNTER, TAGLINE_OF_SIDE(posted, false_positives)},
    {"unexpected_length", "Messages that wait for a receive now", MCA_BASE_PVAR_CLASS_LEVEL,
     TAGLINE_OF_SIDE(unexpected, length)},
    {"unexpected_high_water",
     "Most messages that have waited at once on one communicator; with MPI_THREAD_MULTIPLE an "
     "upper bound, the sum over the parts of its queue",
     MCA_BASE_PVAR_CLASS_HIGHWATERMARK, TAGLINE_OF_SIDE(unexpected, high_water)},
    {"unexpected_matches", "Receives that found a waiting message", MCA_BASE_PVAR_CLASS_COUNTER,
     TAGLINE_OF_SIDE(unexpected, matches)},
    {"unexpected_searches", "Searches of the messages when there were any, probes included",
     MCA_BASE_PVAR_CLASS_COUNTER, TAGLINE_OF_SIDE(unexpected, searches)},
    {"unexpected_search_depth_mean", "Messages looked at per search", MCA_BASE_PVAR_CLASS_GENERIC,
     TAGLINE_MEAN_OF_SIDE(unexpected)},
    {"unexpected_search_depth_max", "Most messages looked at in one search",
     MCA_BASE_PVAR_CLASS_HIGHWATERMARK, TAGLINE_OF_SIDE(unexpected, search_depth_max)},
    {"unexpected_false_positives",
     "Messages whose fingerprint fitted a receive that did not accept them (queue fuzzy)",
     MCA_BASE_PVAR_CLASS_COUNTER, TAGLINE_OF_SIDE(unexpected, false_positives)},
    {"unexpected_bytes",
     "Bytes of the messages that wait for a receive, headers included, as far as they are stored "
     "here. Reading it takes a walk through them",
     MCA_BASE_PVAR_CLASS_LEVEL, unexpected_bytes, nullptr},
    {"queue_bytes", "Memory of the queues themselves, bytes", MCA_BASE_PVAR_CLASS_LEVEL,
     [](const Counts& counts) -> std::uint64_t { return counts.queues.pool_bytes; }, nullptr},
    {"posted_match_time",
     "Nanoseconds spent in matching messages that arrive, storing those that nobody waits for "
     "included; counted only with the parameter pml_tagline_match_time",
     MCA_BASE_PVAR_CLASS_TIMER, TAGLINE_TIME_OF_SIDE(TAGLINE_POSTED)},
    {"unexpected_match_time",
     "Nanoseconds spent in matching receives that are posted, queueing those that find no message "
     "included, and in probes; counted only with the parameter pml_tagline_match_time",
     MCA_BASE_PVAR_CLASS_TIMER, TAGLINE_TIME_OF_SIDE(TAGLINE_UNEXPECTED)},
    {"match_time", "The sum of posted_match_time and unexpected_match_time",
     MCA_BASE_PVAR_CLASS_TIMER,
     [](const Counts& counts) {
       return counts.match_nanoseconds[TAGLINE_POSTED] +
              counts.match_nanoseconds[TAGLINE_UNEXPECTED];
     },
     nullptr},
};

int read(const mca_base_pvar_t* pvar, void* value, void* object) {
  const auto& variable = *static_cast<const Variable*>(pvar->ctx);
  const bool bytes = variable.whole == unexpected_bytes;
  Counts counts;
  if (object == nullptr) {
    counts = count_all(bytes);
  } else {
    // A communicator of another component's is not ours to look into.
    CommunicatorState* state =
        plugin.enabled ? state_of(static_cast<ompi_communicator_t*>(object)) : nullptr;
    if (state == nullptr) return OMPI_ERR_NOT_AVAILABLE;
    counts = count(*state, bytes);
  }
  if (variable.whole != nullptr) {
    const unsigned long long whole = variable.whole(counts);
    std::memcpy(value, &whole, sizeof(whole));
  } else {
    const double fraction = variable.fraction(counts);
    std::memcpy(value, &fraction, sizeof(fraction));
  }
  return OMPI_SUCCESS;
}

int on_event(mca_base_pvar_t*, mca_base_pvar_event_t event, void*, int* count) {
  if (event == MCA_BASE_PVAR_HANDLE_BIND) *count = 1;
  return OMPI_SUCCESS;
}

/* ---- Text ---- */

std::string name_of(const CommunicatorState& state) {
  const char* name = state.comm->c_name;
  if (name != nullptr && name[0] != '\0') return name;
  return "communicator with context " + std::to_string(state.context_id);
}

// "source 3, tag 7, 100 bytes"
std::string describe(tagline_side side, tagline_envelope envelope, void* cookie) {
  const auto number = [](std::int32_t value, std::int32_t any) {
    return value == any ? std::string("any") : std::to_string(value);
  };
  return "source " + number(envelope.source, TAGLINE_ANY_SOURCE) + ", tag " +
         number(envelope.tag, TAGLINE_ANY_TAG) + ", " + std::to_string(bytes_of(side, cookie)) +
         " bytes";
}

void print_entry(void*, tagline_side side, tagline_envelope envelope, void* cookie) {
  opal_output(0, "  %s: %s", side == TAGLINE_POSTED ? "receive" : "message",
              describe(side, envelope, cookie).c_str());
}

unsigned reported = 0;  // lines so far
unsigned omitted = 0;   // leftovers beyond them

void report_entry(void* state, tagline_side side, tagline_envelope envelope, void* cookie) {
  // Negative tags are Open MPI's own.
  if (envelope.tag < 0 && envelope.tag != TAGLINE_ANY_TAG) return;
  if (reported == plugin.parameters.report_leftovers) {
    ++omitted;
    return;
  }
  ++reported;
  const auto& communicator = *static_cast<CommunicatorState*>(state);
  opal_output(0, "pml tagline: rank %d of %s: %s: %s", communicator.comm->c_my_rank,
              name_of(communicator).c_str(),
              side == TAGLINE_POSTED ? "receive never matched" : "message never received",
              describe(side, envelope, cookie).c_str());
}

void report(CommunicatorState& state) {
  if (plugin.parameters.report_leftovers == 0) return;
  tagline_for_each(state.matcher, report_entry, &state);
  for (auto& [key, stored] : state.held) {
    const EagerHeader& header = stored->view().match();
    report_entry(&state, TAGLINE_UNEXPECTED, {state.context_id, header.source, header.tag}, stored);
  }
}

}  // namespace

void register_variables() {
  const auto add_variable = [](const Variable& variable, const char* name, const char* help,
                               int bind) {
    mca_base_component_pvar_register(
        &mca_pml_tagline_component.pmlm_version, name, help, OPAL_INFO_LVL_5, variable.kind,
        variable.whole != nullptr ? MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG : MCA_BASE_VAR_TYPE_DOUBLE,
        nullptr, bind,
        static_cast<mca_base_pvar_flag_t>(MCA_BASE_PVAR_FLAG_READONLY |
                                          MCA_BASE_PVAR_FLAG_CONTINUOUS),
        read, nullptr, on_event, const_cast<Variable*>(&variable));
  };
  for (const Variable& variable : variables) {
    add_variable(variable, variable.name, variable.help, MCA_BASE_VAR_BIND_MPI_COMM);
    add_variable(variable, (std::string("total_") + variable.name).c_str(),
                 (std::string(variable.help) + " (all communicators)").c_str(),
                 MCA_BASE_VAR_BIND_NO_OBJECT);
  }
}

void observe(CommunicatorState& state) {
  Guard guard(list_lock);
  state.next = first_state;
  if (first_state != nullptr) first_state->link = &state.next;
  state.link = &first_state;
  first_state = &state;
}

void stop_observing(CommunicatorState& state) {
  report(state);
  Counts counts = count(state, false);
  counts.queues.posted.length = counts.queues.unexpected.length = counts.queues.pool_bytes = 0;
  Guard guard(list_lock);
  add(freed, counts);
  *state.link = state.next;
  if (state.next != nullptr) state.next->link = state.link;
}

void report_leftovers() {
  for (CommunicatorState* state = first_state; state != nullptr; state = state->next) {
    report(*state);
  }
  if (omitted != 0) opal_output(0, "pml tagline: and %u more that are left over", omitted);
}

int tagline_dump(ompi_communicator_t* comm, int /* verbose */) {
  CommunicatorState* state = state_of(comm);
  if (state == nullptr) return OMPI_SUCCESS;
  const Counts counts = count(*state, true);
  Guard guard(state->arrival_lock);
  opal_output(0,
              "pml tagline: rank %d of %s: %llu receives wait, %llu messages wait with %llu bytes "
              "stored, %zu arrived out of order",
              comm->c_my_rank, name_of(*state).c_str(),
              static_cast<unsigned long long>(counts.queues.posted.length),
              static_cast<unsigned long long>(counts.queues.unexpected.length),
              static_cast<unsigned long long>(counts.unexpected_bytes), state->held.size());
  opal_output(0, "  queue %s on %s (%s)", tagline_matcher_queue(state->matcher),
              tagline_matcher_isa(state->matcher), tagline_matcher_reason(state->matcher));
  tagline_for_each(state->matcher, print_entry, nullptr);
  return OMPI_SUCCESS;
}

}  // namespace tagline::pml
