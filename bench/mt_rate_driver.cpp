// SPDX-License-Identifier: BSD-3-Clause
//
// Runs mt_rate.cpp under ob1 and under tagline, turn by turn, and reports. Ratios are taken
// within a turn.
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "benchmarks.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

constexpr int kBurstMessages = 32;
constexpr int kBurstTurns = 3;  // a round

struct Settings {
  int rounds = 0;
  std::vector<std::string> threadings{"sharded"};
  std::vector<int> ranks{1, 2};
  std::string threads = "1,2,4";
  std::string depths = "0,16,64,256,1024";
};

struct Key {
  int ranks;
  int threads;
  std::string communicators;
  int depth;
  auto operator<=>(const Key&) const = default;
};

struct BurstKey {
  int threads;
  std::string communicators;
  auto operator<=>(const BurstKey&) const = default;
};

// ns per message, by turn.
struct Bursts {
  std::vector<double> send, receive;
};

struct Runner {
  Configuration configuration;
  std::string threading;                     // of tagline
  std::map<Key, std::vector<double>> rates;  // by turn
  std::map<BurstKey, Bursts> bursts;
};

// What both kinds of jobs begin with.
std::vector<std::string> job_command(const Context& context, const Runner& runner, int ranks) {
  std::vector<std::string> command = mpirun_command(runner.configuration, ranks);
  // More threads than cores: who waits lets the others work.
  for (const char* word :
       {"--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}) {
    command.emplace_back(word);
  }
  command.push_back((context.programs / "mt_rate").string());
  return command;
}

JobResult take_turn(const Context& context, const Settings& settings, int ranks, Runner& runner) {
  std::vector<std::string> command = job_command(context, runner, ranks);
  for (const std::string& word :
       {std::string("--threads"), settings.threads, std::string("--depths"), settings.depths,
        std::string("--ms"), std::string(context.quick ? "20" : "40")}) {
    command.push_back(word);
  }
  return run_job(command, std::chrono::seconds(120), [&](const std::string& line) {
    const Record point = Record::parse(line, nullptr, false);
    if (!point.is_object() || !point.contains("messages_per_second")) return;
    const Key key{ranks, point["threads"], point["communicators"], point["depth"]};
    runner.rates[key].push_back(point["messages_per_second"]);
  });
}

JobResult take_burst_turn(const Context& context, const Settings& settings, Runner& runner) {
  std::vector<std::string> command = job_command(context, runner, 2);
  for (const std::string& word : {std::string("--threads"), settings.threads,
                                  std::string("--burst"), std::to_string(kBurstMessages)}) {
    command.push_back(word);
  }
  return run_job(command, std::chrono::seconds(120), [&](const std::string& line) {
    const Record point = Record::parse(line, nullptr, false);
    if (!point.is_object() || !point.contains("send_ns")) return;
    Bursts& bursts = runner.bursts[{point["threads"], point["communicators"]}];
    bursts.send.push_back(point["send_ns"]);
    bursts.receive.push_back(point["receive_ns"]);
  });
}

Spread ratio_of(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i) {
    ratios.push_back(numerator[i] / denominator[i]);
  }
  return spread_of(ratios);
}

std::string communicators_text(const std::string& communicators) {
  return communicators == "one" ? "one" : "one per thread";
}

std::string place(int ranks, int threads, const std::string& communicators) {
  return std::to_string(ranks) + " ranks, " + std::to_string(threads) + " threads, " +
         (communicators == "one" ? "one communicator" : "a communicator each");
}

std::vector<Goal> judge(const std::vector<Runner>& runners) {
  std::vector<Goal> goals;
  const Runner& base = runners[0];
  for (std::size_t i = 1; i < runners.size(); ++i) {
    const Runner& ours = runners[i];
    const std::string& name = ours.configuration.name;
    const auto never_behind = [&](const char* what) {
      return Floor(name + ", " + what + ": ob1 never ahead", 1);
    };
    Floor one = never_behind("messages per second, one thread");
    Floor several = never_behind("messages per second, several threads, a core each");
    for (const auto& [key, rates] : base.rates) {
      if (key.ranks * key.threads > static_cast<int>(std::thread::hardware_concurrency())) continue;
      (key.threads == 1 ? one : several)
          .note(place(key.ranks, key.threads, key.communicators) + ", depth " +
                    std::to_string(key.depth),
                ratio_of(ours.rates.at(key), rates));
    }
    Floor send = never_behind("bursts, send");
    Floor receive = never_behind("bursts, receive");
    for (const auto& [key, bursts] : base.bursts) {
      const std::string where = place(2, key.threads, key.communicators);
      send.note(where, ratio_of(bursts.send, ours.bursts.at(key).send));
      receive.note(where, ratio_of(bursts.receive, ours.bursts.at(key).receive));
    }
    for (const Floor* floor : {&one, &several, &send, &receive}) goals.push_back(floor->goal());
  }
  return goals;
}

void report_bursts(const std::vector<Runner>& runners, const Record& common,
                   std::vector<Record>& records) {
  if (runners[0].bursts.empty()) return;
  Table table("Bursts of " + std::to_string(kBurstMessages) +
              " messages of each thread of a rank to another one that sleeps and receives them "
              "afterwards, ns per message; no more threads than cores");
  std::vector<std::string> header{"threads", "communicators"};
  for (const char* what : {"send", "receive"}) {
    for (const Runner& runner : runners) {
      header.push_back(runner.configuration.name + " " + what);
    }
    for (std::size_t i = 1; i < runners.size(); ++i) {
      header.push_back("ob1 / " + runners[i].configuration.name + " " + what);
    }
  }
  table.header(header);
  for (const auto& [key, base] : runners[0].bursts) {
    std::vector<std::string> row{std::to_string(key.threads), key.communicators};
    for (std::vector<double> Bursts::*const what : {&Bursts::send, &Bursts::receive}) {
      for (const Runner& runner : runners) {
        row.push_back(spread_cell(spread_of(runner.bursts.at(key).*what), "%.0f"));
      }
      for (std::size_t i = 1; i < runners.size(); ++i) {
        row.push_back(spread_cell(ratio_of(base.*what, runners[i].bursts.at(key).*what), "%.2f") +
                      "x");
      }
    }
    table.row(row);
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const Bursts& bursts = runners[i].bursts.at(key);
      Record record = common;
      record["pml"] = i == 0 ? "ob1" : "tagline";
      record["threading"] = runners[i].threading;
      record["ranks"] = 2;
      record["threads"] = key.threads;
      record["cores"] = std::thread::hardware_concurrency();
      record["communicators"] = communicators_text(key.communicators);
      record["burst_messages"] = kBurstMessages;
      record["message_bytes"] = 1;
      record["rounds"] = bursts.send.size();
      set_spread(record, "send_ns_per_message", spread_of(bursts.send));
      set_spread(record, "receive_ns_per_message", spread_of(bursts.receive));
      if (i > 0) {
        set_spread(record, "send_speedup_vs_ob1", ratio_of(base.send, bursts.send));
        set_spread(record, "receive_speedup_vs_ob1", ratio_of(base.receive, bursts.receive));
      }
      records.push_back(std::move(record));
    }
  }
  std::printf("%s\n", table.text().c_str());
}

int run_mt_rate(const Context& context, const Settings& settings) {
  const int rounds = settings.rounds > 0 ? settings.rounds : context.quick ? 3 : 9;
  std::vector<Runner> runners{{ob1("vader"), "", {}, {}}};
  for (const std::string& threading : settings.threadings) {
    Configuration ours = tagline(context.components, "vader");
    ours.name = "tagline " + threading;
    for (const char* word : {"--mca", "pml_tagline_threading"}) ours.arguments.emplace_back(word);
    ours.arguments.push_back(threading);
    runners.push_back({ours, threading, {}, {}});
  }
  watch_for_interrupts();
  // Every runner's turn, one after the other; false: one has failed.
  const auto by_turns = [&](int round, const std::string& what, auto take) {
    for (Runner& runner : runners) {
      progress("round " + std::to_string(round + 1) + "/" + std::to_string(rounds) + ", " + what +
               ", " + runner.configuration.name);
      const JobResult job = take(runner);
      if (job.ok) continue;
      end_progress();
      std::fprintf(stderr, "bench: %s: %s\n", runner.configuration.name.c_str(),
                   job.reason.c_str());
      return false;
    }
    return true;
  };
  for (int round = 0; round < rounds; ++round) {
    bool done = true;
    for (const int ranks : settings.ranks) {
      done = done && by_turns(round, std::to_string(ranks) + " ranks", [&](Runner& runner) {
               return take_turn(context, settings, ranks, runner);
             });
      // Short jobs that vary: more of them.
      for (int turn = 0; turn < kBurstTurns && ranks == 2; ++turn) {
        done = done && by_turns(round, "bursts", [&](Runner& runner) {
                 return take_burst_turn(context, settings, runner);
               });
      }
    }
    if (!done) return interrupted() ? 130 : 1;
  }
  end_progress();

  const auto ratio = [&](const Runner& runner, const Key& key) {
    return ratio_of(runner.rates.at(key), runners[0].rates.at(key));
  };
  Table table(
      "Messages per second, 1 byte, behind so many posted receives; a rank alone sends to itself");
  std::vector<std::string> header{"ranks", "threads", "communicators", "depth"};
  for (const Runner& runner : runners) header.push_back(runner.configuration.name + " M/s");
  for (std::size_t i = 1; i < runners.size(); ++i) {
    header.push_back(runners[i].configuration.name + " / ob1");
  }
  table.header(header);
  std::vector<Record> records;
  std::map<std::tuple<int, int, std::string>, Panel> panels;
  const Record common = environment("mt-rate", context.commit);
  for (const auto& [key, base] : runners[0].rates) {
    std::vector<std::string> row{std::to_string(key.ranks), std::to_string(key.threads),
                                 key.communicators, std::to_string(key.depth)};
    Panel& panel = panels[{key.ranks, key.threads, key.communicators}];
    panel.title = place(key.ranks, key.threads, key.communicators);
    panel.series.resize(runners.size());
    for (std::size_t i = 0; i < runners.size(); ++i) {
      const Runner& runner = runners[i];
      const Spread rate = spread_of(runner.rates.at(key));
      row.push_back(
          spread_cell({rate.median / 1e6, rate.low / 1e6, rate.high / 1e6, rate.samples}, "%.2f"));
      panel.series[i].name = runner.configuration.name;
      panel.series[i].points.push_back(
          {static_cast<double>(key.depth), rate.median, rate.low, rate.high});
      Record record = common;
      record["pml"] = i == 0 ? "ob1" : "tagline";
      record["threading"] = runner.threading;
      record["ranks"] = key.ranks;
      record["threads"] = key.threads;
      record["cores"] = std::thread::hardware_concurrency();
      record["communicators"] = communicators_text(key.communicators);
      record["depth_entries"] = key.depth;
      record["message_bytes"] = 1;
      record["rounds"] = rate.samples;
      set_spread(record, "messages_per_second", rate);
      if (i > 0) set_spread(record, "ratio_to_ob1", ratio(runner, key));
      records.push_back(std::move(record));
    }
    for (std::size_t i = 1; i < runners.size(); ++i) {
      row.push_back(spread_cell(ratio(runners[i], key), "%.2f") + "x");
    }
    table.row(row);
  }
  std::printf("%s\n", table.text().c_str());
  report_bursts(runners, common, records);
  std::printf("%s\n", goal_table("Goals (medians of ratios within a turn; above 1: tagline ahead)",
                                 judge(runners))
                          .c_str());
  std::printf("More threads than the %u cores here have no goal; their rates say little.\n",
              std::thread::hardware_concurrency());
  write_records(context.output, "mt-rate", records);
  Plot plot{"Messages per second, MPI_THREAD_MULTIPLE",
            "posted receives ahead",
            "messages per second",
            3,
            {}};
  for (auto& [key, panel] : panels) plot.panels.push_back(std::move(panel));
  const bool plotted = write_plot(context.output / "mt-rate.svg", plot);
  std::printf("%zu records in %s/mt-rate.json and mt-rate.csv, plot in mt-rate.svg\n",
              records.size(), context.output.c_str());
  return plotted ? 0 : 1;
}

}  // namespace

void add_mt_rate(CLI::App& app, Context& context) {
  static Settings settings;
  CLI::App* const command =
      app.add_subcommand("mt-rate", "message rate of several threads per rank: ob1 and tagline");
  command->footer("Every benchmark takes --quick and --output too: ./run bench --help");
  command->add_option("--rounds", settings.rounds, "jobs per configuration")
      ->check(CLI::Range(1, 1000));
  command->add_option("--threading", settings.threadings, "values of pml_tagline_threading")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--ranks", settings.ranks, "1: threads of one rank, to itself; 2")
      ->delimiter(',')
      ->check(CLI::Range(1, 2))
      ->capture_default_str();
  command->add_option("--threads", settings.threads, "threads of each rank")->capture_default_str();
  command->add_option("--depths", settings.depths, "receives ahead")->capture_default_str();
  command->callback([&context] { context.exit_code = run_mt_rate(context, settings); });
}

}  // namespace bench
