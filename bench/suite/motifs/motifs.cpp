// SPDX-License-Identifier: BSD-3-Clause
//
// Communication patterns of applications: time of an iteration, and the match lists it
// leads to.
//
// The lists are found in iterations of their own, before the timed ones: every rank
// notes when it posts a receive and when it sends; each receiver then plays its posts
// and the arrivals, in the order of these times, through plain lists that count. A
// message's way takes no time in that, so lengths are those of a fast network; on more
// than one node the clocks must agree. The same iterations compare all data.
#include "../harness/content.hpp"
#include "../harness/match_time.hpp"
#include "match_model.hpp"
#include "motif.hpp"
#include "performer.hpp"

namespace {

using suite::Estimate;
using suite::Record;
using suite::Session;
using suite::UsageError;
using namespace suite::motifs;

std::vector<Motif> all_motifs() {
  std::vector<Motif> all;
  for (const auto& family : {halos(), sweeps3d(), irregular(), collectives(), nas(), proxies()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

struct Options {
  Parameters parameters;
  std::vector<std::string> motifs{"halo3d"};
  std::vector<std::uint64_t> bytes{1024};
  std::string placement = "standard";
  int ranks_per_node = 0;
};

void report_lists(Session& session, Record& record, const MatchModel& model) {
  const auto side = [&](const std::string& name, const ListStatistics& mine) {
    const auto value = [](std::uint64_t number) { return static_cast<double>(number); };
    record[name + "_longest"] = static_cast<long>(session.maximum(value(mine.longest)));
    const double samples = session.sum(value(mine.length_samples));
    record[name + "_mean_length"] =
        samples > 0 ? session.sum(value(mine.length_sum)) / samples : 0.0;
    const double searches = session.sum(value(mine.searches));
    const double entries = session.sum(value(mine.depth_sum));
    record[name + "_mean_depth"] = searches > 0 ? entries / searches : 0.0;
    record[name + "_most_depth"] = static_cast<long>(session.maximum(value(mine.depth_most)));
  };
  side("posted", model.posted);
  side("unexpected", model.unexpected);
}

void run(Session& session, const Options& options) {
  const std::vector<Motif> known = all_motifs();
  const int per_node =
      options.ranks_per_node > 0 ? options.ranks_per_node : session.ranks_per_node();
  session.table(
      "Motifs: time of an iteration, match lists of all ranks",
      {"motif", "bytes", "outstanding", "placement", "time_us", "time_us_ci95", "messages_per_s",
       "posted_longest", "posted_mean_depth", "unexpected_longest", "unexpected_mean_depth",
       "posted_match_s", "unexpected_match_s", "match_s", "samples", "stopped_by"});
  for (const std::string& name : options.motifs) {
    const Motif& motif =
        *std::find_if(known.begin(), known.end(), [&](const Motif& m) { return m.name == name; });
    if (session.size() < motif.least_ranks) {
      throw UsageError(name + " needs at least " + std::to_string(motif.least_ranks) +
                       " ranks, and there are " + std::to_string(session.size()));
    }
    for (const std::uint64_t bytes : options.bytes) {
      session.progress(name + ", " + std::to_string(bytes) + " bytes");
      Parameters parameters = options.parameters;
      parameters.bytes = bytes;
      const Places places(options.placement, per_node, parameters.seed);
      const Script script = motif.script(parameters, places, session.rank(), session.size());
      Performer performer(session, script);
      MatchModel model;
      for (int i = 0; i < 3; ++i) model.play(performer.iterate_and_note());
      if (model.left() != 0) throw std::logic_error(name + ": messages and receives do not pair");
      const long iterations = session.batch_size([&](long n) { return performer.iterate(n); });
      const suite::MatchTime match_time;
      const Estimate time = session.repeat(
          [&] { return performer.iterate(iterations) / static_cast<double>(iterations); });

      Record record = session.record();
      match_time.report(session, record,
                        static_cast<double>(iterations) * static_cast<double>(time.samples));
      record["motif"] = name;
      record["bytes"] = bytes;
      record["outstanding"] = parameters.outstanding;
      record["radix"] = parameters.radix;
      record["edge"] = parameters.edge;
      record["root"] = parameters.root;
      record["placement"] = options.placement;
      record["compute_us"] = parameters.compute_us;
      record["verified"] = true;
      report_lists(session, record, model);
      session.report(std::move(record), time, session.sum(static_cast<double>(script.sends())));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> names;
  std::string list = "what is exchanged:";
  for (const Motif& motif : all_motifs()) {
    names.push_back(motif.name);
    list += "\n" + motif.name + ": " + motif.about;
  }
  suite::Options line("motifs", "Communication patterns of applications and their match lists");
  line.choices("--motif", options.motifs, names, list);
  line.numbers("--bytes", options.bytes, 8, 1 << 24, "size of a message, one point each");
  line.number("--outstanding", options.parameters.outstanding, 1, 256,
              "messages per neighbour, or instances, at once");
  line.number("--radix", options.parameters.radix, 2, 64, "of trees and exchanges");
  line.number("--edge", options.parameters.edge, 1, 1000, "cells along an edge of the problem");
  line.choice("--root", options.parameters.root, {"fixed", "rotating"}, "of collectives");
  line.number("--compute-us", options.parameters.compute_us, 0, 1e6,
              "between two steps of communication");
  line.choice("--placement", options.placement, {"standard", "round-robin", "tiled", "random"},
              "which rank lies where in a grid");
  line.number("--ranks-per-node", options.ranks_per_node, 0, 1 << 20,
              "for the placement; 0: as they are");
  return suite::run_program(
      argc, argv, line, [] { return MPI_THREAD_SINGLE; },
      [&](Session& session) { run(session, options); });
}
