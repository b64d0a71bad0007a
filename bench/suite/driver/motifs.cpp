// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

namespace bench {
namespace {

struct Case {
  std::string motif;
  std::vector<std::string> options;  // beside --motif and --bytes
  bool quick = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string grid :
       {"halo2d", "halo2d-9", "halo3d", "halo3d-13", "halo3d-27", "halo3d-open", "lulesh"}) {
    all.push_back({grid, {}, grid == "halo3d-27"});
  }
  all.push_back({"halo3d-27", {"--outstanding", "16"}, false});
  all.push_back({"halo2d", {"--placement", "tiled", "--ranks-per-node", "4"}, false});
  all.push_back({"halo2d", {"--placement", "random"}, false});
  for (const std::string sweep : {"sweep3d", "sweep3d-1b", "sweep3d-3b"}) {
    for (const char* const edge : {"50", "150", "300"}) {
      all.push_back({sweep, {"--edge", edge}, std::string(edge) == "50"});
    }
  }
  for (const std::string other :
       {"graph", "amr", "many-to-one", "nas-mg", "nas-cg", "nas-bt", "nas-ft", "kripke",
        "random-access", "random-access-each", "random-access-all", "amg"}) {
    all.push_back({other, {}, other == "amr" || other == "random-access"});
  }
  for (const char* const many : {"1", "4", "16"}) {
    all.push_back({"fds", {"--outstanding", many}, std::string(many) == "4"});
  }
  for (const std::string tree :
       {"binomial", "k-ary", "gather", "bruck", "flat", "butterfly", "hierarchical"}) {
    all.push_back({tree, {"--outstanding", "1"}, false});
    all.push_back({tree, {"--outstanding", "16"}, tree == "gather"});
  }
  for (const std::string tree : {"binomial", "gather"}) {
    all.push_back({tree, {"--outstanding", "16", "--root", "rotating"}, false});
  }
  return all;
}

std::vector<Job> jobs(Effort effort) {
  const bool quick = effort == Effort::quick;
  std::vector<Job> all;
  for (const Case& one : cases()) {
    if (quick && !one.quick) continue;
    Job job{"motifs", quick ? 4 : 8, {"--motif", one.motif}, {}};
    job.arguments.insert(job.arguments.end(), one.options.begin(), one.options.end());
    job.arguments.insert(
        job.arguments.end(),
        {"--bytes", effort == Effort::full ? "8,256,1024,4096,16384,65536" : "1024"});
    job.parameters["motif"] = one.motif;
    for (std::size_t i = 0; i + 1 < one.options.size(); i += 2) {
      job.parameters[one.options[i].substr(2)] = one.options[i + 1];
    }
    all.push_back(std::move(job));
  }
  return all;
}

}  // namespace

Sweep motifs() {
  const std::vector<std::string> by{"motif", "outstanding", "edge", "root", "placement"};
  return {"motifs",
          "communication patterns of applications and the match lists they lead to",
          {{"Motifs, time of an iteration", {}, by, "bytes", "time_us", "bytes", "us", false},
           {"Motifs, longest posted queue",
            {},
            by,
            "bytes",
            "posted_longest",
            "bytes",
            "entries",
            false},
           {"Motifs, longest unexpected queue",
            {},
            by,
            "bytes",
            "unexpected_longest",
            "bytes",
            "entries",
            false}},
          jobs};
}

}  // namespace bench
