// SPDX-License-Identifier: BSD-3-Clause
// The PML's receive calls.
#include "communicator.hpp"
#include "hot_cache.hpp"
#include "match/operations.hpp"
#include "module.hpp"
#include "observe.hpp"
#include "receive_protocol.hpp"

namespace tagline::pml {
namespace {

// As for sends: the request of blocking receives, kept between calls.
ReceiveRequest* blocking_request = nullptr;

// A request that has been described and not yet been started is active.
inline void activate_new(ReceiveRequest& request) {
  request.ompi().req_state = OMPI_REQUEST_ACTIVE;
  ompi_status_public_t& status = request.ompi().req_status;
  status.MPI_SOURCE = OMPI_ANY_SOURCE;
  status.MPI_TAG = OMPI_ANY_TAG;
  status.MPI_ERROR = OMPI_SUCCESS;
  status._cancelled = 0;
  status._ucount = 0;
}
void activate(ReceiveRequest& request) {
  request.base.req_base.req_pml_complete = false;
  request.life = 0;
  request.ompi().req_complete = REQUEST_PENDING;
  activate_new(request);
}

[[gnu::noinline, gnu::cold]] void deactivate(ReceiveRequest& request) {
  request.base.req_base.req_pml_complete = true;
  request.life = kComponentDone;
  request.ompi().req_complete = REQUEST_COMPLETED;
  request.ompi().req_state = OMPI_REQUEST_INACTIVE;
}

[[gnu::noinline]] int take_stored(ReceiveRequest& request, void* message) {
  auto* stored = static_cast<StoredArrival*>(message);
  deliver(request, stored->view());
  discard(stored);
  return OMPI_SUCCESS;
}

// The matcher's own operation: what the library's call in front of it checks is so.
inline tagline_status find_message(CommunicatorState& state, ReceiveRequest& request,
                                   void** message) {
  const mca_pml_base_request_t& base = request.base.req_base;
  return state.matcher->post_receive(envelope_of(state, base.req_peer, base.req_tag), &request,
                                     message, nullptr);
}
// The same, timed if the user has asked for that.
[[gnu::noinline]] tagline_status find_message_timed(CommunicatorState& state,
                                                    ReceiveRequest& request, void** message) {
  const MatchTimer timer(state, TAGLINE_UNEXPECTED);
  return find_message(state, request, message);
}

// Behind find_message(), if it is not queued.
int conclude_post(ReceiveRequest& request, tagline_status status, void* message) {
  if (status == TAGLINE_MATCHED) return take_stored(request, message);
  deactivate(request);
  return error_of(status);
}

// An active request takes an unexpected message or waits in the matcher. After success it may be
// complete.
int post(ReceiveRequest& request) {
  wake_heater();
  CommunicatorState& state = *state_of(request.base.req_base.req_comm);
  void* message = nullptr;
  const tagline_status status = plugin.plain ? find_message(state, request, &message)
                                             : find_message_timed(state, request, &message);
  if (status == TAGLINE_QUEUED) return OMPI_SUCCESS;
  return conclude_post(request, status, message);
}

// A request for a blocking call.
ReceiveRequest* take_blocking_request() {
  if (plugin.threads || blocking_request == nullptr) return receive_requests.take();
  ReceiveRequest* request = blocking_request;
  blocking_request = nullptr;
  return request;
}

[[gnu::noinline]] void return_blocking_request_to_pool(ReceiveRequest& request) {
  if (!request.layout.contiguous) opal_convertor_cleanup(&request.base.req_base.req_convertor);
  receive_requests.give(request);
}
inline void return_blocking_request(ReceiveRequest& request) {
  // The user of a blocking call holds communicator and datatype, there is nothing to release.
  request.ompi().req_state = OMPI_REQUEST_INVALID;
  if (plugin.threads || blocking_request != nullptr || !request.layout.contiguous) [[unlikely]]
    return return_blocking_request_to_pool(request);
  blocking_request = &request;
}

// The sender's endpoint if there already is one; waiting must not open connections.
const mca_bml_base_endpoint_t* connected(const mca_pml_base_request_t& base) {
  if (base.req_peer == OMPI_ANY_SOURCE) return nullptr;
  const ompi_proc_t* proc = ompi_comm_peer_lookup(base.req_comm, base.req_peer);
  return static_cast<const mca_bml_base_endpoint_t*>(
      proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_BML]);
}

// Waits, tells the result and lets go of the request.
int conclude(ReceiveRequest& request, ompi_status_public_t* status) {
  ompi_request_t& ompi = request.ompi();
  if (!REQUEST_COMPLETE(&ompi)) wait(ompi, connected(request.base.req_base));
  if (status != MPI_STATUS_IGNORE) OMPI_COPY_STATUS(status, ompi.req_status, false);
  const int error = ompi.req_status.MPI_ERROR;
  // Another thread may have completed it and not let go yet.
  while (plugin.threads && (load(request.life) & kComponentDone) == 0) opal_progress();
  return_blocking_request(request);
  return error;
}

// Gives a message that a probe has taken to a request.
void receive_message(ReceiveRequest& request, void* data, std::size_t count,
                     ompi_datatype_t* datatype, ompi_message_t** message) {
  ompi_communicator_t* comm = (*message)->comm;
  auto* stored = static_cast<StoredArrival*>((*message)->req_ptr);
  const EagerHeader& header = stored->view().match();
  prepare(request, data, count, datatype, header.source, header.tag, comm, false);
  ompi_message_return(*message);
  *message = MPI_MESSAGE_NULL;
  OBJ_RELEASE(comm);  // the probe's; the request has its own
  activate(request);
  deliver(request, stored->view());
  discard(stored);
}

}  // namespace

extern "C" int tagline_irecv_init(void* data, std::size_t count, ompi_datatype_t* datatype,
                                  int source, int tag, ompi_communicator_t* comm,
                                  ompi_request_t** handle) {
  ReceiveRequest* request = receive_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  prepare(*request, data, count, datatype, source, tag, comm, true);
  *handle = &request->ompi();
  return OMPI_SUCCESS;
}

namespace {

int finish_post(ReceiveRequest& request, ompi_request_t** handle, int status) {
  if (status != OMPI_SUCCESS) [[unlikely]] {
    recycle(request);
    *handle = MPI_REQUEST_NULL;
  }
  return status;
}
[[gnu::noinline]] int post_otherwise(ReceiveRequest& request, ompi_request_t** handle) {
  if (!request.layout.contiguous) prepare_convertor(request);
  return finish_post(request, handle, post(request));
}
[[gnu::noinline]] int take_instead(ReceiveRequest& request, ompi_request_t** handle,
                                   tagline_status status, void* message) {
  return finish_post(request, handle, conclude_post(request, status, message));
}

[[gnu::always_inline]] inline int irecv_with(ReceiveRequest& request, void* data, std::size_t count,
                                             ompi_datatype_t* datatype, int source, int tag,
                                             ompi_communicator_t* comm, ompi_request_t** handle) {
  prepare_plain(request, data, count, datatype, source, tag, comm, false);
  activate_new(request);
  *handle = &request.ompi();
  if (!plugin.plain || plugin.heater != nullptr || !request.layout.contiguous) [[unlikely]]
    return post_otherwise(request, handle);
  void* message;
  const tagline_status status = find_message(*state_of(comm), request, &message);
  if (status == TAGLINE_QUEUED) return OMPI_SUCCESS;
  return take_instead(request, handle, status, message);
}

// There is no request at hand.
[[gnu::noinline]] int irecv_soon(void* data, std::size_t count, ompi_datatype_t* datatype,
                                 int source, int tag, ompi_communicator_t* comm,
                                 ompi_request_t** handle) {
  ReceiveRequest* request = receive_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  return irecv_with(*request, data, count, datatype, source, tag, comm, handle);
}

}  // namespace

extern "C" int tagline_irecv(void* data, std::size_t count, ompi_datatype_t* datatype, int source,
                             int tag, ompi_communicator_t* comm, ompi_request_t** handle) {
  ReceiveRequest* request = receive_requests.take_at_hand();
  if (request == nullptr) [[unlikely]]
    return irecv_soon(data, count, datatype, source, tag, comm, handle);
  return irecv_with(*request, data, count, datatype, source, tag, comm, handle);
}

extern "C" int tagline_recv(void* data, std::size_t count, ompi_datatype_t* datatype, int source,
                            int tag, ompi_communicator_t* comm, ompi_status_public_t* status) {
  ReceiveRequest* request = take_blocking_request();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  prepare_blocking(*request, data, count, datatype, source, tag, comm);
  activate(*request);
  const int error = post(*request);
  if (error != OMPI_SUCCESS) {
    return_blocking_request(*request);
    return error;
  }
  return conclude(*request, status);
}

extern "C" int tagline_imrecv(void* data, std::size_t count, ompi_datatype_t* datatype,
                              ompi_message_t** message, ompi_request_t** handle) {
  ReceiveRequest* request = receive_requests.take();
  if (request == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  *handle = &request->ompi();
  receive_message(*request, data, count, datatype, message);
  return OMPI_SUCCESS;
}

extern "C" int tagline_mrecv(void* data, std::size_t count, ompi_datatype_t* datatype,
                             ompi_message_t** message, ompi_status_public_t* status) {
  ompi_request_t* handle = nullptr;
  const int error = tagline_imrecv(data, count, datatype, message, &handle);
  return error != OMPI_SUCCESS ? error : ompi_request_wait(&handle, status);
}

int start_persistent(ReceiveRequest& request) {
  if (!request.layout.contiguous) {
    std::size_t position = 0;
    opal_convertor_set_position(&request.base.req_base.req_convertor, &position);
  }
  activate(request);
  return post(request);
}

void return_blocking_receive_request() {
  if (blocking_request == nullptr) return;
  receive_requests.give(*blocking_request);
  blocking_request = nullptr;
}

}  // namespace tagline::pml
