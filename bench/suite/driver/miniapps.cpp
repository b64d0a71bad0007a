// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

namespace bench {
namespace {

Job app_job(const std::string& app, const std::string& form, int ranks, int edge, long extra) {
  Job job{"miniapps", ranks, {}, {}};
  job.arguments = {"--app",
                   app,
                   "--form",
                   form,
                   "--edge",
                   std::to_string(edge),
                   "--extra-receives",
                   std::to_string(extra)};
  job.parameters["app"] = app;
  job.parameters["form"] = form;
  job.parameters["extra_receives"] = extra;
  return job;
}

// A rank's part of the problem: molecules come four to a lattice cell.
int edge_of(const std::string& app, Effort effort) {
  if (app == "minimd") return effort == Effort::quick ? 4 : effort == Effort::standard ? 6 : 10;
  return effort == Effort::quick ? 10 : effort == Effort::standard ? 20 : 60;
}

std::vector<Job> form_jobs(Effort effort) {
  std::vector<int> ranks{2};
  if (effort != Effort::quick) ranks.insert(ranks.end(), {4, 8});
  if (effort == Effort::full) ranks.push_back(16);
  std::vector<Job> all;
  for (const int n : ranks) {
    for (const std::string app : {"hpccg", "minife", "minimd"}) {
      for (const std::string form : {"two-sided", "two-sided-threads", "fence", "lock_all"}) {
        all.push_back(app_job(app, form, n, edge_of(app, effort), 0));
      }
    }
  }
  return all;
}

// What a form costs beside the baseline of the same MPI, application and number of ranks.
void add_overhead(std::vector<Record>& records) {
  for (Record& record : records) {
    if (!record.contains("time_us") || record["form"] == "two-sided") continue;
    for (const Record& other : records) {
      const auto same = [&](const char* field) { return record[field] == other[field]; };
      if (!other.contains("time_us") || other["form"] != "two-sided" || !same("mpi") ||
          !same("app") || !same("ranks")) {
        continue;
      }
      record["time_over_two_sided"] =
          record["time_us"].get<double>() / other["time_us"].get<double>();
    }
  }
}

std::vector<Job> structure_jobs(Effort effort) {
  const bool quick = effort == Effort::quick;
  const int ranks = quick ? 4 : 8;
  std::vector<Job> all;
  for (const std::string motif : {"amg", "amr", "fds"}) {
    Job job{"motifs", ranks, {"--motif", motif, "--outstanding", quick ? "4" : "16"}, {}};
    job.parameters["motif"] = motif;
    all.push_back(std::move(job));
  }
  std::vector<long> lengths{0, 2048};
  if (!quick) lengths = {0, 128, 512, 1024, 2048, 4096};
  for (const std::string app : {"minife", "minimd"}) {
    for (const long length : lengths) {
      all.push_back(app_job(app, "two-sided", ranks, edge_of(app, effort), length));
    }
  }
  return all;
}

}  // namespace

Sweep miniapps() {
  return {"miniapps",
          "mini-applications in two-sided and one-sided forms, problems growing with the ranks",
          {{"Mini-applications, time over that of two-sided",
            {"app"},
            {"form"},
            "ranks",
            "time_over_two_sided",
            "ranks",
            "time / time of two-sided"},
           {"Mini-applications, time of a solution",
            {"app"},
            {"form"},
            "ranks",
            "time_us",
            "ranks",
            "us"}},
          form_jobs,
          {"ob1", "tagline", "mpich"},
          {},
          add_overhead};
}

Sweep structures() {
  const std::vector<std::string> by{"motif", "app"};
  const auto seconds = [&](const std::string& title, const std::string& field) {
    return View{title, {}, by, "extra_receives", field, "receives ahead", "s", field == "match_s"};
  };
  return {
      "structures",
      "seconds that applications spend in matching, by queue structure of tagline",
      {{"Time of an iteration behind receives that no message fits",
        {"app"},
        {"motif"},
        "extra_receives",
        "time_us",
        "receives ahead",
        "us"},
       seconds("Seconds in searches of the posted receives, largest of all ranks, per iteration",
               "posted_match_s"),
       seconds("Seconds in searches of the unexpected messages, the same", "unexpected_match_s"),
       seconds("Seconds in matching of either kind, the same", "match_s")},
      structure_jobs,
      {"tagline:linear", "tagline:array", "tagline:vector", "tagline:fuzzy", "tagline:adaptive"},
      {"--mca", "pml_tagline_match_time", "1"},
      {}};
}

}  // namespace bench
