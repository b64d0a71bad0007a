// SPDX-License-Identifier: BSD-3-Clause
#include "../harness/session.hpp"  // before mpi.h: no C++ bindings
//
#include "epochs.hpp"

namespace suite::rma_mt {
namespace {

bool has(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }

MPI_Group group_of(MPI_Comm comm, const std::vector<int>& ranks) {
  MPI_Group all;
  MPI_Group some;
  MPI_Comm_group(comm, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
  MPI_Group_free(&all);
  return some;
}

}  // namespace

Epochs::Epochs(const std::string& name, MPI_Win window, MPI_Comm comm, const Peers& peers)
    : window_(window),
      peers_(peers),
      notifier_(!has(name, "notify")   ? Notifier::Transport::none
                : has(name, "counter") ? Notifier::Transport::counter
                                       : Notifier::Transport::send,
                comm) {
  MPI_Comm_rank(comm, &rank_);
  kind_ = name == "fence"         ? Kind::fence
          : name == "pscw"        ? Kind::pscw
          : name == "lock"        ? Kind::lock
          : name == "lock_all"    ? Kind::lock_all
          : name == "flush"       ? Kind::flush
          : name == "flush_local" ? Kind::flush_local
                                  : Kind::notify;
  strict_ = has(name, "strict");
  if (kind_ == Kind::pscw) {
    targets_ = group_of(comm, peers.targets);
    origins_ = group_of(comm, peers.origins);
  }
}

Epochs::~Epochs() {
  if (kind_ != Kind::pscw) return;
  MPI_Group_free(&targets_);
  MPI_Group_free(&origins_);
}

void Epochs::begin() {
  if (kind_ == Kind::flush || kind_ == Kind::flush_local || kind_ == Kind::notify) {
    MPI_Win_lock_all(0, window_);
  }
}

void Epochs::end() {
  if (kind_ == Kind::flush || kind_ == Kind::flush_local || kind_ == Kind::notify) {
    MPI_Win_unlock_all(window_);
  }
}

void Epochs::open() {
  switch (kind_) {
    case Kind::fence:
      MPI_Win_fence(MPI_MODE_NOPRECEDE, window_);
      break;
    case Kind::pscw:
      if (!peers_.origins.empty()) MPI_Win_post(origins_, 0, window_);
      if (!peers_.targets.empty()) MPI_Win_start(targets_, 0, window_);
      break;
    case Kind::lock:
      for (const int target : peers_.targets) MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window_);
      break;
    case Kind::lock_all:
      if (!peers_.targets.empty()) MPI_Win_lock_all(0, window_);
      break;
    case Kind::notify:
      for (const int origin : peers_.origins) notifier_.notify(origin);
      for (const int target : peers_.targets) notifier_.wait(target);
      break;
    case Kind::flush:
    case Kind::flush_local:
      break;
  }
}

void Epochs::close() {
  switch (kind_) {
    case Kind::fence:
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window_);
      break;
    case Kind::pscw:
      if (!peers_.targets.empty()) MPI_Win_complete(window_);
      if (!peers_.origins.empty()) MPI_Win_wait(window_);
      break;
    case Kind::lock:
      for (const int target : peers_.targets) MPI_Win_unlock(target, window_);
      break;
    case Kind::lock_all:
      if (!peers_.targets.empty()) MPI_Win_unlock_all(window_);
      break;
    case Kind::notify:
      for (const int target : peers_.targets) {
        if (strict_) {
          MPI_Win_flush_all(window_);
        } else {
          MPI_Win_flush(target, window_);
        }
        notifier_.notify(target);
      }
      for (const int origin : peers_.origins) notifier_.wait(origin);
      break;
    case Kind::flush:
      for (const int target : peers_.targets) MPI_Win_flush(target, window_);
      break;
    case Kind::flush_local:
      for (const int target : peers_.targets) MPI_Win_flush_local(target, window_);
      break;
  }
}

void Epochs::lock_own() { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, window_); }
void Epochs::unlock_own() { MPI_Win_unlock(rank_, window_); }

}  // namespace suite::rma_mt
