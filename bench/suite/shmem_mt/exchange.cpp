// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <shmem.h>

#include "../harness/thread_team.hpp"

namespace suite::shmem_mt {
namespace {

using miniapps::Link;

class Puts : public miniapps::Exchange {
 public:
  Puts(const Session& session, std::vector<Link> all, std::size_t capacity)
      : Exchange(std::move(all)),
        capacity_(capacity),
        back_(miniapps::links_back(session, links)),
        out_(links.size() * capacity) {
    // Symmetric: as large as the PE with the most neighbours needs it.
    const auto most = static_cast<std::size_t>(session.maximum(static_cast<double>(links.size())));
    exposed_ = allocate<double>(2 * most * capacity);
    arrived_ = allocate<unsigned long long>(most);
    part_ = allocate<double>(2);
    work_ = allocate<double>(2 * SHMEM_REDUCE_MIN_WRKDATA_SIZE);
    sync_ = allocate<long>(2 * SHMEM_REDUCE_SYNC_SIZE);
    std::fill_n(arrived_, most, 0ULL);
    std::fill_n(sync_, 2 * SHMEM_REDUCE_SYNC_SIZE, SHMEM_SYNC_VALUE);
    shmem_barrier_all();
    team_ = std::make_unique<ThreadTeam>(static_cast<int>(links.size()),
                                         [this](int i) { put(static_cast<std::size_t>(i)); });
  }
  ~Puts() override {
    team_.reset();
    shmem_barrier_all();
    for (void* const memory : allocated_) shmem_free(memory);
  }

  // Two sets of work space in turn: who is in the next sum has seen the end of the last one,
  // but not everybody need have.
  double sum(double mine) override {
    sums_ = 1 - sums_;
    part_[0] = mine;
    shmem_double_sum_to_all(&part_[1], &part_[0], 1, 0, 0, shmem_n_pes(),
                            work_ + sums_ * SHMEM_REDUCE_MIN_WRKDATA_SIZE,
                            sync_ + sums_ * SHMEM_REDUCE_SYNC_SIZE);
    return part_[1];
  }

 protected:
  void transfer(const Pack& pack) override {
    pack_ = &pack;
    ++exchanges_;
    team_->release();
    team_->join();
    shmem_quiet();
    for (std::size_t link = 0; link < links.size(); ++link) {
      shmem_ulonglong_p(&arrived_[back_[link]], exchanges_, links[link].rank);
    }
    for (std::size_t link = 0; link < links.size(); ++link) {
      shmem_ulonglong_wait_until(&arrived_[link], SHMEM_CMP_GE, exchanges_);
    }
  }
  const double* incoming(std::size_t link) const override { return exposed_ + place(link); }

 private:
  template <class T>
  T* allocate(std::size_t count) {
    void* const memory = shmem_malloc(std::max<std::size_t>(count, 1) * sizeof(T));
    if (memory == nullptr) {
      throw UsageError("no " + std::to_string(count * sizeof(T)) +
                       " bytes of symmetric memory: raise SHMEM_SYMMETRIC_SIZE or lower --edge");
    }
    allocated_.push_back(memory);
    return static_cast<T*>(memory);
  }
  std::size_t place(std::size_t link) const { return (2 * link + exchanges_ % 2) * capacity_; }
  void put(std::size_t link) {
    double* const data = &out_[link * capacity_];
    (*pack_)(link, data);
    shmem_double_put(exposed_ + place(back_[link]), data, links[link].out, links[link].rank);
  }

  const std::size_t capacity_;
  const std::vector<std::size_t> back_;
  std::vector<double> out_;
  std::vector<void*> allocated_;
  double* exposed_ = nullptr;
  unsigned long long* arrived_ = nullptr;  // by link: exchanges that have come from there
  double* part_ = nullptr;
  double* work_ = nullptr;
  long* sync_ = nullptr;
  unsigned long long exchanges_ = 0;
  int sums_ = 0;
  const Pack* pack_ = nullptr;
  std::unique_ptr<ThreadTeam> team_;
};

}  // namespace

std::unique_ptr<miniapps::Exchange> make_exchange(const Session& session, std::vector<Link> links,
                                                  std::size_t capacity) {
  return std::make_unique<Puts>(session, std::move(links), capacity);
}

}  // namespace suite::shmem_mt
