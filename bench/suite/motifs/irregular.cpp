// SPDX-License-Identifier: BSD-3-Clause
//
// Patterns without a grid: adaptive meshes, long lists matched out of order, one rank that
// everybody talks to, and updates at random places.
#include <algorithm>
#include <random>
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

// RandomAccess: every rank updates words at random places of a table that is spread over
// all ranks, and nobody knows who will send to him next. A rank looks at 1024 updates of
// its own at a time; those for its own words are no messages.
constexpr std::size_t kLookAhead = 1024;
constexpr std::size_t kUpdateBytes = 8;

// How many updates each rank makes for each other one, by rounds of kLookAhead: [round]
// [from][to]. The same on every rank, since each one's stream of random numbers follows
// from its number.
using Updates = std::vector<std::vector<std::vector<std::size_t>>>;

Updates updates_of(const Parameters& parameters, int size) {
  const auto edge = static_cast<std::size_t>(parameters.edge);
  const auto ranks = static_cast<std::size_t>(size);
  std::size_t left = 4 * edge * edge;  // four times the rank's part of the table
  std::vector<std::mt19937> streams;
  for (unsigned rank = 0; rank < ranks; ++rank) streams.emplace_back(parameters.seed + rank);
  Updates updates;
  for (; left > 0; left -= std::min(left, kLookAhead)) {
    auto& round = updates.emplace_back(ranks, std::vector<std::size_t>(ranks));
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < std::min(left, kLookAhead); ++i) {
        const std::size_t to = streams[from]() % ranks;
        if (to != from) ++round[from][to];
      }
    }
  }
  return updates;
}

// A message holds --bytes of updates for one rank and goes when it is full, the rest at the
// end (of full length, as a bucket is). --outstanding ANY_SOURCE receives wait at any time;
// what comes beyond them is unexpected until the rank has sent its next round.
Script random_access_in(const Parameters& parameters, std::size_t bytes, int rank, int size) {
  const Updates updates = updates_of(parameters, size);
  const auto ranks = static_cast<std::size_t>(size);
  const auto me = static_cast<std::size_t>(rank);
  const std::size_t bucket = std::max<std::size_t>(bytes / kUpdateBytes, 1);
  std::vector<std::vector<std::size_t>> held(ranks, std::vector<std::size_t>(ranks));
  // sent[round][to]: by me; come[round]: to me.
  std::vector<std::vector<std::size_t>> sent;
  std::vector<std::size_t> come;
  for (std::size_t round = 0; round <= updates.size(); ++round) {
    const bool last = round == updates.size();
    sent.emplace_back(ranks);
    come.push_back(0);
    for (std::size_t from = 0; from < ranks; ++from) {
      for (std::size_t to = 0; to < ranks; ++to) {
        std::size_t& waiting = held[from][to];
        if (!last) waiting += updates[round][from][to];
        const std::size_t messages = last ? (waiting > 0 ? 1 : 0) : waiting / bucket;
        waiting -= std::min(waiting, messages * bucket);
        if (from == me) sent.back()[to] = messages;
        if (to == me) come.back() += messages;
      }
    }
  }

  Script script;
  const std::size_t all = std::accumulate(come.begin(), come.end(), std::size_t{0});
  std::size_t posted = 0;
  const auto post = [&] {
    if (posted == all) return;
    script.receive(kAnySource, kDataTag, bucket * kUpdateBytes);
    ++posted;
  };
  for (int i = 0; i < parameters.outstanding; ++i) post();
  std::size_t received = 0;
  const auto take = [&](std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      script.wait(received++);
      post();
    }
  };
  // Messages of a round are waited for a round later: all are under way by then, so that
  // nobody waits for somebody who waits.
  for (std::size_t round = 0; round < sent.size(); ++round) {
    script.compute(parameters.compute_us * 1e-6);
    for (std::size_t by = 1; by < ranks; ++by) {
      const std::size_t to = (me + by) % ranks;
      for (std::size_t i = 0; i < sent[round][to]; ++i) {
        script.send(static_cast<int>(to), kDataTag, bucket * kUpdateBytes);
      }
    }
    if (round > 0) take(come[round - 1]);
  }
  take(come.back());
  script.wait_all();
  return script;
}

Script random_access(const Parameters& parameters, const Places&, int rank, int size) {
  return random_access_in(parameters, parameters.bytes, rank, size);
}

Script random_access_each(const Parameters& parameters, const Places&, int rank, int size) {
  return random_access_in(parameters, kUpdateBytes, rank, size);
}

// After every round everybody tells everybody how much comes, and sends it.
Script random_access_all(const Parameters& parameters, const Places&, int rank, int size) {
  const Updates updates = updates_of(parameters, size);
  const auto me = static_cast<std::size_t>(rank);
  Script script;
  for (const auto& round : updates) {
    const auto exchange = [&](int tag, auto bytes_of) {
      for (int by = 1; by < size; ++by) {
        const auto from = static_cast<std::size_t>((rank - by + size) % size);
        const std::size_t bytes = bytes_of(round[from][me]);
        if (bytes > 0) script.receive(static_cast<int>(from), tag, bytes);
      }
      for (int by = 1; by < size; ++by) {
        const auto to = static_cast<std::size_t>((rank + by) % size);
        const std::size_t bytes = bytes_of(round[me][to]);
        if (bytes > 0) script.send(static_cast<int>(to), tag, bytes);
      }
      script.wait_all();
    };
    script.compute(parameters.compute_us * 1e-6);
    exchange(kSetupTag, [](std::size_t) { return std::size_t{8}; });
    exchange(kDataTag, [](std::size_t updates_there) { return updates_there * kUpdateBytes; });
  }
  return script;
}

}  // namespace

std::vector<Motif> irregular() {
  return {{"amr", "adaptive mesh: set-up by ANY_SOURCE, irregular halo, probed messages", 2, amr},
          {"fds", "long posted queues matched out of order", 2, fds},
          {"many-to-one", "master and workers, ANY_SOURCE", 2, many_to_one},
          {"random-access", "updates of random words of a table, gathered in buckets", 2,
           random_access},
          {"random-access-each", "the same, every update a message", 2, random_access_each},
          {"random-access-all", "the same, rounds of all-to-all exchanges", 2, random_access_all}};
}

}  // namespace suite::motifs
