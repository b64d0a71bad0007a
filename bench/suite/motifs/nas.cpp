// SPDX-License-Identifier: BSD-3-Clause
//
// The communication of the NAS benchmarks' solvers, without their arithmetic.
#include "motif.hpp"

namespace suite::motifs {
namespace {

// One axis after the other, there and back; each level halves the grid along every
// axis, and when there are fewer points than ranks, ranks fall silent.
Script mg(const Parameters& parameters, const Places& places, int rank, int size) {
  const Grid grid(places, rank, sides_of(size, 3));
  Script script;
  const auto level = [&](int step, std::size_t bytes) {
    for (const int at : grid.mine()) {
      if (at % step != 0) return;
    }
    for (int axis = 0; axis < 3; ++axis) {
      const int side = grid.sides()[static_cast<std::size_t>(axis)];
      if (side <= step) continue;
      std::vector<std::size_t> receives;
      for (const int sign : {-1, 1}) {
        const auto along = [&](int which) { return axis == which ? sign * step : 0; };
        // Beyond the last active rank comes the first one, though the step may not divide.
        Cell at = grid.mine();
        int& place = at[static_cast<std::size_t>(axis)];
        const auto next = [&](int by) {
          int to = place + by;
          if (to >= side) to = 0;
          if (to < 0) to = (side - 1) / step * step;
          Cell there = at;
          there[static_cast<std::size_t>(axis)] = to;
          return grid.rank_at(there);
        };
        const int by = along(axis);
        const int tag = axis * 2 + (sign > 0 ? 1 : 0);
        receives.push_back(script.receive(next(-by), tag, bytes));
        script.send(next(by), tag, bytes);
      }
      for (const std::size_t receive : receives) script.wait(receive);
    }
  };
  std::size_t bytes = parameters.bytes * 16;
  int step = 1;
  for (int i = 0; i < 6; ++i) {
    level(step, std::max<std::size_t>(bytes, 8));
    script.compute(parameters.compute_us * 1e-6);
    bytes /= 4;
    if (bytes < 64) step *= 2;
  }
  script.wait_all();
  return script;
}

// Sums inside a row of ranks by a butterfly, then the transpose partner.
Script cg(const Parameters& parameters, const Places&, int rank, int size) {
  int columns = 1;
  while (columns * columns * 4 <= size) columns *= 2;
  const int rows = size / columns;
  const int used = rows * columns;
  Script script;
  if (rank >= used) return script;
  const int row = rank / columns;
  const int column = rank % columns;
  for (int i = 0; (1 << i) < columns; ++i) {
    const int partner = row * columns + (column ^ (1 << i));
    const std::size_t sum = script.receive(partner, i, parameters.bytes);
    script.send(partner, i, parameters.bytes);
    script.wait(sum);
  }
  // An involution on rows x columns: reflection of the rank's number.
  const int transpose = rows == columns ? column * columns + row : used - 1 - rank;
  if (transpose != rank) {
    const std::size_t part = script.receive(transpose, 20, parameters.bytes);
    script.send(transpose, 20, parameters.bytes);
    script.wait(part);
  }
  script.compute(parameters.compute_us * 1e-6);
  script.wait_all();
  return script;
}

// Multipartitioned sweeps: along each axis forward and back, a cell per stage, so that
// everybody works in every stage.
Script bt(const Parameters& parameters, const Places& places, int rank, int size) {
  const Grid grid(places, rank, sides_of(size, 2));
  const int stages = grid.sides()[0];
  Script script;
  for (int axis = 0; axis < 3; ++axis) {
    const int dx = axis == 1 ? 0 : 1;
    const int dy = axis == 0 ? 0 : 1;
    for (const int way : {1, -1}) {
      const int to = grid.neighbour(way * dx, way * dy, 0, true);
      const int from = grid.neighbour(-way * dx, -way * dy, 0, true);
      if (to == rank) continue;
      const int tag = axis * 2 + (way > 0 ? 0 : 1);
      for (int stage = 1; stage < stages; ++stage) {
        const std::size_t face = script.receive(from, tag, parameters.bytes);
        script.compute(parameters.compute_us * 1e-6);
        script.send(to, tag, parameters.bytes);
        script.wait(face);
      }
    }
  }
  script.wait_all();
  return script;
}

// Transpose by slabs: --outstanding exchanges under way, a message per rank each.
Script ft(const Parameters& parameters, const Places&, int rank, int size) {
  constexpr int kSlabs = 8;
  Script script;
  for (int first = 0; first < kSlabs; first += parameters.outstanding) {
    const int last = std::min(first + parameters.outstanding, kSlabs);
    for (int slab = first; slab < last; ++slab) {
      for (int by = 1; by < size; ++by) {
        script.receive((rank - by + size) % size, slab, parameters.bytes);
      }
    }
    script.compute(parameters.compute_us * 1e-6);
    for (int slab = first; slab < last; ++slab) {
      for (int by = 1; by < size; ++by) script.send((rank + by) % size, slab, parameters.bytes);
    }
    script.wait_all();
  }
  return script;
}

}  // namespace

std::vector<Motif> nas() {
  return {{"nas-mg", "multigrid: halos on ever coarser grids, ranks fall silent", 2, mg},
          {"nas-cg", "row sums, then the transpose partner", 2, cg},
          {"nas-bt", "multipartitioned sweeps (BT, SP)", 2, bt},
          {"nas-ft", "transpose by slabs", 2, ft}};
}

}  // namespace suite::motifs
