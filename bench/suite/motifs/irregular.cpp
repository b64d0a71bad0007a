// SPDX-License-Identifier: BSD-3-Clause
//
// Patterns without a grid: adaptive meshes, long lists matched out of order, and one
// rank that everybody talks to.
#include <set>

#include "motif.hpp"

namespace suite::motifs {
namespace {

constexpr int kSetupTag = 1;
constexpr int kDataTag = 2;
constexpr int kFarTag = 3;

// The same on every rank: an edge between near ranks often, between far ones seldom.
std::vector<std::set<int>> mesh(const Parameters& parameters, int size) {
  std::mt19937 random(parameters.seed);
  std::vector<std::set<int>> neighbours(static_cast<std::size_t>(size));
  const auto join = [&](int a, int b) {
    if (a == b) return;
    neighbours[static_cast<std::size_t>(a)].insert(b);
    neighbours[static_cast<std::size_t>(b)].insert(a);
  };
  for (int rank = 0; rank < size; ++rank) {
    join(rank, (rank + 1) % size);
    // A refined region has up to eight more neighbours.
    const auto more = static_cast<int>(random() % 9);
    for (int i = 0; i < more; ++i) join(rank, (rank + 2 + static_cast<int>(random() % 8)) % size);
  }
  return neighbours;
}

// Set-up: who needs my data asks me, and I do not know who will. Then the exchange, and
// at last messages over a long distance that the receiver learns of by a probe.
Script amr(const Parameters& parameters, const Places&, int rank, int size) {
  const auto all = mesh(parameters, size);
  const std::set<int>& mine = all[static_cast<std::size_t>(rank)];
  Script script;
  for (std::size_t i = 0; i < mine.size(); ++i) script.receive(kAnySource, kSetupTag, 8);
  for (const int peer : mine) script.send(peer, kSetupTag, 8);
  script.wait_all();
  for (int part = 0; part < parameters.outstanding; ++part) {
    for (const int peer : mine) script.receive(peer, kDataTag + 2 * part, parameters.bytes);
  }
  script.compute(parameters.compute_us * 1e-6);
  for (int part = 0; part < parameters.outstanding; ++part) {
    for (const int peer : mine) script.send(peer, kDataTag + 2 * part, parameters.bytes);
  }
  const auto far = [&](int from) { return (from + size / 2) % size; };
  const auto has_far = [&](int from) { return from % 4 == 0 && far(from) != from; };
  if (has_far(rank)) script.send(far(rank), kFarTag, parameters.bytes);
  for (int from = 0; from < size; ++from) {
    if (has_far(from) && far(from) == rank) script.probe(kFarTag, parameters.bytes);
  }
  script.wait_all();
  return script;
}

// Long posted queues whose match is hardly ever the first entry: a message for each of
// many variables from each of many ranks, sent in an order of the sender's own.
Script fds(const Parameters& parameters, const Places&, int rank, int size) {
  const int peers = std::min(size - 1, 8);
  const int each = 64 * parameters.outstanding;
  Script script;
  for (int i = 0; i < each; ++i) {
    for (int by = 1; by <= peers; ++by) {
      script.receive((rank - by + size) % size, i, parameters.bytes);
    }
  }
  script.compute(parameters.compute_us * 1e-6);
  std::vector<std::pair<int, int>> messages;
  for (int by = 1; by <= peers; ++by) {
    for (int i = 0; i < each; ++i) messages.emplace_back((rank + by) % size, i);
  }
  std::mt19937 random(parameters.seed + static_cast<unsigned>(rank));
  std::shuffle(messages.begin(), messages.end(), random);
  for (const auto& [to, tag] : messages) script.send(to, tag, parameters.bytes);
  script.wait_all();
  return script;
}

// Rank 0 hands out work to whoever has returned some.
Script many_to_one(const Parameters& parameters, const Places&, int rank, int size) {
  const int tasks = 4 * parameters.outstanding;
  Script script;
  if (rank != 0) {
    for (int i = 0; i < tasks; ++i) {
      const std::size_t reply = script.receive(0, kSetupTag, 8);
      script.send(0, kDataTag, parameters.bytes);
      script.wait(reply);
      script.compute(parameters.compute_us * 1e-6);
    }
  } else {
    for (int i = 0; i < tasks; ++i) {
      std::vector<std::size_t> results;
      for (int worker = 1; worker < size; ++worker) {
        results.push_back(script.receive(kAnySource, kDataTag, parameters.bytes));
      }
      for (const std::size_t result : results) script.wait(result);
      for (int worker = 1; worker < size; ++worker) script.send(worker, kSetupTag, 8);
    }
  }
  script.wait_all();
  return script;
}

}  // namespace

std::vector<Motif> irregular() {
  return {{"amr", "adaptive mesh: set-up by ANY_SOURCE, irregular halo, probed messages", 2, amr},
          {"fds", "long posted queues matched out of order", 2, fds},
          {"many-to-one", "master and workers, ANY_SOURCE", 2, many_to_one}};
}

}  // namespace suite::motifs
