// SPDX-License-Identifier: BSD-3-Clause
// Histories written by hand or by other programs.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

#include "history.hpp"

namespace tagline::tools {

namespace {

using Kind = Operation::Kind;

constexpr struct {
  const char* name;
  Kind kind;
} kEvents[] = {{"post", Kind::post},
               {"arrive", Kind::arrive},
               {"probe", Kind::probe},
               {"claim", Kind::claim},
               {"cancel", Kind::cancel_envelope}};

std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '"'; };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  const auto first = std::find_if_not(text.begin(), text.end(), is_space);
  return {first, text.end()};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    cells.push_back(trimmed(line.substr(at, comma - at)));
    at = comma + 1;
  }
  return cells;
}

}  // namespace

std::vector<History> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": " + std::strerror(errno));
  std::size_t number = 0;
  const auto wrong = [&](const std::string& what) {
    return std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + what);
  };

  std::string line;
  const auto next_line = [&] {
    while (std::getline(file, line)) {
      ++number;
      const std::string text = trimmed(line);
      if (!text.empty() && text[0] != '#') return true;
    }
    return false;
  };
  if (!next_line()) throw wrong("the file is empty: a line with the names of columns comes first");
  std::map<std::string, std::size_t> columns;
  const std::vector<std::string> names = cells_of(line);
  for (std::size_t i = 0; i < names.size(); ++i) columns[names[i]] = i;
  for (const char* needed : {"event", "source", "tag"}) {
    if (!columns.contains(needed)) {
      throw wrong(std::string("no column \"") + needed +
                  "\": the first line names the columns, of which event, source and tag are "
                  "needed and rank, time_ns, context and bytes are known");
    }
  }

  std::map<std::uint32_t, History> histories;
  std::vector<std::string> cells;
  const auto value_of = [&](const char* column, std::int64_t otherwise) {
    const auto at = columns.find(column);
    if (at == columns.end() || at->second >= cells.size()) return otherwise;
    const std::string& text = cells[at->second];
    if (text.empty()) return otherwise;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
      throw wrong(std::string(column) + " \"" + text + "\" is no whole number");
    }
    return value;
  };
  const auto is_any = [&](const char* column) {
    const auto at = columns.find(column);
    return at->second < cells.size() && cells[at->second] == "*";
  };
  while (next_line()) {
    cells = cells_of(line);
    const std::string event = cells.size() > columns["event"] ? cells[columns["event"]] : "";
    const auto* const known = std::find_if(std::begin(kEvents), std::end(kEvents),
                                           [&](const auto& each) { return event == each.name; });
    if (known == std::end(kEvents)) {
      throw wrong("event \"" + event + "\": known are post, arrive, probe, claim and cancel");
    }
    Operation operation = {};
    operation.kind = known->kind;
    const bool any_source = is_any("source");
    const bool any_tag = is_any("tag");
    operation.source =
        any_source ? TAGLINE_ANY_SOURCE : static_cast<std::int32_t>(value_of("source", -1));
    operation.tag = any_tag ? TAGLINE_ANY_TAG : static_cast<std::int32_t>(value_of("tag", 0));
    if (!any_source && operation.source < 0) {
      throw wrong("a source is a rank from 0 on, or * for any");
    }
    if (operation.kind == Kind::arrive && (any_source || any_tag)) {
      throw wrong("a message that arrives has a source and a tag, not *");
    }
    History& history = histories[static_cast<std::uint32_t>(value_of("rank", 0))];
    operation.context = static_cast<std::uint32_t>(value_of("context", 0));
    operation.bytes = static_cast<std::uint64_t>(value_of("bytes", 0));
    operation.ns =
        value_of("time_ns", history.operations.empty() ? 0 : history.operations.back().ns + 1);
    if (!history.operations.empty() && operation.ns < history.operations.back().ns) {
      throw wrong("time_ns goes back: the lines of a rank have to be in order");
    }
    if (operation.context > 1'000'000) throw wrong("contexts are small numbers, from 0 on");
    operation.number = operation.kind == Kind::post ? history.posts : 1;
    history.posts += operation.kind == Kind::post;
    history.arrivals += operation.kind == Kind::arrive;
    history.operations.push_back(operation);
    if (history.context_ranks.size() <= operation.context) {
      history.context_ranks.resize(operation.context + 1);
    }
  }
  std::vector<History> all;
  for (auto& [rank, history] : histories) {
    history.rank = rank;
    history.origin = TraceOrigin::matching;  // arrivals stand where they took place
    history.source = path.filename().string();
    history.library = "CSV";
    history.duration_ns = history.operations.back().ns;
    all.push_back(std::move(history));
  }
  if (all.empty()) throw wrong("no events");
  return all;
}

}  // namespace tagline::tools
