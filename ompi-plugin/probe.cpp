// SPDX-License-Identifier: BSD-3-Clause
// Probes look at, or take, unexpected messages; a message that is probed for never waits for it.
#include "communicator.hpp"
#include "module.hpp"
#include "observe.hpp"

namespace tagline::pml {
namespace {

void fill(ompi_status_public_t* status, const StoredArrival& stored) {
  if (status == MPI_STATUS_IGNORE) return;
  const Arrival arrival = stored.view();
  status->MPI_SOURCE = arrival.match().source;
  status->MPI_TAG = arrival.match().tag;
  status->_ucount = arrival.message_bytes();
  status->_cancelled = 0;
}

void fill_seen(void* status, tagline_side, tagline_envelope, void* message) {
  fill(static_cast<ompi_status_public_t*>(status), *static_cast<StoredArrival*>(message));
}

// The status is filled in while the message cannot leave: another thread might receive it.
tagline_status look(int source, int tag, ompi_communicator_t* comm, ompi_status_public_t* status) {
  CommunicatorState& state = *state_of(comm);
  const MatchTimer timer(state, TAGLINE_UNEXPECTED);
  return tagline_inspect(state.matcher, envelope_of(state, source, tag), fill_seen, status);
}

tagline_status take(int source, int tag, ompi_communicator_t* comm, StoredArrival** stored) {
  CommunicatorState& state = *state_of(comm);
  void* message = nullptr;
  const MatchTimer timer(state, TAGLINE_UNEXPECTED);
  const tagline_status found =
      tagline_claim(state.matcher, envelope_of(state, source, tag), &message, nullptr);
  if (found == TAGLINE_MATCHED) *stored = static_cast<StoredArrival*>(message);
  return found;
}

// Once with what is there, once more after progress, so that a loop around it sees news early.
template <class Search>
int search_twice(int* matched, const Search& search) {
  tagline_status found = search();
  if (found == TAGLINE_NOT_FOUND) {
    opal_progress();
    found = search();
  }
  *matched = found == TAGLINE_MATCHED;
  return found < 0 ? error_of(found) : OMPI_SUCCESS;
}

template <class Search>
int search_until_found(const Search& search) {
  while (true) {
    const tagline_status found = search();
    if (found == TAGLINE_MATCHED) return OMPI_SUCCESS;
    if (found < 0) return error_of(found);
    opal_progress();
  }
}

// The message handle that the user passes to MPI_Mrecv; keeps the communicator alive.
int wrap(ompi_communicator_t* comm, StoredArrival* stored, ompi_message_t** message,
         ompi_status_public_t* status) {
  fill(status, *stored);
  OBJ_RETAIN(comm);
  (*message)->comm = comm;
  (*message)->req_ptr = stored;
  (*message)->peer = stored->view().match().source;
  (*message)->count = stored->view().message_bytes();
  return OMPI_SUCCESS;
}

}  // namespace

extern "C" int tagline_iprobe(int source, int tag, ompi_communicator_t* comm, int* matched,
                              ompi_status_public_t* status) {
  return search_twice(matched, [&] { return look(source, tag, comm, status); });
}

extern "C" int tagline_probe_blocking(int source, int tag, ompi_communicator_t* comm,
                                      ompi_status_public_t* status) {
  return search_until_found([&] { return look(source, tag, comm, status); });
}

extern "C" int tagline_improbe(int source, int tag, ompi_communicator_t* comm, int* matched,
                               ompi_message_t** message, ompi_status_public_t* status) {
  // The handle first: once a message is taken there must be a place for it.
  ompi_message_t* handle = ompi_message_alloc();
  if (handle == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  StoredArrival* stored = nullptr;
  const int error = search_twice(matched, [&] { return take(source, tag, comm, &stored); });
  if (error != OMPI_SUCCESS || !*matched) {
    ompi_message_return(handle);
    *message = MPI_MESSAGE_NULL;
    return error;
  }
  *message = handle;
  return wrap(comm, stored, message, status);
}

extern "C" int tagline_mprobe(int source, int tag, ompi_communicator_t* comm,
                              ompi_message_t** message, ompi_status_public_t* status) {
  ompi_message_t* handle = ompi_message_alloc();
  if (handle == nullptr) return OMPI_ERR_OUT_OF_RESOURCE;
  StoredArrival* stored = nullptr;
  const int error = search_until_found([&] { return take(source, tag, comm, &stored); });
  if (error != OMPI_SUCCESS) {
    ompi_message_return(handle);
    return error;
  }
  *message = handle;
  return wrap(comm, stored, message, status);
}

}  // namespace tagline::pml
