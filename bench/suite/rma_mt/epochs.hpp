// SPDX-License-Identifier: BSD-3-Clause
//
// The ways to synchronise a window, behind one pair of calls: open() makes transfers
// to the targets possible, close() returns when those this rank issued are complete
// and those it was to receive may be read. Only the parent thread calls them.
//
//   fence         fence, transfers, fence
//   pscw          post and start, transfers, complete and wait
//   lock          lock each target (shared), transfers, unlock
//   lock_all      lock_all, transfers, unlock_all
//   flush         lock_all once for all, transfers, flush each target
//   flush_local   the same with flush_local: the origin's buffers may be used again,
//                 nothing is said about the target
//   notify_*      lock_all once for all; point to point instead of barriers. The target
//                 tells each origin that its memory is free, the origin waits for it,
//                 transfers, flushes, and tells the target that all has come. weak: flush
//                 for that target alone; strict: for all. send: a message of no bytes;
//                 counter: a counter in a window, one writer each.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "notifier.hpp"
#include "options.hpp"

namespace suite::rma_mt {

inline const std::vector<std::string>& synchronisations() {
  static const std::vector<std::string> names{"fence",
                                              "pscw",
                                              "lock",
                                              "lock_all",
                                              "flush",
                                              "flush_local",
                                              "notify_weak_send",
                                              "notify_strict_send",
                                              "notify_weak_counter",
                                              "notify_strict_counter"};
  return names;
}

class Epochs {
 public:
  Epochs(const std::string& name, MPI_Win window, MPI_Comm comm, const Peers& peers);
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  void begin();  // before the first open(), all ranks
  void end();    // after the last close(), all ranks
  void open();
  void close();

  // Between end() and begin() and a barrier: this rank reads and writes its own memory.
  void lock_own();
  void unlock_own();

 private:
  enum class Kind { fence, pscw, lock, lock_all, flush, flush_local, notify };

  Kind kind_;
  bool strict_ = false;
  MPI_Win window_;
  int rank_ = 0;
  const Peers& peers_;
  MPI_Group targets_ = MPI_GROUP_NULL;
  MPI_Group origins_ = MPI_GROUP_NULL;
  Notifier notifier_;
};

}  // namespace suite::rma_mt
