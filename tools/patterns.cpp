// SPDX-License-Identifier: BSD-3-Clause
//
// The three patterns. Their parameters are chosen so that the histograms have the shapes that
// simulations of the applications have: an adaptive mesh up to the mid hundreds, a sweep short
// with a tail into the low hundreds, a halo never beyond its neighbours.
#include <array>
#include <cmath>
#include <stdexcept>

#include "random_numbers.hpp"
#include "simulation.hpp"

namespace tagline::tools {

namespace {

struct Grid {
  std::uint32_t x = 1, y = 1, z = 1;
};

// Three factors of a number as close to each other as can be; two: z is 1.
Grid grid_of(std::uint32_t ranks, bool flat) {
  Grid best = {ranks, 1, 1};
  const auto sum = [](const Grid& g) { return std::uint64_t{g.x} + g.y + g.z; };
  for (std::uint32_t z = 1; std::uint64_t{z} * z * z <= ranks; ++z) {
    if (ranks % z != 0 || (flat && z > 1)) continue;
    const std::uint32_t rest = ranks / z;
    for (std::uint32_t y = z; std::uint64_t{y} * y <= rest; ++y) {
      if (rest % y != 0) continue;
      const Grid grid = {rest / y, y, z};
      if (sum(grid) < sum(best)) best = grid;
    }
  }
  return best;
}

// How fast a rank is, for good, and a phase, for once: factors around 1.
double pace(std::uint32_t rank, double deviation) {
  return 1 + deviation * normal(hash(rank, 77, 0));
}
double moment(std::uint32_t rank, std::uint32_t step, double deviation) {
  return 1 + deviation * normal(hash(rank, step, 78));
}

// ---- Halo exchange in three dimensions, all 26 neighbours, periodic ----------------

class Halo3d final : public Pattern {
 public:
  Halo3d(std::uint32_t count, std::uint32_t step_count) : grid_(grid_of(count, false)) {
    ranks = count;
    steps = step_count;
  }

  void receives(std::uint32_t rank, std::uint32_t,
                std::vector<SimulatedReceive>& list) const override {
    list.clear();
    for (std::int32_t direction = 0; direction < kDirections; ++direction) {
      const std::uint32_t from = neighbour(rank, direction);
      // Named by the direction it travels in.
      if (from != rank) list.push_back({static_cast<std::int32_t>(from), opposite(direction)});
    }
  }

  void sends(std::uint32_t rank, std::uint32_t step,
             std::vector<SimulatedSend>& list) const override {
    list.clear();
    for (std::int32_t direction = 0; direction < kDirections; ++direction) {
      const std::uint32_t to = neighbour(rank, direction);
      if (to == rank) continue;
      // The receiver has it where it looks into the opposite direction.
      std::uint32_t slot = 0;
      for (std::int32_t other = 0; other < opposite(direction); ++other) {
        slot += neighbour(to, other) != to;
      }
      list.push_back({to, step, slot});
    }
  }

  std::uint64_t compute_ns(std::uint32_t rank, std::uint32_t step) const override {
    return static_cast<std::uint64_t>(50'000 * pace(rank, 0.05) * moment(rank, step, 0.05));
  }

 private:
  static constexpr std::int32_t kDirections = 26;

  static std::int32_t opposite(std::int32_t direction) { return kDirections - 1 - direction; }

  std::uint32_t neighbour(std::uint32_t rank, std::int32_t direction) const {
    const std::int32_t cell = direction < kDirections / 2 ? direction : direction + 1;  // of 27
    const auto moved = [](std::uint32_t at, std::int32_t by, std::uint32_t size) {
      return (at + size + static_cast<std::uint32_t>(by)) % size;
    };
    const std::uint32_t x = moved(rank % grid_.x, cell % 3 - 1, grid_.x);
    const std::uint32_t y = moved(rank / grid_.x % grid_.y, cell / 3 % 3 - 1, grid_.y);
    const std::uint32_t z = moved(rank / grid_.x / grid_.y, cell / 9 - 1, grid_.z);
    return x + grid_.x * (y + grid_.y * z);
  }

  const Grid grid_;
};

// ---- Sweeps over a plane of ranks, from its four corners ---------------------------
//
// Two octants start at each corner. A rank takes a block of each from its two upstream
// neighbours, computes and hands it on to two. Nothing holds back who is ahead: where a rank
// was delayed the blocks of its neighbours pile up, until the corner changes.

class Sweep3d final : public Pattern {
 public:
  Sweep3d(std::uint32_t count, std::uint32_t sweeps) : grid_(grid_of(count, true)) {
    ranks = count;
    steps = sweeps * kSteps;
    sends_last = true;
  }

  // A block is two steps: a receive from the left or right, then one from above or below.
  void receives(std::uint32_t rank, std::uint32_t step,
                std::vector<SimulatedReceive>& list) const override {
    list.clear();
    const auto [across, along] = upstream(rank, step);
    const std::uint32_t from = step % 2 == 0 ? across : along;
    if (from != rank) {
      list.push_back({static_cast<std::int32_t>(from), static_cast<std::int32_t>(step / kOctant)});
    }
  }

  void sends(std::uint32_t rank, std::uint32_t step,
             std::vector<SimulatedSend>& list) const override {
    list.clear();
    if (step % 2 == 0) return;
    const auto [across, along] = downstream(rank, step);
    if (across != rank) list.push_back({across, step - 1, 0});
    if (along != rank) list.push_back({along, step, 0});
  }

  std::uint64_t compute_ns(std::uint32_t rank, std::uint32_t step) const override {
    if (step % 2 == 0) return 0;
    double blocks = moment(rank, step, 0.03) * pace(rank, 0.03);
    // Now and then something else has the processor: mostly for a moment, seldom for long.
    const std::uint64_t random = hash(rank, step, 79);
    if (unit(random) < 1e-4) blocks += std::min(0.5 / unit(hash(random, 1, 1)), 400.0);
    return static_cast<std::uint64_t>(kBlockNs * blocks);
  }

 private:
  static constexpr std::uint32_t kBlocks = 60;  // of an octant: 3 groups of angles, 20 of planes
  static constexpr std::uint32_t kOctant = 2 * kBlocks;  // steps
  static constexpr std::uint32_t kSteps = 8 * kOctant;
  static constexpr double kBlockNs = 8000;

  // In the direction of the octant of a step; the rank itself at the edge.
  struct Pair {
    std::uint32_t across, along;
  };
  Pair downstream(std::uint32_t rank, std::uint32_t step) const { return shifted(rank, step, false); }
  Pair upstream(std::uint32_t rank, std::uint32_t step) const { return shifted(rank, step, true); }
  Pair shifted(std::uint32_t rank, std::uint32_t step, bool back) const {
    const std::uint32_t corner = step % kSteps / (2 * kOctant);
    const bool right = (corner % 2 == 0) != back;
    const bool down = (corner / 2 == 0) != back;
    const std::uint32_t x = rank % grid_.x;
    const std::uint32_t y = rank / grid_.x;
    Pair pair = {rank, rank};
    if (right ? x + 1 < grid_.x : x > 0) pair.across = right ? rank + 1 : rank - 1;
    if (down ? y + 1 < grid_.y : y > 0) pair.along = down ? rank + grid_.x : rank - grid_.x;
    return pair;
  }

  const Grid grid_;
};

// ---- Adaptive mesh -------------------------------------------------------------------
//
// A rank owns a cube of 2 x 2 x 2 cells. A cell is refined as far as a front that moves through
// the domain is near: its faces have 1, 4 or 16 blocks, and neighbours exchange one message per
// face of the finer of two blocks. Where a cell is refined its new blocks come from another
// rank (receives from any source), and now and then a rank far away has a message that the
// receiver does not expect.

class Amr final : public Pattern {
 public:
  Amr(std::uint32_t count, std::uint32_t step_count) : grid_(grid_of(count, false)) {
    ranks = count;
    steps = step_count;
  }

  void receives(std::uint32_t rank, std::uint32_t step,
                std::vector<SimulatedReceive>& list) const override {
    list.clear();
    for (std::uint32_t face = 0; face < 6; ++face) {
      const std::uint32_t from = neighbour(rank, face);
      if (from == rank) continue;
      const std::uint32_t count = messages_through(rank, face, step);
      for (std::uint32_t i = 0; i < count; ++i) {
        list.push_back({static_cast<std::int32_t>(from), static_cast<std::int32_t>(face << 8 | i)});
      }
    }
    const std::uint32_t blocks = new_blocks(rank, step);
    for (std::uint32_t i = 0; i < blocks; ++i) list.push_back({TAGLINE_ANY_SOURCE, kBlockTag});
  }

  void sends(std::uint32_t rank, std::uint32_t step,
             std::vector<SimulatedSend>& list) const override {
    list.clear();
    for (std::uint32_t face = 0; face < 6; ++face) {
      const std::uint32_t to = neighbour(rank, face);
      if (to == rank) continue;
      const std::uint32_t count = messages_through(rank, face, step);
      const std::uint32_t first = first_slot(to, face ^ 1, step);
      for (std::uint32_t i = 0; i < count; ++i) list.push_back({to, step, first + i});
    }
    const std::uint32_t heir = (rank + distance(step, 1)) % ranks;
    const std::uint32_t blocks = new_blocks(heir, step);
    if (blocks == 0) return;
    const std::uint32_t first = first_slot(heir, 6, step);
    for (std::uint32_t i = 0; i < blocks; ++i) list.push_back({heir, step, first + i});
  }

  std::uint64_t compute_ns(std::uint32_t rank, std::uint32_t step) const override {
    return static_cast<std::uint64_t>(60'000 * pace(rank, 0.05) * moment(rank, step, 0.1));
  }

  std::uint32_t stranger_distance(std::uint32_t step) const override { return distance(step, 2); }
  bool sends_stranger(std::uint32_t rank, std::uint32_t step) const override {
    return hash(rank, step, 80) % 20 == 0;
  }

 private:
  static constexpr std::int32_t kBlockTag = 8000;

  std::uint32_t distance(std::uint32_t step, std::uint32_t what) const {
    return 1 + static_cast<std::uint32_t>(hash(step, what, 81) % (ranks - 1));
  }

  // Faces: 0 and 1 along x, 2 and 3 along y, 4 and 5 along z; odd ones lead upwards. The rank
  // itself at the border of the domain.
  std::uint32_t neighbour(std::uint32_t rank, std::uint32_t face) const {
    const std::array<std::uint32_t, 3> at = {rank % grid_.x, rank / grid_.x % grid_.y,
                                             rank / grid_.x / grid_.y};
    const std::array<std::uint32_t, 3> size = {grid_.x, grid_.y, grid_.z};
    const std::array<std::uint32_t, 3> stride = {1, grid_.x, grid_.x * grid_.y};
    const std::uint32_t axis = face / 2;
    if (face % 2 == 1) return at[axis] + 1 < size[axis] ? rank + stride[axis] : rank;
    return at[axis] > 0 ? rank - stride[axis] : rank;
  }

  // Refinement of one of the eight cells: 0, 1 or 2.
  std::uint32_t level(std::uint32_t rank, std::uint32_t cell, std::uint32_t step) const {
    const double x = (2.0 * (rank % grid_.x) + (cell & 1) + 0.5) / (2.0 * grid_.x) - 0.5;
    const double y = (2.0 * (rank / grid_.x % grid_.y) + (cell >> 1 & 1) + 0.5) / (2.0 * grid_.y) - 0.5;
    const double z = (2.0 * (rank / grid_.x / grid_.y) + (cell >> 2) + 0.5) / (2.0 * grid_.z) - 0.5;
    const double front = 0.15 + 0.5 * step / steps;
    const double away = std::abs(std::sqrt(x * x + y * y + z * z) - front);
    // Neither the front nor what lies behind it is smooth.
    const double rough = 0.03 * unit(hash(rank, cell, 82));
    if (away + rough < 0.055) return 2;
    return away + 2 * rough < 0.2 ? 1 : 0;
  }

  // Through a face of the cube, which four of its cells have.
  std::uint32_t messages_through(std::uint32_t rank, std::uint32_t face, std::uint32_t step) const {
    const std::uint32_t other = neighbour(rank, face);
    if (other == rank) return 0;
    const std::uint32_t axis_bit = 1u << face / 2;
    std::uint32_t count = 0;
    for (std::uint32_t cell = 0; cell < 8; ++cell) {
      if (((cell & axis_bit) != 0) != (face % 2 == 1)) continue;
      const std::uint32_t finer =
          std::max(level(rank, cell, step), level(other, cell ^ axis_bit, step));
      count += 1u << (2 * finer);
    }
    return count;
  }

  // Slot of the first message through a face; face 6: of the first new block.
  std::uint32_t first_slot(std::uint32_t rank, std::uint32_t face, std::uint32_t step) const {
    std::uint32_t slot = 0;
    for (std::uint32_t before = 0; before < face; ++before) {
      slot += messages_through(rank, before, step);
    }
    return slot;
  }

  // Eight for every cell that is finer than in the step before.
  std::uint32_t new_blocks(std::uint32_t rank, std::uint32_t step) const {
    if (step == 0) return 0;
    std::uint32_t count = 0;
    for (std::uint32_t cell = 0; cell < 8; ++cell) {
      if (level(rank, cell, step) > level(rank, cell, step - 1)) count += 8;
    }
    return count;
  }

  const Grid grid_;
};

}  // namespace

const PatternName kPatterns[] = {
    {"amr", "adaptive mesh: neighbours change, blocks move, unexpected messages", 65536, 40,
     "exchanges"},
    {"sweep3d", "wavefronts from the four corners of a plane", 131072, 1, "sweeps"},
    {"halo3d", "26 neighbours in three dimensions, all receives posted ahead", 262144, 20,
     "exchanges"},
    {nullptr, nullptr, 0, 0, nullptr}};

std::unique_ptr<Pattern> make_pattern(const std::string& name, std::uint32_t ranks,
                                      std::uint32_t steps) {
  constexpr std::uint32_t kMostRanks = 1u << 22;
  if (ranks < 8 || ranks > kMostRanks) {
    throw std::runtime_error("a pattern has 8 to " + std::to_string(kMostRanks) + " ranks, not " +
                             std::to_string(ranks));
  }
  std::unique_ptr<Pattern> pattern;
  if (name == "amr") pattern = std::make_unique<Amr>(ranks, steps);
  if (name == "sweep3d" && steps < Pattern::kMostSteps) {
    pattern = std::make_unique<Sweep3d>(ranks, steps);
  }
  if (name == "halo3d") pattern = std::make_unique<Halo3d>(ranks, steps);
  if (pattern == nullptr || steps == 0 || pattern->steps > Pattern::kMostSteps) {
    throw std::runtime_error("the pattern " + name + " cannot have " + std::to_string(steps) +
                             " steps: take fewer, at least one");
  }
  return pattern;
}

}  // namespace tagline::tools
