// SPDX-License-Identifier: BSD-3-Clause
//
// tagline tune: measures this machine and writes what matchers are to be made of.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include "bench/report.hpp"
#include "commands.hpp"
#include "profile_place.hpp"
#include "tune.hpp"
#include "uses.hpp"

namespace tagline::tools {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string effort = "low";
  double seconds = 0;
  fs::path output;
};

// The old file is there, whole, until the new one is.
void write(const fs::path& path, const std::string& text) {
  const auto fail = [&](const char* what) {
    throw Error(path.string() + " cannot be written: " + what + " (" + std::strerror(errno) +
                "). -o FILE names another place; what was measured is lost");
  };
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const std::string fresh = path.string() + "." + std::to_string(getpid());
  const int file = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) fail("no file can be made there");
  std::size_t done = 0;
  bool written = true;
  while (written && done < text.size()) {
    const ssize_t bytes = ::write(file, text.data() + done, text.size() - done);
    written = bytes >= 0 || errno == EINTR;
    if (bytes > 0) done += static_cast<std::size_t>(bytes);
  }
  written = written && fsync(file) == 0;
  written = close(file) == 0 && written;
  if (!written || std::rename(fresh.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(fresh.c_str());
    errno = reason;
    fail("is the disk full?");
  }
}

extern "C" void on_interrupt(int) {
  constexpr char kText[] = "\ntagline: stopped, nothing was written\n";
  // What cannot be said now is not worth more.
  [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(130);
}

std::string now() {
  const std::time_t time = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&time));
  return text;
}

void print(const Tuned& tuned) {
  std::printf("%s\n", tuned.group.threads ? "Matchers for several threads" : "Matchers for one thread");
  for (const Use& use : tuned.group.uses) std::printf("  %-11s %s\n", use.name, use.what);
  bench::Table table("Nanoseconds per match: median (10th .. 90th percentile of rounds)");
  std::vector<std::string> header = {"queue", "instructions"};
  for (const Use& use : tuned.group.uses) header.emplace_back(use.name);
  header.emplace_back("rounds");
  table.header(header);
  for (const Candidate& candidate : tuned.candidates) {
    std::vector<std::string> row = {candidate.queue, candidate.isa};
    for (const Use& use : tuned.group.uses) {
      row.push_back(bench::spread_cell(bench::spread_of(candidate.ns.at(use.name)), "%.3g"));
    }
    row.push_back(std::to_string(candidate.rounds()) + (candidate.aborted ? ", aborted" : ""));
    table.row(row);
  }
  std::fputs(table.text().c_str(), stdout);
  if (!tuned.passed_over.empty()) {
    const Candidate& next = tuned.passed_over.front();
    std::printf("By the model the %zu others are slower or alike; the first of them is %s on %s with "
                "%.0f ns where the best has %.0f.\n",
                tuned.passed_over.size(), next.queue.c_str(), next.isa.c_str(), next.model_ns,
                std::min_element(tuned.candidates.begin(), tuned.candidates.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.model_ns < b.model_ns;
                                 })->model_ns);
  }
  std::printf("\n");
}

void print(const std::vector<Advice>& advices) {
  bench::Table table("What to use: kinds of matchers, time as a multiple of the default's, over all runs");
  table.header({"kind", "queue", "instructions", "times the default's", "best other", "its time", "worst use"});
  bool all_default = true;
  bool one_looks_faster = false;
  for (const Advice& advice : advices) {
    const auto cell = [](const ProfileScore& score) {
      return bench::spread_cell({score.median, score.low, score.high, score.rounds}, "%.2f");
    };
    all_default = all_default && advice.is_default;
    one_looks_faster = one_looks_faster || (advice.is_default && !advice.next.queue.empty() &&
                                            advice.next.median <= kWorthwhile);
    table.row({advice.score.kind, advice.score.queue, advice.score.isa,
               advice.is_default ? "the default" : cell(advice.score),
               advice.next.queue.empty() ? "-" : advice.next.queue + " on " + advice.next.isa,
               advice.next.queue.empty() ? "-" : cell(advice.next),
               advice.next.queue.empty() ? "-" : bench::format("%.2f", advice.next.worst)});
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("Another than the default is chosen if it takes at most %.2f times as long, is faster "
              "in nine of ten\nrounds of every run, and nowhere takes %.1f times as long.%s\n",
              kWorthwhile, kTolerable, all_default ? " Nothing here is." : "");
  if (one_looks_faster) {
    std::printf("Where another looks faster all the same, rounds disagree or one use suffers: a run "
                "on an idle machine may tell.\n");
  } else if (all_default) {
    std::printf("You need no profile on this machine.\n");
  }
}

void tune_command(const Options& options) {
  const Effort* effort = nullptr;
  for (const Effort& each : kEfforts) {
    if (options.effort == each.name) effort = &each;
  }
  const fs::path path = options.output.empty() ? usual_profile() : options.output;
  // Known before it takes minutes.
  Profile profile;
  if (fs::exists(path)) profile = read_profile(path.string());
  const std::string machine_name = this_machine();
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  // Candidates name theirs.
  unsetenv("TAGLINE_ISA");

  const double seconds = options.seconds > 0 ? options.seconds : effort->seconds;
  ProfileRun run{now(), effort->name, seconds, tagline_version(), {}, {}};
  std::vector<Group> all = groups();
  const bool has_threads = processing_units() > 1;
  if (!has_threads) all.pop_back();
  std::printf("%s, effort %s: about %.0f s\n\n", machine_name.c_str(), effort->name, seconds);
  std::fflush(stdout);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double count = static_cast<double>(all.size());
    const Tuned tuned = tune(all[i], effort->measured, seconds / count, [&](double done) {
      progress_bar("measuring", (static_cast<double>(i) + done) / count);
    });
    end_progress();
    print(tuned);
    add_to(run, tuned);
  }

  auto machine = std::find_if(profile.machines.begin(), profile.machines.end(),
                              [&](const auto& each) { return each.name == machine_name; });
  if (machine == profile.machines.end()) {
    machine = profile.machines.insert(machine, MachineProfile{machine_name, {}, {}});
  }
  machine->runs.push_back(std::move(run));
  const std::vector<Advice> advices = advise(*machine, tagline_version());
  machine->choices.clear();
  for (const Advice& advice : advices) {
    machine->choices.push_back({advice.score.kind, advice.score.queue, advice.score.isa});
  }
  print(advices);
  if (!has_threads) {
    std::printf("Matchers for several threads were not measured: this process has one processing unit.\n");
  }
  write(path, profile.text());
  const std::string place = fs::absolute(path).string();
  std::printf("\n%s: %zu runs on this machine. To use it:\n"
              "  Open MPI   --mca pml tagline --mca pml_tagline_profile %s\n"
              "  others     TAGLINE_PROFILE=%s\n",
              place.c_str(), machine->runs.size(), place.c_str(), place.c_str());
}

}  // namespace

fs::path usual_profile() {
  const char* configuration = std::getenv("XDG_CONFIG_HOME");
  if (configuration != nullptr && *configuration == '/') {
    return fs::path(configuration) / "tagline" / "profile";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    throw Error("neither XDG_CONFIG_HOME nor HOME is set: -o FILE says where the profile is");
  }
  return fs::path(home) / ".config" / "tagline" / "profile";
}

void add_tune(CLI::App& app, Context&) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("tune", "measure this machine: which structure is best for which matcher");
  std::vector<std::string> names;
  std::string help = "how long it may take:";
  for (const Effort& effort : kEfforts) {
    names.emplace_back(effort.name);
    help += std::string(names.size() > 1 ? ", " : " ") + effort.name + " " +
            bench::format("%.0f s", effort.seconds);
  }
  command->add_option("--effort", options->effort, help)
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "another time")->check(CLI::Range(0.1, 86400.0));
  command->add_option("-o,--output", options->output,
                      "the profile; default: tagline/profile in $XDG_CONFIG_HOME or ~/.config");
  command->footer(
      "Examples:\n"
      "  tagline tune\n"
      "  tagline tune --effort high -o node.profile\n"
      "  TAGLINE_PROFILE=node.profile tagline info       what does it choose?\n"
      "  mpirun --mca pml tagline --mca pml_tagline_profile $PWD/node.profile -n 4 ./app\n"
      "\n"
      "Kinds of matchers, by what is known when one is made: single or threads (may several\n"
      "threads call it?), exact or any (are wildcards promised not to come? MPI_Info keys\n"
      "mpi_assert_no_any_source, mpi_assert_no_any_tag), few or many (up to 64 ranks?).\n"
      "A model ranks all candidates, the first ones are measured in turns beside the default, and\n"
      "those that are clearly slower are given up. A run adds to the profile that is there, and\n"
      "all runs of this version on this kind of machine count. What is named explicitly (queue,\n"
      "instruction set, threading) wins over the profile. Measure on a machine that is not busy.");
  command->callback([options] { tune_command(*options); });
}

}  // namespace tagline::tools
