// SPDX-License-Identifier: BSD-3-Clause
#include "match/profile.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

namespace tagline {

namespace {

constexpr char kTitle[] = "tagline profile ";
constexpr char kVersion[] = "1";
constexpr std::uintmax_t kMostBytes = 16 << 20;  // a run takes a few thousand

// One line, cut at blanks, and where it stands.
class Line {
 public:
  Line(const std::string& path, unsigned number, const std::string& text)
      : path_(path), number_(number), words_(text) {
    words_ >> name;
  }

  std::string word() {
    std::string text;
    if (!(words_ >> text)) refuse("it is too short");
    return text;
  }
  double number() {
    const std::string text = word();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != '\0' || !std::isfinite(value) || value < 0) refuse(text + " is not a number");
    return value;
  }
  unsigned count() {
    const double value = number();
    if (value > 1e9 || value != std::floor(value)) refuse("a count is not a whole number");
    return static_cast<unsigned>(value);
  }
  std::string rest() {
    std::string text;
    std::getline(words_ >> std::ws, text);
    if (text.empty()) refuse("it is too short");
    return text;
  }
  void end() {
    std::string more;
    if (words_ >> more) refuse("nothing belongs behind " + name + "'s fields");
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadProfile("the profile " + path_ + " is damaged in line " + std::to_string(number_) +
                     ": " + why + ". Delete it and run `tagline tune` again");
  }

  std::string name;

 private:
  const std::string& path_;
  const unsigned number_;
  std::istringstream words_;
};

void read_line(Line& line, Profile& profile) {
  std::vector<MachineProfile>& machines = profile.machines;
  if (line.name == "machine") {
    machines.emplace_back().name = line.rest();
    return;
  }
  if (machines.empty()) line.refuse("no machine is named above it");
  std::vector<ProfileRun>& runs = machines.back().runs;
  if (line.name == "run") {
    ProfileRun& run = runs.emplace_back();
    run.date = line.word();
    run.effort = line.word();
    run.seconds = line.number();
    run.version = line.word();
  } else if (line.name == "choose") {
    ProfileChoice& choice = machines.back().choices.emplace_back();
    choice = {line.word(), line.word(), line.word()};
  } else if (runs.empty()) {
    line.refuse("no run is named above it");
  } else if (line.name == "time") {
    ProfileTime& time = runs.back().times.emplace_back();
    time = {line.word(),   line.word(),   line.word(),  line.number(),
            line.number(), line.number(), line.count()};
  } else if (line.name == "score") {
    ProfileScore& score = runs.back().scores.emplace_back();
    score = {line.word(),   line.word(),   line.word(),   line.number(),
             line.number(), line.number(), line.number(), line.count()};
  } else {
    line.refuse("\"" + line.name + "\" is unknown");
  }
  line.end();
}

}  // namespace

const ProfileChoice* MachineProfile::find(const std::string& kind) const {
  for (const ProfileChoice& choice : choices) {
    if (choice.kind == kind) return &choice;
  }
  return nullptr;
}

const MachineProfile* Profile::find(const std::string& machine) const {
  for (const MachineProfile& each : machines) {
    if (each.name == machine) return &each;
  }
  return nullptr;
}

Profile read_profile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code unknown;
  if (file && (!std::filesystem::is_regular_file(path, unknown) ||
               std::filesystem::file_size(path, unknown) > kMostBytes)) {
    throw BadProfile(path + " is not a profile: it is no file, or too long for one. "
                            "`tagline tune -o FILE` makes one");
  }
  if (!file) {
    throw BadProfile("the profile " + path + " cannot be read (" + std::strerror(errno) +
                     "). `tagline tune -o " + path + "` makes one");
  }
  std::string text;
  if (!std::getline(file, text) || text.rfind(kTitle, 0) != 0) {
    throw BadProfile(path + " is not a profile: its first line is not \"" + kTitle + kVersion +
                     "\". `tagline tune -o FILE` makes one");
  }
  const std::string version = text.substr(sizeof kTitle - 1);
  if (version != kVersion) {
    throw BadProfile("the profile " + path + " is of version " + version +
                     ", and this tagline reads version " + kVersion +
                     ". Make another with this one's `tagline tune -o FILE`");
  }
  Profile profile;
  for (unsigned number = 2; std::getline(file, text); ++number) {
    Line line(path, number, text);
    if (line.name.empty() || line.name[0] == '#') continue;
    read_line(line, profile);
    // A line that was cut could be a shorter number.
    if (file.eof()) line.refuse("the file ends within it");
  }
  return profile;
}

std::string Profile::text() const {
  std::string text = std::string(kTitle) + kVersion +
                     "\n# Measured by `tagline tune`, which adds to it. Times are nanoseconds per "
                     "match: median, 10th and 90th\n# percentile, rounds. Scores are times as "
                     "multiples of the default's, and the same where it is worst.\n";
  char line[512];
  const auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    text += line;
  };
  for (const MachineProfile& machine : machines) {
    text += "\nmachine " + machine.name + "\n";
    for (const ProfileRun& run : machine.runs) {
      add("run %s %s %.1f %s\n", run.date.c_str(), run.effort.c_str(), run.seconds,
          run.version.c_str());
      for (const ProfileTime& time : run.times) {
        add("time %-17s %-18s %-8s %9.2f %9.2f %9.2f %4u\n", time.use.c_str(), time.queue.c_str(),
            time.isa.c_str(), time.median, time.low, time.high, time.rounds);
      }
      for (const ProfileScore& score : run.scores) {
        add("score %-17s %-18s %-8s %7.3f %7.3f %7.3f %7.3f %4u\n", score.kind.c_str(),
            score.queue.c_str(), score.isa.c_str(), score.median, score.low, score.high,
            score.worst, score.rounds);
      }
    }
    for (const ProfileChoice& choice : machine.choices) {
      add("choose %-17s %-18s %s\n", choice.kind.c_str(), choice.queue.c_str(),
          choice.isa.c_str());
    }
  }
  return text;
}

std::string this_machine() {
  std::string processor = "an unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    // x86 has a name, ARM the number of its part.
    if (line.rfind("model name", 0) != 0 && line.rfind("CPU part", 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 >= line.size()) continue;
    processor = line.substr(colon + 2);
    while (processor.back() == ' ') processor.pop_back();
    break;
  }
  return std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " units of " + processor;
}

std::string profile_kind(bool threads, bool exact, bool many) {
  return std::string(threads ? "threads" : "single") + (exact ? "/exact" : "/any") +
         (many ? "/many" : "/few");
}

std::string profile_kind(const tagline_options& options) {
  constexpr unsigned kExact = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG;
  return profile_kind(options.threads != 0, (options.hints & kExact) == kExact,
                      options.ranks <= 0 || options.ranks > kFewRanks);
}

namespace {

// Of the processes that Open MPI's or MPICH's mpirun has started on a machine, not the first.
bool leaves_reports_to_another() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}) {
    const char* rank = std::getenv(name);
    if (rank != nullptr && std::strcmp(rank, "0") != 0) return true;
  }
  return false;
}

}  // namespace

void report_profile(const std::string& path, const std::string& sentence) {
  if (leaves_reports_to_another()) return;
  static std::mutex lock;
  static std::set<std::string> reported;
  const std::lock_guard guard(lock);
  if (!reported.insert(path).second) return;
  std::fprintf(stderr, "tagline: the defaults are used: %s.\n", sentence.c_str());
}

const ProfileChoice* profile_choice(const std::string& path, const std::string& kind) {
  // Communicators come and go: read once, and kept as long as the process lives.
  static std::mutex lock;
  static std::map<std::string, std::unique_ptr<const MachineProfile>> machines;
  const std::lock_guard guard(lock);
  const auto [at, is_new] = machines.try_emplace(path);
  if (is_new) {
    try {
      const Profile profile = read_profile(path);
      const std::string machine = this_machine();
      if (const MachineProfile* found = profile.find(machine)) {
        at->second = std::make_unique<const MachineProfile>(*found);
      } else {
        report_profile(path, "the profile " + path + " says nothing about this machine (" +
                                 machine + "). `tagline tune -o " + path + "` on it adds that");
      }
    } catch (const BadProfile& error) {
      report_profile(path, error.what());
    }
  }
  return at->second == nullptr ? nullptr : at->second->find(kind);
}

}  // namespace tagline
