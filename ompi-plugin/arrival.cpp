// SPDX-License-Identifier: BSD-3-Clause
#include "arrival.hpp"

#include "communicator.hpp"
#include "credit.hpp"
#include "match/operations.hpp"
#include "observe.hpp"
#include "receive_protocol.hpp"
#include "request.hpp"

namespace tagline::pml {
namespace {

std::uint64_t held_key(std::int32_t source, std::uint32_t sequence) {
  return std::uint64_t(static_cast<std::uint32_t>(source)) << 32 | sequence;
}

// Whose credit a packet uses up while it is here; NULL if memory is not bounded.
CreditAccount* account_of(const CommunicatorState& state, std::int32_t source) {
  if (!plugin.credit) [[likely]]
    return nullptr;
  return credit_account(ompi_comm_peer_lookup(state.comm, source));
}

// The packet did not have to be stored.
[[gnu::noinline]] void consume(const CommunicatorState& state, const Arrival& arrival) {
  consume(account_of(state, arrival.match().source), charge_of(arrival), starved(arrival));
}

void hold(CommunicatorState& state, const Arrival& arrival) {
  StoredArrival* stored = store(arrival, account_of(state, arrival.match().source));
  if (stored == nullptr) abort_job("no memory for a message that arrived out of order");
  const EagerHeader& header = arrival.match();
  state.held.emplace(held_key(header.source, header.sequence), stored);
}

// Takes the peer's next message out of the held ones, if it is there. Caller holds the lock.
StoredArrival* take_held(CommunicatorState& state, std::int32_t source, std::uint32_t sequence) {
  const auto found = state.held.find(held_key(source, sequence));
  if (found == state.held.end()) return nullptr;
  StoredArrival* stored = found->second;
  state.held.erase(found);
  return stored;
}

// Stores the message as unexpected, unless it is stored already, after the matcher has found no
// receive. Returns a receive that another thread has posted meanwhile, or NULL.
[[gnu::noinline]] ReceiveRequest* queue(CommunicatorState& state, const Arrival& arrival,
                                        StoredArrival* stored) {
  const EagerHeader& header = arrival.match();
  const tagline_envelope envelope = {state.context_id, header.source, header.tag};
  StoredArrival* const own =
      stored == nullptr ? store(arrival, account_of(state, header.source)) : nullptr;
  if (stored == nullptr) stored = own;
  if (stored == nullptr) abort_job("no memory for an unexpected message");
  void* receive = nullptr;
  const tagline_status status = plugin.threads
                                    ? tagline_arrive(state.matcher, envelope, stored, &receive)
                                    : tagline_append_message(state.matcher, envelope, stored);
  if (status == TAGLINE_QUEUED) return nullptr;
  // There is no request to fail, and losing a message is worse than ending the job.
  if (status != TAGLINE_MATCHED) abort_job(tagline_error_message());
  if (own != nullptr) {
    own->account = nullptr;  // the packet is paid for as one that was not stored
    discard(own);
  }
  return static_cast<ReceiveRequest*>(receive);
}

inline tagline_status find_receive(CommunicatorState& state, const EagerHeader& header,
                                   void** receive) {
  const tagline_envelope envelope = {state.context_id, header.source, header.tag};
  return state.matcher->match_message(envelope, receive);
}

// Returns the receive that gets the message, or NULL after queueing it as unexpected. The caller
// holds arrival_lock if the message has a number. Messages without one come from several threads at
// once; queue() decides.
inline ReceiveRequest* match(CommunicatorState& state, const Arrival& arrival,
                             StoredArrival* stored) {
  const MatchTimer timer(state, TAGLINE_POSTED);
  void* receive = nullptr;
  const tagline_status status = find_receive(state, arrival.match(), &receive);
  if (status == TAGLINE_MATCHED) return static_cast<ReceiveRequest*>(receive);
  if (status != TAGLINE_NOT_FOUND) abort_job(tagline_error_message());
  return queue(state, arrival, stored);
}

// The peer's next message is with the matcher: whoever sees it counted matches what he sends
// behind it. Caller holds the lock.
inline void note_matched(Peer& peer) {
  // release: pairs with the acquire in needs_no_number().
  std::atomic_ref(peer.arrived).store(peer.arrived + 1, std::memory_order_release);
}

// Hands over the held messages whose turn has come. The caller keeps the communicator, which the
// last of its receives would take along.
void release_held(CommunicatorState& state, std::int32_t source) {
  Peer* peer = state.peers.find(source);
  while (true) {
    Guard guard(state.arrival_lock);
    StoredArrival* stored = take_held(state, source, peer->arrived);
    if (stored == nullptr) return;
    ReceiveRequest* request = match(state, stored->view(), stored);
    note_matched(*peer);
    guard.unlock();
    if (request == nullptr) continue;
    deliver(*request, stored->view());
    discard(stored);
  }
}

// The packet's communicator; NULL when it is not known yet and the packet is kept.
inline CommunicatorState* find_state(const Arrival& arrival) {
  const auto& place = communicator_of(arrival.match().context);
  // acquire: pairs with the release in tagline_add_comm().
  CommunicatorState* state = place.load(std::memory_order_acquire);
  if (state == nullptr) [[unlikely]] {
    if (keep_early(arrival)) return nullptr;
    state = place.load(std::memory_order_acquire);
  }
  return state;
}

// Inlined into the callbacks, so that each knows its kind of packet.
[[gnu::always_inline]] inline void handle(const Arrival& arrival) {
  const EagerHeader& header = arrival.match();
  CommunicatorState* const found = find_state(arrival);
  if (found == nullptr) [[unlikely]]
    return;
  CommunicatorState& state = *found;
  const std::int32_t source = header.source;

  const bool ordered = (header.context & kUnordered) == 0;
  Guard guard(ordered ? &state.arrival_lock : nullptr);
  Peer* peer = nullptr;
  if (ordered) [[likely]] {
    peer = state.peers.find(source);
    if (peer == nullptr) [[unlikely]]
      abort_job("no memory for the state of a peer");
    if (header.sequence != peer->arrived) [[unlikely]] {
      hold(state, arrival);
      return;
    }
  }
  ReceiveRequest* request = match(state, arrival, nullptr);
  if (ordered) [[likely]]
    note_matched(*peer);
  const bool more = ordered && !state.held.empty();
  ompi_communicator_t* comm = nullptr;
  if (more) [[unlikely]] {
    // The user may have freed it, and then its receives alone keep it.
    comm = state.comm;
    OBJ_RETAIN(comm);
  }
  guard.unlock();

  if (request != nullptr && plugin.credit) [[unlikely]]
    consume(state, arrival);
  // The BTL's buffer may be reused once the callback returns, and delivery does not need the lock.
  if (request != nullptr && !deliver_plain(*request, arrival)) deliver(*request, arrival);
  if (more) [[unlikely]] {
    release_held(state, source);
    OBJ_RELEASE(comm);
  }
}

[[gnu::always_inline]] inline void on_first_packet(mca_btl_base_module_t* btl, WireTag kind,
                                                   const mca_btl_base_segment_t* segments,
                                                   std::size_t segment_count) {
  if (segments[0].seg_len < sizeof(EagerHeader)) [[unlikely]]
    return;
  handle({btl, kind, segments, segment_count});
}

// ---- the way of most messages ------------------------------------------------
//
// plugin.plain, and a packet with all of a message whose turn it is, with none held back behind it.
// That needs few registers, and whatever else comes up is a jump away. A receiver of many small
// messages has more to do than their sender: what is spared here is the message rate.

// The communicator of the latest message that came this way, and what its packets say of it: to
// compare that is less than to look it up, and the processor need not wait for it.
constinit std::uint32_t latest_context = kUnordered;
constinit CommunicatorState* latest_state = nullptr;

// NULL: not known, or its messages may overtake each other.
[[gnu::noinline]] CommunicatorState* find_ordered(std::uint32_t context) {
  if ((context & kUnordered) != 0) return nullptr;
  // acquire: as in find_state().
  CommunicatorState* const state = communicator_of(context).load(std::memory_order_acquire);
  if (state == nullptr) return nullptr;
  latest_context = context;
  return latest_state = state;
}

[[gnu::noinline]] void on_other_eager(mca_btl_base_module_t* btl,
                                      const mca_btl_base_segment_t* segments,
                                      std::size_t segment_count) {
  on_first_packet(btl, kEager, segments, segment_count);
}

[[gnu::noinline]] void queue_plain(CommunicatorState& state, Peer& peer, tagline_status status,
                                   mca_btl_base_module_t* btl,
                                   const mca_btl_base_segment_t* segment) {
  if (status != TAGLINE_NOT_FOUND) abort_job(tagline_error_message());
  queue(state, {btl, kEager, segment, 1}, nullptr);
  note_matched(peer);
}

[[gnu::noinline]] void deliver_further(ReceiveRequest& request, mca_btl_base_module_t* btl,
                                       const mca_btl_base_segment_t* segment) {
  deliver(request, {btl, kEager, segment, 1});
}

[[gnu::always_inline]] inline void on_eager(mca_btl_base_module_t* btl,
                                            const mca_btl_base_segment_t* segments,
                                            std::size_t segment_count) {
  const std::size_t bytes = segments->seg_len;
  if (!plugin.plain || segment_count != 1 || bytes < sizeof(EagerHeader)) [[unlikely]]
    return on_other_eager(btl, segments, segment_count);
  const auto& header = *static_cast<const EagerHeader*>(segments->seg_addr.pval);
  CommunicatorState* const state =
      header.context == latest_context ? latest_state : find_ordered(header.context);
  if (state == nullptr || !state->held.empty()) [[unlikely]]
    return on_other_eager(btl, segments, segment_count);
  Peer* const peer = state->peers.find_at_hand(header.source);
  if (peer == nullptr || header.sequence != peer->arrived) [[unlikely]]
    return on_other_eager(btl, segments, segment_count);

  void* receive;
  const tagline_status status = find_receive(*state, header, &receive);
  if (status != TAGLINE_MATCHED) return queue_plain(*state, *peer, status, btl, segments);
  note_matched(*peer);
  auto& request = *static_cast<ReceiveRequest*>(receive);
  if (!deliver_alone(request, header, bytes - sizeof header)) [[unlikely]]
    deliver_further(request, btl, segments);
}

}  // namespace

void forget_latest(std::uint32_t context) {
  if (latest_context != context) return;
  latest_context = kUnordered;
  latest_state = nullptr;
}

void handle_arrival(const Arrival& arrival) { handle(arrival); }

TAGLINE_BTL_CALLBACK(tagline_on_eager) {
  on_eager(btl, TAGLINE_BTL_SEGMENTS(descriptor), descriptor->des_segment_count);
}

TAGLINE_BTL_CALLBACK(tagline_on_rendezvous) {
  on_first_packet(btl, kRendezvous, TAGLINE_BTL_SEGMENTS(descriptor),
                  descriptor->des_segment_count);
}

TAGLINE_BTL_CALLBACK(tagline_on_get) {
  on_first_packet(btl, kGet, TAGLINE_BTL_SEGMENTS(descriptor), descriptor->des_segment_count);
}

StoredArrival* store(const Arrival& arrival, CreditAccount* account) {
  auto* stored = reinterpret_cast<StoredArrival*>(opal_free_list_get(&plugin.messages));
  if (stored == nullptr) return nullptr;
  const std::size_t bytes = bytes_of(arrival.segments, arrival.segment_count);
  auto* memory = reinterpret_cast<unsigned char*>(stored + 1);
  if (bytes > plugin.parameters.unexpected_inline) {
    memory = static_cast<unsigned char*>(std::malloc(bytes));
    if (memory == nullptr) {
      opal_free_list_return(&plugin.messages, &stored->item);
      return nullptr;
    }
  }
  stored->btl = arrival.btl;
  stored->kind = arrival.kind;
  stored->account = account;
  stored->next = nullptr;
  stored->segment.seg_addr.pval = memory;
  stored->segment.seg_len = bytes;
  for (std::size_t i = 0; i < arrival.segment_count; ++i) {
    std::memcpy(memory, arrival.segments[i].seg_addr.pval, arrival.segments[i].seg_len);
    memory += arrival.segments[i].seg_len;
  }
  return stored;
}

void discard(StoredArrival* stored) {
  CreditAccount* account = stored->account;
  std::uint64_t charge = 0;
  bool without = false;
  if (account != nullptr) [[unlikely]] {
    charge = charge_of(stored->view());
    without = starved(stored->view());
  }
  if (stored->segment.seg_addr.pval != stored + 1) std::free(stored->segment.seg_addr.pval);
  opal_free_list_return(&plugin.messages, &stored->item);
  // Only now there is room for what the sender sends next.
  if (account != nullptr) [[unlikely]]
    consume(account, charge, without);
}

std::size_t stored_arrival_bytes() {
  return sizeof(StoredArrival) + plugin.parameters.unexpected_inline;
}

opal_class_t* stored_arrival_class() {
  // The free list's own part is all there is to construct.
  return OBJ_CLASS(opal_free_list_item_t);
}

}  // namespace tagline::pml
