// SPDX-License-Identifier: BSD-3-Clause
// Send and receive requests: Open MPI's base requests and what the protocols add.
//
// Life of a request. Two parties let go of it: the user (MPI_Wait, MPI_Request_free; then Open MPI
// calls req_free) and the component (the last byte has moved). Each sets its bit, whoever comes
// second recycles the request. A request that completes at the MPI level may be freed, and if
// persistent be started again, before the component has let go of it; tagline_start() then makes a
// new request.
//
// Inside the component a request counts references: one per event that is still to come. The
// event that drops the last one finishes the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "compat.h"
#include "copy_choice.hpp"
#include "match/tagline.h"
#include "pending.hpp"
#include "plugin.hpp"
#include "request_pool.hpp"

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
        contiguous((datatype->super.flags & OPAL_DATATYPE_FLAG_NO_GAPS) != 0 || bytes == 0 ||
                   (count == 1 && (datatype->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) != 0)) {}
};

// Moves to a position of the packed message, which becomes the one that was reached. Open
// MPI's convertor, which goes forward from where it is, loses its way in some layouts (seen in
// 4.1.4: data in wrong places where fragments overtake each other); from the beginning it does not.
inline void seek(opal_convertor_t& convertor, std::size_t& position) {
  if (position != convertor.bConverted) {
    std::size_t beginning = 0;
    opal_convertor_set_position(&convertor, &beginning);
  }
  opal_convertor_set_position(&convertor, &position);
}

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
  std::size_t bytes_left;  // not yet known to have been delivered
  std::uint32_t context;   // for headers: context id and kUnordered
  std::uint32_t sequence;
  bool blocking;                  // its sender stays inside MPI until it is complete
  std::uint64_t receive_request;  // the peer's, for fragments
  mca_bml_base_btl_t* registered_link;
  mca_btl_base_registration_handle_t* registration;  // of the whole buffer, for Get
  std::int32_t fragments;                            // in flight
  std::int32_t schedule_tokens;                      // who brings it from 0 to 1 schedules
  std::uint32_t next_link;
  Pending pending;  // start or schedule
  std::mutex ranges_lock;
  std::vector<Range> ranges;

  ompi_request_t& ompi() { return base.req_base.req_ompi; }
};

struct ReceiveRequest {
  mca_pml_base_recv_request_t base;  // first: Open MPI sees only this
  // What delivery of a small message touches of ours is one line.
  alignas(64) Layout layout;  // what the user offers
  std::uint32_t life;
  std::int32_t references;
  std::size_t message_bytes;   // what the sender sent
  std::size_t bytes_left;      // not yet received
  std::uint64_t send_request;  // the peer's
  mca_bml_base_endpoint_t* endpoint;
  std::uint64_t first_put;   // first byte that the sender writes itself
  std::uint64_t put_offset;  // next byte to ask for
  std::int32_t puts;         // in flight
  std::int32_t schedule_tokens;
  std::uint32_t next_link;
  CopyWay copy_way;
  std::uint64_t copy_began;  // when it was matched, if the copy is timed, nanoseconds; or 0
  Pending pending;           // schedule
  std::mutex unpack_lock;    // fragments of several links share one convertor

  ompi_request_t& ompi() { return base.req_base.req_ompi; }
};

// Sets up a request for one message; the datatype and the communicator are referenced until
// it is recycled.
void prepare(SendRequest& request, const void* buffer, std::size_t count, ompi_datatype_t* datatype,
             int peer, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t* comm,
             bool persistent);
inline void prepare(ReceiveRequest& request, void* buffer, std::size_t count,
                    ompi_datatype_t* datatype, int peer, int tag, ompi_communicator_t* comm,
                    bool persistent);

// The same for a blocking call, whose user keeps datatype and communicator alive; nothing has to be
// recycled but the convertor of a layout that is not contiguous.
inline void prepare_blocking(ReceiveRequest& request, void* buffer, std::size_t count,
                             ompi_datatype_t* datatype, int peer, int tag,
                             ompi_communicator_t* comm);

// Those that are free.
extern RequestPool<SendRequest> send_requests;
extern RequestPool<ReceiveRequest> receive_requests;

// Drops what prepare() referenced; recycle() also gives the request back to its pool.
void unprepare(SendRequest& request);
void unprepare(ReceiveRequest& request);
void recycle(SendRequest& request);
void recycle(ReceiveRequest& request);

// Completes a request at the MPI level. The user may free it at once, but it is recycled only when
// the component lets go of it as well.
//
// What is _alone, here and below, is for a caller who knows that there are not several threads. The
// question, and the registers that are saved for what it leads to, were 25 of the 60 instructions
// that it took to free a request.
inline void complete_alone(ompi_request_t& request, int error) {
  // Nobody can start to wait between the load and the store.
  if (request.req_complete_cb != nullptr) [[unlikely]] {
    ompi_request_complete_fn_t callback = request.req_complete_cb;
    request.req_complete_cb = nullptr;
    // The callback may have freed the request, or will complete it itself.
    if (callback(&request) != 0) return;
  }
  auto* waiting = const_cast<void*>(request.req_complete);
  request.req_complete = REQUEST_COMPLETED;
  if (waiting == REQUEST_PENDING || waiting == REQUEST_COMPLETED) return;
  auto& sync = *static_cast<ompi_wait_sync_t*>(waiting);
  if (error == OMPI_SUCCESS && sync.count > 1) {
    sync.count = sync.count - 1;
  } else {
    wait_sync_update(&sync, 1, error);
  }
}
inline void complete(ompi_request_t& request) {
  if (plugin.threads) [[unlikely]] {
    ompi_request_complete(&request, true);
  } else {
    complete_alone(request, request.req_status.MPI_ERROR);
  }
}

// The component does not touch the request any more.
template <class Request>
void let_go(Request& request) {
  if ((fetch_or<std::uint32_t>(request.life, kComponentDone) & kUserDone) != 0) recycle(request);
}

// MPI completion of a send, while the component may go on with the message (buffered sends).
void complete_for_user(SendRequest& request);

// Ends the job for the error of a request that the user has freed.
[[gnu::cold]] void abort_unseen_error(int error);

// The component is done: completes the request for the user and lets go of it. Nothing may touch
// the request afterwards.
void finish(SendRequest& request);

inline void finish(ReceiveRequest& request) {
  ompi_status_public_t& status = request.ompi().req_status;
  status._ucount = request.message_bytes;
  if (request.message_bytes > request.layout.bytes) [[unlikely]] {
    status.MPI_ERROR = MPI_ERR_TRUNCATE;
    if ((load(request.life) & kUserDone) != 0) abort_unseen_error(MPI_ERR_TRUNCATE);
  }
  request.base.req_base.req_pml_complete = true;
  complete(request.ompi());
  let_go(request);
}
// For a message that fits.
inline void finish_alone(ReceiveRequest& request, std::size_t message_bytes) {
  request.ompi().req_status._ucount = message_bytes;
  request.base.req_base.req_pml_complete = true;
  complete_alone(request.ompi(), OMPI_SUCCESS);
  const std::uint32_t life = request.life;
  request.life = life | kComponentDone;
  if ((life & kUserDone) != 0) recycle(request);
}

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
//
// endpoint: the peer if it is known. If its BTL has to be polled, that is done more often than the
// rest of Open MPI's progress loop, which costs several times as much; or NULL.
void wait(ompi_request_t& request, const mca_bml_base_endpoint_t* endpoint);

// ---- what every nonblocking call does --------------------------------------

// Open MPI's reference count. Several threads may use Open MPI although only one is in here, but
// then they have said so: see plugin.threads.
inline volatile std::int32_t& references_of(ompi_communicator_t* comm) {
  return reinterpret_cast<opal_object_t*>(comm)->obj_reference_count;
}
inline void retain(ompi_communicator_t* comm) {
  if (plugin.threads) [[unlikely]] {
    OBJ_RETAIN(comm);
  } else {
    references_of(comm) = references_of(comm) + 1;
  }
}

inline void describe(mca_pml_base_request_t& base, const void* buffer, std::size_t count,
                     ompi_datatype_t* datatype, int peer, int tag, ompi_communicator_t* comm,
                     bool persistent) {
  OMPI_REQUEST_INIT(&base.req_ompi, persistent);
  base.req_ompi.req_mpi_object.comm = comm;
  // A persistent request that has not been started belongs to the user alone.
  base.req_pml_complete = persistent;
  base.req_free_called = false;
  base.req_comm = comm;
  base.req_datatype = datatype;
  base.req_addr = const_cast<void*>(buffer);
  base.req_count = count;
  base.req_peer = peer;
  base.req_tag = tag;
}

inline void prepare_base(mca_pml_base_request_t& base, const void* buffer, std::size_t count,
                         ompi_datatype_t* datatype, int peer, int tag, ompi_communicator_t* comm,
                         bool persistent) {
  retain(comm);
  OMPI_DATATYPE_RETAIN(datatype);
  describe(base, buffer, count, datatype, peer, tag, comm, persistent);
}

// For data that is not contiguous; what is, is copied without the convertor.
void prepare_convertor(ReceiveRequest& request);

// All but the convertor.
[[gnu::always_inline]] inline void prepare_plain(ReceiveRequest& request, void* buffer,
                                                 std::size_t count, ompi_datatype_t* datatype,
                                                 int peer, int tag, ompi_communicator_t* comm,
                                                 bool persistent) {
  prepare_base(request.base.req_base, buffer, count, datatype, peer, tag, comm, persistent);
  request.life = persistent ? std::uint32_t{kComponentDone} : 0;
  request.layout = Layout(buffer, count, datatype);
}

inline void prepare(ReceiveRequest& request, void* buffer, std::size_t count,
                    ompi_datatype_t* datatype, int peer, int tag, ompi_communicator_t* comm,
                    bool persistent) {
  prepare_plain(request, buffer, count, datatype, peer, tag, comm, persistent);
  if (!request.layout.contiguous) prepare_convertor(request);
}

inline void prepare_blocking(ReceiveRequest& request, void* buffer, std::size_t count,
                             ompi_datatype_t* datatype, int peer, int tag,
                             ompi_communicator_t* comm) {
  describe(request.base.req_base, buffer, count, datatype, peer, tag, comm, false);
  request.layout = Layout(buffer, count, datatype);
  if (!request.layout.contiguous) prepare_convertor(request);
}

opal_class_t* send_request_class();
opal_class_t* receive_request_class();

extern "C" int tagline_start(std::size_t count, ompi_request_t** requests);

}  // namespace tagline::pml
