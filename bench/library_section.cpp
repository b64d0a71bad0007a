// SPDX-License-Identifier: BSD-3-Clause
#include "library_section.hpp"

#include <algorithm>
#include <set>

#include "mpirun.hpp"

namespace bench {
namespace {

constexpr const char* kPlain = "plain_list";
constexpr const char* kLinear = "linear";

}  // namespace

std::vector<double> LibrarySection::Point::all() const {
  std::vector<double> samples;
  for (const auto& [turn, some] : turns) samples.insert(samples.end(), some.begin(), some.end());
  return samples;
}

std::string LibrarySection::take_turn(const std::filesystem::path& programs) {
  const int turn = turns_++;
  const JobResult job = run_job(
      {(programs / "library").string()}, std::chrono::seconds(30), [&](const std::string& line) {
        const Record point = Record::parse(line);
        const Key key{point["case"], point["depth"], point["structure"]};
        Point& mine = points_[key];
        mine.isa = point["isa"];
        mine.turns[turn] = point["samples_ns"].get<std::vector<double>>();
        if (std::find(structures_.begin(), structures_.end(), key.structure) == structures_.end()) {
          structures_.push_back(key.structure);
        }
      });
  return job.reason;
}

Spread LibrarySection::ratio(const Key& key, const std::string& base) const {
  const Point& ours = points_.at(key);
  const Point& other = points_.at({key.which, key.depth, base});
  std::vector<double> ratios;
  for (const auto& [turn, samples] : ours.turns) {
    const auto found = other.turns.find(turn);
    if (found == other.turns.end()) continue;
    ratios.push_back(spread_of(samples).median / spread_of(found->second).median);
  }
  return spread_of(ratios);
}

void LibrarySection::add_records(const Record& common, std::vector<Record>& records) const {
  for (const auto& [key, point] : points_) {
    Record record = common;
    record["measure"] = "append_and_match";
    record["structure"] = key.structure;
    record["isa"] = point.isa;
    record["case"] = key.which;
    record["cache"] = "hot";
    record["depth_entries"] = key.depth;
    const Spread all = spread_of(point.all());
    record["jobs"] = point.turns.size();
    record["samples"] = all.samples;
    set_spread(record, "append_and_match_ns", all);
    for (const char* const base : {kLinear, kPlain}) {
      set_spread(record, std::string("time_relative_to_") + base, ratio(key, base));
    }
    records.push_back(std::move(record));
  }
}

std::string LibrarySection::tables() const {
  std::set<std::pair<std::string, int>> places;
  for (const auto& [key, point] : points_) places.emplace(key.which, key.depth);
  std::string text;
  for (const char* const which : {"posted", "unexpected"}) {
    Table table(std::string("The library alone, ") + which +
                ": ns per append + match of the newest entry, time / time of another structure");
    std::vector<std::string> header{"depth"};
    for (const std::string& structure : structures_) header.push_back(structure + " ns");
    for (const std::string& structure : structures_) {
      if (structure == kLinear) {
        header.push_back("linear / plain_list");
      } else if (structure != kPlain) {
        header.push_back(structure + " / linear");
      }
    }
    table.header(header);
    for (const auto& [its_case, depth] : places) {
      if (its_case != which) continue;
      std::vector<std::string> row{std::to_string(depth)};
      for (const std::string& structure : structures_) {
        const Spread all = spread_of(points_.at({which, depth, structure}).all());
        row.push_back(spread_cell(all, all.median < 100 ? "%.1f" : "%.0f"));
      }
      for (const std::string& structure : structures_) {
        if (structure == kPlain) continue;
        const Key key{which, depth, structure};
        row.push_back(spread_cell(ratio(key, structure == kLinear ? kPlain : kLinear), "%.2f") +
                      "x");
      }
      table.row(row);
    }
    text += table.text() + "\n";
  }
  return text;
}

}  // namespace bench
