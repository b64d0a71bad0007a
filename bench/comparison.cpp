// SPDX-License-Identifier: BSD-3-Clause
#include "comparison.hpp"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

// What a measure's samples are called in a program's line and in our records.
struct Names {
  const char* samples;
  const char* field;
  const char* pattern;
};

Names names_of(const std::string& measure) {
  if (measure == "latency") return {"samples_us", "latency_us", nullptr};
  if (measure == "rate") return {"samples_per_s", "messages_per_s", "%.3g"};
  if (measure == "time") return {"samples_s", "time_s", "%.3f"};
  return {"samples_mib_per_s", "bandwidth_mib_per_s", "%.4g"};
}

const char* time_pattern(double us) { return us < 10 ? "%.3f" : us < 100 ? "%.2f" : "%.1f"; }

std::string take_json(const std::string& line, int turn, Runner& runner) {
  const Record point = Record::parse(line, nullptr, false);
  if (!point.is_object() || !point.contains("measure")) return "";  // somebody else's words
  if (point["measure"] == "setup") {
    runner.library = point["library"];
    runner.sweep_bytes = point["sweep_bytes"];
    return "";
  }
  const Key key{point["measure"], point["case"], point["cache"], point["depth"],
                point["message_bytes"]};
  const auto samples = point[names_of(key.measure).samples].get<std::vector<double>>();
  if (!samples.empty()) runner.results[key][turn] = {samples, point.value("line_ns", 0.0)};
  return key.measure + " " + key.which + " " + key.cache + " " + std::to_string(key.depth) + " " +
         std::to_string(key.message_bytes);
}

}  // namespace

bool more_is_better(const Key& key) { return key.measure != "latency" && key.measure != "time"; }

std::vector<double> all_samples(const Turns& turns) {
  std::vector<double> all;
  for (const auto& [turn, sample] : turns) {
    all.insert(all.end(), sample.values.begin(), sample.values.end());
  }
  return all;
}

namespace {

bool same_placement(const Sample& a, const Sample& b) {
  return std::max(a.line_ns, b.line_ns) <= 1.5 * std::min(a.line_ns, b.line_ns);
}

// The nearest turn's sample of the same placement, or NULL.
const Sample* counterpart(int turn, const Sample& sample, const Turns& others) {
  constexpr int kFarthest = 3;
  for (int distance = 0; distance <= kFarthest; ++distance) {
    for (const int other : {turn - distance, turn + distance}) {
      const auto found = others.find(other);
      if (found != others.end() && same_placement(sample, found->second)) return &found->second;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<Spread> ratio(const Key& key, const Turns& base, const Turns& ours) {
  std::vector<double> ratios;
  for (const auto& [turn, sample] : ours) {
    const Sample* const other = counterpart(turn, sample, base);
    if (other == nullptr) continue;
    const double b = spread_of(other->values).median;
    const double o = spread_of(sample.values).median;
    ratios.push_back(more_is_better(key) ? o / b : b / o);
  }
  if (ratios.empty()) return std::nullopt;
  return spread_of(ratios);
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

// ---- runs ----------------------------------------------------------------

Comparison::Comparison(const Context& context, const std::vector<std::string>& names,
                       const std::string& transport) {
  const std::string ours = "tagline";
  for (const std::string& name : names) {
    Runner runner;
    if (name == "ob1") runner.configuration = ob1(transport);
    if (name == "ucx") runner.configuration = ucx();
    if (name.starts_with(ours)) {
      runner.configuration = tagline(context.components, transport);
      if (name.size() > ours.size()) {
        runner.configuration.name = name;
        runner.configuration.arguments.insert(
            runner.configuration.arguments.end(),
            {"--mca", "pml_tagline_queue", name.substr(ours.size() + 1)});
      }
      if (!std::filesystem::exists(context.components / "mca_pml_tagline.so")) {
        runner.reason =
            "the component is not built: no mca_pml_tagline.so in " + context.components.string();
      }
    }
    runners_.push_back(std::move(runner));
  }
}

Comparison::Comparison(std::vector<Configuration> configurations, std::string base)
    : base_(std::move(base)) {
  for (Configuration& configuration : configurations) {
    Runner runner;
    runner.configuration = std::move(configuration);
    runners_.push_back(std::move(runner));
  }
}

void Comparison::take_turn(const std::vector<std::string>& program, const std::string& label,
                           Seconds limit) {
  take_turn(program, label, limit, take_json);
}

void Comparison::take_turn(const std::vector<std::string>& program, const std::string& label,
                           Seconds limit, const TakeLine& take) {
  for (std::size_t i = 0; i < runners_.size(); ++i) {
    Runner& runner = runners_[turn_ % 2 == 0 ? i : runners_.size() - 1 - i];
    if (!runner.reason.empty() || interrupted()) continue;
    const std::string job = label + ", " + runner.configuration.name;
    progress(job);
    std::vector<std::string> command = mpirun_command(runner.configuration, 2);
    command.insert(command.end(), program.begin(), program.end());
    const JobResult result = run_job(command, limit, [&](const std::string& line) {
      const std::string point = take(line, turn_, runner);
      if (!point.empty()) progress(job + ": " + point);
    });
    if (!result.ok) runner.reason = result.reason;
  }
  ++turn_;
}

bool Comparison::finish() {
  bool good = true;
  for (const Runner& runner : runners_) {
    if (runner.reason.empty()) continue;
    std::fprintf(stderr, "bench: %s is left out: %s\n", runner.configuration.name.c_str(),
                 runner.reason.c_str());
    // UCX does not run everywhere; what the comparison is about has to.
    good = good && runner.configuration.name == "ucx";
  }
  std::erase_if(runners_, [](const Runner& runner) { return !runner.reason.empty(); });
  return good;
}

// ---- results -------------------------------------------------------------

const Runner* Comparison::find(const std::string& name) const {
  for (const Runner& runner : runners_) {
    if (runner.configuration.name == name) return &runner;
  }
  return nullptr;
}

const Runner* Comparison::base() const { return find(base_); }

std::set<Key> Comparison::keys() const {
  std::set<Key> keys;
  for (const Runner& runner : runners_) {
    for (const auto& [key, samples] : runner.results) keys.insert(key);
  }
  return keys;
}

std::optional<Spread> Comparison::against_base(const Runner& runner, const Key& key) const {
  const Runner* const other = base();
  if (other == nullptr || !runner.results.contains(key) || !other->results.contains(key)) {
    return std::nullopt;
  }
  return ratio(key, other->results.at(key), runner.results.at(key));
}

std::vector<Record> Comparison::records(const Record& common,
                                        const std::function<void(Record&, const Key&)>& add) const {
  std::vector<Record> records;
  for (const Runner& runner : runners_) {
    std::string arguments;
    for (const std::string& word : runner.configuration.arguments) {
      // A folder of this machine says nothing elsewhere.
      if (word.find('/') != std::string::npos) continue;
      arguments += (arguments.empty() ? "" : " ") + word;
    }
    for (const auto& [key, samples] : runner.results) {
      Record record = common;
      record["mpi_library"] = runner.library;
      record["pml"] = runner.configuration.name;
      record["mca_arguments"] = arguments;
      record["ranks"] = 2;
      record["measure"] = key.measure;
      record["case"] = key.which;
      record["cache"] = key.cache;
      if (key.cache == "cold") record["cache_sweep_bytes"] = runner.sweep_bytes;
      record["depth_entries"] = key.depth;
      record["message_bytes"] = key.message_bytes;
      add(record, key);
      const Spread all = spread_of(all_samples(samples));
      record["jobs"] = samples.size();
      record["samples"] = all.samples;
      set_spread(record, names_of(key.measure).field, all);
      if (const auto paired = against_base(runner, key)) {
        set_spread(record, "speedup_vs_" + base_, *paired);
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<std::string> Comparison::table_header(const std::string& first,
                                                  const std::string& unit) const {
  std::vector<std::string> header{first};
  for (const Runner& runner : runners_) {
    if (!runner.results.empty()) header.push_back(runner.configuration.name + " " + unit);
  }
  for (const Runner& runner : runners_) {
    if (runner.results.empty() || &runner == base()) continue;
    header.push_back(runner.configuration.name + " vs " + base_);
  }
  return header;
}

std::vector<std::string> Comparison::table_row(const std::string& first, const Key& key) const {
  std::vector<std::string> row{first};
  for (const Runner& runner : runners_) {
    if (runner.results.empty()) continue;
    const auto found = runner.results.find(key);
    if (found == runner.results.end()) {
      row.emplace_back("-");
      continue;
    }
    const Spread all = spread_of(all_samples(found->second));
    const char* const pattern = names_of(key.measure).pattern;
    row.push_back(spread_cell(all, pattern != nullptr ? pattern : time_pattern(all.median)));
  }
  for (const Runner& runner : runners_) {
    if (runner.results.empty() || &runner == base()) continue;
    const auto paired = against_base(runner, key);
    row.push_back(paired ? spread_cell(*paired, "%.2f") + "x" : "-");
  }
  return row;
}

// ---- rounds --------------------------------------------------------------

Rounds::Rounds(int wanted, int usual, std::chrono::seconds total)
    : fixed_(wanted > 0), rounds_(wanted > 0 ? wanted : usual), total_(total) {}

bool Rounds::next() {
  const Clock::time_point now = Clock::now();
  if (interrupted() || taken_ >= rounds_) return false;
  if (!fixed_ && taken_ > 0 && now + (now - round_start_) - start_ > total_) {
    end_progress();
    std::fprintf(stderr, "bench: the machine is slow or busy, stopped after round %d of %d\n",
                 taken_, rounds_);
    return false;
  }
  round_start_ = now;
  ++taken_;
  return true;
}

std::string Rounds::label() const {
  return "round " + std::to_string(taken_) + "/" + std::to_string(rounds_);
}

}  // namespace bench
