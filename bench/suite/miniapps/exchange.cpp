// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include "../harness/thread_team.hpp"

namespace suite::miniapps {
namespace {

constexpr int kDataTag = 1;
constexpr int kDoneTag = 2;
constexpr int kSetupTag = 3;
constexpr int kExtraTag = 1000;

double sum_of_all(const Session& session, double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, session.world());
  return all;
}

class Messages : public Exchange {
 public:
  Messages(const Session& session, std::vector<Link> all, std::size_t capacity, bool threads)
      : Exchange(std::move(all)),
        session_(session),
        capacity_(capacity),
        out_(links.size() * capacity),
        in_(links.size() * capacity),
        requests_(2 * links.size()) {
    if (!threads) return;
    team_ = std::make_unique<ThreadTeam>(static_cast<int>(links.size()), [this](int i) {
      const auto link = static_cast<std::size_t>(i);
      receive(link);
      send(link);
      MPI_Waitall(2, &requests_[2 * link], MPI_STATUSES_IGNORE);
    });
  }
  double sum(double mine) override { return sum_of_all(session_, mine); }

 protected:
  void transfer(const Pack& pack) override {
    pack_ = &pack;
    if (team_) {
      team_->release();
      team_->join();
      return;
    }
    for (std::size_t link = 0; link < links.size(); ++link) receive(link);
    for (std::size_t link = 0; link < links.size(); ++link) send(link);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  const double* incoming(std::size_t link) const override { return &in_[link * capacity_]; }

 private:
  void receive(std::size_t link) {
    MPI_Irecv(&in_[link * capacity_], static_cast<int>(links[link].in), MPI_DOUBLE,
              links[link].rank, kDataTag, session_.world(), &requests_[2 * link]);
  }
  void send(std::size_t link) {
    double* const data = &out_[link * capacity_];
    (*pack_)(link, data);
    MPI_Isend(data, static_cast<int>(links[link].out), MPI_DOUBLE, links[link].rank, kDataTag,
              session_.world(), &requests_[2 * link + 1]);
  }

  const Session& session_;
  const std::size_t capacity_;
  std::vector<double> out_;
  std::vector<double> in_;
  std::vector<MPI_Request> requests_;  // of link i: its receive at 2i, its send behind it
  const Pack* pack_ = nullptr;
  std::unique_ptr<ThreadTeam> team_;
};

class Puts : public Exchange {
 public:
  Puts(const Session& session, std::vector<Link> all, std::size_t capacity, bool fence)
      : Exchange(std::move(all)),
        session_(session),
        capacity_(capacity),
        fence_(fence),
        back_(links_back(session, links)),
        out_(links.size() * capacity) {
    const auto bytes = static_cast<MPI_Aint>(2 * links.size() * capacity * sizeof(double));
    MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, session.world(), &exposed_, &window_);
    if (!fence_) MPI_Win_lock_all(0, window_);
    team_ = std::make_unique<ThreadTeam>(static_cast<int>(links.size()),
                                         [this](int i) { put(static_cast<std::size_t>(i)); });
  }
  ~Puts() override {
    team_.reset();
    if (!fence_) MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  double sum(double mine) override { return sum_of_all(session_, mine); }

 protected:
  void transfer(const Pack& pack) override {
    pack_ = &pack;
    turn_ = 1 - turn_;
    if (fence_) MPI_Win_fence(0, window_);
    team_->release();
    team_->join();
    if (fence_) {
      MPI_Win_fence(0, window_);
    } else {
      MPI_Win_sync(window_);
    }
  }
  const double* incoming(std::size_t link) const override { return exposed_ + place(link); }

 private:
  std::size_t place(std::size_t link) const { return (2 * link + turn_) * capacity_; }

  void put(std::size_t link) {
    const Link& to = links[link];
    const int count = static_cast<int>(to.out);
    double* const data = &out_[link * capacity_];
    (*pack_)(link, data);
    MPI_Put(data, count, MPI_DOUBLE, to.rank, static_cast<MPI_Aint>(place(back_[link])), count,
            MPI_DOUBLE, window_);
    if (fence_) return;
    MPI_Win_flush(to.rank, window_);
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, to.rank, kDoneTag, nullptr, 0, MPI_BYTE, to.rank, kDoneTag,
                 session_.world(), MPI_STATUS_IGNORE);
  }

  const Session& session_;
  const std::size_t capacity_;
  const bool fence_;
  const std::vector<std::size_t> back_;
  std::vector<double> out_;
  double* exposed_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t turn_ = 0;
  const Pack* pack_ = nullptr;
  std::unique_ptr<ThreadTeam> team_;
};

class Alone : public Exchange {
 public:
  Alone() : Exchange({}) {}
  double sum(double mine) override { return mine; }

 protected:
  void transfer(const Pack&) override {}
  const double* incoming(std::size_t) const override { return nullptr; }
};

}  // namespace

const std::vector<std::string>& forms() {
  static const std::vector<std::string> names{"two-sided", "two-sided-threads", "fence",
                                              "lock_all"};
  return names;
}

std::unique_ptr<Exchange> make_exchange(const std::string& form, const Session& session,
                                        std::vector<Link> links, std::size_t capacity) {
  if (form == "two-sided" || form == "two-sided-threads") {
    return std::make_unique<Messages>(session, std::move(links), capacity, form != "two-sided");
  }
  return std::make_unique<Puts>(session, std::move(links), capacity, form == "fence");
}

std::unique_ptr<Exchange> no_exchange() { return std::make_unique<Alone>(); }

std::vector<std::size_t> links_back(const Session& session, const std::vector<Link>& links) {
  std::vector<unsigned long> mine(links.size());
  std::vector<unsigned long> theirs(links.size());
  std::vector<MPI_Request> requests;
  for (std::size_t i = 0; i < links.size(); ++i) {
    mine[i] = i;
    MPI_Irecv(&theirs[i], 1, MPI_UNSIGNED_LONG, links[i].rank, kSetupTag, session.world(),
              &requests.emplace_back());
    MPI_Isend(&mine[i], 1, MPI_UNSIGNED_LONG, links[i].rank, kSetupTag, session.world(),
              &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  return {theirs.begin(), theirs.end()};
}

ExtraReceives::ExtraReceives(const Session& session, std::size_t count)
    : session_(session), receives_(count) {
  const int from = (session.rank() + 1) % session.size();
  for (std::size_t i = 0; i < count; ++i) {
    MPI_Irecv(nullptr, 0, MPI_BYTE, from, kExtraTag + static_cast<int>(i), session.world(),
              &receives_[i]);
  }
  session.barrier();
}

ExtraReceives::~ExtraReceives() {
  const int to = (session_.rank() + session_.size() - 1) % session_.size();
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    MPI_Send(nullptr, 0, MPI_BYTE, to, kExtraTag + static_cast<int>(i), session_.world());
  }
  MPI_Waitall(static_cast<int>(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE);
}

}  // namespace suite::miniapps
