// SPDX-License-Identifier: BSD-3-Clause
// MPI_Start for persistent requests.
#include "module.hpp"

namespace tagline::pml {
namespace {

// Both kinds of request begin with it.
mca_pml_base_request_t& base_of(ompi_request_t* handle) {
  return *reinterpret_cast<mca_pml_base_request_t*>(handle);
}

// A buffered send is complete for the user while the component still works on it (and with several
// threads any request may be, for a moment). The old request then lives on without its user, and
// a new one takes its place.
int replace(ompi_request_t** handle) {
  mca_pml_base_request_t& old = base_of(*handle);
  ompi_request_t* fresh = nullptr;
  int status = OMPI_SUCCESS;
  if (old.req_type == MCA_PML_REQUEST_SEND) {
    const auto& send = *reinterpret_cast<SendRequest*>(*handle);
    status = tagline_isend_init(old.req_addr, old.req_count, old.req_datatype, old.req_peer,
                                old.req_tag, send.base.req_send_mode, old.req_comm, &fresh);
  } else {
    status = tagline_irecv_init(old.req_addr, old.req_count, old.req_datatype, old.req_peer,
                                old.req_tag, old.req_comm, &fresh);
  }
  if (status != OMPI_SUCCESS) return status;
  fresh->req_complete_cb = old.req_ompi.req_complete_cb;
  fresh->req_complete_cb_data = old.req_ompi.req_complete_cb_data;
  ompi_request_free(handle);
  *handle = fresh;
  return OMPI_SUCCESS;
}

template <class Request>
int start_one(ompi_request_t** handle) {
  auto* request = reinterpret_cast<Request*>(*handle);
  if ((load(request->life) & kComponentDone) == 0) {
    const int status = replace(handle);
    if (status != OMPI_SUCCESS) return status;
    request = reinterpret_cast<Request*>(*handle);
  }
  return start_persistent(*request);
}

}  // namespace

extern "C" int tagline_start(std::size_t count, ompi_request_t** requests) {
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i] == nullptr || requests[i]->req_type != OMPI_REQUEST_PML) continue;
    const int status = base_of(requests[i]).req_type == MCA_PML_REQUEST_SEND
                           ? start_one<SendRequest>(&requests[i])
                           : start_one<ReceiveRequest>(&requests[i]);
    if (status != OMPI_SUCCESS) return status;
  }
  return OMPI_SUCCESS;
}

}  // namespace tagline::pml
