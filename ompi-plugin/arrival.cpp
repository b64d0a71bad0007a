// SPDX-License-Identifier: BSD-3-Clause
#include "arrival.hpp"

#include "communicator.hpp"
#include "credit.hpp"
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

// Returns the receive that gets the message, or NULL after queueing it as unexpected. A message
// that is stored already is queued as it is. The caller holds arrival_lock if the message has a
// number. Messages without one come from several threads at once; the final tagline_arrive()
// decides.
inline ReceiveRequest* match(CommunicatorState& state, const Arrival& arrival,
                             StoredArrival* stored) {
  const EagerHeader& header = arrival.match();
  const tagline_envelope envelope = {state.context_id, header.source, header.tag};
  void* receive = nullptr;
  const MatchTimer timer(state, TAGLINE_POSTED);
  tagline_status status = tagline_match_message(state.matcher, envelope, &receive);
  if (status == TAGLINE_MATCHED) return static_cast<ReceiveRequest*>(receive);
  if (status == TAGLINE_NOT_FOUND) {
    StoredArrival* const own =
        stored == nullptr ? store(arrival, account_of(state, header.source)) : nullptr;
    if (stored == nullptr) stored = own;
    if (stored == nullptr) abort_job("no memory for an unexpected message");
    // Of several threads another one may have posted the receive meanwhile.
    status = plugin.threads ? tagline_arrive(state.matcher, envelope, stored, &receive)
                            : tagline_append_message(state.matcher, envelope, stored);
    if (status == TAGLINE_QUEUED) return nullptr;
    if (status == TAGLINE_MATCHED) {
      if (own != nullptr) {
        own->account = nullptr;  // the packet is paid for as one that was not stored
        discard(own);
      }
      return static_cast<ReceiveRequest*>(receive);
    }
  }
  // There is no request to fail, and losing a message is worse than ending the job.
  abort_job(tagline_error_message());
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
  const auto& place = communicator_of(arrival.match());
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

}  // namespace

void handle_arrival(const Arrival& arrival) { handle(arrival); }

TAGLINE_BTL_CALLBACK(tagline_on_eager) {
  on_first_packet(btl, kEager, TAGLINE_BTL_SEGMENTS(descriptor), descriptor->des_segment_count);
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
