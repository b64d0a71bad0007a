// SPDX-License-Identifier: BSD-3-Clause
//
// What every benchmark hands over: flat records (JSON and CSV), a table for
// people and a plot. Nothing in here knows what was measured.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// One result: every parameter and every figure is a field of its own, with the
// unit in the field's name. Fields keep the order in which they were set.
using Record = nlohmann::ordered_json;

// Middle and spread of samples: median, 10th and 90th percentile.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
  std::size_t samples = 0;
};
Spread spread_of(std::vector<double> samples);  // at least one

// Sets PREFIX_median, PREFIX_p10 and PREFIX_p90.
void set_spread(Record& record, const std::string& prefix, const Spread& spread);

// What each record of a run starts with: benchmark, commit, time, machine.
Record environment(const std::string& benchmark, const std::string& commit);

std::string format(const char* pattern, double value);  // one printf conversion

// "median (low .. high)"
std::string spread_cell(const Spread& spread, const char* pattern);

// A table with a title, aligned to the right, the first column included.
class Table {
 public:
  explicit Table(std::string title) : title_(std::move(title)) {}
  void header(std::vector<std::string> cells) { header_ = std::move(cells); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::string title_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// What a run is meant to reach, and whether it did.
struct Goal {
  std::string goal;
  std::string measured;
  std::string met;  // "yes", "no" or "not measured"
};
std::string goal_table(const std::string& title, const std::vector<Goal>& goals);

// A goal over many points: at each the median is at least so much.
class Floor {
 public:
  Floor(std::string goal, double least) : goal_(std::move(goal)), least_(least) {}
  void note(const std::string& where, const Spread& value);
  Goal goal() const;

 private:
  std::string goal_;
  double least_;
  std::string where_;  // the worst one is
  Spread worst_;
  std::size_t points_ = 0;
  std::size_t missed_ = 0;
};

struct Point {
  double x, y, low, high;
};

struct Series {
  std::string name;
  std::vector<Point> points;  // by ascending x
};

struct Panel {
  std::string title;
  std::vector<Series> series;  // a name has the same colour in every panel
};

// Panels side by side on logarithmic axes; x = 0 has a place of its own at the left.
struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::size_t columns = 4;
  std::vector<Panel> panels;
};

// Fields that some records lack stay empty.
std::string json_text(const std::vector<Record>& records);
std::string csv_text(const std::vector<Record>& records);

// Writes DIRECTORY/NAME.json and NAME.csv. Each file is replaced as a whole.
void write_records(const std::filesystem::path& directory, const std::string& name,
                   const std::vector<Record>& records);

// Writes FILE by gnuplot. False, and why on stderr, if that is not possible.
bool write_plot(const std::filesystem::path& file, const Plot& plot);

}  // namespace bench
