// SPDX-License-Identifier: BSD-3-Clause
//
// Mini-applications: what the form of communication costs a whole program.
//
//   hpccg   conjugate gradients on a 27-point stencil, after HPCCG
//   minife  finite elements, assembled and solved by conjugate gradients, after MiniFE
//   minimd  molecular dynamics after Lennard-Jones, after MiniMD
//
// Problems grow with the ranks: --edge is per rank. Time is that of a solution from the
// first iteration to the last, or of --steps time steps; making the problem is not in it.
// Every solution is compared with the exact one. Of molecules the energy after --steps steps
// is compared with that which one rank alone gets for the same box, before anything is timed.
//
// --extra-receives D: D receives that no message fits wait ahead of the program's own.
#include <cmath>

#include "../harness/match_time.hpp"
#include "molecules.hpp"
#include "system.hpp"

namespace {

using namespace suite::miniapps;
using suite::Estimate;
using suite::Record;
using suite::Session;

struct Options {
  std::vector<std::string> apps{"hpccg"};
  std::vector<std::string> forms{"two-sided"};
  std::vector<std::uint64_t> extra_receives{0};
  int edge = 16;
  int steps = 40;
};

class Point {
 public:
  Point(Session& session, const Options& options, const std::string& app, const std::string& form)
      : session_(session), options_(options), app_(app), form_(form) {}

  void measure(std::size_t extra_receives) {
    Record record = session_.record();
    record["app"] = app_;
    record["form"] = form_;
    record["extra_receives"] = extra_receives;
    record["edge"] = options_.edge;
    if (app_ == "minimd") {
      measure_molecules(record, extra_receives);
    } else {
      measure_system(record, extra_receives);
    }
  }

 private:
  std::unique_ptr<Exchange> exchange(const std::vector<Link>& links, std::size_t capacity) const {
    return make_exchange(form_, session_, links, capacity);
  }

  void measure_system(Record& record, std::size_t extra_receives) {
    const System system = System::make(app_, session_, options_.edge);
    const auto edge = static_cast<std::size_t>(options_.edge);
    const auto halo = exchange(system.links(), edge * edge);
    int iterations = 0;
    const auto solve = [&] { return system.seconds_of_solution(session_, *halo, iterations); };
    solve();
    record["iterations"] = iterations;
    record["unknowns"] = session_.sum(static_cast<double>(system.rows()));
    time(record, *halo, extra_receives, solve);
  }

  void measure_molecules(Record& record, std::size_t extra_receives) {
    suite::motifs::Cell cells = suite::motifs::sides_of(session_.size(), 3);
    for (int& side : cells) side *= options_.edge;
    Molecules molecules(session_.world(), cells, [&](std::vector<Link> links, std::size_t most) {
      return exchange(links, most);
    });
    const Molecules::State before = molecules.state();
    molecules.run(options_.steps);
    compare(cells, before, molecules.state());
    record["iterations"] = options_.steps;
    record["unknowns"] = before.atoms;
    time(record, molecules.exchange(), extra_receives, [&] {
      session_.barrier();
      return suite::time_of(1, [&](long) { molecules.run(options_.steps); });
    });
    const double drift = energy(molecules.state()) / energy(before) - 1;
    if (!(std::fabs(drift) < 0.01)) {
      suite::wrong_data("minimd: energy has changed by " + std::to_string(100 * drift) + " %");
    }
  }

  static double energy(const Molecules::State& state) { return state.potential + state.kinetic; }

  // A rank alone does what all have done together; sums in another order differ by rounding.
  void compare(const suite::motifs::Cell& cells, const Molecules::State& before,
               const Molecules::State& after) const {
    if (session_.rank() == 0) {
      Molecules alone(MPI_COMM_SELF, cells,
                      [](const std::vector<Link>&, std::size_t) { return no_exchange(); });
      const double first = energy(alone.state());
      alone.run(options_.steps);
      const Molecules::State one = alone.state();
      const auto differ = [](double a, double b) { return !(std::fabs(a / b - 1) < 1e-8); };
      if (differ(energy(before), first) || differ(after.potential, one.potential) ||
          differ(after.kinetic, one.kinetic) || !(after.momentum < 1e-9 * after.atoms)) {
        suite::wrong_data("minimd: " + std::to_string(options_.steps) +
                          " steps end with potential energy " + std::to_string(after.potential) +
                          ", kinetic " + std::to_string(after.kinetic) + "; on one rank they are " +
                          std::to_string(one.potential) + " and " + std::to_string(one.kinetic));
      }
    }
    session_.barrier();
  }

  template <class Run>
  void time(Record& record, Exchange& exchange, std::size_t extra_receives, Run run) {
    const ExtraReceives ahead(session_, extra_receives);
    const suite::MatchTime match_time;
    exchange.seconds = 0;
    const Estimate time = session_.repeat(run);
    const auto runs = static_cast<double>(time.samples);
    match_time.report(session_, record, runs);
    record["exchange_part"] = session_.maximum(exchange.seconds / runs) / time.mean;
    record["threads"] =
        session_.maximum(form_ == "two-sided" ? 1 : static_cast<double>(exchange.links.size()));
    record["verified"] = true;
    session_.report(record, time);
  }

  Session& session_;
  const Options& options_;
  const std::string& app_;
  const std::string& form_;
};

void run(Session& session, const Options& options) {
  session.table("Mini-applications: time of a solution or of all time steps",
                {"app", "form", "threads", "extra_receives", "unknowns", "iterations", "time_us",
                 "time_us_ci95", "exchange_part", "posted_match_s", "unexpected_match_s", "match_s",
                 "samples", "stopped_by"});
  for (const std::string& app : options.apps) {
    for (const std::string& form : options.forms) {
      for (const std::uint64_t extra : options.extra_receives) {
        session.progress(app + ", " + form + ", " + std::to_string(extra) + " extra receives");
        Point(session, options, app, form).measure(extra);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  suite::Options line("miniapps", "Mini-applications in two-sided and one-sided forms");
  line.choices("--app", options.apps, {"hpccg", "minife", "minimd"}, "which");
  line.choices("--form", options.forms, forms(), "how neighbours communicate");
  line.number("--edge", options.edge, 1, 1000,
              "points along each axis of a rank's part; lattice cells for minimd");
  line.number("--steps", options.steps, 1, 1000000, "time steps of minimd");
  line.numbers("--extra-receives", options.extra_receives, 0, 30000,
               "receives that wait ahead, one point each");
  return suite::run_program(
      argc, argv, line,
      [&] {
        return options.forms == std::vector<std::string>{"two-sided"} ? MPI_THREAD_SINGLE
                                                                      : MPI_THREAD_MULTIPLE;
      },
      [&](Session& session) { run(session, options); });
}
