// SPDX-License-Identifier: BSD-3-Clause
//
// `./run bench agreement`: the suite beside published tools on the same MPI, job by job in
// turns. NetPIPE comes from Debian's packages; of others the user gives a folder with a
// folder for each MPI in it.
//
// A ratio is taken between jobs that follow each other. How much the tool agrees with
// itself, from one of its jobs to its next one, stands beside it: that is the noise.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "sweep.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

using Values = std::map<long, double>;  // by bytes of a message
using Words = std::vector<std::string>;

struct Settings {
  int rounds = 0;  // 0: by --quick
  std::vector<std::string> mpis{"ob1", "mpich"};
  std::vector<std::string> only;
  std::string tools;
};

// The same quantity as a tool measures it and as the suite does, a job of each for all sizes.
struct Subject {
  std::string tool;
  std::string quantity;
  int ranks;
  std::vector<long> bytes;
  std::map<std::string, std::string> programs;  // of the tool, by MPI
  Words options;
  std::string result;  // regular expression with groups for size and value, or for the value
  std::string ours;
  Words our_options;
  std::string field;
  double ours_over_theirs = 1;  // of the units
  // Ranks of the tool that it insists on and that have nothing to do: they wait at the lowest
  // priority, and the suite does without them.
  int idle = 0;
  // Of what the tool tells, where that is a rate: microseconds of as much as we time.
  std::function<double(long bytes, double value)> time_us{};
};

using InTools = std::function<std::map<std::string, std::string>(const std::string& program)>;

// LANL's RMA-MT with one thread, which synchronises its own window: in our programs the
// parent that issues all by itself. The mean of one run beside the best of three of ours. There
// is no latency of a fence: an epoch has one in the tool and two in the suite.
void add_one_sided(std::vector<Subject>& all, const InTools& in_tools,
                   const std::vector<long>& sizes) {
  struct Test {
    const char* program;
    const char* pattern;
    const char* quantity;
    Words puts, gets;  // synchronisations
    int messages;      // that the rate is of, per window of 1000
  };
  for (const Test& test :
       {Test{"rmamt_lat",
             "latency",
             "latency of a ",
             {"lock_all", "lock", "flush", "pscw"},
             {"lock_all"},
             0},
        Test{"rmamt_bw", "bandwidth", "window of 1000 ", {"lock_all", "fence"}, {"lock_all"}, 1000},
        Test{"rmamt_bibw", "bibandwidth", "both ways 1000 ", {"lock_all"}, {}, 2000}}) {
    const auto add = [&](const std::string& operation, const std::string& synchronisation) {
      const bool latency = test.messages == 0;
      Subject subject{
          "RMA-MT",
          test.quantity + operation + ", " + synchronisation + ", us",
          2,
          sizes,
          in_tools(test.program),
          {"-o", operation, "-s", synchronisation, "-t", "1", "-i", "1000", "-m",
           std::to_string(sizes.back())},
          latency ? R"(^([0-9]+)\t[0-9]+\t([0-9.]+))"
                  : R"(^ *([0-9]+)\t *[0-9]+\t *[0-9.]+\t+ *([0-9.]+))",
          "rma_mt",
          {"--pattern", test.pattern, "--operation", operation, "--sync", synchronisation,
           "--threads", "0", "--slots", "1", "--window", "1000", "--least", "3", "--most", "3"},
          "time_us_lowest"};
      if (latency) {
        subject.options.push_back("-w");
        subject.our_options.insert(subject.our_options.end(), {"--clock", "epoch"});
      } else {
        subject.time_us = [messages = test.messages](long, double per_s) {
          return messages / per_s * 1e6;
        };
      }
      all.push_back(std::move(subject));
    };
    for (const std::string& synchronisation : test.puts) add("put", synchronisation);
    for (const std::string& synchronisation : test.gets) add("get", synchronisation);
  }
}

std::vector<Subject> subjects(const fs::path& tools, bool quick) {
  std::vector<long> sizes{1, 64, 1024, 16384};
  if (!quick) sizes.insert(sizes.end(), {262144, 1048576});
  const auto in_tools = [&](const std::string& program) {
    std::map<std::string, std::string> found;
    for (const std::string mpi : {"openmpi", "mpich"}) {
      if (!tools.empty()) found[mpi] = tools / mpi / program;
    }
    return found;
  };
  std::vector<Subject> all;
  // The best of its three trials of 100 round trips each, halved.
  all.push_back(
      {"NetPIPE",
       "latency, us",
       2,
       sizes,
       {{"openmpi", "/usr/bin/NPopenmpi"}, {"mpich", "/usr/bin/NPmpich2"}},
       {"-u", std::to_string(sizes.back()), "-p", "0", "-n", "100", "-o", "/dev/null"},
       R"(([0-9]+) bytes .* in +([0-9.]+) usec)",
       "pingpong",
       {"--test", "latency", "--places", "one", "--rounds", "100", "--least", "3", "--most", "3"},
       "time_us_lowest"});
  const auto times = [](int messages) {  // from MB/s
    return [=](long bytes, double value) { return static_cast<double>(messages * bytes) / value; };
  };
  // The mean of one run, beside the best of three that are as long: on a busy machine the
  // difference is what disturbs them.
  for (const auto& [program, test, quantity] :
       {std::array<std::string, 3>{"osu_latency", "latency", "latency, us"},
        {"osu_bw", "bandwidth", "window of 64, us"},
        {"osu_bibw", "bidirectional", "windows of 64 both ways, us"}}) {
    all.push_back({"OSU",
                   quantity,
                   2,
                   sizes,
                   in_tools(program),
                   {},
                   R"(^([0-9]+) +([0-9.]+) *$)",
                   "pingpong",
                   {"--test", test, "--places", "two", "--rounds",
                    test == "latency" ? "1000" : "100", "--least", "3", "--most", "3"},
                   "time_us_lowest",
                   1,
                   0,
                   test == "latency" ? std::function<double(long, double)>{}
                                     : times(test == "bandwidth" ? 64 : 128)});
  }
  add_one_sided(all, in_tools, sizes);
  // Rates by the mean time of both ranks; caches are swept. The tool starts with three ranks
  // and more and multiplies by them all, also by the one that is left over.
  all.push_back({"SMB",
                 "single direction, messages/s",
                 2,
                 {8},
                 in_tools("msgrate"),
                 {"-p", "1", "-n", "1", "-i", "30", "-m", "128", "-c", "8388608", "-s", "8"},
                 R"(single direction: +([0-9.]+))",
                 "msgrate",
                 {"--messages", "128", "--cache-mib", "8", "--least", "30", "--most", "30"},
                 "messages_per_s_average_rank",
                 1.5,
                 1});
  return all;
}

// Runs a program, hands its lines to `take`, which adds to the values; false: it has failed,
// and why is told.
bool run_one(const Configuration& configuration, int ranks, int idle, const Words& program,
             const std::function<void(const std::string&)>& take) {
  const bool openmpi = configuration.mpi == "openmpi";
  Words command = mpirun_command(configuration, ranks);
  if (openmpi) {
    command.insert(command.end(), {"--bind-to", idle > 0 ? "core:overload-allowed" : "core"});
  } else {
    command.insert(command.end(), {"-bind-to", "core"});
  }
  // Who yields would make room for the rank that has nothing to do.
  const Words spinning{"--mca", "mpi_yield_when_idle", "0"};
  if (openmpi && idle > 0) {
    command.push_back("--oversubscribe");
    command.insert(command.end(), spinning.begin(), spinning.end());
  }
  command.insert(command.end(), program.begin(), program.end());
  if (idle > 0) {
    command.insert(command.end(), {":", "-n", std::to_string(idle)});
    command.insert(command.end(), configuration.arguments.begin(), configuration.arguments.end());
    if (openmpi) command.insert(command.end(), spinning.begin(), spinning.end());
    command.insert(command.end(), {"/usr/bin/nice", "-n", "19"});
    command.insert(command.end(), program.begin(), program.end());
  }
  const JobResult end = run_job(command, std::chrono::seconds(240), take);
  if (interrupted()) return false;
  std::istringstream errors(end.errors);  // NetPIPE's results are there
  for (std::string line; std::getline(errors, line);) take(line);
  if (end.ok) return true;
  end_progress();
  std::fprintf(stderr, "bench: %s under %s: %s\n", program.front().c_str(),
               configuration.name.c_str(), end.reason.c_str());
  return false;
}

struct Pair {
  double theirs;
  double ours;
};
using Key = std::pair<std::string, long>;  // MPI, bytes
using Results = std::map<Key, std::vector<Pair>>;

void measure(const Subject& subject, const Configuration& configuration, const Context& context,
             int turn, Results& results) {
  progress("turn " + std::to_string(turn + 1) + ", " + subject.tool + ", " + subject.quantity +
           ", " + configuration.name);
  Values theirs;
  Values ours;
  const auto run_theirs = [&] {
    Words command{subject.programs.at(configuration.mpi)};
    command.insert(command.end(), subject.options.begin(), subject.options.end());
    const std::regex pattern(subject.result);
    return run_one(configuration, subject.ranks, subject.idle, command,
                   [&](const std::string& line) {
                     std::smatch match;
                     if (!std::regex_search(line, match, pattern)) return;
                     const bool has_size = match.size() > 2;
                     const long bytes = has_size ? std::stol(match[1]) : subject.bytes.front();
                     const double value = std::stod(match[match.size() - 1]);
                     theirs[bytes] = subject.time_us ? subject.time_us(bytes, value) : value;
                   });
  };
  const auto run_ours = [&] {
    Words command{(context.programs / "suite" / configuration.mpi / subject.ours).string()};
    command.insert(command.end(), subject.our_options.begin(), subject.our_options.end());
    std::string sizes;
    for (const long bytes : subject.bytes) {
      sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
    }
    command.insert(command.end(), {"--bytes", sizes, "--json", "-", "--precision", "0.01",
                                   "--seconds", context.quick ? "0.1" : "0.4"});
    return run_one(configuration, subject.ranks, 0, command, [&](const std::string& line) {
      const Record record = Record::parse(line, nullptr, false);
      if (!record.is_object() || !record.contains(subject.field)) return;
      ours[record["bytes"].get<long>()] =
          record[subject.field].get<double>() * subject.ours_over_theirs;
    });
  };
  // Each comes first every second time.
  const bool done = turn % 2 == 0 ? run_theirs() && run_ours() : run_ours() && run_theirs();
  for (const long bytes : subject.bytes) {
    if (!done || !theirs.contains(bytes) || !ours.contains(bytes)) continue;
    results[{configuration.name, bytes}].push_back({theirs[bytes], ours[bytes]});
  }
}

void report(const Subject& subject, const Results& results, const Context& context,
            std::vector<Record>& records) {
  Table table(subject.tool + " and the suite: " + subject.quantity);
  table.header({"mpi", "bytes", subject.tool, "suite", "suite / " + subject.tool,
                "next / last of " + subject.tool});
  for (const auto& [key, pairs] : results) {
    const auto& [mpi, bytes] = key;
    std::vector<double> theirs, ours, ratios, noise;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      theirs.push_back(pairs[i].theirs);
      ours.push_back(pairs[i].ours);
      ratios.push_back(pairs[i].ours / pairs[i].theirs);
      if (i > 0) noise.push_back(pairs[i].theirs / pairs[i - 1].theirs);
    }
    Record record = environment("agreement", context.commit);
    record["tool"] = subject.tool;
    record["quantity"] = subject.quantity;
    record["mpi"] = mpi;
    record["bytes"] = bytes;
    record["turns"] = pairs.size();
    set_spread(record, "theirs", spread_of(theirs));
    set_spread(record, "ours", spread_of(ours));
    set_spread(record, "ours_over_theirs", spread_of(ratios));
    if (!noise.empty()) set_spread(record, "theirs_over_theirs", spread_of(noise));
    table.row({mpi, std::to_string(bytes), format("%.4g", spread_of(theirs).median),
               format("%.4g", spread_of(ours).median), spread_cell(spread_of(ratios), "%.2f"),
               noise.empty() ? "-" : spread_cell(spread_of(noise), "%.2f")});
    records.push_back(std::move(record));
  }
  if (!results.empty()) std::printf("%s\n", table.text().c_str());
}

int run_agreement(const Context& context, const Settings& settings) {
  const int turns = settings.rounds > 0 ? settings.rounds : context.quick ? 3 : 9;
  std::vector<Configuration> configurations;
  for (const std::string& name : settings.mpis) {
    configurations.push_back(name == "mpich" ? mpich() : ob1("vader"));
  }
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  std::vector<Subject> all = subjects(settings.tools, context.quick);
  std::erase_if(all, [&](const Subject& subject) {
    return std::any_of(settings.only.begin(), settings.only.end(), [&](const std::string& words) {
      return (subject.tool + " " + subject.quantity).find(words) == std::string::npos;
    });
  });
  std::vector<Results> results(all.size());
  watch_for_interrupts();
  for (int turn = 0; turn < turns && !interrupted(); ++turn) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const Configuration& configuration : configurations) {
        const auto program = all[i].programs.find(configuration.mpi);
        if (program == all[i].programs.end()) continue;
        const bool exists = fs::exists(program->second);
        if (exists && all[i].ranks <= cores) {
          measure(all[i], configuration, context, turn, results[i]);
        } else if (turn == 0) {
          // Ranks that wait for a core tell about the scheduler.
          std::fprintf(stderr, "bench: %s is left out: %s\n", all[i].tool.c_str(),
                       exists ? (std::to_string(all[i].ranks) + " ranks need as many cores").c_str()
                              : ("there is no " + program->second).c_str());
        }
      }
    }
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }
  std::vector<Record> records;
  for (std::size_t i = 0; i < all.size(); ++i) report(all[i], results[i], context, records);
  if (records.empty()) {
    std::fprintf(stderr,
                 "bench: nothing to compare with: NetPIPE is in Debian's packages "
                 "netpipe-openmpi and netpipe-mpich2, others go into --tools\n");
    return 1;
  }
  write_records(context.output, "agreement", records);
  std::printf(
      "medians of %d turns, in brackets the 10th and 90th percentile\n"
      "%zu records in %s/agreement.json and .csv\n",
      turns, records.size(), context.output.c_str());
  return 0;
}

}  // namespace

void add_agreement(CLI::App& app, Context& context) {
  static Settings settings;
  CLI::App* const command =
      app.add_subcommand("agreement", "the suite beside published tools on the same MPI, by turns");
  command->footer("Every benchmark takes --quick and --output too: ./run bench --help");
  command->add_option("--rounds", settings.rounds, "turns (9; quick: 3)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--mpi", settings.mpis, "which MPIs")
      ->delimiter(',')
      ->check(CLI::IsMember({"ob1", "mpich"}))
      ->capture_default_str();
  command->add_option("--only", settings.only, "comparisons whose name has all these words")
      ->delimiter(',');
  command
      ->add_option("--tools", settings.tools,
                   "folder with published programs, built: openmpi/PROGRAM and mpich/PROGRAM, of "
                   "osu_latency, osu_bw, osu_bibw (OSU), rmamt_lat, rmamt_bw, rmamt_bibw (LANL's "
                   "RMA-MT) and msgrate (Sandia) those that are there")
      ->check(CLI::ExistingDirectory);
  command->callback([&context] { context.exit_code = run_agreement(context, settings); });
}

}  // namespace bench
