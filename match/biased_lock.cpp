// SPDX-License-Identifier: BSD-3-Clause
#include "match/biased_lock.hpp"

#include <chrono>
#include <thread>

#ifdef __linux__
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tagline {
namespace {

#ifdef __linux__
bool command(int what) noexcept { return syscall(SYS_membarrier, what, 0, 0) == 0; }
bool allow() noexcept { return command(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
bool barrier() noexcept { return command(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }
#else
bool allow() noexcept { return false; }
bool barrier() noexcept { return false; }
#endif

}  // namespace

bool allow_barriers() noexcept {
  static const bool allowed = allow();
  return allowed;
}

void barrier_in_all_threads() noexcept {
  // Again, should a forked process have to ask for itself.
  if (barrier() || (allow() && barrier())) return;
  // A system that allowed it and forbids it now: a store leaves its core within
  // nanoseconds, and with every interrupt.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace tagline
