// SPDX-License-Identifier: BSD-3-Clause
//
// notify(rank) and wait(rank): a wait consumes one notification of that rank.
//
// Two transports: messages of no bytes, which are matched like any other, and counters
// in a window of their own. A counter has one writer, so it is written, not added to.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace suite::rma_mt {

class Notifier {
 public:
  enum class Transport { none, send, counter };

  Notifier(Transport transport, MPI_Comm comm) : transport_(transport), comm_(comm) {
    if (transport_ != Transport::counter) return;
    int size = 0;
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size);
    const auto n = static_cast<std::size_t>(size);
    sent_.assign(n, 0);
    consumed_.assign(n, 0);
    MPI_Win_allocate(static_cast<MPI_Aint>(n * sizeof(std::uint64_t)), sizeof(std::uint64_t),
                     MPI_INFO_NULL, comm, &received_, &window_);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, window_);
    for (std::size_t i = 0; i < n; ++i) received_[i] = 0;
    MPI_Win_unlock(rank_, window_);
    MPI_Barrier(comm);
    MPI_Win_lock_all(0, window_);
  }
  ~Notifier() {
    if (transport_ != Transport::counter) return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void notify(int rank) {
    if (transport_ == Transport::send) {
      MPI_Send(nullptr, 0, MPI_BYTE, rank, kTag, comm_);
      return;
    }
    // Accumulate, because it alone writes all eight bytes at once.
    std::uint64_t& count = sent_[static_cast<std::size_t>(rank)];
    ++count;
    MPI_Accumulate(&count, 1, MPI_UINT64_T, rank, rank_, 1, MPI_UINT64_T, MPI_REPLACE, window_);
    MPI_Win_flush(rank, window_);
  }

  void wait(int rank) {
    if (transport_ == Transport::send) {
      MPI_Recv(nullptr, 0, MPI_BYTE, rank, kTag, comm_, MPI_STATUS_IGNORE);
      return;
    }
    const std::uint64_t wanted = ++consumed_[static_cast<std::size_t>(rank)];
    for (std::uint64_t count = 0; count < wanted;) {
      const std::uint64_t none = 0;
      MPI_Fetch_and_op(&none, &count, MPI_UINT64_T, rank_, rank, MPI_NO_OP, window_);
      MPI_Win_flush(rank_, window_);
      int flag = 0;  // transports that need the target's help get it here
      if (count < wanted) {
        MPI_Iprobe(MPI_ANY_SOURCE, kTag, comm_, &flag, MPI_STATUS_IGNORE);
        sched_yield();
      }
    }
  }

 private:
  static constexpr int kTag = 77;

  Transport transport_;
  MPI_Comm comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  std::uint64_t* received_ = nullptr;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> consumed_;
};

}  // namespace suite::rma_mt
