// SPDX-License-Identifier: BSD-3-Clause
#include "request.hpp"

#include <new>
#include <type_traits>

#include "communicator.hpp"

namespace tagline::pml {
namespace {

// What most receives are when their user is done. True: there was nothing to do but count a
// reference and give the request back, and it is done.
[[gnu::always_inline]] inline bool recycle_at_once(ReceiveRequest& request) {
  const mca_pml_base_request_t& base = request.base.req_base;
  if (plugin.threads || (request.life & kComponentDone) == 0 ||
      base.req_ompi.req_f_to_c_index != MPI_UNDEFINED ||
      !ompi_datatype_is_predefined(base.req_datatype) || !request.layout.contiguous) [[unlikely]] {
    return false;
  }
  const std::int32_t references = references_of(base.req_comm);
  if (references == 1) [[unlikely]]
    return false;
  references_of(base.req_comm) = references - 1;
  request.ompi().req_state = OMPI_REQUEST_INVALID;
  receive_requests.give_alone(request);
  return true;
}

template <class Request>
[[gnu::noinline]] int free_further(Request& request) {
  if ((fetch_or<std::uint32_t>(request.life, kUserDone) & kComponentDone) != 0) recycle(request);
  return OMPI_SUCCESS;
}

template <class Request>
int free_request(ompi_request_t** handle) {
  auto* request = reinterpret_cast<Request*>(*handle);
  *handle = MPI_REQUEST_NULL;
  request->base.req_base.req_free_called = true;
  if constexpr (std::is_same_v<Request, ReceiveRequest>) {
    if (recycle_at_once(*request)) [[likely]]
      return OMPI_SUCCESS;
  }
  return free_further(*request);
}

int cancel_send(ompi_request_t*, int) {
  // As in most MPI libraries a send cannot be cancelled; MPI_Test_cancelled tells the user.
  return OMPI_SUCCESS;
}

int cancel_receive(ompi_request_t* handle, int) {
  auto* request = reinterpret_cast<ReceiveRequest*>(handle);
  const mca_pml_base_request_t& base = request->base.req_base;
  const CommunicatorState& state = *state_of(base.req_comm);
  // By what it asked for, which leads to its place in the queue. Not there: a message has matched
  // it, or it is not active. Both go on as if not cancelled.
  if (tagline_cancel_receive(state.matcher, envelope_of(state, base.req_peer, base.req_tag),
                             request) != TAGLINE_OK) {
    return OMPI_SUCCESS;
  }
  handle->req_status._cancelled = true;
  request->message_bytes = 0;
  finish(*request);
  return OMPI_SUCCESS;
}

// What no message changes.
void construct_base(mca_pml_base_request_t& base) {
  base.req_proc = nullptr;
  base.req_sequence = 0;
}

// Open MPI constructs free list elements in raw memory, once per element.
void construct_send(SendRequest* request) {
  request->base.req_base.req_type = MCA_PML_REQUEST_SEND;
  construct_base(request->base.req_base);
  request->ompi().req_start = tagline_start;
  request->ompi().req_free = free_request<SendRequest>;
  request->ompi().req_cancel = cancel_send;
  request->registration = nullptr;
  new (&request->pending) Pending;
  new (&request->ranges_lock) std::mutex;
  new (&request->ranges) std::vector<Range>;
}

void destruct_send(SendRequest* request) {
  request->ranges.~vector();
  request->ranges_lock.~mutex();
}

void construct_receive(ReceiveRequest* request) {
  request->base.req_base.req_type = MCA_PML_REQUEST_RECV;
  construct_base(request->base.req_base);
  request->ompi().req_start = tagline_start;
  request->ompi().req_free = free_request<ReceiveRequest>;
  request->ompi().req_cancel = cancel_receive;
  new (&request->pending) Pending;
  new (&request->unpack_lock) std::mutex;
}

void destruct_receive(ReceiveRequest* request) { request->unpack_lock.~mutex(); }

opal_class_t send_class = {"tagline_send_request",
                           OBJ_CLASS(mca_pml_base_send_request_t),
                           reinterpret_cast<opal_construct_t>(construct_send),
                           reinterpret_cast<opal_destruct_t>(destruct_send),
                           0,
                           0,
                           nullptr,
                           nullptr,
                           sizeof(SendRequest)};

opal_class_t receive_class = {"tagline_receive_request",
                              OBJ_CLASS(mca_pml_base_recv_request_t),
                              reinterpret_cast<opal_construct_t>(construct_receive),
                              reinterpret_cast<opal_destruct_t>(destruct_receive),
                              0,
                              0,
                              nullptr,
                              nullptr,
                              sizeof(ReceiveRequest)};

// The convertor of a receive into contiguous memory was not prepared, and is a line not touched.
inline void unprepare_base(mca_pml_base_request_t& base, bool convertor) {
  OMPI_REQUEST_FINI(&base.req_ompi);
  OMPI_DATATYPE_RELEASE(base.req_datatype);
  if (convertor) opal_convertor_cleanup(&base.req_convertor);
  OBJ_RELEASE(base.req_comm);
}

}  // namespace

constinit RequestPool<SendRequest> send_requests{mca_pml_base_send_requests};
constinit RequestPool<ReceiveRequest> receive_requests{mca_pml_base_recv_requests};

void prepare(SendRequest& request, const void* buffer, std::size_t count, ompi_datatype_t* datatype,
             int peer, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
             bool persistent) {
  prepare_base(request.base.req_base, buffer, count, datatype, peer, tag, comm, persistent);
  request.base.req_addr = buffer;
  request.base.req_send_mode = mode;
  request.layout = Layout(buffer, count, datatype);
  request.base.req_bytes_packed = request.layout.bytes;
  request.life = persistent ? std::uint32_t{kComponentDone} : 0;
  request.registration = nullptr;
  request.blocking = false;
  // Processes of one build exchange data as it lies in memory: any process's convertor will do.
  opal_convertor_copy_and_prepare_for_send(ompi_proc_local_proc->super.proc_convertor,
                                           &datatype->super, count, buffer, 0,
                                           &request.base.req_base.req_convertor);
}

void prepare_convertor(ReceiveRequest& request) {
  mca_pml_base_request_t& base = request.base.req_base;
  opal_convertor_copy_and_prepare_for_recv(ompi_proc_local_proc->super.proc_convertor,
                                           &base.req_datatype->super, base.req_count, base.req_addr,
                                           0, &base.req_convertor);
}

void unprepare(SendRequest& request) { unprepare_base(request.base.req_base, true); }
void unprepare(ReceiveRequest& request) {
  unprepare_base(request.base.req_base, !request.layout.contiguous);
}

void recycle(SendRequest& request) {
  unprepare(request);
  send_requests.give(request);
}

void recycle(ReceiveRequest& request) {
  unprepare(request);
  receive_requests.give(request);
}

namespace {
[[gnu::noinline]] void wait_among_threads(ompi_request_t& request) {
  ompi_request_wait_completion(&request);
}
[[gnu::noinline]] void wait_with_progress(const ompi_request_t& request) {
  while (!REQUEST_COMPLETE(&request)) opal_progress();
}
}  // namespace

void wait(ompi_request_t& request, const mca_bml_base_endpoint_t* endpoint) {
  if (plugin.threads) [[unlikely]]
    return wait_among_threads(request);
  mca_btl_base_component_progress_fn_t poll = nullptr;
  if (endpoint != nullptr) {
    poll = endpoint->btl_eager.bml_btls[0].btl->btl_component->btl_progress;
  }
  if (poll == nullptr) [[unlikely]]
    return wait_with_progress(request);
  // The whole loop costs several polls, and an answer that comes meanwhile waits for its end. What
  // takes longer than an answer is not in such a hurry, and then polling would only take lines
  // away from a peer that works on many messages.
  constexpr unsigned kPolls = 64;
  constexpr unsigned kPollsPerProgress = 32;
  for (unsigned polls = 1; !REQUEST_COMPLETE(&request); ++polls) {
    if (polls > kPolls || polls % kPollsPerProgress == 0) {
      opal_progress();
    } else {
      poll();
    }
  }
}

void complete_for_user(SendRequest& request) {
  ompi_status_public_t& status = request.ompi().req_status;
  status.MPI_SOURCE = request.base.req_base.req_comm->c_my_rank;
  status.MPI_TAG = request.base.req_base.req_tag;
  status.MPI_ERROR = OMPI_SUCCESS;
  status._ucount = request.layout.bytes;
  complete(request.ompi());
}

void finish(SendRequest& request) {
  if (request.registration != nullptr) {
    mca_bml_base_deregister_mem(request.registered_link, request.registration);
    request.registration = nullptr;
  }
  const bool buffered = request.base.req_addr != request.base.req_base.req_addr;
  if (buffered) mca_pml_base_bsend_request_fini(&request.ompi());
  request.base.req_base.req_pml_complete = true;
  // Buffered sends completed for the user when they were started.
  if (!buffered) complete_for_user(request);
  let_go(request);
}

void abort_unseen_error(int error) { ompi_mpi_abort(&ompi_mpi_comm_world.comm, error); }

opal_class_t* send_request_class() { return &send_class; }
opal_class_t* receive_request_class() { return &receive_class; }

}  // namespace tagline::pml
