// SPDX-License-Identifier: BSD-3-Clause
//
// What all families of motifs get from the command line, and what they offer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "placement.hpp"
#include "script.hpp"

namespace suite::motifs {

struct Parameters {
  std::size_t bytes = 1024;  // of a message; of a face, where messages differ
  int outstanding = 1;       // instances, or messages per neighbour, at once
  int radix = 2;             // of trees and exchanges
  int edge = 50;             // cells along an edge of the problem
  std::string root = "fixed";
  double compute_us = 0;  // between communication steps
  unsigned seed = 12345;
};

struct Motif {
  std::string name;
  std::string about;
  int least_ranks = 2;
  // The part of rank `rank` of `size`; `places` says where the ranks of a grid lie.
  std::function<Script(const Parameters&, const Places&, int rank, int size)> script;
};

// One function per family, one file each.
std::vector<Motif> halos();
std::vector<Motif> sweeps3d();
std::vector<Motif> irregular();
std::vector<Motif> collectives();
std::vector<Motif> nas();
std::vector<Motif> proxies();

}  // namespace suite::motifs
