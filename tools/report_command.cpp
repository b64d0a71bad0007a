// SPDX-License-Identifier: BSD-3-Clause
//
// tagline report: what a trace says, on one page that needs nothing else. Figures go into the
// page as JSON, report.html has the words and draws them with Chart.js, which goes in as well.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "replay.hpp"
#include "structures.hpp"
#include "study.hpp"

namespace tagline::tools {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  fs::path trace;
  fs::path output = "report.html";
  std::vector<std::uint32_t> ranks;
  double seconds = 5;
  bool lines = true;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(path.string() + " is missing: it is made with the command where Chart.js is "
                                "found (Debian: apt-get install libjs-chart.js)");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

void replace(std::string& text, const std::string& mark, const std::string& with) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) throw Error("report.html has no place for " + mark);
  text.replace(at, mark.size(), with);
}

// At most 64 bars: [first length, last length, one count per side].
Json bars(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  constexpr std::size_t kMostBars = 64;
  const std::size_t end = std::max(a.size(), b.size());
  const std::size_t width = (end + kMostBars - 1) / kMostBars;
  const auto sum = [](const std::vector<std::uint64_t>& counts, std::size_t first,
                      std::size_t last) {
    std::uint64_t all = 0;
    for (std::size_t i = first; i < std::min(last, counts.size()); ++i) all += counts[i];
    return all;
  };
  Json list = Json::array();
  for (std::size_t first = 0; first < end; first += width) {
    list.push_back({first, first + width - 1, sum(a, first, first + width),
                    sum(b, first, first + width)});
  }
  return list;
}

Json to_json(const BitUse& use) {
  return {{"most_values", use.most_values},
          {"used_bits", use.used_bits},
          {"minimum", use.minimum},
          {"overlap", use.overlap}};
}

// Those that send most, and the rest together.
Json peers_of(const Study& study) {
  constexpr std::size_t kMostPeers = 24;
  std::vector<std::pair<std::int32_t, Study::Peer>> peers(study.peers.begin(), study.peers.end());
  std::stable_sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.unexpected, a.second.messages) >
           std::pair(b.second.unexpected, b.second.messages);
  });
  Json list = Json::array();
  Study::Peer rest;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    const auto& [rank, peer] = peers[i];
    if (i < kMostPeers) {
      list.push_back({std::to_string(rank), peer.messages, peer.unexpected, peer.bytes});
    } else {
      rest.messages += peer.messages;
      rest.unexpected += peer.unexpected;
      rest.bytes += peer.bytes;
    }
  }
  if (rest.messages > 0) list.push_back({"others", rest.messages, rest.unexpected, rest.bytes});
  return list;
}

Json to_json(const Study& study) {
  Json bins = Json::array();
  for (const Study::Bin& bin : study.over_time) {
    bins.push_back({bin.arrivals, bin.unexpected, bin.most_posted, bin.most_unexpected});
  }
  return {{"lengths", bars(study.posted.lengths, study.unexpected.lengths)},
          {"depths", bars(study.posted.depths, study.unexpected.depths)},
          {"over_time", bins},
          {"peers", peers_of(study)},
          {"posts", study.posts},
          {"any_source", study.any_source},
          {"any_tag", study.any_tag},
          {"probes", study.probes},
          {"cancels", study.cancels},
          {"most_waiting_bytes", study.most_waiting_bytes},
          {"tags", to_json(study.tags)},
          {"sources", to_json(study.sources)}};
}

void report(const Options& options, const Context& context) {
  std::string page = text_of(context.libraries / "report.html");
  const std::string chart = text_of(context.libraries / "chart.min.js");
  const TraceSet traces(options.trace);
  ReplayOptions wishes;
  wishes.ranks = some_ranks(traces, options.ranks);
  wishes.queues = structure_names();
  // How fingerprints of each width do with these envelopes.
  for (const char* window : {"fuzzy:8", "fuzzy:16:tag8:source8", "fuzzy:32:tag8:source24"}) {
    wishes.queues.emplace_back(window);
  }
  wishes.seconds = options.seconds;
  wishes.lines = options.lines;
  wishes.lines_program = context.libraries / "tagline_lines";
  wishes.trace = options.trace;
  const Replayed replayed = replay(traces, wishes);
  Study study(replayed.duration_ns);
  std::string recorder;
  traces.for_each(wishes.ranks, [&](const History& history) {
    progress("studying rank " + std::to_string(history.rank));
    recorder = history.library;
    study.add(history);
  });
  end_progress();

  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M", std::localtime(&now));
  Json data = {{"version", tagline_version()},
               {"date", date},
               {"trace", fs::absolute(options.trace).string()},
               {"recorder", recorder},
               {"ranks_in_trace", traces.ranks().size()},
               {"replay", to_json(replayed)},
               {"study", to_json(study)}};
  // In a script nothing may look like its end. Names of files need not be UTF-8.
  std::string json = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos;) {
    json.replace(at, 1, "\\u003c");
  }
  replace(page, "/* chart.min.js */", chart);
  replace(page, "/* figures */ null", json);

  std::ofstream file(options.output, std::ios::binary);
  file << page;
  file.close();
  if (!file) throw Error(options.output.string() + " cannot be written");
  std::printf("%s\n%s: %zu ranks, %.0f KiB\n", replayed.verdict().c_str(), options.output.c_str(),
              replayed.ranks.size(), static_cast<double>(page.size()) / 1024);
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "one page about a trace: list lengths, depths, peers, bits, and what would help");
  command->add_option("trace", options->trace, "folder, one .tagtrace or one .csv")->required();
  command->add_option("-o,--output", options->output, "the page")->capture_default_str();
  command
      ->add_option("--ranks", options->ranks,
                   "ranks to look at, 0,5,7; default: all, or 16 spread over more")
      ->delimiter(',');
  command->add_option("--seconds", options->seconds, "to spend on timing")->capture_default_str();
  command->add_flag("!--no-lines", options->lines, "do not count cache lines");
  command->footer(
      "Examples:\n"
      "  tagline report run1\n"
      "  tagline report run1 --ranks 0 -o rank0.html\n"
      "\n"
      "The page is one file that any browser shows, with no network.");
  command->callback([options, &context] { report(*options, context); });
}

}  // namespace tagline::tools
