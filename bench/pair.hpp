// SPDX-License-Identifier: BSD-3-Clause
//
// Two ranks on one node that hand each other turns outside MPI: what the MPI
// benchmark programs have in common. Any MPI library.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

double now_us();

class Pair {
 public:
  // program: for messages. Ends the job unless there are two ranks, on one node.
  explicit Pair(const char* program);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

 protected:
  static constexpr int kNeverTag = 3;

  [[noreturn]] void fail(const std::string& message) const;
  // Rank 0: names the MPI library and what a sweep reads.
  void print_setup() const;
  // Rank 0: a point's result as one JSON object. With it goes what note_placement()
  // has found.
  void print(const char* measure, const std::string& which, const std::string& cache, int depth,
             int bytes, const char* unit, const std::vector<double>& samples) const;

  void barrier() { MPI_Barrier(control_); }
  int decide_on_rank_0(int value);
  bool decide_on_rank_1(bool value);
  std::vector<double> take_from_rank_1(std::vector<double> values);

  // Rank 0 stands still, outside MPI, until rank 1 has prepared a turn.
  void next_turn() {
    ++turn_;
    if (rank_ == 1) {
      shared_->ready.store(turn_, std::memory_order_release);
    } else {
      while (shared_->ready.load(std::memory_order_acquire) < turn_) {
      }
    }
  }

  // After the peer has waited for it, the message that was sent just before lies in
  // the peer's unexpected queue.
  void tell_sent() {
    // release: pairs with the acquire in wait_until_queued(); the message is on its way
    shared_->sent[rank_].count.store(++told_, std::memory_order_release);
  }
  void wait_until_queued();

  // How far the two ranks are apart: the time in which a cache line goes from one to
  // the other, without MPI. On a virtual machine it changes under way, and with it
  // everything else, so each point asks again.
  void note_placement();

  // Reads and writes a buffer larger than the last-level cache.
  void sweep();

  int rank_ = 0;
  int peer_ = 0;
  MPI_Comm comm_ = MPI_COMM_WORLD;
  MPI_Comm control_ = MPI_COMM_NULL;  // keeps agreements and barriers off the measured queues

 private:
  static constexpr std::size_t kLine = 64;

  // Counters that the ranks hand each other outside MPI, each on a line of its own.
  struct Shared {
    struct alignas(kLine) {
      std::atomic<std::uint64_t> count;               // messages whose Send has returned
    } sent[2];                                        // by sender
    alignas(kLine) std::atomic<std::uint64_t> ready;  // turns for which rank 1 is ready
    alignas(kLine) std::atomic<std::uint64_t> ball;   // of note_placement(): odd on its way to 1
  };

  const char* program_;
  Shared* shared_ = nullptr;
  std::uint64_t told_ = 0;  // messages of tell_sent() so far
  std::uint64_t late_ = 0;  // messages of wait_until_queued() so far
  std::uint64_t turn_ = 0;
  std::uint64_t ball_ = 0;
  double line_ns_ = 0;
  MPI_Request never_ = MPI_REQUEST_NULL;  // testing it makes progress and matches nothing
  std::uint8_t never_buffer_ = 0;
  std::vector<char> sweep_buffer_;
};

}  // namespace bench
