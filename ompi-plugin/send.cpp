// SPDX-License-Identifier: BSD-3-Clause
// The PML's send calls.
#include "communicator.hpp"
#include "module.hpp"
#include "peer_turn.hpp"
#include "send_protocol.hpp"

namespace tagline::pml {
namespace {

// A blocking send has one request at a time; it is kept here between calls. A callback may send
// while a send is in progress, so whoever uses it takes it away.
SendRequest* blocking_request = nullptr;

// The last peer that was waited for in vain and has made no room since.
const mca_bml_base_endpoint_t* deaf_peer = nullptr;

// What a call is to send. By value to functions that are not inlined: a reference would force it
// into memory on the way without them.
struct Message {
  const void* data;
  std::size_t count;
  const ompi_datatype_t* datatype;
  int peer;
  int tag;
  ompi_communicator_t* comm;
  bool many;  // more are likely to follow at once; throughput counts rather than latency

  Layout layout() const { return Layout(data, count, datatype); }
};

// A message gets the peer's next number, unless its communicator permits overtaking. That
// is about the user's messages: collectives (negative tags) count on order all the same.
// False: no memory for the peer.
template <bool kThreads = true>
inline bool number(const ompi_communicator_t* comm, int peer, int tag, EagerHeader& header) {
  CommunicatorState& state = *state_of(comm);
  header.source = comm->c_my_rank;
  header.tag = tag;
  if (OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(comm) && tag >= 0) [[unlikely]] {
    header.context = state.context_id | kUnordered;
    header.sequence = 0;
    return true;
  }
  Peer* entry = state.peers.find(peer);
  if (entry == nullptr) [[unlikely]]
    return false;
  header.context = state.context_id;
  header.sequence = kThreads ? add_fetch<std::uint32_t>(entry->sent, 1) - 1 : entry->sent++;
  return true;
}

enum class Inline {
  kSent,
  kFull,    // not possible now
  kNo,      // not with this message or this BTL
  kFailed,  // no memory for the peer, and the message has no number
};

// ---- the way of most messages ------------------------------------------------
//
// Its stores count. A store into memory that the peer has read waits for its line, those behind it
// wait as well, and a core has room for a few dozen. The fewer of them are ours, the more
// messages' lines are under way at once: with CPUs that share no cache that decides the rate.

// Only what the convertor's users read: it has no reference count and owns nothing.
inline void describe(opal_convertor_t& convertor, const void* data, std::size_t bytes,
                     const ompi_datatype_t* datatype, std::size_t count, bool box) {
  const opal_convertor_t* local = ompi_proc_local_proc->super.proc_convertor;
  std::uint32_t flags = (local->flags & CONVERTOR_TYPE_MASK) | CONVERTOR_SEND | CONVERTOR_NO_OP |
                        CONVERTOR_HOMOGENEOUS | CONVERTOR_HAS_REMOTE_SIZE;
  if (box) flags |= OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
  convertor.flags = flags;
  convertor.stack_size = DT_STATIC_STACK_SIZE;
  convertor.pStack = convertor.static_stack;
  convertor.stack_pos = 0;
  convertor.partial_length = 0;
  convertor.remoteArch = local->remoteArch;
  convertor.master = local->master;
  convertor.local_size = bytes;
  convertor.remote_size = bytes;
  convertor.pDesc = &datatype->super;
  convertor.use_desc = &datatype->super.opt_desc;
  convertor.count = count;
  convertor.pBaseBuf = static_cast<unsigned char*>(const_cast<void*>(data));
  convertor.bConverted = 0;
}

// The convertor of contiguous messages, kept because of one like the last only the place changes.
// Not used with several threads.
opal_convertor_t kept_convertor;
bool is_kept_for_box;

[[gnu::noinline]] void describe_in_kept_anew(const void* data, std::size_t bytes,
                                             const ompi_datatype_t* datatype, std::size_t count,
                                             bool box) {
  describe(kept_convertor, data, bytes, datatype, count, box);
  is_kept_for_box = box;
}

inline void describe_in_kept(const void* data, std::size_t bytes, const ompi_datatype_t* datatype,
                             std::size_t count, bool box) {
  // What else its users change they change when they have converted something.
  const bool is_like_last = kept_convertor.pDesc == &datatype->super &&
                            kept_convertor.count == count && kept_convertor.local_size == bytes &&
                            kept_convertor.bConverted == 0 && is_kept_for_box == box;
  if (!is_like_last) [[unlikely]]
    return describe_in_kept_anew(data, bytes, datatype, count, box);
  if (kept_convertor.pBaseBuf != data) {
    kept_convertor.pBaseBuf = static_cast<unsigned char*>(const_cast<void*>(data));
  }
}

inline Inline result_of(int status) {
  return status == OMPI_SUCCESS ? Inline::kSent : Inline::kFull;
}

inline int hand_over(const mca_bml_base_btl_t* link, opal_convertor_t& convertor,
                     const EagerHeader& header, std::size_t bytes) {
  return link->btl->btl_sendi(link->btl, link->btl_endpoint, &convertor,
                              const_cast<EagerHeader*>(&header), sizeof(header), bytes,
                              MCA_BTL_NO_ORDER, kFirstPacketFlags, kEager, nullptr);
}

// With a convertor of its own: data to be packed, or several threads.
[[gnu::noinline]] Inline send_described(const mca_bml_base_btl_t* link, const EagerHeader& header,
                                        Message message, bool box) {
  const Layout layout = message.layout();
  opal_convertor_t convertor;
  if (layout.contiguous) {
    describe(convertor, message.data, layout.bytes, message.datatype, message.count, box);
    return result_of(hand_over(link, convertor, header, layout.bytes));
  }
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_send(ompi_proc_local_proc->super.proc_convertor,
                                           &message.datatype->super, message.count, message.data, 0,
                                           &convertor);
  const int status = hand_over(link, convertor, header, layout.bytes);
  opal_convertor_cleanup(&convertor);
  return result_of(status);
}

// One try to put a whole message into a BTL without any request. The data has left the user's
// buffer on success. If there was no room, the caller gives back the credit.
template <bool kThreads>
[[gnu::always_inline]] inline Inline send_inline(mca_bml_base_endpoint_t* endpoint,
                                                 const EagerHeader& header,
                                                 const Message& message) {
  const Layout layout = message.layout();
  mca_bml_base_btl_t* link = mca_bml_base_btl_array_get_next(&endpoint->btl_eager);
  if (link->btl->btl_sendi == nullptr || layout.bytes > plugin.parameters.send_inline_limit ||
      !leaves_at_once(endpoint, link->btl, sizeof(header) + layout.bytes)) {
    return Inline::kNo;
  }
  if (!spend_for(endpoint, layout.bytes)) return Inline::kNo;
  // A BTL with a small box for messages in a hurry (vader) puts those into it whose data needs
  // no packing. A few large messages would fill it, and then all wait for its owner.
  const bool box = !message.many || layout.bytes <= plugin.parameters.send_box_limit;
  if (!box) take_back_packet(endpoint, link, sizeof(header) + layout.bytes);
  if (kThreads || !layout.contiguous) [[unlikely]] {
    return send_described(link, header, message, box);
  }
  // Without data ob1 describes none either: no BTL may ask.
  if (layout.bytes != 0) {
    describe_in_kept(message.data, layout.bytes, message.datatype, message.count, box);
  }
  return result_of(hand_over(link, kept_convertor, header, layout.bytes));
}

// Further tries after one that found no room. A peer that is behind with many messages makes
// room in less time than it takes to queue the message, have it sent by progress and be told that
// it has gone. One that does not listen is waited for once, not by each message.
[[gnu::noinline]] Inline send_inline_soon(mca_bml_base_endpoint_t* endpoint,
                                          const EagerHeader& header, Message message) {
  constexpr unsigned kTries = 32;
  constexpr unsigned kPollsPerTry = 4;
  const std::uint64_t charge = charge_of(message.layout().bytes);
  refund_for(endpoint, charge);
  const auto poll = endpoint->btl_eager.bml_btls[0].btl->btl_component->btl_progress;
  if (poll == nullptr || deaf_peer == endpoint) return Inline::kNo;
  for (unsigned tries = 0; tries < kTries; ++tries) {
    for (unsigned i = 0; i < kPollsPerTry; ++i) poll();
    const Inline result = send_inline<false>(endpoint, header, message);
    if (result != Inline::kFull) return result;
    refund_for(endpoint, charge);
  }
  deaf_peer = endpoint;
  return Inline::kNo;
}

[[gnu::noinline]] void has_room(const mca_bml_base_endpoint_t* endpoint) {
  if (deaf_peer == endpoint) deaf_peer = nullptr;
}

// With a single thread; the header gets the message's number.
[[gnu::always_inline]] inline Inline send_alone(mca_bml_base_endpoint_t* endpoint,
                                                const Message& message, EagerHeader& header) {
  if (!number<false>(message.comm, message.peer, message.tag, header)) [[unlikely]]
    return Inline::kFailed;
  Inline result = send_inline<false>(endpoint, header, message);
  if (result == Inline::kFull) [[unlikely]] {
    result = send_inline_soon(endpoint_of(message.comm, message.peer), header, message);
  }
  if (deaf_peer != nullptr && result == Inline::kSent) [[unlikely]]
    has_room(endpoint_of(message.comm, message.peer));
  return result;
}

// ---- the same among several threads ------------------------------------------

// A message to the process itself is matched before the call that sends it returns. So it needs no
// number to stay behind what its thread has sent before, unless that is on its way still, and
// threads do not meet at the counters. False: it needs one.
bool needs_no_number(const Message& message, EagerHeader& header) {
  CommunicatorState& state = *state_of(message.comm);
  Peer* const self = state.peers.find(message.peer);
  if (self == nullptr) return false;
  // Another thread's message with a number is soon there; more numbers would follow it if nobody
  // waited, for somebody's message would always be on its way.
  constexpr unsigned kLooks = 8;
  for (unsigned looks = 1;; ++looks) {
    // acquire, of arrived: pairs with the release in note_matched().
    if (load(self->sent) == load(self->arrived)) break;
    if (looks == kLooks) return false;
    Backoff::pause();
  }
  header = {state.context_id | kUnordered, message.comm->c_my_rank, message.tag, 0};
  return true;
}

// Like send_alone(), but for the further tries: the peer's room is other threads' as well. Inlined,
// because a message that goes through memory costs 10 ns more.
[[gnu::always_inline]] inline Inline send_among_threads(mca_bml_base_endpoint_t* endpoint,
                                                        const Message& message,
                                                        EagerHeader& header) {
  const auto send = [&] {
    const Inline result = send_inline<true>(endpoint, header, message);
    if (result == Inline::kFull) refund_for(endpoint, charge_of(message.layout().bytes));
    return result;
  };
  if (endpoint->btl_eager.bml_btls[0].btl == plugin.self_btl) {
    if (needs_no_number(message, header) && send() == Inline::kSent) return Inline::kSent;
    return number(message.comm, message.peer, message.tag, header) ? send() : Inline::kFailed;
  }
  const PeerTurn turn(endpoint);
  return number(message.comm, message.peer, message.tag, header) ? send() : Inline::kFailed;
}

template <bool kThreads>
[[gnu::always_inline]] inline Inline send_at_once(mca_bml_base_endpoint_t* endpoint,
                                                  const Message& message, EagerHeader& header) {
  if constexpr (kThreads) return send_among_threads(endpoint, message, header);
  return send_alone(endpoint, message, header);
}

// Copies a buffered message into the user's attached buffer. From then on it is the user's
// buffer no more, and the request is complete for the user.
int buffer(SendRequest& request) {
  if (request.layout.bytes == 0) return OMPI_SUCCESS;
  // Not mca_pml_base_bsend_request_start, which packs as well: it counts the request without its
  // lock, and when two threads meet there, detaching waits forever.
  const int status = mca_pml_base_bsend_request_alloc(&request.ompi());
  if (status != OMPI_SUCCESS) return status;
  void* copy = const_cast<void*>(request.base.req_addr);
  opal_convertor_t& convertor = request.base.req_base.req_convertor;
  iovec piece = {static_cast<IOVBASE_TYPE*>(copy), request.layout.bytes};
  std::uint32_t pieces = 1;
  std::size_t packed = request.layout.bytes;
  if (opal_convertor_pack(&convertor, &piece, &pieces, &packed) < 0) {
    mca_pml_base_bsend_request_fini(&request.ompi());
    return OMPI_ERROR;
  }
  opal_convertor_prepare_for_send(&convertor, &ompi_mpi_packed.dt.super, packed, copy);
  request.layout.memory = static_cast<unsigned char*>(copy);
  request.layout.contiguous = true;
  return OMPI_SUCCESS;
}

}  // namespace

extern "C" int tagline_isend_init(const void* data, std::size_t count, ompi_datatype_t* datatype,
                                  int peer, int tag, mca_pml_base_send_mode_t mode,
                                  ompi_communicator_t* comm, ompi_request_t** handle) {
  SendRequest* request = send_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  prepare(*request, data, count, datatype, peer, tag, mode, comm, true);
  *handle = &request->ompi();
  return OMPI_SUCCESS;
}

namespace {

// Take the sequence number last: once taken, the message must be sent, or the receiver waits for
// that number forever.
// numbered: the header of tries that were in vain, or NULL.
int number_and_start(SendRequest& request, const EagerHeader* numbered) {
  mca_pml_base_request_t& base = request.base.req_base;
  base.req_pml_complete = false;
  request.life = 0;
  request.ompi().req_complete = REQUEST_PENDING;
  request.ompi().req_state = OMPI_REQUEST_ACTIVE;
  request.ompi().req_status._cancelled = 0;
  const bool buffered = request.base.req_send_mode == MCA_PML_BASE_SEND_BUFFERED;
  int status = buffered ? buffer(request) : OMPI_SUCCESS;
  EagerHeader header;
  if (status == OMPI_SUCCESS && numbered == nullptr &&
      !number(base.req_comm, base.req_peer, base.req_tag, header)) {
    status = OMPI_ERR_OUT_OF_RESOURCE;
  }
  if (status != OMPI_SUCCESS) {
    base.req_pml_complete = true;
    request.life = kComponentDone;
    request.ompi().req_complete = REQUEST_COMPLETED;
    request.ompi().req_state = OMPI_REQUEST_INACTIVE;
    return status;
  }
  if (numbered == nullptr) numbered = &header;
  request.context = numbered->context;
  request.sequence = numbered->sequence;
  base.req_sequence = numbered->sequence;
  if (buffered && request.layout.bytes != 0) complete_for_user(request);
  return start(request);
}

// With a request; numbered: see number_and_start().
[[gnu::noinline]] int isend_request(const void* data, std::size_t count, ompi_datatype_t* datatype,
                                    int peer, int tag, mca_pml_base_send_mode_t mode,
                                    ompi_communicator_t* comm, ompi_request_t** handle,
                                    const EagerHeader* numbered) {
  SendRequest* request = send_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  prepare(*request, data, count, datatype, peer, tag, mode, comm, false);
  request->endpoint = endpoint_of(comm, peer);
  const int status = number_and_start(*request, numbered);
  if (status != OMPI_SUCCESS) {
    recycle(*request);
    return status;
  }
  *handle = &request->ompi();
  return OMPI_SUCCESS;
}

// Waits for a message that could not be sent at once.
[[gnu::noinline]] int send_request(const void* data, std::size_t count, ompi_datatype_t* datatype,
                                   int peer, mca_pml_base_send_mode_t mode,
                                   ompi_communicator_t* comm, const EagerHeader& numbered) {
  SendRequest* request = nullptr;
  if (!plugin.threads) {
    request = blocking_request;
    blocking_request = nullptr;
  }
  if (request == nullptr) request = send_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  prepare(*request, data, count, datatype, peer, numbered.tag, mode, comm, false);
  request->endpoint = endpoint_of(comm, peer);
  request->blocking = true;
  int status = number_and_start(*request, &numbered);
  if (status != OMPI_SUCCESS) {
    recycle(*request);
    return status;
  }
  wait(request->ompi(), request->endpoint);
  status = request->ompi().req_status.MPI_ERROR;
  if (!plugin.threads && blocking_request == nullptr) {
    unprepare(*request);
    blocking_request = request;
  } else {
    ompi_request_t* handle = &request->ompi();
    ompi_request_free(&handle);
  }
  return status;
}

// kThreads: plugin.threads. Each by itself and a jump away, so that neither saves registers for the
// other.
template <bool kThreads>
[[gnu::noinline]] int isend(const void* data, std::size_t count, ompi_datatype_t* datatype,
                            int peer, int tag, mca_pml_base_send_mode_t mode,
                            ompi_communicator_t* comm, ompi_request_t** handle) {
  mca_bml_base_endpoint_t* endpoint = endpoint_of(comm, peer);
  if (endpoint == nullptr) [[unlikely]]
    return OMPI_ERR_UNREACH;
  if (mode == MCA_PML_BASE_SEND_SYNCHRONOUS || mode == MCA_PML_BASE_SEND_BUFFERED) [[unlikely]] {
    return isend_request(data, count, datatype, peer, tag, mode, comm, handle, nullptr);
  }
  EagerHeader header;
  const Inline result =
      send_at_once<kThreads>(endpoint, {data, count, datatype, peer, tag, comm, true}, header);
  if (result == Inline::kFailed) [[unlikely]]
    return OMPI_ERR_OUT_OF_RESOURCE;
  if (result != Inline::kSent) [[unlikely]] {
    return isend_request(data, count, datatype, peer, header.tag, mode, comm, handle, &header);
  }
  // Nothing of a completed send's status is defined, so all such sends share one request.
  *handle = &ompi_request_empty;
  return OMPI_SUCCESS;
}

template <bool kThreads>
[[gnu::noinline]] int send(const void* data, std::size_t count, ompi_datatype_t* datatype, int peer,
                           int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm) {
  if (mode == MCA_PML_BASE_SEND_BUFFERED) [[unlikely]] {
    ompi_request_t* handle = nullptr;
    const int status = tagline_isend(data, count, datatype, peer, tag, mode, comm, &handle);
    if (status != OMPI_SUCCESS) return status;
    wait(*handle, nullptr);
    return ompi_request_free(&handle);
  }
  mca_bml_base_endpoint_t* endpoint = endpoint_of(comm, peer);
  if (endpoint == nullptr) [[unlikely]]
    return OMPI_ERR_UNREACH;
  EagerHeader header;
  Inline result = Inline::kNo;
  if (mode != MCA_PML_BASE_SEND_SYNCHRONOUS) [[likely]] {
    result =
        send_at_once<kThreads>(endpoint, {data, count, datatype, peer, tag, comm, false}, header);
    if (result == Inline::kSent) [[likely]]
      return OMPI_SUCCESS;
  } else if (!number(comm, peer, tag, header)) {
    result = Inline::kFailed;
  }
  if (result == Inline::kFailed) return OMPI_ERR_OUT_OF_RESOURCE;
  return send_request(data, count, datatype, peer, mode, comm, header);
}

}  // namespace

extern "C" int tagline_isend(const void* data, std::size_t count, ompi_datatype_t* datatype,
                             int peer, int tag, mca_pml_base_send_mode_t mode,
                             ompi_communicator_t* comm, ompi_request_t** handle) {
  return plugin.threads ? isend<true>(data, count, datatype, peer, tag, mode, comm, handle)
                        : isend<false>(data, count, datatype, peer, tag, mode, comm, handle);
}

extern "C" int tagline_send(const void* data, std::size_t count, ompi_datatype_t* datatype,
                            int peer, int tag, mca_pml_base_send_mode_t mode,
                            ompi_communicator_t* comm) {
  return plugin.threads ? send<true>(data, count, datatype, peer, tag, mode, comm)
                        : send<false>(data, count, datatype, peer, tag, mode, comm);
}

int start_persistent(SendRequest& request) {
  mca_pml_base_request_t& base = request.base.req_base;
  request.endpoint = endpoint_of(base.req_comm, base.req_peer);
  if (request.endpoint == nullptr) return OMPI_ERR_UNREACH;
  // The last run may have replaced the layout and the convertor by the attached buffer's.
  request.layout = Layout(base.req_addr, base.req_count, base.req_datatype);
  request.base.req_addr = base.req_addr;
  opal_convertor_cleanup(&base.req_convertor);
  opal_convertor_copy_and_prepare_for_send(ompi_proc_local_proc->super.proc_convertor,
                                           &base.req_datatype->super, base.req_count, base.req_addr,
                                           0, &base.req_convertor);
  return number_and_start(request, nullptr);
}

void return_blocking_send_request() {
  if (blocking_request == nullptr) return;
  send_requests.give(*blocking_request);
  blocking_request = nullptr;
}

}  // namespace tagline::pml
