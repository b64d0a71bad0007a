// SPDX-License-Identifier: BSD-3-Clause
//
// Sweep3D on a plane of ranks: from each corner twice (eight octants), by blocks of
// angles and of planes. A block needs what its predecessors along I and J hand over.
//
//   sweep3d     receive I, receive J, compute, send I, send J
//   sweep3d-1b  one buffer: the receiver says that it is free, the sender waits for
//               that, puts, completes the put and says so
//   sweep3d-3b  three buffers that change their roles: what is received, computed on and
//               sent overlap, and "free" is said one block ahead
#include "motif.hpp"

namespace suite::motifs {
namespace {

constexpr int kAngleBlocks = 2;  // of three angles each
constexpr int kAnglesPerBlock = 3;
constexpr int kPlanes = 10;  // in a block

struct Block {
  std::vector<int> from;  // I, J; none at a border
  std::vector<int> to;
  std::vector<std::size_t> from_bytes;
  std::vector<std::size_t> to_bytes;
};

class Sweep {
 public:
  Sweep(const Parameters& parameters, const Places& places, int rank, int size)
      : parameters_(parameters), grid_(places, rank, sides_of(size, 2)) {
    const auto cells = [&](int side) {
      return static_cast<std::size_t>(std::max(1, parameters.edge / side));
    };
    i_bytes_ = cells(grid_.sides()[1]) * kPlanes * kAnglesPerBlock * sizeof(double);
    j_bytes_ = cells(grid_.sides()[0]) * kPlanes * kAnglesPerBlock * sizeof(double);
    blocks_ = kAngleBlocks * std::max(1, (parameters.edge + kPlanes - 1) / kPlanes);
  }

  Block octant(int number) const {
    const int dx = (number & 1) != 0 ? -1 : 1;
    const int dy = (number & 2) != 0 ? -1 : 1;
    Block block;
    const auto add = [](int rank, std::size_t bytes, std::vector<int>& ranks,
                        std::vector<std::size_t>& sizes) {
      if (rank < 0) return;
      ranks.push_back(rank);
      sizes.push_back(bytes);
    };
    add(grid_.neighbour(-dx, 0, 0, false), i_bytes_, block.from, block.from_bytes);
    add(grid_.neighbour(0, -dy, 0, false), j_bytes_, block.from, block.from_bytes);
    add(grid_.neighbour(dx, 0, 0, false), i_bytes_, block.to, block.to_bytes);
    add(grid_.neighbour(0, dy, 0, false), j_bytes_, block.to, block.to_bytes);
    return block;
  }

  Script messages() const {
    Script script;
    for_each_block([&](const Block& block, int tag, bool, bool) {
      for (std::size_t i = 0; i < block.from.size(); ++i) {
        script.wait(script.receive(block.from[i], tag, block.from_bytes[i]));
      }
      compute(script);
      for (std::size_t i = 0; i < block.to.size(); ++i) {
        script.send(block.to[i], tag, block.to_bytes[i]);
      }
    });
    script.wait_all();
    return script;
  }

  Script one_buffer() const {
    Script script;
    for_each_block([&](const Block& block, int, bool, bool) {
      for (const int from : block.from) script.notify(from);  // my buffer is free
      for (const int from : block.from) script.await(from);   // it has been filled
      compute(script);
      for (std::size_t i = 0; i < block.to.size(); ++i) {
        script.await(block.to[i]);
        script.put(block.to[i], block.to_bytes[i]);
        script.flush(block.to[i]);
        script.notify(block.to[i]);
      }
    });
    return script;
  }

  Script three_buffers() const {
    Script script;
    for_each_block([&](const Block& block, int, bool first, bool last) {
      if (first) {
        for (const int from : block.from) script.notify(from);
      }
      for (const int from : block.from) script.await(from);
      compute(script);
      if (!first) {
        for (const int to : block.to) script.flush(to);
      }
      if (!last) {
        for (const int from : block.from) script.notify(from);
      }
      for (std::size_t i = 0; i < block.to.size(); ++i) {
        script.await(block.to[i]);
        script.put(block.to[i], block.to_bytes[i]);
        script.flush(block.to[i]);  // a notification follows what was put for the same rank
        script.notify(block.to[i]);
      }
    });
    return script;
  }

 private:
  template <class Visit>
  void for_each_block(Visit visit) const {
    for (int number = 0; number < 8; ++number) {
      const Block block = octant(number);
      for (int i = 0; i < blocks_; ++i) visit(block, number, i == 0, i == blocks_ - 1);
    }
  }
  void compute(Script& script) const { script.compute(parameters_.compute_us * 1e-6); }

  const Parameters& parameters_;
  Grid grid_;
  std::size_t i_bytes_ = 0;
  std::size_t j_bytes_ = 0;
  int blocks_ = 0;
};

}  // namespace

std::vector<Motif> sweeps3d() {
  const auto motif = [](const std::string& name, const std::string& about,
                        Script (Sweep::*form)() const) {
    return Motif{name, about, 2,
                 [form](const Parameters& parameters, const Places& places, int rank, int size) {
                   return (Sweep(parameters, places, rank, size).*form)();
                 }};
  };
  return {motif("sweep3d", "Sweep3D, sends and receives", &Sweep::messages),
          motif("sweep3d-1b", "Sweep3D by puts, one buffer", &Sweep::one_buffer),
          motif("sweep3d-3b", "Sweep3D by puts, three buffers", &Sweep::three_buffers)};
}

}  // namespace suite::motifs
