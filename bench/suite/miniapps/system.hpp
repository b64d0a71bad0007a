// SPDX-License-Identifier: BSD-3-Clause
//
// Linear systems on the points of a box, each point coupled with the up to 26 around it,
// cut into a block per rank and solved by conjugate gradients. Both have a solution that
// is known exactly:
//
//   hpccg   27 on the diagonal, -1 beside it; the right side makes every unknown 1
//   minife  Laplace's equation by trilinear elements on a box of bricks that get longer
//           along each axis, assembled element by element. x + 2y + 3z + xyz is harmonic
//           and trilinear, so with its values on the border the nodes get them exactly.
#pragma once

#include <vector>

#include "../motifs/placement.hpp"
#include "exchange.hpp"

namespace suite::miniapps {

using motifs::Cell;

// Points from `low` on and before `high`.
struct Box {
  Cell low{};
  Cell high{};

  template <class Visit>
  void for_each(Visit visit) const {
    for (int z = low[2]; z < high[2]; ++z) {
      for (int y = low[1]; y < high[1]; ++y) {
        for (int x = low[0]; x < high[0]; ++x) visit(Cell{x, y, z});
      }
    }
  }
  bool holds(const Cell& at) const;
  // x runs fastest.
  std::size_t index(const Cell& at) const;
  std::size_t points() const;
};

class System {
 public:
  // `name` is hpccg or minife; `edge` points per rank and axis.
  static System make(const std::string& name, const Session& session, int edge);

  const std::vector<Link>& links() const { return links_; }
  std::size_t rows() const { return right_side_.size(); }

  // Ends the job if the solution is not the exact one.
  double seconds_of_solution(const Session& session, Exchange& exchange, int& iterations) const;

 private:
  static System hpccg(int rank, int size, int edge);
  static System minife(int rank, int size, int edge);

  struct Result {
    int iterations = 0;
    double error = 0;  // largest difference from the exact solution, this rank's
  };
  Result solve(Exchange& exchange) const;

  static constexpr std::size_t kRow = 27;  // coefficients; those beyond the border are 0

  System(int rank, int size, int edge);
  double& coefficient(const Cell& row, const Cell& column);
  void multiply(Exchange& exchange, std::vector<double>& in, std::vector<double>& out) const;

  Box all_;
  Box mine_;
  std::vector<Link> links_;
  std::vector<std::vector<std::size_t>> out_;  // points whose values a link's rank needs
  std::vector<std::size_t> ghosts_;            // where a link's values begin, behind my own
  std::size_t length_ = 0;                     // of a vector, ghosts included
  std::vector<double> values_;
  std::vector<std::size_t> columns_;
  std::vector<double> right_side_;
  std::vector<double> solution_;  // the exact one
  std::string name_;
};

}  // namespace suite::miniapps
