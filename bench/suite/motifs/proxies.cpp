// SPDX-License-Identifier: BSD-3-Clause
//
// Skeletons of three proxy applications.
#include <cmath>
#include <cstdlib>
#include <set>

#include "motif.hpp"

namespace suite::motifs {
namespace {

// Three exchanges per time step with up to 26 neighbours in a cube of ranks: nodal
// forces (three fields), positions and velocities (six), gradients over faces alone.
Script lulesh(const Parameters& parameters, const Places& places, int rank, int size) {
  const Grid grid(places, rank, sides_of(size, 3));
  const auto n = static_cast<std::size_t>(parameters.edge);
  Script script;
  const auto exchange = [&](int number, std::size_t fields, bool faces_only) {
    const auto for_each = [&](auto visit) {
      for (int i = 0; i < 27; ++i) {
        const int dx = i % 3 - 1;
        const int dy = i / 3 % 3 - 1;
        const int dz = i / 9 - 1;
        const int axes = std::abs(dx) + std::abs(dy) + std::abs(dz);
        if (axes == 0 || (faces_only && axes != 1)) continue;
        const int peer = grid.neighbour(dx, dy, dz, false);
        const std::size_t points = axes == 1 ? n * n : axes == 2 ? n : 1;
        if (peer >= 0) visit(peer, i, points * fields * sizeof(double));
      }
    };
    // The tag is the direction as the sender sees it.
    for_each([&](int peer, int i, std::size_t bytes) {
      script.receive(peer, number * 27 + 26 - i, bytes);
    });
    script.compute(parameters.compute_us * 1e-6);
    for_each(
        [&](int peer, int i, std::size_t bytes) { script.send(peer, number * 27 + i, bytes); });
    script.wait_all();
  };
  exchange(0, 3, false);
  exchange(1, 6, false);
  exchange(2, 3, true);
  return script;
}

// Sweeps from all eight corners of a box of ranks, by sets of groups and directions;
// all receives are posted at the start, so the posted queue holds a sweep's worth.
Script kripke(const Parameters& parameters, const Places& places, int rank, int size) {
  const Grid grid(places, rank, sides_of(size, 3));
  const int sets = 4 * parameters.outstanding;
  const int tags = sets * 3;
  Script script;
  struct Part {
    std::vector<std::size_t> receives;
    int number;
  };
  std::vector<Part> parts;
  const auto for_each_axis = [&](int octant, int sign, auto visit) {
    for (int axis = 0; axis < 3; ++axis) {
      const int way = ((octant >> axis) & 1) != 0 ? -sign : sign;
      const int peer =
          grid.neighbour(axis == 0 ? way : 0, axis == 1 ? way : 0, axis == 2 ? way : 0, false);
      if (peer >= 0) visit(peer, axis);
    }
  };
  for (int octant = 0; octant < 8; ++octant) {
    for (int set = 0; set < sets; ++set) {
      Part part{{}, octant * tags + set * 3};
      for_each_axis(octant, -1, [&](int from, int axis) {
        part.receives.push_back(script.receive(from, part.number + axis, parameters.bytes));
      });
      parts.push_back(std::move(part));
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const std::size_t receive : parts[i].receives) script.wait(receive);
    script.compute(parameters.compute_us * 1e-6);
    for_each_axis(static_cast<int>(i) / sets, 1, [&](int to, int axis) {
      script.send(to, parts[i].number + axis, parameters.bytes);
    });
  }
  script.wait_all();
  return script;
}

// A multigrid cycle on an unstructured mesh (AMG2013): set-up, where a rank knows whom it
// needs and not who needs it, then halos on ever coarser grids and back. Coarser grids have
// wider stencils, neighbours further away and shorter messages; the coarsest one is solved
// on rank 0.
Script amg(const Parameters& parameters, const Places& places, int rank, int size) {
  constexpr int kSetupTag = 0;
  constexpr int kCoarsestTag = 1;
  constexpr int kLevelTag = 2;  // + level * outstanding + part
  const Grid grid(places, rank, sides_of(size, 3));
  struct Level {
    std::set<int> neighbours;
    std::size_t bytes;
  };
  std::vector<Level> levels;
  for (int step = 1; step < grid.sides()[0]; step *= 2) {
    Level level{{}, std::max<std::size_t>(parameters.bytes >> (2 * levels.size()), 8)};
    const int reach = step == 1 ? 1 : 2;
    for (int z = -reach; z <= reach; ++z) {
      for (int y = -reach; y <= reach; ++y) {
        for (int x = -reach; x <= reach; ++x) {
          const int peer = grid.neighbour(x * step, y * step, z * step, false);
          if (peer >= 0 && peer != rank) level.neighbours.insert(peer);
        }
      }
    }
    levels.push_back(std::move(level));
  }
  Script script;
  for (const Level& level : levels) {
    for (std::size_t i = 0; i < level.neighbours.size(); ++i) {
      script.receive(kAnySource, kSetupTag, 8);
    }
  }
  for (const Level& level : levels) {
    for (const int peer : level.neighbours) script.send(peer, kSetupTag, 8);
  }
  script.wait_all();
  const auto exchange = [&](std::size_t number) {
    const Level& level = levels[number];
    const int first = kLevelTag + static_cast<int>(number) * parameters.outstanding;
    for (int part = 0; part < parameters.outstanding; ++part) {
      for (const int peer : level.neighbours) script.receive(peer, first + part, level.bytes);
    }
    script.compute(parameters.compute_us * 1e-6);
    for (int part = 0; part < parameters.outstanding; ++part) {
      for (const int peer : level.neighbours) script.send(peer, first + part, level.bytes);
    }
    script.wait_all();
  };
  for (std::size_t i = 0; i < levels.size(); ++i) exchange(i);
  if (rank == 0) {
    for (int i = 1; i < size; ++i) script.receive(kAnySource, kCoarsestTag, 8);
    script.wait_all();
    for (int i = 1; i < size; ++i) script.send(i, kCoarsestTag, 8);
  } else {
    script.receive(0, kCoarsestTag, 8);
    script.send(0, kCoarsestTag, 8);
  }
  script.wait_all();
  for (std::size_t i = levels.size(); i > 0; --i) exchange(i - 1);
  return script;
}

}  // namespace

std::vector<Motif> proxies() {
  return {{"lulesh", "three exchanges with up to 26 neighbours per step", 2, lulesh},
          {"kripke", "sweeps from eight corners, all receives posted at the start", 2, kripke},
          {"amg", "multigrid cycle: set-up by ANY_SOURCE, neighbours ever further away", 2, amg}};
}

}  // namespace suite::motifs
