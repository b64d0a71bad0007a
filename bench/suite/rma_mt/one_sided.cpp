// SPDX-License-Identifier: BSD-3-Clause
#include "../harness/buffer.hpp"
#include "../harness/content.hpp"
#include "../harness/session.hpp"
#include "../harness/thread_team.hpp"
//
#include "epochs.hpp"
#include "measure.hpp"

namespace suite::rma_mt {
namespace {

// One size of message: memory, window, threads and what they do.
class Point {
 public:
  Point(const Session& session, const Options& options, std::size_t bytes);
  ~Point();
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // Seconds per epoch on this rank.
  double sample(long epochs);
  double seconds_of_handover();
  int slots() const { return layout_.slots; }

 private:
  void issue(int thread);
  void fill_sources();
  void verify() const;
  std::uint64_t seed(int from, int to, int thread, int slot) const {
    return seed_of({samples_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
                    static_cast<std::uint64_t>(thread), static_cast<std::uint64_t>(slot)});
  }
  template <class Visit>
  void for_each_slot(const std::vector<int>& peers, Visit visit) const;

  const Session& session_;
  const Options& options_;
  const bool put_;
  const int count_;  // transfers of a thread to a peer in an epoch
  const bool flush_each_;
  const bool flush_each_locally_;
  const Peers peers_;
  const Layout layout_;                // of the local buffers and of every window
  std::vector<std::size_t> my_index_;  // where in a target's window my part lies
  Buffer local_;
  char* exposed_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
  std::unique_ptr<Epochs> epochs_;
  std::unique_ptr<ThreadTeam> team_;
  std::uint64_t samples_ = 0;
  bool idle_ = false;  // the team is let go and comes back: what a handover costs
};

Point::Point(const Session& session, const Options& options, std::size_t bytes)
    : session_(session),
      options_(options),
      put_(options.operation == "put"),
      count_(options.count()),
      // A child that may not synchronise can still complete what it has issued.
      flush_each_(options.is_rate() &&
                  (options.synchronisation == "lock_all" || options.synchronisation == "flush")),
      flush_each_locally_(options.is_rate() && options.synchronisation == "flush_local"),
      peers_(peers_of(options, session.rank(), session.size())),
      layout_(options, bytes,
              options.pattern == "halo" ? static_cast<std::size_t>(options.neighbours) : 1),
      local_(layout_.size(peers_.targets.size())) {
  for (const int target : peers_.targets) {
    my_index_.push_back(
        index_of(peers_of(options, target, session.size()).origins, session.rank()));
  }
  const auto size = static_cast<MPI_Aint>(layout_.size(peers_.origins.size()));
  if (options.memory == "allocate") {
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, session.world(), &exposed_, &window_);
  } else {
    MPI_Alloc_mem(size + 1, MPI_INFO_NULL, &exposed_);
    MPI_Win_create(exposed_, size, 1, MPI_INFO_NULL, session.world(), &window_);
  }
  epochs_ = std::make_unique<Epochs>(options.synchronisation, window_, session.world(), peers_);
  epochs_->lock_own();
  std::memset(exposed_, 0, static_cast<std::size_t>(size));
  epochs_->unlock_own();
  // Where nothing is issued, children would only take CPUs from the others.
  team_ = std::make_unique<ThreadTeam>(peers_.targets.empty() ? 0 : options.threads,
                                       [this](int thread) { issue(thread); });
  session.barrier();
}

Point::~Point() {
  team_.reset();
  epochs_.reset();
  MPI_Win_free(&window_);
  if (options_.memory != "allocate") MPI_Free_mem(exposed_);
}

void Point::issue(int thread) {
  if (idle_) return;
  const int length = static_cast<int>(layout_.bytes);
  const MPI_Aint last = static_cast<MPI_Aint>(layout_.slots - 1) * length;
  for (std::size_t peer = 0; peer < peers_.targets.size(); ++peer) {
    const int target = peers_.targets[peer];
    char* const mine = local_.data() + layout_.offset(peer, thread, 0);
    const auto theirs = static_cast<MPI_Aint>(layout_.offset(my_index_[peer], thread, 0));
    MPI_Aint at = 0;
    for (int i = 0; i < count_; ++i) {
      if (put_) {
        MPI_Put(mine + at, length, MPI_BYTE, target, theirs + at, length, MPI_BYTE, window_);
      } else {
        MPI_Get(mine + at, length, MPI_BYTE, target, theirs + at, length, MPI_BYTE, window_);
      }
      if (flush_each_) {
        MPI_Win_flush(target, window_);
      } else if (flush_each_locally_) {
        MPI_Win_flush_local(target, window_);
      }
      at = at == last ? 0 : at + length;
    }
  }
}

template <class Visit>
void Point::for_each_slot(const std::vector<int>& peers, Visit visit) const {
  for (std::size_t peer = 0; peer < peers.size(); ++peer) {
    for (int thread = 0; thread < layout_.threads; ++thread) {
      for (int slot = 0; slot < layout_.slots; ++slot) {
        visit(peers[peer], layout_.offset(peer, thread, slot), thread, slot);
      }
    }
  }
}

void Point::fill_sources() {
  epochs_->lock_own();
  if (put_) {
    for_each_slot(peers_.targets, [&](int target, std::size_t at, int thread, int slot) {
      fill(local_.data() + at, layout_.bytes, seed(session_.rank(), target, thread, slot));
    });
  } else {
    for_each_slot(peers_.origins, [&](int origin, std::size_t at, int thread, int slot) {
      fill(exposed_ + at, layout_.bytes, seed(session_.rank(), origin, thread, slot));
    });
  }
  epochs_->unlock_own();
}

void Point::verify() const {
  const auto check = [&](const char* data, int from, std::size_t at, int thread, int slot) {
    const std::size_t wrong =
        first_difference(data + at, layout_.bytes, seed(from, session_.rank(), thread, slot));
    if (wrong == layout_.bytes) return;
    wrong_data(options_.operation + " with " + options_.synchronisation + " between rank " +
               std::to_string(from) + " and rank " + std::to_string(session_.rank()) + ", thread " +
               std::to_string(thread) + ", message " + std::to_string(slot) + " of " +
               std::to_string(layout_.slots) + ", byte " + std::to_string(wrong) + " of " +
               std::to_string(layout_.bytes));
  };
  epochs_->lock_own();
  for_each_slot(put_ ? peers_.origins : peers_.targets,
                [&](int from, std::size_t at, int thread, int slot) {
                  check(put_ ? exposed_ : local_.data(), from, at, thread, slot);
                });
  epochs_->unlock_own();
}

double Point::sample(long epochs) {
  const bool verified = session_.settings().verify;
  ++samples_;
  if (verified) fill_sources();
  session_.barrier();
  epochs_->begin();
  const auto epoch = [&](long) {
    epochs_->open();
    if (options_.threads == 0) {
      issue(0);
    } else {
      team_->release();
      team_->join();
    }
    epochs_->close();
  };
  double seconds = 0;
  if (options_.clock == "batch") {
    seconds = time_of(epochs, epoch);
  } else {
    for (long i = 0; i < epochs; ++i) seconds += time_of(1, epoch);
  }
  epochs_->end();
  session_.barrier();
  if (verified) verify();
  return seconds / static_cast<double>(epochs);
}

double Point::seconds_of_handover() {
  idle_ = true;
  double seconds = 0;
  long n = 1;
  // Many of them take long where threads wait for a CPU.
  for (; n <= 1024 && seconds < 2e-3; n *= 2) {
    seconds = time_of(n, [&](long) {
      team_->release();
      team_->join();
    });
  }
  idle_ = false;
  return seconds / static_cast<double>(n / 2);
}

}  // namespace

void measure_one_sided(Session& session, const Options& options) {
  for (const std::uint64_t bytes : options.bytes) {
    session.progress(options.pattern + ", " + options.synchronisation + ", " +
                     std::to_string(bytes) + " bytes");
    Point point(session, options, bytes);
    const long epochs =
        epochs_per_sample(session, options, bytes, [&](long n) { return point.sample(n); });
    const Estimate time = session.repeat([&] { return point.sample(epochs); });
    Record record = session.record();
    if (options.threads > 0) {
      record["handover_us"] = session.maximum(point.seconds_of_handover()) * 1e6;
    }
    record["slots"] = point.slots();
    record["clock"] = options.clock;
    report_point(session, options, bytes, time, std::move(record));
  }
}

}  // namespace suite::rma_mt
