// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

#include <new>
#include <string>

#include "credit.hpp"
#include "hot_cache.hpp"
#include "observe.hpp"

namespace tagline::pml {
namespace {

// Packets whose communicator is not known here yet, in order of arrival. A peer may leave the
// collective call that creates a communicator, and use it, before this process has left it.
std::mutex early_lock;
StoredArrival* early_first = nullptr;
StoredArrival** early_end = &early_first;

// Takes the packets of one communicator out of the list, order kept. Caller holds early_lock.
StoredArrival* take_early(std::uint32_t context_id) {
  StoredArrival* taken = nullptr;
  StoredArrival** taken_end = &taken;
  StoredArrival** link = &early_first;
  while (*link != nullptr) {
    StoredArrival* stored = *link;
    if ((stored->view().match().context & ~kUnordered) == context_id) {
      *link = stored->next;
      stored->next = nullptr;
      *taken_end = stored;
      taken_end = &stored->next;
    } else {
      link = &stored->next;
    }
  }
  early_end = link;
  return taken;
}

// What the matcher can make use of. Not that messages may overtake each other: it knows no
// difference of tags, and collectives count on order.
unsigned hints_of(const ompi_communicator_t* comm) {
  return (OMPI_COMM_CHECK_ASSERT_NO_ANY_SOURCE(comm) ? unsigned{TAGLINE_NO_ANY_SOURCE} : 0) |
         (OMPI_COMM_CHECK_ASSERT_NO_ANY_TAG(comm) ? unsigned{TAGLINE_NO_ANY_TAG} : 0);
}

// Open MPI calls it behind its own callback, which keeps the assertions. A receive that breaks
// them, as Open MPI's own with any source, is matched all the same, only slower; so nothing
// depends on success.
extern "C" tagline_info_text tagline_on_assertion(opal_infosubscriber_t* object, tagline_info_text,
                                                  tagline_info_text value) {
  const auto* comm = reinterpret_cast<const ompi_communicator_t*>(object);
  const CommunicatorState* state = state_of(comm);
  if (state != nullptr) tagline_set_hints(state->matcher, state->context_id, hints_of(comm));
  return value;
}

void discard_unexpected(void*, tagline_side side, tagline_envelope, void* cookie) {
  // Requests hold a reference to their communicator, so none can be posted any more.
  if (side == TAGLINE_UNEXPECTED) discard(static_cast<StoredArrival*>(cookie));
}

}  // namespace

std::atomic<CommunicatorState*> communicators[kContexts];

tagline_status create_matcher(tagline_matcher** matcher, const MatcherUse& use) {
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  // An empty MCA parameter means the default, as an unset one does.
  const auto text = [](const char* name) { return std::string(name != nullptr ? name : ""); };
  std::string queue = text(plugin.parameters.queue);
  const std::string isa = text(plugin.parameters.isa);
  const std::string threading = text(plugin.parameters.threading);
  const std::string profile = text(plugin.parameters.profile);
  if (use.threads && !threading.empty()) queue = threading + ":" + queue;
  options.queue = queue.c_str();
  options.isa = isa.c_str();
  options.threads = use.threads;
  options.profile = profile.c_str();
  options.ranks = use.ranks;
  options.hints = use.hints;
  return tagline_create(&options, matcher);
}

int tagline_add_comm(ompi_communicator_t* comm) {
  if (tagline_context_id(comm) > module.pml_max_contextid) return OMPI_ERR_OUT_OF_RESOURCE;
  auto* state = new (std::nothrow) CommunicatorState;
  if (state == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  state->comm = comm;
  state->context_id = tagline_context_id(comm);
  for (const int assertion : {OMPI_COMM_ASSERT_NO_ANY_SOURCE, OMPI_COMM_ASSERT_NO_ANY_TAG,
                              OMPI_COMM_ASSERT_EXACT_LENGTH, OMPI_COMM_ASSERT_ALLOW_OVERTAKE}) {
    ompi_comm_assert_subscribe(comm, assertion);
  }
  for (const char* key : {"mpi_assert_no_any_source", "mpi_assert_no_any_tag"}) {
    opal_infosubscribe_subscribe(&comm->super, const_cast<char*>(key), const_cast<char*>("false"),
                                 tagline_on_assertion);
  }
  const int ranks = ompi_group_size(comm->c_remote_group);
  const unsigned hints = hints_of(comm);
  const tagline_status status = create_matcher(&state->matcher, {plugin.threads, ranks, hints});
  if (status != TAGLINE_OK || !state->peers.resize(ranks, plugin.threads)) {
    tagline_destroy(state->matcher);
    delete state;
    return OMPI_ERR_OUT_OF_RESOURCE;
  }

  if (hints != 0) tagline_set_hints(state->matcher, state->context_id, hints);
  if (comm == &ompi_mpi_comm_world.comm) share_credit(ranks);
  keep_hot(state->matcher);

  opal_output_verbose(10, ompi_pml_base_framework.framework_output,
                      "pml tagline: context %u, %d ranks: queue %s on %s (%s)", state->context_id,
                      ranks, tagline_matcher_queue(state->matcher),
                      tagline_matcher_isa(state->matcher), tagline_matcher_reason(state->matcher));
  observe(*state);
  StoredArrival* early = nullptr;
  {
    // Under the lock no packet can slip in between "taken" and "known".
    Guard guard(early_lock);
    early = take_early(state->context_id);
    comm->c_pml_comm = reinterpret_cast<mca_pml_comm_t*>(state);
    // release: whoever finds it finds it made.
    communicators[state->context_id].store(state, std::memory_order_release);
    forget_latest(state->context_id);
  }
  while (early != nullptr) {
    StoredArrival* next = early->next;
    handle_arrival(early->view());
    discard(early);
    early = next;
  }
  return OMPI_SUCCESS;
}

int tagline_del_comm(ompi_communicator_t* comm) {
  CommunicatorState* state = state_of(comm);
  if (state == nullptr) return OMPI_SUCCESS;
  stop_observing(*state);
  comm->c_pml_comm = nullptr;
  // Unless the number is another one's already.
  CommunicatorState* expected = state;
  communicators[state->context_id].compare_exchange_strong(expected, nullptr);
  forget_latest(state->context_id);
  tagline_for_each(state->matcher, discard_unexpected, nullptr);
  tagline_destroy(state->matcher);
  for (auto& [key, stored] : state->held) discard(stored);
  delete state;
  return OMPI_SUCCESS;
}

bool keep_early(const Arrival& arrival) {
  Guard guard(early_lock);
  // relaxed: it is entered under the lock.
  if (communicator_of(arrival.match().context).load(std::memory_order_relaxed) != nullptr)
    return false;
  // Nobody can tell yet who sent it; when its turn comes it is charged like a new one.
  StoredArrival* stored = store(arrival, nullptr);
  if (stored == nullptr) abort_job("no memory for a message of a communicator yet to be created");
  *early_end = stored;
  early_end = &stored->next;
  return true;
}

void discard_early() {
  while (early_first != nullptr) {
    StoredArrival* stored = early_first;
    early_first = stored->next;
    discard(stored);
  }
  early_end = &early_first;
}

}  // namespace tagline::pml
