// SPDX-License-Identifier: BSD-3-Clause
//
// Halo exchanges: every rank sends to its neighbours on a grid and receives from them;
// all receives are posted first. --outstanding messages per neighbour are those of as
// many threads that each send their part.
#include <cstdlib>

#include "motif.hpp"

namespace suite::motifs {
namespace {

struct Offset {
  int x, y, z;
};

// star: along the axes up to `reach`; box: all that touch, corners included.
std::vector<Offset> star(int dimensions, int reach) {
  std::vector<Offset> all;
  for (int axis = 0; axis < dimensions; ++axis) {
    for (int by = 1; by <= reach; ++by) {
      for (const int sign : {-1, 1}) {
        all.push_back(
            {axis == 0 ? sign * by : 0, axis == 1 ? sign * by : 0, axis == 2 ? sign * by : 0});
      }
    }
  }
  return all;
}

std::vector<Offset> box(int dimensions) {
  std::vector<Offset> all;
  const int z = dimensions == 3 ? 1 : 0;
  for (int dz = -z; dz <= z; ++dz) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        if (dx != 0 || dy != 0 || dz != 0) all.push_back({dx, dy, dz});
      }
    }
  }
  return all;
}

// The tag tells the direction: on a small periodic grid one rank is several neighbours.
Script exchange(const Parameters& parameters, const Places& places, int rank, int size,
                int dimensions, const std::vector<Offset>& offsets, bool periodic) {
  const Grid grid(places, rank, sides_of(size, dimensions));
  const int n = static_cast<int>(offsets.size());
  Script script;
  const auto tag = [&](int direction, int part) { return part * n + direction; };
  const auto for_each = [&](auto visit) {
    for (int part = 0; part < parameters.outstanding; ++part) {
      for (int i = 0; i < n; ++i) {
        const Offset& by = offsets[static_cast<std::size_t>(i)];
        // Faces are whole, edges and corners shorter.
        const int axes = std::abs(by.x != 0) + std::abs(by.y != 0) + std::abs(by.z != 0);
        const std::size_t bytes = axes == 1   ? parameters.bytes
                                  : axes == 2 ? std::max<std::size_t>(parameters.bytes / 16, 8)
                                              : 8;
        visit(by, i, part, bytes);
      }
    }
  };
  for_each([&](const Offset& by, int i, int part, std::size_t bytes) {
    const int from = grid.neighbour(-by.x, -by.y, -by.z, periodic);
    if (from >= 0 && from != rank) script.receive(from, tag(i, part), bytes);
  });
  script.compute(parameters.compute_us * 1e-6);
  for_each([&](const Offset& by, int i, int part, std::size_t bytes) {
    const int to = grid.neighbour(by.x, by.y, by.z, periodic);
    if (to >= 0 && to != rank) script.send(to, tag(i, part), bytes);
  });
  script.wait_all();
  return script;
}

Motif halo(const std::string& name, const std::string& about, int dimensions,
           const std::vector<Offset>& offsets, bool periodic) {
  return {name, about, 2,
          [=](const Parameters& parameters, const Places& places, int rank, int size) {
            return exchange(parameters, places, rank, size, dimensions, offsets, periodic);
          }};
}

// Ranks by fours with one, three, two and two neighbours.
Script graph(const Parameters& parameters, const Places&, int rank, int size) {
  static const std::vector<std::vector<int>> kNeighbours{{1}, {0, 2, 3}, {1, 3}, {1, 2}};
  Script script;
  const int first = rank / 4 * 4;
  const auto for_each = [&](auto visit) {
    for (int part = 0; part < parameters.outstanding; ++part) {
      for (const int other : kNeighbours[static_cast<std::size_t>(rank - first)]) {
        if (first + other < size) visit(first + other, part);
      }
    }
  };
  for_each([&](int from, int part) { script.receive(from, part, parameters.bytes); });
  script.compute(parameters.compute_us * 1e-6);
  for_each([&](int to, int part) { script.send(to, part, parameters.bytes); });
  script.wait_all();
  return script;
}

}  // namespace

std::vector<Motif> halos() {
  return {halo("halo2d", "5-point halo on a periodic plane", 2, star(2, 1), true),
          halo("halo2d-9", "9-point halo on a periodic plane", 2, box(2), true),
          halo("halo3d", "7-point halo in a periodic box", 3, star(3, 1), true),
          halo("halo3d-13", "13-point halo in a periodic box: two layers along the axes", 3,
               star(3, 2), true),
          halo("halo3d-27", "27-point halo in a periodic box", 3, box(3), true),
          halo("halo3d-open", "27-point halo in a box with borders", 3, box(3), false),
          {"graph", "halo of a graph with 1, 3, 2 and 2 neighbours", 2, graph}};
}

}  // namespace suite::motifs
