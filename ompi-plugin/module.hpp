// SPDX-License-Identifier: BSD-3-Clause
// The PML's calls, as Open MPI's function table wants them. Arguments were checked by the MPI
// layer; peers and sources are ranks (in the remote group of an intercommunicator) or
// MPI_ANY_SOURCE.
#pragma once

#include <cstddef>

#include "compat.h"
#include "request.hpp"

namespace tagline::pml {

extern "C" {

int tagline_enable(bool enable);
int tagline_add_procs(ompi_proc_t** procs, std::size_t count);
int tagline_del_procs(ompi_proc_t** procs, std::size_t count);

int tagline_isend_init(const void* data, std::size_t count, ompi_datatype_t* datatype, int peer,
                       int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
                       ompi_request_t** handle);
int tagline_isend(const void* data, std::size_t count, ompi_datatype_t* datatype, int peer, int tag,
                  mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
                  ompi_request_t** handle);
int tagline_send(const void* data, std::size_t count, ompi_datatype_t* datatype, int peer, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t* comm);

int tagline_irecv_init(void* data, std::size_t count, ompi_datatype_t* datatype, int source,
                       int tag, ompi_communicator_t* comm, ompi_request_t** handle);
int tagline_irecv(void* data, std::size_t count, ompi_datatype_t* datatype, int source, int tag,
                  ompi_communicator_t* comm, ompi_request_t** handle);
int tagline_recv(void* data, std::size_t count, ompi_datatype_t* datatype, int source, int tag,
                 ompi_communicator_t* comm, ompi_status_public_t* status);

int tagline_iprobe(int source, int tag, ompi_communicator_t* comm, int* matched,
                   ompi_status_public_t* status);
int tagline_probe_blocking(int source, int tag, ompi_communicator_t* comm,
                           ompi_status_public_t* status);
int tagline_improbe(int source, int tag, ompi_communicator_t* comm, int* matched,
                    ompi_message_t** message, ompi_status_public_t* status);
int tagline_mprobe(int source, int tag, ompi_communicator_t* comm, ompi_message_t** message,
                   ompi_status_public_t* status);
int tagline_imrecv(void* data, std::size_t count, ompi_datatype_t* datatype,
                   ompi_message_t** message, ompi_request_t** handle);
int tagline_mrecv(void* data, std::size_t count, ompi_datatype_t* datatype,
                  ompi_message_t** message, ompi_status_public_t* status);

}  // extern "C"

// Start an inactive persistent request.
int start_persistent(SendRequest& request);
int start_persistent(ReceiveRequest& request);

// Give the requests that blocking calls keep back to Open MPI's lists, before those go away.
void return_blocking_send_request();
void return_blocking_receive_request();

}  // namespace tagline::pml
