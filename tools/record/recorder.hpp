// SPDX-License-Identifier: BSD-3-Clause
//
// What the recorder knows of the process it sits in: the trace, the communicators by handle
// and the receives by request. calls.cpp has the MPI calls that feed it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "match/trace.hpp"
#include "request_table.hpp"

namespace tagline::record {

// Handles are pointers in one MPI and integers in the other.
template <class Handle>
std::uint64_t key_of(Handle handle) noexcept {
  static_assert(sizeof handle <= sizeof(std::uint64_t));
  std::uint64_t key = 0;
  std::memcpy(&key, &handle, sizeof handle);
  return key;
}

// A receive or a send that MPI_Start repeats.
struct Persistent {
  TraceKind kind;  // post or send
  std::uint32_t context;
  int peer;
  int tag;
  std::uint64_t bytes;
  std::uint64_t number;  // of the receive under way; RequestTable::kNone: none
};

class Recorder {
 public:
  void start() noexcept;  // after MPI_Init
  void stop() noexcept;   // before MPI_Finalize
  bool on() const noexcept { return on_; }

  // ---- Point to point; a peer MPI_PROC_NULL is nobody's business ----

  // The number of the receive.
  std::uint64_t post(MPI_Comm comm, int source, int tag, int count, MPI_Datatype type) noexcept;
  // in_passing: at the moment of the record before; to read the clock is half of the cost.
  void send(MPI_Comm comm, int destination, int tag, int count, MPI_Datatype type,
            bool in_passing = false) noexcept;
  // A blocking receive has come back.
  void completed(std::uint64_t number, const MPI_Status& status) noexcept;
  void probe(MPI_Comm comm, int source, int tag, bool found) noexcept;
  void claim(MPI_Comm comm, const MPI_Status& found) noexcept;

  // ---- Requests ----

  void remember(MPI_Request request, std::uint64_t number) noexcept;
  void remember_persistent(MPI_Request request, TraceKind kind, MPI_Comm comm, int peer, int tag,
                           int count, MPI_Datatype type) noexcept;
  void started(MPI_Request request) noexcept;
  bool follows_requests() const noexcept { return on_ && !requests_.empty(); }
  // A request, as it was before the call that completed it, has ended so.
  void request_ended(MPI_Request request, const MPI_Status& status) noexcept;
  // As it is after MPI_Cancel; it ends as usual later.
  void request_cancelled(MPI_Request request, const MPI_Status& status) noexcept;
  void request_freed(MPI_Request request) noexcept;

  // ---- Communicators ----

  // Made from a parent by a call that all of its members take part in, or by one that
  // those of the new one alone take part in (MPI_Comm_create_group).
  void communicator_made(MPI_Comm parent, MPI_Comm made, bool by_its_members = false) noexcept;
  void communicator_freed(MPI_Comm comm) noexcept;

 private:
  struct Communicator {
    std::uint32_t index;
    std::uint64_t id;        // the same in all its processes
    std::uint64_t children;  // made so far by all members
  };

  class Hold;  // one thread at a time, where there are several

  template <class... Fields>
  void record(TraceKind kind, unsigned flags, Fields... fields) noexcept;
  void flush_misses() noexcept;
  void record_envelope(TraceKind kind, unsigned flags, std::uint32_t context, int source, int tag,
                       std::uint64_t rest) noexcept;
  void record_end(std::uint64_t number, const MPI_Status& status) noexcept;
  void record_completion(std::uint64_t number, const MPI_Status& status) noexcept;
  std::uint32_t context_of(MPI_Comm comm) noexcept;
  Communicator* known(MPI_Comm comm) noexcept;
  Communicator* add(MPI_Comm comm, std::uint64_t id) noexcept;
  int leader_of(MPI_Comm comm) noexcept;

  bool on_ = false;
  bool threads_ = false;
  std::atomic_flag busy_;
  TraceWriter writer_;
  std::uint64_t posted_ = 0;
  struct {
    int count = 0;
    MPI_Datatype type = {};
    std::uint64_t bytes = 0;
  } last_post_;
  RequestTable requests_;   // number of the receive, or kIsPersistent and index
  RequestTable by_handle_;  // of communicators: index into communicators_
  Communicator* communicators_ = nullptr;
  std::size_t communicator_count_ = 0;
  std::size_t communicator_room_ = 0;
  std::uint32_t contexts_ = 0;
  std::uint64_t last_comm_ = 0;
  std::uint32_t last_context_ = 0;
  Persistent* persistent_ = nullptr;
  std::size_t persistent_count_ = 0;
  std::size_t persistent_room_ = 0;
  MPI_Group world_ = {};
  std::uint64_t world_key_ = 0;
  int world_rank_ = 0;

  // Probes in a row that found nothing, the same ones, are one record.
  struct Misses {
    std::uint64_t times = 0;
    std::uint32_t context = 0;
    int source = 0;
    int tag = 0;
  } misses_;
};

extern Recorder recorder;

}  // namespace tagline::record
