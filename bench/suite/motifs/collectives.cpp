// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives as the messages they consist of. --outstanding instances are under way at
// once, with all their receives posted ahead; a tag is (instance, phase). --root
// rotating gives each instance a root of its own: with one root for all, instances
// follow each other through the tree and hide each other's latency.
#include "motif.hpp"

namespace suite::motifs {
namespace {

constexpr int kPhases = 64;

int phases_of(int size) {
  int n = 0;
  while ((1 << n) < size) ++n;
  return n;
}

int root_of(const Parameters& parameters, int instance, int size) {
  return parameters.root == "rotating" ? instance % size : 0;
}

// A tree: one message in, some out. `edges(virtual rank)` gives the parent (-1: root)
// and the children with their phases, the root being virtual rank 0.
struct Edges {
  int parent = -1;
  int phase = 0;
  std::vector<std::pair<int, int>> children;  // rank, phase
};

template <class EdgesOf>
Script broadcast(const Parameters& parameters, int rank, int size, EdgesOf edges_of) {
  Script script;
  std::vector<std::size_t> receives(static_cast<std::size_t>(parameters.outstanding));
  const auto edges = [&](int instance) {
    const int root = root_of(parameters, instance, size);
    Edges tree = edges_of((rank - root + size) % size);
    const auto real = [&](int at) { return (at + root) % size; };
    if (tree.parent >= 0) tree.parent = real(tree.parent);
    for (auto& [child, phase] : tree.children) child = real(child);
    return tree;
  };
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    const Edges tree = edges(instance);
    if (tree.parent < 0) continue;
    receives[static_cast<std::size_t>(instance)] =
        script.receive(tree.parent, instance * kPhases + tree.phase, parameters.bytes);
  }
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    const Edges tree = edges(instance);
    if (tree.parent >= 0) script.wait(receives[static_cast<std::size_t>(instance)]);
    for (const auto& [child, phase] : tree.children) {
      script.send(child, instance * kPhases + phase, parameters.bytes);
    }
  }
  script.wait_all();
  return script;
}

Script binomial(const Parameters& parameters, const Places&, int rank, int size) {
  return broadcast(parameters, rank, size, [&](int r) {
    Edges edges;
    const int n = phases_of(size);
    for (int i = 0; i < n; ++i) {
      const int distance = 1 << (n - 1 - i);
      const int mask = (1 << (n - i)) - 1;
      if ((r & mask) == 0 && r + distance < size) edges.children.emplace_back(r + distance, i);
      if ((r & mask) == distance) {
        edges.parent = r - distance;
        edges.phase = i;
      }
    }
    return edges;
  });
}

Script k_ary(const Parameters& parameters, const Places&, int rank, int size) {
  const int k = parameters.radix;
  return broadcast(parameters, rank, size, [&](int r) {
    Edges edges;
    if (r > 0) edges.parent = (r - 1) / k;
    for (int child = k * r + 1; child <= k * r + k && child < size; ++child) {
      edges.children.emplace_back(child, 0);
    }
    return edges;
  });
}

// Everybody's messages to rank 0 at once.
Script gather(const Parameters& parameters, const Places&, int rank, int size) {
  Script script;
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    if (root_of(parameters, instance, size) != rank) continue;
    for (int from = 0; from < size; ++from) {
      if (from != rank) script.receive(from, instance, parameters.bytes);
    }
  }
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    const int root = root_of(parameters, instance, size);
    if (root != rank) script.send(root, instance, parameters.bytes);
  }
  script.wait_all();
  return script;
}

// Rounds with k - 1 receives each; what is passed on grows by the factor k.
Script bruck(const Parameters& parameters, const Places&, int rank, int size) {
  const int k = std::max(2, parameters.radix);
  Script script;
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    int phase = 0;
    for (int distance = 1; distance < size; distance *= k, ++phase) {
      const int tag = instance * kPhases + phase;
      std::vector<std::size_t> receives;
      for (int j = 1; j < k && j * distance < size; ++j) {
        const auto blocks = static_cast<std::size_t>(std::min(distance, size - j * distance));
        receives.push_back(
            script.receive((rank + j * distance) % size, tag, blocks * parameters.bytes));
        script.send((rank - j * distance % size + size) % size, tag, blocks * parameters.bytes);
      }
      for (const std::size_t receive : receives) script.wait(receive);
    }
  }
  script.wait_all();
  return script;
}

Script flat(const Parameters& parameters, const Places&, int rank, int size) {
  Script script;
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    for (int by = 1; by < size; ++by) {
      script.receive((rank - by + size) % size, instance, parameters.bytes);
    }
  }
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    for (int by = 1; by < size; ++by) {
      script.send((rank + by) % size, instance, parameters.bytes);
    }
  }
  script.wait_all();
  return script;
}

// Allreduce among `members`: those beyond a power of two fold theirs into a partner
// first and get the result from it at the end. Receives are posted ahead.
void butterfly_among(Script& script, const std::vector<int>& members, int rank, int first_tag,
                     std::size_t bytes) {
  const int n = static_cast<int>(members.size());
  const int me =
      static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
  const auto real = [&](int at) { return members[static_cast<std::size_t>(at)]; };
  int rounds = 0;
  while ((2 << rounds) <= n) ++rounds;
  const int power = 1 << rounds;
  const int fold = first_tag + rounds;
  const int unfold = fold + 1;
  if (me >= power) {
    const std::size_t result = script.receive(real(me - power), unfold, bytes);
    script.send(real(me - power), fold, bytes);
    script.wait(result);
    return;
  }
  const bool folds = me + power < n;
  const std::size_t other = folds ? script.receive(real(me + power), fold, bytes) : 0;
  std::vector<std::size_t> receives;
  for (int i = 0; i < rounds; ++i) {
    receives.push_back(script.receive(real(me ^ (1 << i)), first_tag + i, bytes));
  }
  if (folds) script.wait(other);
  for (int i = 0; i < rounds; ++i) {
    script.send(real(me ^ (1 << i)), first_tag + i, bytes);
    script.wait(receives[static_cast<std::size_t>(i)]);
  }
  if (folds) script.send(real(me + power), unfold, bytes);
}

Script butterfly(const Parameters& parameters, const Places&, int rank, int size) {
  std::vector<int> everybody(static_cast<std::size_t>(size));
  std::iota(everybody.begin(), everybody.end(), 0);
  Script script;
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    butterfly_among(script, everybody, rank, instance * kPhases, parameters.bytes);
  }
  script.wait_all();
  return script;
}

// Inside a node to its first rank, among the first ranks, and back.
Script hierarchical(const Parameters& parameters, const Places& places, int rank, int size) {
  const int k = std::max(1, std::min(places.ranks_per_node(), size));
  const int leader = rank / k * k;
  std::vector<int> leaders;
  for (int at = 0; at < size; at += k) leaders.push_back(at);
  Script script;
  for (int instance = 0; instance < parameters.outstanding; ++instance) {
    const int up = instance * kPhases + kPhases - 1;
    const int down = up - 1;
    if (rank != leader) {
      const std::size_t result = script.receive(leader, down, parameters.bytes);
      script.send(leader, up, parameters.bytes);
      script.wait(result);
      continue;
    }
    std::vector<std::size_t> parts;
    for (int member = leader + 1; member < std::min(leader + k, size); ++member) {
      parts.push_back(script.receive(member, up, parameters.bytes));
    }
    for (const std::size_t part : parts) script.wait(part);
    butterfly_among(script, leaders, rank, instance * kPhases, parameters.bytes);
    for (int member = leader + 1; member < std::min(leader + k, size); ++member) {
      script.send(member, down, parameters.bytes);
    }
  }
  script.wait_all();
  return script;
}

}  // namespace

std::vector<Motif> collectives() {
  return {{"binomial", "broadcast by a binomial tree", 2, binomial},
          {"k-ary", "broadcast by a tree with --radix children", 2, k_ary},
          {"gather", "everybody to the root", 2, gather},
          {"bruck", "all-to-all knowledge in rounds of --radix", 2, bruck},
          {"flat", "everybody to everybody", 2, flat},
          {"butterfly", "allreduce by a butterfly of all ranks", 2, butterfly},
          {"hierarchical", "allreduce: nodes, their first ranks by a butterfly, nodes", 2,
           hierarchical}};
}

}  // namespace suite::motifs
