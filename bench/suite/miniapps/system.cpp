// SPDX-License-Identifier: BSD-3-Clause
#include "system.hpp"

#include <cmath>

namespace suite::miniapps {
namespace {

Cell operator+(const Cell& a, const Cell& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }

Box around(const Cell& at) { return {at + Cell{-1, -1, -1}, at + Cell{2, 2, 2}}; }

Box grown(const Box& box) { return {box.low + Cell{-1, -1, -1}, box.high + Cell{1, 1, 1}}; }

Box both(const Box& a, const Box& b) {
  Box common;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    common.low[axis] = std::max(a.low[axis], b.low[axis]);
    common.high[axis] = std::max(common.low[axis], std::min(a.high[axis], b.high[axis]));
  }
  return common;
}

Box block(const Cell& where, int edge) {
  Box box;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box.low[axis] = where[axis] * edge;
    box.high[axis] = box.low[axis] + edge;
  }
  return box;
}

constexpr int kMostIterations = 10000;

// Corner i of a brick lies at its low or high end of each axis.
Cell corner(int i) { return {i & 1, i >> 1 & 1, i >> 2 & 1}; }

// Integral of grad(i) * grad(j) over a brick with these sides, i and j the trilinear
// functions of two corners; two points of Gauss along each axis are exact.
double stiffness(int i, int j, const std::array<double, 3>& sides) {
  constexpr double kPoints[] = {0.21132486540518713, 0.78867513459481287};
  const auto value = [](int end, double at) { return end != 0 ? at : 1 - at; };
  const Cell ends[] = {corner(i), corner(j)};
  double sum = 0;
  for (int point = 0; point < 8; ++point) {
    const Cell which = corner(point);
    for (std::size_t along = 0; along < 3; ++along) {
      double product = 1;
      for (const Cell& end : ends) {
        for (std::size_t axis = 0; axis < 3; ++axis) {
          product *= axis == along ? (end[axis] != 0 ? 1 : -1) / sides[axis]
                                   : value(end[axis], kPoints[which[axis]]);
        }
      }
      sum += product;
    }
  }
  return sum * sides[0] * sides[1] * sides[2] / 8;
}

}  // namespace

bool Box::holds(const Cell& at) const {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (at[axis] < low[axis] || at[axis] >= high[axis]) return false;
  }
  return true;
}

std::size_t Box::index(const Cell& at) const {
  const auto along = [&](std::size_t axis) {
    return static_cast<std::size_t>(at[axis] - low[axis]);
  };
  const auto side = [&](std::size_t axis) {
    return static_cast<std::size_t>(high[axis] - low[axis]);
  };
  return (along(2) * side(1) + along(1)) * side(0) + along(0);
}

std::size_t Box::points() const { return index({low[0], low[1], high[2]}); }

System::System(int rank, int size, int edge) {
  const Cell sides = motifs::sides_of(size, 3);
  const motifs::Grid grid(motifs::Places("standard", 1, 0), rank, sides);
  all_.high = {sides[0] * edge, sides[1] * edge, sides[2] * edge};
  mine_ = block(grid.mine(), edge);
  length_ = mine_.points();
  right_side_.assign(length_, 0);
  solution_.assign(length_, 0);

  // Both sides of a link go through its points in the same order.
  const Box near = both(grown(mine_), all_);
  std::vector<std::size_t> index(near.points());
  mine_.for_each([&](const Cell& at) { index[near.index(at)] = mine_.index(at); });
  around({0, 0, 0}).for_each([&](const Cell& by) {
    const int peer = grid.neighbour(by[0], by[1], by[2], false);
    if (peer < 0 || by == Cell{}) return;
    const Box theirs = block(grid.mine() + by, edge);
    ghosts_.push_back(length_);
    both(theirs, near).for_each([&](const Cell& at) { index[near.index(at)] = length_++; });
    std::vector<std::size_t>& out = out_.emplace_back();
    both(mine_, grown(theirs)).for_each([&](const Cell& at) { out.push_back(mine_.index(at)); });
    links_.push_back({peer, out.size(), length_ - ghosts_.back()});
  });

  values_.assign(rows() * kRow, 0);
  mine_.for_each([&](const Cell& at) {
    around(at).for_each([&](const Cell& to) {
      columns_.push_back(all_.holds(to) ? index[near.index(to)] : mine_.index(at));
    });
  });
}

double& System::coefficient(const Cell& row, const Cell& column) {
  return values_[mine_.index(row) * kRow + around(row).index(column)];
}

System System::hpccg(int rank, int size, int edge) {
  System system(rank, size, edge);
  system.mine_.for_each([&](const Cell& at) {
    const std::size_t row = system.mine_.index(at);
    system.solution_[row] = 1;
    around(at).for_each([&](const Cell& to) {
      if (!system.all_.holds(to)) return;
      const double value = to == at ? 27 : -1;
      system.coefficient(at, to) = value;
      system.right_side_[row] += value;
    });
  });
  return system;
}

// Unknowns are the nodes inside; the node at -1 or beyond the last is on the border.
System System::minife(int rank, int size, int edge) {
  System system(rank, size, edge);
  const auto place = [&](const Cell& node, std::size_t axis) {
    return std::pow(static_cast<double>(node[axis] + 1) / (system.all_.high[axis] + 1), 1.25);
  };
  const auto exact = [&](const Cell& node) {
    const double x = place(node, 0);
    const double y = place(node, 1);
    const double z = place(node, 2);
    return x + 2 * y + 3 * z + x * y * z;
  };
  system.mine_.for_each(
      [&](const Cell& at) { system.solution_[system.mine_.index(at)] = exact(at); });
  // The bricks that touch a node of mine, by their low corner.
  const Box bricks{system.mine_.low + Cell{-1, -1, -1}, system.mine_.high};
  bricks.for_each([&](const Cell& brick) {
    std::array<double, 3> sides{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      sides[axis] = place(brick + Cell{1, 1, 1}, axis) - place(brick, axis);
    }
    for (int i = 0; i < 8; ++i) {
      const Cell row = brick + corner(i);
      if (!system.mine_.holds(row)) continue;
      for (int j = 0; j < 8; ++j) {
        const Cell column = brick + corner(j);
        const double value = stiffness(i, j, sides);
        if (system.all_.holds(column)) {
          system.coefficient(row, column) += value;
        } else {
          system.right_side_[system.mine_.index(row)] -= value * exact(column);
        }
      }
    }
  });
  return system;
}

void System::multiply(Exchange& exchange, std::vector<double>& in, std::vector<double>& out) const {
  exchange.run(
      [&](std::size_t link, double* to) {
        for (const std::size_t point : out_[link]) *to++ = in[point];
      },
      [&](std::size_t link, const double* from) {
        std::copy_n(from, links_[link].in, &in[ghosts_[link]]);
      });
  for (std::size_t row = 0; row < rows(); ++row) {
    double sum = 0;
    for (std::size_t i = row * kRow; i < (row + 1) * kRow; ++i) sum += values_[i] * in[columns_[i]];
    out[row] = sum;
  }
}

System System::make(const std::string& name, const Session& session, int edge) {
  System system = name == "hpccg" ? hpccg(session.rank(), session.size(), edge)
                                  : minife(session.rank(), session.size(), edge);
  system.name_ = name;
  return system;
}

double System::seconds_of_solution(const Session& session, Exchange& exchange,
                                   int& iterations) const {
  session.barrier();
  const double start = now();
  const Result result = solve(exchange);
  const double seconds = now() - start;
  if (!(result.error < 1e-6)) {
    wrong_data(name_ + ": after " + std::to_string(result.iterations) +
               " iterations an unknown is off by " + std::to_string(result.error));
  }
  iterations = result.iterations;
  return seconds;
}

System::Result System::solve(Exchange& exchange) const {
  const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
    double mine = 0;
    for (std::size_t i = 0; i < rows(); ++i) mine += a[i] * b[i];
    return exchange.sum(mine);
  };
  std::vector<double> found(rows(), 0);
  std::vector<double> residual = right_side_;
  std::vector<double> direction = right_side_;
  direction.resize(length_);
  std::vector<double> product(rows());
  double norm = dot(residual, residual);
  const double enough = norm * 1e-24;
  Result result;
  while (norm > enough && result.iterations < kMostIterations) {
    ++result.iterations;
    multiply(exchange, direction, product);
    const double step = norm / dot(direction, product);
    for (std::size_t i = 0; i < rows(); ++i) found[i] += step * direction[i];
    for (std::size_t i = 0; i < rows(); ++i) residual[i] -= step * product[i];
    const double next = dot(residual, residual);
    const double turn = next / norm;
    norm = next;
    for (std::size_t i = 0; i < rows(); ++i) direction[i] = residual[i] + turn * direction[i];
  }
  for (std::size_t i = 0; i < rows(); ++i) {
    result.error = std::max(result.error, std::fabs(found[i] - solution_[i]));
  }
  return result;
}

}  // namespace suite::miniapps
