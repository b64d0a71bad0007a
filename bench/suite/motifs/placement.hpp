// SPDX-License-Identifier: BSD-3-Clause
//
// Cartesian grids of ranks, and which rank lies where in one.
//
//   standard     by rows
//   round-robin  cells that follow each other lie on different nodes
//   tiled        a node's k ranks form a k1 x k2 tile, as square as the grid allows, so
//                that fewer neighbours are on other nodes
//   random       a permutation
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace suite::motifs {

using Cell = std::array<int, 3>;  // x, y, z

// Sides as equal as they get; the product is n.
inline Cell sides_of(int n, int dimensions) {
  Cell sides{n, 1, 1};
  int best = 1 << 30;
  for (int x = 1; x <= n; ++x) {
    if (n % x != 0) continue;
    const int rest = n / x;
    for (int y = 1; y <= rest; ++y) {
      if (rest % y != 0 || (dimensions < 3 && rest / y != 1)) continue;
      const int z = rest / y;
      const int surface = x * y + y * z + x * z + x + y + z;
      if (x >= y && y >= z && surface < best) {
        best = surface;
        sides = {x, y, z};
      }
    }
  }
  return sides;
}

// Width of a node's tile in a grid of p1 columns and p2 rows; 0: there is none.
inline int tile_width(int k, int p1, int p2) {
  int best = 0;
  for (int b = 1; b <= k; ++b) {
    if (k % b != 0 || p1 % b != 0 || p2 % (k / b) != 0) continue;
    if (best == 0 || b + k / b < best + k / best) best = b;
  }
  return best;
}

// Rank of the cell in column c and row r.
inline int tiled_rank(int c, int r, int p1, int k, int k1) {
  const int k2 = k / k1;
  return (r % k2) * k1 + (r / k2) * p1 * k2 + (c / k1) * k + c % k1;
}

class Places {
 public:
  Places(std::string kind, int ranks_per_node, unsigned seed)
      : kind_(std::move(kind)), per_node_(ranks_per_node), seed_(seed) {}

  int ranks_per_node() const { return per_node_; }

  // Rank of each cell; x runs fastest.
  std::vector<int> ranks_of(const Cell& sides) const {
    const int n = sides[0] * sides[1] * sides[2];
    std::vector<int> ranks(static_cast<std::size_t>(n));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (kind_ == "random") {
      std::mt19937 random(seed_);
      std::shuffle(ranks.begin(), ranks.end(), random);
    } else if (kind_ == "round-robin" && n % per_node_ == 0) {
      const int nodes = n / per_node_;
      for (int i = 0; i < n; ++i) {
        ranks[static_cast<std::size_t>(i)] = (i % nodes) * per_node_ + i / nodes;
      }
    } else if (kind_ == "tiled") {
      const int k1 = tile_width(per_node_, sides[0], sides[1]);
      const int plane = sides[0] * sides[1];
      for (int i = 0; k1 > 0 && plane % per_node_ == 0 && i < n; ++i) {
        ranks[static_cast<std::size_t>(i)] =
            i / plane * plane +
            tiled_rank(i % plane % sides[0], i % plane / sides[0], sides[0], per_node_, k1);
      }
    }
    return ranks;
  }

 private:
  std::string kind_;
  int per_node_;
  unsigned seed_;
};

// A grid as one rank sees it.
class Grid {
 public:
  Grid(const Places& places, int rank, const Cell& sides)
      : sides_(sides), ranks_(places.ranks_of(sides)) {
    const auto at =
        static_cast<int>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
    mine_ = {at % sides[0], at / sides[0] % sides[1], at / (sides[0] * sides[1])};
  }
  const Cell& mine() const { return mine_; }
  const Cell& sides() const { return sides_; }
  // Rank at a distance; -1 beyond the border of a grid that is not periodic.
  int neighbour(int dx, int dy, int dz, bool periodic) const {
    const std::array<int, 3> by{dx, dy, dz};
    Cell at{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      at[axis] = mine_[axis] + by[axis];
      const int side = sides_[axis];
      if (at[axis] >= 0 && at[axis] < side) continue;
      if (!periodic) return -1;
      at[axis] = (at[axis] % side + side) % side;
    }
    return rank_at(at);
  }
  int rank_at(const Cell& at) const {
    return ranks_[static_cast<std::size_t>((at[2] * sides_[1] + at[1]) * sides_[0] + at[0])];
  }

 private:
  Cell sides_;
  std::vector<int> ranks_;
  Cell mine_{};
};

}  // namespace suite::motifs
