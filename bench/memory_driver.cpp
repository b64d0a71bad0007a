// SPDX-License-Identifier: BSD-3-Clause
//
// Matching memory per node at scale, from sizes measured here. Open MPI keeps two lists, 128 bytes,
// per pair of processes; tagline keeps one matcher per process and a few bytes per peer, whichever
// ranks these are. Scenarios,
// applications and the 8196 entries per matcher are those of Dosanjh's dissertation (table 6.2,
// figures 6.12 to 6.15), for every queue structure.
#include <algorithm>
#include <map>

#include "benchmarks.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

constexpr double kListBytes = 128;  // two empty list heads of 64 bytes
constexpr int kEntries = 8196;
constexpr int kRanks = 64;
constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;

struct Scenario {
  std::string name;
  double nodes;
  double processes;  // per node
};

const std::vector<Scenario> kTable = {{"half scale", 4096, 68},
                                      {"full scale", 8192, 68},
                                      {"2x cores", 8192, 136},
                                      {"4x cores", 8192, 272}};
// At their largest scale.
const std::vector<Scenario> kApplications = {
    {"MiniMD", 2048, 68}, {"MiniFE", 4096, 1}, {"LULESH", 2048, 8}, {"Kripke", 2048, 64}};

// Of a communicator with more ranks than a machine has room for, see peer_table.hpp.
struct Peers {
  std::string pattern;
  int ranks;
  int peers;
  double communicator;  // bytes
  double per_peer;      // bytes
};

struct Sizes {
  std::vector<std::string> structures;
  // By structure and entries, bytes: of receives, which the scenarios are about, and of messages.
  std::map<std::string, std::map<int, double>> matcher;
  std::map<std::string, std::map<int, double>> with_messages;
  std::vector<std::string> patterns;                         // see peers.cpp
  std::map<std::string, std::map<std::string, double>> met;  // by configuration and pattern, bytes
  std::vector<Peers> many;

  // Where there are many peers.
  double per_peer(const std::string& configuration) const {
    return met.at(configuration).at("more");
  }
  // The same with as many as no machine here has room for.
  double per_peer_at_scale() const {
    double most = per_peer("tagline");
    for (const Peers& each : many) {
      if (each.peers >= 1000) most = std::max(most, each.per_peer);
    }
    return most;
  }
};

bool measure(const Context& context, Sizes& sizes) {
  const auto check = [](const JobResult& job, const std::string& what) {
    if (!job.ok) std::fprintf(stderr, "bench: %s: %s\n", what.c_str(), job.reason.c_str());
    return job.ok;
  };
  // What a thread's cache of freed blocks holds counts as handed out.
  const std::string no_cache = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0";
  JobResult job =
      run_job({"/usr/bin/env", no_cache, (context.programs / "memory").string()},
              std::chrono::seconds(60), [&](const std::string& line) {
                const Record point = Record::parse(line);
                if (point.contains("pattern")) {
                  sizes.many.push_back({point["pattern"], point["ranks"], point["peers"],
                                        point["bytes_per_communicator"], point["bytes_per_peer"]});
                  return;
                }
                const std::string structure = point["structure"];
                if (point["side"] == "unexpected") {
                  sizes.with_messages[structure][point["entries"]] = point["bytes"];
                  return;
                }
                if (sizes.matcher[structure].empty()) {
                  sizes.structures.push_back(structure);
                }
                sizes.matcher[structure][point["entries"]] = point["bytes"];
              });
  if (!check(job, "memory")) return false;
  for (const Configuration& each : {ob1("vader"), tagline(context.components, "vader")}) {
    progress("memory, " + each.name);
    std::vector<std::string> command = mpirun_command(each, kRanks);
    command.insert(command.end(), {"-x", no_cache});
    command.push_back((context.programs / "peers").string());
    job = run_job(command, std::chrono::seconds(240), [&](const std::string& line) {
      const Record point = Record::parse(line);
      const std::string pattern = point["pattern"];
      if (std::ranges::count(sizes.patterns, pattern) == 0) sizes.patterns.push_back(pattern);
      sizes.met[each.name][pattern] = point["bytes_per_peer"];
    });
    if (!check(job, each.name)) return false;
  }
  end_progress();
  return true;
}

double lists(double bytes_per_pair, const Scenario& at) {
  return bytes_per_pair * at.nodes * at.processes * at.processes;
}

// All processes of a node: their peers, and a full matcher each.
double ours(const Sizes& sizes, const std::string& structure, const Scenario& at) {
  return lists(sizes.per_peer_at_scale(), at) +
         at.processes * sizes.matcher.at(structure).at(kEntries);
}

void print_peers(const Sizes& sizes) {
  Table met("Bytes per peer and communicator, " + std::to_string(kRanks) + " ranks");
  met.header({"", "ob1", "tagline"});
  for (const std::string& pattern : sizes.patterns) {
    met.row({pattern, format("%.1f", sizes.met.at("ob1").at(pattern)),
             format("%.1f", sizes.met.at("tagline").at(pattern))});
  }
  std::printf("\n%s\n", met.text().c_str());

  Table many("The same with more ranks, without MPI");
  many.header({"ranks", "pattern", "peers", "per communicator", "per peer"});
  for (const Peers& each : sizes.many) {
    many.row({std::to_string(each.ranks), each.pattern, std::to_string(each.peers),
              format("%.0f", each.communicator), format("%.1f", each.per_peer)});
  }
  std::printf("%s\n", many.text().c_str());
}

// Beyond what is free yet in the last place that was taken, see peer_table.hpp.
double most_per_peer(const Sizes& sizes) {
  constexpr double kOpen = 128;
  double most = sizes.per_peer("tagline");
  for (const Peers& each : sizes.many) most = std::max(most, each.per_peer - kOpen / each.peers);
  return most;
}

void print_matchers(const Sizes& sizes) {
  Table table(
      "One matcher, bytes: new, and with one entry; all of it per entry, with so many waiting. "
      "Two figures: receives, messages");
  std::vector<std::string> header = {"structure", "new", "in use"};
  for (const auto& [entries, bytes] : sizes.matcher.begin()->second) {
    if (entries > 1) header.push_back(std::to_string(entries));
  }
  table.header(header);
  for (const std::string& structure : sizes.structures) {
    const std::map<int, double>& receives = sizes.matcher.at(structure);
    const std::map<int, double>& messages = sizes.with_messages.at(structure);
    std::vector<std::string> row = {structure, format("%.0f", receives.at(0))};
    for (const auto& [entries, bytes] : receives) {
      if (entries == 0) continue;
      row.push_back(format("%.0f", bytes / entries) + ", " +
                    format("%.0f", messages.at(entries) / entries));
    }
    table.row(row);
  }
  std::printf("%s\n", table.text().c_str());
}

void print_scenarios(const Sizes& sizes) {
  Table table("Matching memory per node, GiB (tagline: " + std::to_string(kEntries) +
              " entries in each matcher)");
  std::vector<std::string> header = {"", "nodes", "per node", "lists, 128 B", "ob1 here"};
  header.insert(header.end(), sizes.structures.begin(), sizes.structures.end());
  table.header(header);
  for (const Scenario& each : kTable) {
    std::vector<std::string> row = {each.name, format("%.0f", each.nodes),
                                    format("%.0f", each.processes),
                                    format("%.2f", lists(kListBytes, each) / kGiB),
                                    format("%.2f", lists(sizes.per_peer("ob1"), each) / kGiB)};
    for (const std::string& structure : sizes.structures) {
      row.push_back(format("%.2f", ours(sizes, structure, each) / kGiB));
    }
    table.row(row);
  }
  std::printf("%s\n", table.text().c_str());
}

void print_saved(const Sizes& sizes) {
  Table table("Memory saved per node against lists of 128 B, MiB (negative: spent)");
  std::vector<std::string> header = {"", "nodes", "per node"};
  header.insert(header.end(), sizes.structures.begin(), sizes.structures.end());
  table.header(header);
  for (const Scenario& each : kApplications) {
    std::vector<std::string> row = {each.name, format("%.0f", each.nodes),
                                    format("%.0f", each.processes)};
    for (const std::string& structure : sizes.structures) {
      row.push_back(
          format("%.1f", (lists(kListBytes, each) - ours(sizes, structure, each)) / kMiB));
    }
    table.row(row);
  }
  std::printf("%s\n", table.text().c_str());
}

std::vector<Record> records_of(const Sizes& sizes, const Record& common) {
  std::vector<Record> records;
  const auto add = [&](const std::string& measure) -> Record& {
    records.push_back(common);
    records.back()["measure"] = measure;
    return records.back();
  };
  for (const auto& [configuration, met] : sizes.met) {
    for (const auto& [pattern, bytes] : met) {
      Record& record = add("peer");
      record["configuration"] = configuration;
      record["pattern"] = pattern;
      record["ranks"] = kRanks;
      record["bytes_per_peer_and_communicator"] = bytes;
    }
  }
  for (const Peers& each : sizes.many) {
    Record& record = add("peers");
    record["configuration"] = "tagline";
    record["pattern"] = each.pattern;
    record["ranks"] = each.ranks;
    record["peers"] = each.peers;
    record["bytes_per_communicator"] = each.communicator;
    record["bytes_per_peer_and_communicator"] = each.per_peer;
  }
  for (const std::string& structure : sizes.structures) {
    for (const auto& [side, all] :
         {std::pair{"posted", &sizes.matcher}, {"unexpected", &sizes.with_messages}}) {
      for (const auto& [entries, bytes] : all->at(structure)) {
        Record& record = add("matcher");
        record["structure"] = structure;
        record["side"] = side;
        record["entries"] = entries;
        record["matcher_bytes"] = bytes;
      }
    }
  }
  const auto add_scenario = [&](const std::string& measure, const Scenario& at) {
    for (const std::string& structure : sizes.structures) {
      Record& record = add(measure);
      record["scenario"] = at.name;
      record["nodes"] = at.nodes;
      record["processes_per_node"] = at.processes;
      record["structure"] = structure;
      record["entries"] = kEntries;
      record["lists_bytes_per_node"] = lists(kListBytes, at);
      record["ob1_bytes_per_node"] = lists(sizes.per_peer("ob1"), at);
      record["tagline_bytes_per_node"] = ours(sizes, structure, at);
      record["saved_bytes_per_node"] = lists(kListBytes, at) - ours(sizes, structure, at);
    }
  };
  for (const Scenario& each : kTable) add_scenario("table_6.2", each);
  for (Scenario each : kApplications) {
    for (const double largest = each.nodes; each.nodes >= 1; each.nodes /= 2) {
      if (each.nodes * 64 >= largest) add_scenario("application", each);
    }
  }
  return records;
}

Plot make_plot(const Sizes& sizes) {
  Plot plot;
  plot.title = "Matching memory saved per node against the lists of Open MPI";
  plot.x_label = "nodes";
  plot.y_label = "MiB";
  for (const Scenario& application : kApplications) {
    Panel panel;
    panel.title = application.name + ", " + format("%.0f", application.processes) + " per node";
    for (const std::string& structure : sizes.structures) {
      Series series{structure, {}};
      for (double nodes = application.nodes / 64; nodes <= application.nodes; nodes *= 2) {
        const Scenario at = {"", nodes, application.processes};
        const double saved = (lists(kListBytes, at) - ours(sizes, structure, at)) / kMiB;
        // The axis is logarithmic: what is spent has no place on it.
        if (saved > 0) series.points.push_back({nodes, saved, saved, saved});
      }
      if (!series.points.empty()) panel.series.push_back(series);
    }
    if (!panel.series.empty()) plot.panels.push_back(panel);
  }
  return plot;
}

int run_memory(const Context& context) {
  watch_for_interrupts();
  Sizes sizes;
  if (!measure(context, sizes)) return 1;
  print_peers(sizes);
  print_matchers(sizes);
  print_scenarios(sizes);
  print_saved(sizes);
  const double most = most_per_peer(sizes);
  std::printf(
      "%s\n",
      goal_table("Goals",
                 {{"matching state per peer and communicator, 128 bytes aside: at most 16 bytes",
                   format("%.2f", most), most <= 16 ? "yes" : "no"}})
          .c_str());
  const std::vector<Record> records = records_of(sizes, environment("memory", context.commit));
  write_records(context.output, "memory", records);
  const bool plotted = write_plot(context.output / "memory.svg", make_plot(sizes));
  std::printf("%zu records in %s/memory.json and memory.csv\n", records.size(),
              context.output.c_str());
  return plotted ? 0 : 1;
}

}  // namespace

void add_memory(CLI::App& app, Context& context) {
  CLI::App* const command =
      app.add_subcommand("memory", "matching memory per peer, per matcher and per node at scale");
  command->callback([&context] { context.exit_code = run_memory(context); });
}

}  // namespace bench
