// SPDX-License-Identifier: BSD-3-Clause
//
// Molecular dynamics after Lennard-Jones in a periodic box, a part of it per rank: atoms
// start on a face-centred lattice with velocities that follow from their numbers, and
// move by velocity Verlet. Each step sends the positions of atoms near a border to the
// ranks that need them (forward) and the forces on them back (reverse); every twentieth
// step atoms change ranks and the lists of neighbours are made anew.
//
// Reduced units: density 0.8442, temperature 1.44, cut-off 2.5, time step 0.005.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "../motifs/placement.hpp"
#include "exchange.hpp"

namespace suite::miniapps {

class Molecules {
 public:
  // `cells` of the lattice along each axis of the whole box, four atoms in each; `comm`
  // carries what is done when atoms change ranks, `make` makes what is compared.
  Molecules(MPI_Comm comm, const motifs::Cell& cells, const MakeExchange& make);

  void run(int steps);

  // Of all ranks together.
  struct State {
    double potential = 0;
    double kinetic = 0;
    double momentum = 0;  // largest component
    double atoms = 0;
  };
  State state();
  Exchange& exchange() { return *exchange_; }

 private:
  using Vector = std::array<double, 3>;
  struct Image {
    std::size_t atom;
    Vector shift;
  };

  void place_atoms(const motifs::Cell& cells);
  void migrate();
  void choose_ghosts();
  void list_pairs();
  void rebuild();
  void forward();
  void reverse();
  void compute_forces();
  template <class Visit>
  void for_each_image(std::size_t atom, int rank, double reach, Visit visit) const;
  Vector low_of(int rank) const;
  int owner_of(const Vector& position) const;

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  motifs::Cell sides_{};  // ranks along each axis
  Vector box_{};
  Vector part_{};                 // of one rank
  std::vector<int> peers_;        // by link; the last one is this rank itself
  std::size_t atoms_ = 0;         // mine; ghosts lie behind them
  std::vector<Vector> position_;  // of mine and of ghosts
  std::vector<Vector> force_;
  std::vector<Vector> velocity_;
  std::vector<std::uint64_t> number_;
  std::vector<std::vector<Image>> images_;  // by link: which atoms are ghosts there
  std::vector<std::size_t> ghosts_;         // by link: where its ghosts begin here
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
  double potential_ = 0;
  int steps_ = 0;  // since the start
  std::size_t capacity_ = 0;
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace suite::miniapps
