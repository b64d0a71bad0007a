// SPDX-License-Identifier: BSD-3-Clause
#include "transfers.hpp"

#include <shmem.h>

#include "../harness/content.hpp"

namespace suite::shmem_mt {

Share share_of(const Options& options, std::size_t bytes) {
  Share share{options, bytes};
  if (options.pattern == "halo") {
    share.options.window = options.window / options.issuers();
  } else {
    share.bytes = bytes / static_cast<std::size_t>(options.issuers());
  }
  return share;
}

Transfers::Transfers(const Session& session, const Options& options, std::size_t bytes)
    : session_(session),
      share_(share_of(options, bytes)),
      put_(options.operation == "put"),
      count_(share_.options.count()),
      peers_(rma_mt::peers_of(options, session.rank(), session.size())),
      layout_(share_.options, share_.bytes,
              options.pattern == "halo" ? static_cast<std::size_t>(options.neighbours) : 1),
      local_(layout_.size(peers_.targets.size())) {
  for (const int target : peers_.targets) {
    my_index_.push_back(rma_mt::index_of(rma_mt::peers_of(options, target, session.size()).origins,
                                         session.rank()));
  }
  // Symmetric: as large as the PE with the most origins needs it.
  const std::size_t most = options.pattern == "halo" ? peers_.origins.size() : 1;
  const std::size_t size = layout_.size(most);
  exposed_ = static_cast<char*>(shmem_malloc(size));
  if (exposed_ == nullptr) {
    throw UsageError("no " + std::to_string(size) +
                     " bytes of symmetric memory: raise SHMEM_SYMMETRIC_SIZE, or lower --bytes or "
                     "--window");
  }
  std::memset(exposed_, 0, size);
  shmem_barrier_all();
  // Where nothing is issued, children would only take CPUs from the others.
  team_ = std::make_unique<ThreadTeam>(peers_.targets.empty() ? 0 : options.threads,
                                       [this](int thread) { issue(thread); });
  session.barrier();
}

Transfers::~Transfers() {
  team_.reset();
  shmem_barrier_all();
  shmem_free(exposed_);
}

void Transfers::issue(int thread) {
  const std::size_t last = static_cast<std::size_t>(layout_.slots - 1) * layout_.bytes;
  for (std::size_t peer = 0; peer < peers_.targets.size(); ++peer) {
    const int target = peers_.targets[peer];
    char* const mine = local_.data() + layout_.offset(peer, thread, 0);
    char* const theirs = exposed_ + layout_.offset(my_index_[peer], thread, 0);
    std::size_t at = 0;
    for (int i = 0; i < count_; ++i) {
      if (put_) {
        shmem_putmem(theirs + at, mine + at, layout_.bytes, target);
      } else {
        shmem_getmem(mine + at, theirs + at, layout_.bytes, target);
      }
      at = at == last ? 0 : at + layout_.bytes;
    }
  }
}

std::uint64_t Transfers::seed(int from, int to, int thread, int slot) const {
  return seed_of({samples_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
                  static_cast<std::uint64_t>(thread), static_cast<std::uint64_t>(slot)});
}

template <class Visit>
void Transfers::for_each_slot(const std::vector<int>& peers, Visit visit) const {
  for (std::size_t peer = 0; peer < peers.size(); ++peer) {
    for (int thread = 0; thread < layout_.threads; ++thread) {
      for (int slot = 0; slot < layout_.slots; ++slot) {
        visit(peers[peer], layout_.offset(peer, thread, slot), thread, slot);
      }
    }
  }
}

void Transfers::fill_sources() {
  char* const sources = put_ ? local_.data() : exposed_;
  for_each_slot(put_ ? peers_.targets : peers_.origins,
                [&](int to, std::size_t at, int thread, int slot) {
                  fill(sources + at, layout_.bytes, seed(session_.rank(), to, thread, slot));
                });
}

void Transfers::verify() const {
  const char* const data = put_ ? exposed_ : local_.data();
  for_each_slot(
      put_ ? peers_.origins : peers_.targets, [&](int from, std::size_t at, int thread, int slot) {
        const std::size_t wrong =
            first_difference(data + at, layout_.bytes, seed(from, session_.rank(), thread, slot));
        if (wrong == layout_.bytes) return;
        wrong_data(share_.options.operation + " between PE " + std::to_string(from) + " and PE " +
                   std::to_string(session_.rank()) + ", thread " + std::to_string(thread) +
                   ", message " + std::to_string(slot) + ", byte " + std::to_string(wrong) +
                   " of " + std::to_string(layout_.bytes));
      });
}

double Transfers::sample(long epochs) {
  const bool verified = session_.settings().verify;
  ++samples_;
  if (verified) fill_sources();
  shmem_barrier_all();
  const double seconds = time_of(epochs, [&](long) {
    if (share_.options.threads == 0) {
      issue(0);
    } else {
      team_->release();
      team_->join();
    }
    shmem_quiet();
  });
  shmem_barrier_all();
  if (verified) verify();
  return seconds / static_cast<double>(epochs);
}

}  // namespace suite::shmem_mt
