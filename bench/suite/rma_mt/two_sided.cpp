// SPDX-License-Identifier: BSD-3-Clause
//
// The same patterns by sends and receives, one thread: what the one-sided forms are
// held against. An epoch ends when the receivers have all messages and the senders
// know it; of a latency it is half a round trip.
#include "../harness/buffer.hpp"
#include "../harness/content.hpp"
#include "measure.hpp"

namespace suite::rma_mt {
namespace {

constexpr int kDataTag = 1;
constexpr int kDoneTag = 2;

class Exchange {
 public:
  Exchange(const Session& session, const Options& options, std::size_t bytes)
      : session_(session),
        options_(options),
        peers_(peers_of(options, session.rank(), session.size())),
        layout_(options, bytes,
                options.pattern == "halo" ? static_cast<std::size_t>(options.neighbours) : 1),
        out_(layout_.size(peers_.targets.size())),
        in_(layout_.size(peers_.origins.size())) {
    session.barrier();
  }

  double sample(long epochs) {
    const bool verified = session_.settings().verify;
    ++samples_;
    if (verified) {
      for_each_slot(peers_.targets, [&](int target, std::size_t at, int slot) {
        fill(&out_[at], layout_.bytes, seed(session_.rank(), target, slot));
      });
    }
    session_.barrier();
    const bool latency = options_.pattern == "latency";
    const double seconds = time_of(epochs, [&](long) { latency ? ping_pong() : epoch(); });
    session_.barrier();
    if (verified) verify();
    return seconds / static_cast<double>(epochs) / (latency ? 2 : 1);
  }

 private:
  std::uint64_t seed(int from, int to, int slot) const {
    return seed_of({samples_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
                    static_cast<std::uint64_t>(slot)});
  }

  template <class Visit>
  void for_each_slot(const std::vector<int>& peers, Visit visit) const {
    for (std::size_t peer = 0; peer < peers.size(); ++peer) {
      for (int slot = 0; slot < layout_.slots; ++slot) {
        visit(peers[peer], layout_.offset(peer, 0, slot), slot);
      }
    }
  }

  // The reply carries the same data back: the message's own bytes, received and sent.
  void ping_pong() {
    const int length = static_cast<int>(layout_.bytes);
    if (!peers_.targets.empty()) {
      const int peer = peers_.targets[0];
      MPI_Send(out_.data(), length, MPI_BYTE, peer, kDataTag, session_.world());
      MPI_Recv(out_.data(), length, MPI_BYTE, peer, kDataTag, session_.world(), MPI_STATUS_IGNORE);
    } else {
      const int peer = peers_.origins[0];
      MPI_Recv(in_.data(), length, MPI_BYTE, peer, kDataTag, session_.world(), MPI_STATUS_IGNORE);
      MPI_Send(in_.data(), length, MPI_BYTE, peer, kDataTag, session_.world());
    }
  }

  void epoch() {
    const int length = static_cast<int>(layout_.bytes);
    const int count = options_.count();
    requests_.clear();
    for (std::size_t peer = 0; peer < peers_.origins.size(); ++peer) {
      for (int i = 0, slot = 0; i < count; ++i) {
        MPI_Irecv(&in_[layout_.offset(peer, 0, slot)], length, MPI_BYTE, peers_.origins[peer],
                  kDataTag, session_.world(), &requests_.emplace_back());
        if (++slot == layout_.slots) slot = 0;
      }
    }
    for (std::size_t peer = 0; peer < peers_.targets.size(); ++peer) {
      for (int i = 0, slot = 0; i < count; ++i) {
        MPI_Isend(&out_[layout_.offset(peer, 0, slot)], length, MPI_BYTE, peers_.targets[peer],
                  kDataTag, session_.world(), &requests_.emplace_back());
        if (++slot == layout_.slots) slot = 0;
      }
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (options_.pattern == "halo" || options_.pattern == "bibandwidth") return;
    for (const int origin : peers_.origins) {
      MPI_Send(nullptr, 0, MPI_BYTE, origin, kDoneTag, session_.world());
    }
    for (const int target : peers_.targets) {
      MPI_Recv(nullptr, 0, MPI_BYTE, target, kDoneTag, session_.world(), MPI_STATUS_IGNORE);
    }
  }

  void verify() const {
    for_each_slot(peers_.origins, [&](int origin, std::size_t at, int slot) {
      const std::size_t wrong =
          first_difference(&in_[at], layout_.bytes, seed(origin, session_.rank(), slot));
      if (wrong == layout_.bytes) return;
      wrong_data("message " + std::to_string(slot) + " from rank " + std::to_string(origin) +
                 " to rank " + std::to_string(session_.rank()) + ", byte " + std::to_string(wrong) +
                 " of " + std::to_string(layout_.bytes));
    });
  }

  const Session& session_;
  const Options& options_;
  const Peers peers_;
  const Layout layout_;
  Buffer out_;
  Buffer in_;
  std::vector<MPI_Request> requests_;
  std::uint64_t samples_ = 0;
};

}  // namespace

void measure_two_sided(Session& session, const Options& options) {
  for (const std::uint64_t bytes : options.bytes) {
    session.progress(options.pattern + ", two-sided, " + std::to_string(bytes) + " bytes");
    Exchange exchange(session, options, bytes);
    const long epochs =
        epochs_per_sample(session, options, bytes, [&](long n) { return exchange.sample(n); });
    const Estimate time = session.repeat([&] { return exchange.sample(epochs); });
    report_point(session, options, bytes, time, session.record());
  }
}

}  // namespace suite::rma_mt
