// SPDX-License-Identifier: BSD-3-Clause
//
// The component against ob1 and ucx: stream.cpp at every size, depth.cpp at a few
// depths, whole programs, and stream.cpp over tcp, in jobs that alternate.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "benchmarks.hpp"
#include "comparison.hpp"
#include "pml_goals.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using Seconds = Comparison::Seconds;

struct Settings {
  int rounds = 0;  // 0: by --quick
  std::vector<std::string> pmls;
  std::vector<std::string> sections;
};

// A Lennard-Jones crystal that melts; small, so that messages count.
constexpr const char* kLammpsInput = R"(units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 5 0 5 0 5
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 1000
run STEPS
)";

// A file that is there as long as the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(fs::temp_directory_path() / ("tagline-bench-" + std::to_string(getpid()) + ".in")) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

bool in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/bin:/bin";
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t end = rest.find(':', at);
    if (access((fs::path(rest.substr(at, end - at)) / program).c_str(), X_OK) == 0) return true;
    at = end == std::string::npos ? end : end + 1;
  }
  return false;
}

// "Loop time of 0.78 on 2 procs for 2000 steps with 500 atoms"
std::string take_loop_time(const std::string& line, int turn, Runner& runner) {
  double seconds = 0;
  if (std::sscanf(line.c_str(), "Loop time of %lf on", &seconds) != 1) return "";
  runner.results[{"time", "lammps", "hot", 0, 0}][turn] = {{seconds}};
  return "lammps";
}

std::string sizes(bool few, int largest) {
  std::vector<std::string> list;
  if (few) {
    for (const int size : {0, 1, 8, 64, 512, 4096, 65536, 1 << 20}) {
      if (size <= largest) list.push_back(std::to_string(size));
    }
  } else {
    list.emplace_back("0");
    for (int size = 1; size <= largest; size *= 2) list.push_back(std::to_string(size));
  }
  return join(list);
}

std::string title_of(const std::string& measure, const std::string& transport) {
  const std::string over = transport == "tcp" ? " over tcp" : "";
  if (measure == "latency") return "Latency" + over + ": half a round trip, us";
  if (measure == "rate") return "Message rate" + over + ": windows of 64, messages/s";
  return (measure == "bandwidth" ? "Bandwidth" : "Bandwidth of both directions") + over +
         ": windows of 16, MiB/s";
}

void print_streams(const Comparison& comparison, const std::string& transport) {
  for (const char* const measure : {"latency", "bandwidth", "bidirectional", "rate"}) {
    Table table(title_of(measure, transport));
    table.header(comparison.table_header("bytes", ""));
    bool any = false;
    for (const Key& key : comparison.keys()) {
      if (key.measure != measure) continue;
      table.row(comparison.table_row(std::to_string(key.message_bytes), key));
      any = true;
    }
    if (any) std::printf("%s\n", table.text().c_str());
  }
}

void print_queues(const Comparison& comparison) {
  for (const char* const cache : {"hot", "cold"}) {
    Table table(std::string("1 B behind a queue, ") +
                (cache == std::string("hot") ? "hot" : "caches swept") +
                ": half a round trip (random: per message), us");
    table.header(comparison.table_header("ahead", "us"));
    bool any = false;
    for (const Key& key : comparison.keys()) {
      if (key.measure != "latency" || key.cache != cache) continue;
      table.row(comparison.table_row(key.which + " " + std::to_string(key.depth), key));
      any = true;
    }
    if (any) std::printf("%s\n", table.text().c_str());
  }
}

void print_programs(const Comparison& comparison) {
  Table table("Programs: time, s");
  table.header(comparison.table_header("program", ""));
  const auto keys = comparison.keys();
  for (const Key& key : keys) table.row(comparison.table_row(key.which, key));
  if (!keys.empty()) std::printf("%s\n", table.text().c_str());
}

Plot make_plot(const Comparison& comparison) {
  Plot plot;
  plot.title = "Two ranks over shared memory, against ob1 (above 1: better)";
  plot.x_label = "bytes";
  plot.y_label = "times as good as ob1";
  for (const char* const measure : {"latency", "bandwidth", "bidirectional", "rate"}) {
    Panel panel{measure, {}};
    for (const Runner& runner : comparison.runners()) {
      if (&runner == comparison.base()) continue;
      Series series{runner.configuration.name, {}};
      for (const auto& [key, turns] : runner.results) {
        if (key.measure != measure) continue;
        if (const auto paired = comparison.against_base(runner, key)) {
          series.points.push_back(
              {static_cast<double>(key.message_bytes), paired->median, paired->low, paired->high});
        }
      }
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    plot.panels.push_back(std::move(panel));
  }
  return plot;
}

int run_pml(const Context& context, const Settings& settings) {
  const auto wanted = [&](const std::string& section) {
    return std::count(settings.sections.begin(), settings.sections.end(), section) != 0;
  };
  std::vector<std::string> without_ucx = settings.pmls;
  std::erase(without_ucx, "ucx");

  Comparison streams(context, settings.pmls);
  Comparison queues(context, settings.pmls);
  Comparison programs(context, without_ucx);
  Comparison tcp(context, without_ucx, "tcp");

  const std::string stream = context.programs / "stream";
  const std::vector<std::string> by_size{stream, "--budget-ms", "6", "--sizes",
                                         sizes(context.quick, 4 << 20)};
  const std::vector<std::string> by_size_tcp{stream,
                                             "--budget-ms",
                                             "20",
                                             "--sizes",
                                             sizes(true, context.quick ? 4096 : 1 << 20),
                                             "--measures",
                                             "latency,bandwidth,bidirectional,rate"};
  const std::vector<std::string> by_depth{context.programs / "depth",
                                          "--no-bandwidth",
                                          "--budget-ms",
                                          "10",
                                          "--cold-samples",
                                          "9",
                                          "--depths",
                                          "0,1024,16384",
                                          "--cases",
                                          "posted,unexpected,any_source,any_tag,mixed"};
  const std::vector<std::string> drain{context.programs / "depth",
                                       "--no-bandwidth",
                                       "--budget-ms",
                                       "60",
                                       "--depths",
                                       "16384",
                                       "--caches",
                                       "hot",
                                       "--cases",
                                       "random"};
  const std::vector<std::string> halo{context.programs / "halo", "--solutions",
                                      context.quick ? "3" : "9"};
  std::string input = kLammpsInput;
  input.replace(input.find("STEPS"), 5, context.quick ? "500" : "2000");
  const TemporaryFile lammps_input(input);
  const std::vector<std::string> lammps{"lmp", "-log", "none", "-in", lammps_input.path()};
  const bool has_lammps = in_path("lmp");
  if (wanted("programs") && !has_lammps) {
    std::fprintf(stderr, "bench: LAMMPS is left out: no lmp in PATH (package lammps)\n");
  }

  watch_for_interrupts();
  Rounds rounds(settings.rounds, context.quick ? 3 : 8, Seconds(context.quick ? 45 : 420));
  const Seconds limit{60};
  while (rounds.next()) {
    const std::string where = rounds.label();
    // The sizes decide by a few percent, so they get most of the jobs.
    if (wanted("sizes")) {
      for (int i = 0; i < (context.quick ? 2 : 3); ++i) {
        streams.take_turn(by_size, where + ", sizes", limit);
      }
    }
    if (wanted("queues") && (rounds.taken() == 1 || !context.quick)) {
      queues.take_turn(by_depth, where + ", queues", limit);
      queues.take_turn(drain, where + ", random order", limit);
    }
    if (wanted("programs")) {
      for (int i = 0; i < 2; ++i) {
        programs.take_turn(halo, where + ", halo", limit);
        if (has_lammps) programs.take_turn(lammps, where + ", lammps", limit, take_loop_time);
      }
    }
    for (int i = 0; wanted("tcp") && i < (context.quick ? 1 : 3); ++i) {
      tcp.take_turn(by_size_tcp, where + ", tcp", limit);
    }
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }

  bool failed = false;
  const Record common = environment("pml", context.commit);
  std::vector<Record> records;
  const auto add = [&](Comparison& comparison, const char* transport) {
    failed = !comparison.finish() || failed;
    const auto more = comparison.records(common, [&](Record& record, const Key&) {
      record["transport"] = transport;
      record["rounds"] = rounds.taken();
    });
    records.insert(records.end(), more.begin(), more.end());
  };
  add(streams, "vader");
  add(queues, "vader");
  add(programs, "vader");
  add(tcp, "tcp");
  if (records.empty()) {
    std::fprintf(stderr, "bench: no configuration ran, nothing written\n");
    return 1;
  }
  std::printf(
      "\nMedian (10th .. 90th percentile). \"vs ob1\": time of ob1 / time, or bandwidth / "
      "bandwidth\nof ob1, paired by turn and placement: above 1 is better than ob1.\n\n");
  print_streams(streams, "vader");
  print_queues(queues);
  print_programs(programs);
  print_streams(tcp, "tcp");
  std::printf("%s\n", goal_table("What the component is meant to reach (medians of paired ratios)",
                                 judge_pml(streams, queues, programs, tcp))
                          .c_str());
  write_records(context.output, "pml", records);
  if (wanted("sizes")) {
    failed = !write_plot(context.output / "pml.svg", make_plot(streams)) || failed;
  }
  std::printf("%zu records in %s/pml.json and pml.csv\n", records.size(), context.output.c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_pml(CLI::App& app, Context& context) {
  static Settings settings{0, {"ob1", "ucx", "tagline"}, {"sizes", "queues", "programs", "tcp"}};
  CLI::App* const command = app.add_subcommand(
      "pml", "point-to-point at every size, deep queues, programs: ob1, ucx and tagline");
  command->add_option("--rounds", settings.rounds, "rounds of alternating jobs")
      ->check(CLI::Range(1, 1000));
  command->add_option("--pmls", settings.pmls, "configurations")
      ->delimiter(',')
      ->check(CLI::IsMember({"ob1", "ucx", "tagline"}))
      ->capture_default_str();
  command->add_option("--sections", settings.sections, "what to measure")
      ->delimiter(',')
      ->check(CLI::IsMember({"sizes", "queues", "programs", "tcp"}))
      ->capture_default_str();
  command->callback([&context] { context.exit_code = run_pml(context, settings); });
}

}  // namespace bench
