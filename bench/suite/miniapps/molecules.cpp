// SPDX-License-Identifier: BSD-3-Clause
#include "molecules.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "../harness/content.hpp"

namespace suite::miniapps {
namespace {

constexpr double kDensity = 0.8442;
constexpr double kTemperature = 1.44;
constexpr double kCut = 2.5;
constexpr double kSkin = 0.3;
constexpr double kStep = 0.005;
constexpr int kRebuild = 20;  // steps

double number_from(std::uint64_t seed) {  // -0.5 .. 0.5
  return static_cast<double>(mixed(seed + 0x9e3779b97f4a7c15U) >> 11) * 0x1p-53 - 0.5;
}

}  // namespace

Molecules::Molecules(MPI_Comm comm, const motifs::Cell& cells, const MakeExchange& make)
    : comm_(comm) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &size_);
  sides_ = motifs::sides_of(size_, 3);
  const double lattice = std::cbrt(4 / kDensity);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box_[axis] = lattice * cells[axis];
    part_[axis] = box_[axis] / sides_[axis];
    if (box_[axis] < 2 * (kCut + kSkin)) {
      throw UsageError("minimd: " + std::to_string(cells[axis]) +
                       " lattice cells along an axis are fewer than two cut-offs: raise --edge");
    }
  }
  place_atoms(cells);
  migrate();

  std::vector<Link> links;
  for (int peer = 0; peer < size_; ++peer) {
    const Vector theirs = low_of(peer);
    const Vector mine = low_of(rank_);
    bool near = peer != rank_;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double apart = std::fabs(theirs[axis] - mine[axis]);
      near = near && std::min(apart, box_[axis] - apart) < part_[axis] + kCut + kSkin + 1e-9;
    }
    if (!near) continue;
    peers_.push_back(peer);
    links.push_back({peer, 0, 0});
  }
  peers_.push_back(rank_);
  images_.resize(peers_.size());
  ghosts_.resize(peers_.size());

  // How many atoms lie near a border changes as they move: room for half as many more.
  std::size_t most = 0;
  for (const Link& link : links) {
    std::size_t here = 0;
    for (std::size_t atom = 0; atom < atoms_; ++atom) {
      for_each_image(atom, link.rank, kCut + kSkin, [&](const Vector&) { ++here; });
    }
    most = std::max(most, here);
  }
  unsigned long mine = most;
  unsigned long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG, MPI_MAX, comm_);
  capacity_ = 3 * (all + all / 2 + 64);
  exchange_ = make(std::move(links), capacity_);
  rebuild();
  compute_forces();
}

Molecules::Vector Molecules::low_of(int rank) const {
  const int at[] = {rank % sides_[0], rank / sides_[0] % sides_[1], rank / (sides_[0] * sides_[1])};
  return {at[0] * part_[0], at[1] * part_[1], at[2] * part_[2]};
}

int Molecules::owner_of(const Vector& position) const {
  int at[3];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    at[axis] = std::clamp(static_cast<int>(position[axis] / part_[axis]), 0, sides_[axis] - 1);
  }
  return (at[2] * sides_[1] + at[1]) * sides_[0] + at[0];
}

// Every rank knows all atoms and keeps its own: their numbers are all there is to know.
void Molecules::place_atoms(const motifs::Cell& cells) {
  static constexpr double kCorners[4][3] = {{0, 0, 0}, {.5, .5, 0}, {.5, 0, .5}, {0, .5, .5}};
  const auto all = 4 * static_cast<std::uint64_t>(cells[0]) * static_cast<std::uint64_t>(cells[1]) *
                   static_cast<std::uint64_t>(cells[2]);
  const auto velocity_of = [](std::uint64_t number) {
    return Vector{number_from(3 * number), number_from(3 * number + 1),
                  number_from(3 * number + 2)};
  };
  Vector mean{};
  double squares = 0;
  for (std::uint64_t number = 0; number < all; ++number) {
    const Vector velocity = velocity_of(number);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      mean[axis] += velocity[axis] / static_cast<double>(all);
      squares += velocity[axis] * velocity[axis];
    }
  }
  for (const double part : mean) squares -= part * part * static_cast<double>(all);
  const double scale = std::sqrt(3 * static_cast<double>(all) * kTemperature / squares);

  const double lattice = std::cbrt(4 / kDensity);
  std::uint64_t number = 0;
  for (int z = 0; z < cells[2]; ++z) {
    for (int y = 0; y < cells[1]; ++y) {
      for (int x = 0; x < cells[0]; ++x) {
        for (const auto& corner : kCorners) {
          const Vector at{(x + corner[0]) * lattice, (y + corner[1]) * lattice,
                          (z + corner[2]) * lattice};
          if (owner_of(at) == rank_) {
            Vector velocity = velocity_of(number);
            for (std::size_t axis = 0; axis < 3; ++axis) {
              velocity[axis] = (velocity[axis] - mean[axis]) * scale;
            }
            position_.push_back(at);
            velocity_.push_back(velocity);
            number_.push_back(number);
          }
          ++number;
        }
      }
    }
  }
  atoms_ = position_.size();
}

// Back into the box, and to the rank whose part they are in.
void Molecules::migrate() {
  struct Atom {
    Vector position;
    Vector velocity;
    std::uint64_t number;
  };
  std::vector<std::vector<Atom>> to(static_cast<std::size_t>(size_));
  for (std::size_t i = 0; i < atoms_; ++i) {
    Vector& at = position_[i];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      at[axis] -= std::floor(at[axis] / box_[axis]) * box_[axis];
    }
    to[static_cast<std::size_t>(owner_of(at))].push_back({at, velocity_[i], number_[i]});
  }
  std::vector<int> out(to.size()), in(to.size()), out_at(to.size()), in_at(to.size());
  std::vector<Atom> leaving;
  for (std::size_t i = 0; i < to.size(); ++i) {
    out[i] = static_cast<int>(to[i].size() * sizeof(Atom));
    out_at[i] = static_cast<int>(leaving.size() * sizeof(Atom));
    leaving.insert(leaving.end(), to[i].begin(), to[i].end());
  }
  MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_);
  int total = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    in_at[i] = total;
    total += in[i];
  }
  std::vector<Atom> mine(static_cast<std::size_t>(total) / sizeof(Atom));
  MPI_Alltoallv(leaving.data(), out.data(), out_at.data(), MPI_BYTE, mine.data(), in.data(),
                in_at.data(), MPI_BYTE, comm_);
  atoms_ = mine.size();
  position_.resize(atoms_);
  velocity_.resize(atoms_);
  number_.resize(atoms_);
  for (std::size_t i = 0; i < atoms_; ++i) {
    position_[i] = mine[i].position;
    velocity_[i] = mine[i].velocity;
    number_[i] = mine[i].number;
  }
}

// The shifts by whole boxes that bring an atom within reach of a rank's part.
template <class Visit>
void Molecules::for_each_image(std::size_t atom, int rank, double reach, Visit visit) const {
  const Vector low = low_of(rank);
  for (int i = 0; i < 27; ++i) {
    const int by[] = {i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
    if (rank == rank_ && i == 13) continue;  // the atom itself
    Vector shift{};
    bool near = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      shift[axis] = by[axis] * box_[axis];
      const double at = position_[atom][axis] + shift[axis];
      near = near && at >= low[axis] - reach && at <= low[axis] + part_[axis] + reach;
    }
    if (near) visit(shift);
  }
}

void Molecules::choose_ghosts() {
  const std::size_t links = exchange_->links.size();
  std::vector<int> out(static_cast<std::size_t>(size_)), in(static_cast<std::size_t>(size_));
  for (std::size_t link = 0; link < peers_.size(); ++link) {
    images_[link].clear();
    for (std::size_t atom = 0; atom < atoms_; ++atom) {
      for_each_image(atom, peers_[link], kCut + kSkin, [&](const Vector& shift) {
        images_[link].push_back({atom, shift});
      });
    }
    out[static_cast<std::size_t>(peers_[link])] = static_cast<int>(images_[link].size());
  }
  MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm_);
  std::size_t end = atoms_;
  for (std::size_t link = 0; link < peers_.size(); ++link) {
    const auto count = static_cast<std::size_t>(in[static_cast<std::size_t>(peers_[link])]);
    ghosts_[link] = end;
    end += count;
    if (link == links) break;
    exchange_->links[link].out = images_[link].size();
    exchange_->links[link].in = count;
    if (3 * std::max(count, images_[link].size()) > capacity_) {
      throw std::runtime_error("minimd: more atoms near a border than there is room for");
    }
  }
  position_.resize(end);
  force_.resize(end);
  number_.resize(end);
  exchange_->run(
      [&](std::size_t link, double* to) {
        for (const Image& image : images_[link]) *to++ = static_cast<double>(number_[image.atom]);
      },
      [&](std::size_t link, const double* from) {
        for (std::size_t i = 0; i < exchange_->links[link].in; ++i) {
          number_[ghosts_[link] + i] = static_cast<std::uint64_t>(from[i]);
        }
      });
  for (std::size_t i = 0; i < images_[links].size(); ++i) {
    number_[ghosts_[links] + i] = number_[images_[links][i].atom];
  }
  for (Link& link : exchange_->links) {
    link.out *= 3;
    link.in *= 3;
  }
}

void Molecules::forward() {
  exchange_->run(
      [&](std::size_t link, double* to) {
        for (const Image& image : images_[link]) {
          for (std::size_t axis = 0; axis < 3; ++axis) {
            *to++ = position_[image.atom][axis] + image.shift[axis];
          }
        }
      },
      [&](std::size_t link, const double* from) {
        std::memcpy(position_.data() + ghosts_[link], from,
                    exchange_->links[link].in * sizeof(double));
      });
  const std::size_t own = exchange_->links.size();
  for (std::size_t i = 0; i < images_[own].size(); ++i) {
    const Image& image = images_[own][i];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      position_[ghosts_[own] + i][axis] = position_[image.atom][axis] + image.shift[axis];
    }
  }
}

void Molecules::reverse() {
  const auto turn = [&] {
    for (Link& link : exchange_->links) std::swap(link.out, link.in);
  };
  const auto add = [&](const Image& image, const double* from) {
    for (std::size_t axis = 0; axis < 3; ++axis) force_[image.atom][axis] += from[axis];
  };
  turn();
  exchange_->run(
      [&](std::size_t link, double* to) {
        std::memcpy(to, force_.data() + ghosts_[link], exchange_->links[link].out * sizeof(double));
      },
      [&](std::size_t link, const double* from) {
        for (const Image& image : images_[link]) {
          add(image, from);
          from += 3;
        }
      });
  turn();
  const std::size_t own = exchange_->links.size();
  for (std::size_t i = 0; i < images_[own].size(); ++i) {
    add(images_[own][i], force_[ghosts_[own] + i].data());
  }
}

// Each pair once among all ranks: of the two ranks that see it as an atom and a ghost,
// the one that the atoms' numbers choose.
void Molecules::list_pairs() {
  constexpr double kReach = kCut + kSkin;
  const Vector low = low_of(rank_);
  std::array<std::size_t, 3> cells{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    cells[axis] = static_cast<std::size_t>(part_[axis] / kReach) + 3;
  }
  const auto cell_of = [&](const Vector& at) {
    std::array<std::size_t, 3> cell{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double from = std::max((at[axis] - low[axis] + kReach) / kReach, 0.0);
      cell[axis] = std::min(static_cast<std::size_t>(from), cells[axis] - 1);
    }
    return cell;
  };
  std::vector<std::vector<std::uint32_t>> members(cells[0] * cells[1] * cells[2]);
  const auto index = [&](std::size_t x, std::size_t y, std::size_t z) {
    return (z * cells[1] + y) * cells[0] + x;
  };
  for (std::size_t i = 0; i < position_.size(); ++i) {
    const auto cell = cell_of(position_[i]);
    members[index(cell[0], cell[1], cell[2])].push_back(static_cast<std::uint32_t>(i));
  }
  pairs_.clear();
  const auto consider = [&](std::size_t i, std::uint32_t j) {
    if (j < atoms_) {
      if (j <= i) return;
    } else {
      const bool even = (number_[i] + number_[j]) % 2 == 0;
      if (even != (number_[i] < number_[j])) return;
    }
    double square = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double apart = position_[i][axis] - position_[j][axis];
      square += apart * apart;
    }
    if (square < kReach * kReach) pairs_.emplace_back(static_cast<std::uint32_t>(i), j);
  };
  for (std::size_t i = 0; i < atoms_; ++i) {
    const auto [x, y, z] = cell_of(position_[i]);
    for (std::size_t dz = z > 0 ? z - 1 : 0; dz <= std::min(z + 1, cells[2] - 1); ++dz) {
      for (std::size_t dy = y > 0 ? y - 1 : 0; dy <= std::min(y + 1, cells[1] - 1); ++dy) {
        for (std::size_t dx = x > 0 ? x - 1 : 0; dx <= std::min(x + 1, cells[0] - 1); ++dx) {
          for (const std::uint32_t j : members[index(dx, dy, dz)]) consider(i, j);
        }
      }
    }
  }
}

void Molecules::rebuild() {
  migrate();
  choose_ghosts();
  forward();
  list_pairs();
}

void Molecules::compute_forces() {
  std::fill(force_.begin(), force_.end(), Vector{});
  potential_ = 0;
  for (const auto& [i, j] : pairs_) {
    Vector apart{};
    double square = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      apart[axis] = position_[i][axis] - position_[j][axis];
      square += apart[axis] * apart[axis];
    }
    if (square >= kCut * kCut) continue;
    const double inverse = 1 / square;
    const double sixth = inverse * inverse * inverse;
    potential_ += 4 * sixth * (sixth - 1);
    const double strength = 48 * inverse * sixth * (sixth - 0.5);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      force_[i][axis] += strength * apart[axis];
      force_[j][axis] -= strength * apart[axis];
    }
  }
  reverse();
}

void Molecules::run(int steps) {
  const auto kick = [&] {
    for (std::size_t i = 0; i < atoms_; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        velocity_[i][axis] += kStep / 2 * force_[i][axis];
      }
    }
  };
  for (int i = 0; i < steps; ++i) {
    kick();
    for (std::size_t atom = 0; atom < atoms_; ++atom) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        position_[atom][axis] += kStep * velocity_[atom][axis];
      }
    }
    if (++steps_ % kRebuild == 0) {
      rebuild();
    } else {
      forward();
    }
    compute_forces();
    kick();
  }
}

Molecules::State Molecules::state() {
  State state;
  Vector momentum{};
  double kinetic = 0;
  for (std::size_t i = 0; i < atoms_; ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      momentum[axis] += velocity_[i][axis];
      kinetic += velocity_[i][axis] * velocity_[i][axis] / 2;
    }
  }
  state.atoms = exchange_->sum(static_cast<double>(atoms_));
  state.potential = exchange_->sum(potential_);
  state.kinetic = exchange_->sum(kinetic);
  for (const double part : momentum) {
    state.momentum = std::max(state.momentum, std::fabs(exchange_->sum(part)));
  }
  return state;
}

}  // namespace suite::miniapps
