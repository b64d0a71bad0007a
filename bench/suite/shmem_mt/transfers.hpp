// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets of OpenSHMEM by many threads, see shmem_mt.cpp.
#pragma once

#include <memory>

#include "../harness/buffer.hpp"
#include "../harness/session.hpp"
#include "../harness/thread_team.hpp"
#include "../rma_mt/options.hpp"

namespace suite::shmem_mt {

using rma_mt::Options;

// What one thread does of it: a part of each message, or some of the messages.
struct Share {
  Options options;
  std::size_t bytes = 0;  // of one transfer
};
Share share_of(const Options& options, std::size_t bytes);

class Transfers {
 public:
  Transfers(const Session& session, const Options& options, std::size_t bytes);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  double sample(long epochs);  // seconds per epoch on this PE

 private:
  void issue(int thread);
  void fill_sources();
  void verify() const;
  std::uint64_t seed(int from, int to, int thread, int slot) const;
  template <class Visit>
  void for_each_slot(const std::vector<int>& peers, Visit visit) const;

  const Session& session_;
  const Share share_;
  const bool put_;
  const int count_;  // transfers of a thread to a peer in an epoch
  const rma_mt::Peers peers_;
  const rma_mt::Layout layout_;        // of the local buffers and of every PE's symmetric one
  std::vector<std::size_t> my_index_;  // where in a target's buffer my part lies
  Buffer local_;
  char* exposed_ = nullptr;
  std::uint64_t samples_ = 0;
  std::unique_ptr<ThreadTeam> team_;
};

}  // namespace suite::shmem_mt
