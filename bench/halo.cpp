// SPDX-License-Identifier: BSD-3-Clause
//
// A mini-application that communicates more than it computes: conjugate gradients on
// a 27-point stencil, as HPCCG, cut into slabs of a few planes each. A plane crosses
// as one message per row of cells (fine-grained halo exchange), receives posted
// first; every iteration adds two sums over all ranks. Any MPI, two ranks.
//
// The right side is chosen so that every unknown is 1: the program fails unless the
// solution is. Rank 0 prints JSON objects.
#include <cmath>
#include <vector>

#include "options.hpp"
#include "pair.hpp"

namespace {

class Slab : private bench::Pair {
 public:
  Slab(int width, int planes) : Pair("halo"), width_(width), planes_(planes) {}

  // Solves the same system several times and prints the seconds of each.
  void run(int solutions, int iterations);

 private:
  double solve(int iterations);
  double largest_error() const;

  using Field = std::vector<double>;  // planes 0 and planes_ + 1 are the neighbours'

  std::size_t at(int z, int y, int x) const {
    return (static_cast<std::size_t>(z) * width_ + y) * width_ + x;
  }
  void exchange(Field& field);
  void multiply(Field& in, Field& out);
  double dot(const Field& a, const Field& b) const;

  int width_;
  int planes_;
  Field solution_;
  std::vector<MPI_Request> requests_;
};

void Slab::exchange(Field& field) {
  requests_.clear();
  const auto rows = [&](int neighbour, int plane, bool receive, int tag) {
    if (neighbour < 0 || neighbour > 1) return;
    for (int y = 0; y < width_; ++y) {
      double* const row = &field[at(plane, y, 0)];
      requests_.push_back(MPI_REQUEST_NULL);
      if (receive) {
        MPI_Irecv(row, width_, MPI_DOUBLE, neighbour, tag + y, MPI_COMM_WORLD, &requests_.back());
      } else {
        MPI_Isend(row, width_, MPI_DOUBLE, neighbour, tag + y, MPI_COMM_WORLD, &requests_.back());
      }
    }
  };
  const int up = 0;
  const int down = width_;
  rows(rank_ - 1, 0, true, up);
  rows(rank_ + 1, planes_ + 1, true, down);
  rows(rank_ + 1, planes_, false, up);
  rows(rank_ - 1, 1, false, down);
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

// The operator has 27 on its diagonal and -1 for each of the up to 26 neighbours.
void Slab::multiply(Field& in, Field& out) {
  exchange(in);
  for (int z = 1; z <= planes_; ++z) {
    for (int y = 0; y < width_; ++y) {
      for (int x = 0; x < width_; ++x) {
        double sum = 28 * in[at(z, y, x)];
        for (int dz = -1; dz <= 1; ++dz) {
          for (int dy = y > 0 ? -1 : 0; dy <= (y + 1 < width_ ? 1 : 0); ++dy) {
            const double* const row = &in[at(z + dz, y + dy, x)];
            sum -= row[0] + (x > 0 ? row[-1] : 0) + (x + 1 < width_ ? row[1] : 0);
          }
        }
        out[at(z, y, x)] = sum;
      }
    }
  }
}

double Slab::dot(const Field& a, const Field& b) const {
  double mine = 0;
  for (std::size_t i = at(1, 0, 0); i < at(planes_ + 1, 0, 0); ++i) mine += a[i] * b[i];
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

double Slab::solve(int iterations) {
  const std::size_t cells = at(planes_ + 2, 0, 0);
  Field ones(cells, 0);
  for (std::size_t i = at(1, 0, 0); i < at(planes_ + 1, 0, 0); ++i) ones[i] = 1;
  Field residual(cells, 0);
  multiply(ones, residual);  // right side; the first guess is 0
  Field direction = residual;
  Field product(cells, 0);
  solution_.assign(cells, 0);
  double norm = dot(residual, residual);

  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) {
    multiply(direction, product);
    // Once the residual is nothing but rounding, the iterations go on for the time they take.
    const double length = dot(direction, product);
    const double step = length > 0 ? norm / length : 0;
    for (std::size_t k = 0; k < cells; ++k) solution_[k] += step * direction[k];
    for (std::size_t k = 0; k < cells; ++k) residual[k] -= step * product[k];
    const double next = dot(residual, residual);
    const double turn = norm > 0 ? next / norm : 0;
    norm = next;
    for (std::size_t k = 0; k < cells; ++k) direction[k] = residual[k] + turn * direction[k];
  }
  return MPI_Wtime() - start;
}

double Slab::largest_error() const {
  double mine = 0;
  for (std::size_t i = at(1, 0, 0); i < at(planes_ + 1, 0, 0); ++i) {
    mine = std::fmax(mine, std::fabs(solution_[i] - 1));
  }
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

void Slab::run(int solutions, int iterations) {
  print_setup();
  note_placement();
  std::vector<double> times;
  for (int i = 0; i < solutions; ++i) {
    times.push_back(solve(iterations));
    const double error = largest_error();
    if (!(error < 1e-6)) fail("the solution is off by " + std::to_string(error));
  }
  print("time", "halo", "hot", 0, width_ * static_cast<int>(sizeof(double)), "samples_s", times);
}

}  // namespace

int main(int argc, char** argv) {
  int width = 8;
  int planes = 2;
  int solutions = 5;
  int iterations = 5000;
  bench::Options options("halo", "Conjugate gradients with a fine-grained halo exchange");
  options.number("--width", width, 2, 512, "cells along both sides of a plane");
  options.number("--planes", planes, 1, 512, "planes per rank");
  options.number("--solutions", solutions, 1, 100000, "times to solve");
  options.number("--iterations", iterations, 1, 100000000, "per solution");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;

  MPI_Init(&argc, &argv);
  {
    Slab slab(width, planes);
    slab.run(solutions, iterations);
  }
  MPI_Finalize();
  return 0;
}
