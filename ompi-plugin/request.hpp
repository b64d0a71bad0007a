// SPDX-License-Identifier: BSD-3-Clause
// Send and receive requests: Open MPI's base requests and what the protocols add.
//
// Life of a request. Two parties let go of it: the user (MPI_Wait, MPI_Request_free; then Open MPI
// calls req_free) and the component (the last byte has moved). Each sets its bit, whoever comes
// second recycles the request. A request that completes at the MPI level may be freed, and if
// persistent be started again, before the component has let go of it; start() then makes a new
// request.
//
// Inside the component a request counts references: one per event that is still to come. The
// event that drops the last one finishes the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "compat.h"
#include "match/tagline.h"
#include "pending.hpp"
#include "plugin.hpp"

namespace tagline::pml {

enum Life : std::uint32_t {
  kComponentDone = 1,
  kUserDone = 2,
};

// How (buffer, count, datatype) lies in memory.
struct Layout {
  std::size_t bytes;      // packed
  unsigned char* memory;  // first byte; meaningful if contiguous
  bool contiguous;        // one piece of memory, in packed order

  Layout() = default;
  Layout(const void* buffer, std::size_t count, const ompi_datatype_t* datatype)
      : bytes(datatype->super.size * count),
        memory(static_cast<unsigned char*>(const_cast<void*>(buffer)) + datatype->super.true_lb),
        contiguous(bytes == 0 || (datatype->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) != 0 ||
                   (count == 1 && (datatype->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) != 0)) {}
};

// Bytes of the packed message that wait to be sent as fragments.
struct Range {
  std::uint64_t offset;
  std::uint64_t length;
};

struct SendRequest {
  mca_pml_base_send_request_t base;  // first: Open MPI sees only this
  mca_bml_base_endpoint_t* endpoint;
  Layout layout;
  std::uint32_t life;
  std::int32_t references;
  std::size_t bytes_left;         // not yet known to have been delivered
  std::uint32_t context;          // for headers: context id and kUnordered
  std::uint32_t sequence;
  std::uint64_t receive_request;  // the peer's, for fragments
  mca_bml_base_btl_t* registered_link;
  mca_btl_base_registration_handle_t* registration;  // of the whole buffer, for Get
  std::int32_t fragments;         // in flight
  std::int32_t schedule_tokens;   // who brings it from 0 to 1 schedules
  std::uint32_t next_link;
  Pending pending;                // start or schedule
  std::mutex ranges_lock;
  std::vector<Range> ranges;

  ompi_request_t& ompi() { return base.req_base.req_ompi; }
};

struct ReceiveRequest {
  mca_pml_base_recv_request_t base;  // first: Open MPI sees only this
  Layout layout;                     // what the user offers
  std::uint32_t life;
  std::int32_t references;
  tagline_handle handle;             // while it waits in the matcher
  std::size_t message_bytes;         // what the sender sent
  std::size_t bytes_left;            // not yet received
  std::uint64_t send_request;        // the peer's
  mca_bml_base_endpoint_t* endpoint;
  std::uint64_t first_put;           // first byte that the sender writes itself
  std::uint64_t put_offset;          // next byte to ask for
  std::int32_t puts;                 // in flight
  std::int32_t schedule_tokens;
  std::uint32_t next_link;
  Pending pending;                   // schedule
  std::mutex unpack_lock;            // fragments of several links share one convertor

  ompi_request_t& ompi() { return base.req_base.req_ompi; }
};

// Sets up a request for one message; the datatype and the communicator are referenced until
// it is recycled.
void prepare(SendRequest& request, const void* buffer, std::size_t count,
             ompi_datatype_t* datatype, int peer, int tag, mca_pml_base_send_mode_t mode,
             ompi_communicator_t* comm, bool persistent);
void prepare(ReceiveRequest& request, void* buffer, std::size_t count, ompi_datatype_t* datatype,
             int peer, int tag, ompi_communicator_t* comm, bool persistent);

// From Open MPI's free lists; NULL when they are exhausted.
SendRequest* allocate_send();
ReceiveRequest* allocate_receive();

// Drops what prepare() referenced; recycle() also gives the request back to its list.
void unprepare(SendRequest& request);
void unprepare(ReceiveRequest& request);
void recycle(SendRequest& request);
void recycle(ReceiveRequest& request);

// The component is done: complete the request for the user, who may free it at once. Nothing may
// touch the request afterwards.
void finish(SendRequest& request);
void finish(ReceiveRequest& request);

// MPI completion, while the component goes on with the message (buffered sends).
void complete_for_user(SendRequest& request);

template <class Request>
void release(Request& request) {
  if (subtract_fetch(request.references, 1) == 0) finish(request);
}

// Bytes have been delivered; the last ones drop a reference.
template <class Request>
void account(Request& request, std::size_t bytes) {
  if (bytes != 0 && subtract_fetch(request.bytes_left, bytes) == 0) release(request);
}

// Blocks until the request completes for the user. Makes progress.
inline void wait(ompi_request_t& request) {
  if (plugin.threads) {
    ompi_request_wait_completion(&request);
  } else {
    while (!REQUEST_COMPLETE(&request)) opal_progress();
  }
}

opal_class_t* send_request_class();
opal_class_t* receive_request_class();

extern "C" int tagline_start(std::size_t count, ompi_request_t** requests);

}  // namespace tagline::pml
