// SPDX-License-Identifier: BSD-3-Clause
//
// What a mini-application asks of its communication: exchange some numbers with each
// neighbour, and add one number over all ranks. How that is done is the form that is
// compared:
//
//   two-sided          one thread: all receives posted, all messages sent, all waited for;
//                      the baseline, under MPI_THREAD_SINGLE
//   two-sided-threads  a thread per neighbour posts its receive, packs, sends and waits
//   fence              a thread per neighbour packs and puts between two fences
//   lock_all           a thread per neighbour packs, puts, flushes and tells the neighbour by
//                      a message of no bytes, for which it waits from there as well
//
// Threads are started before anything is timed. Puts go to two places in turn: a rank
// that is ahead writes to one while its neighbour still reads the other, and it cannot be
// ahead by more, because each exchange waits for the neighbours.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../harness/session.hpp"

namespace suite::miniapps {

// To another rank: how many numbers go there and come from there.
struct Link {
  int rank = 0;
  std::size_t out = 0;
  std::size_t in = 0;
};

class Exchange {
 public:
  using Pack = std::function<void(std::size_t link, double* to)>;
  using Unpack = std::function<void(std::size_t link, const double* from)>;

  explicit Exchange(std::vector<Link> all) : links(std::move(all)) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // `pack` may run in several threads, one link each; `unpack` runs in the caller's.
  void run(const Pack& pack, const Unpack& unpack) {
    const double start = now();
    transfer(pack);
    for (std::size_t link = 0; link < links.size(); ++link) unpack(link, incoming(link));
    seconds += now() - start;
  }
  virtual double sum(double mine) = 0;

  std::vector<Link> links;  // sizes may change between runs, up to the capacity
  double seconds = 0;       // in run() so far

 protected:
  virtual void transfer(const Pack& pack) = 0;
  virtual const double* incoming(std::size_t link) const = 0;
};

// All ranks with the same form; `capacity` is the most numbers of any link on any rank.
using MakeExchange =
    std::function<std::unique_ptr<Exchange>(std::vector<Link> links, std::size_t capacity)>;

const std::vector<std::string>& forms();
std::unique_ptr<Exchange> make_exchange(const std::string& form, const Session& session,
                                        std::vector<Link> links, std::size_t capacity);

// A rank alone.
std::unique_ptr<Exchange> no_exchange();

// For each link which of its peer's links leads back here.
std::vector<std::size_t> links_back(const Session& session, const std::vector<Link>& links);

// Receives that wait ahead of all others while this lives.
class ExtraReceives {
 public:
  ExtraReceives(const Session& session, std::size_t count);
  ~ExtraReceives();
  ExtraReceives(const ExtraReceives&) = delete;
  ExtraReceives& operator=(const ExtraReceives&) = delete;

 private:
  const Session& session_;
  std::vector<MPI_Request> receives_;
};

}  // namespace suite::miniapps
