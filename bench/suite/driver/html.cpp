// SPDX-License-Identifier: BSD-3-Clause
//
// The report: one file that needs nothing beside it. Plots are the SVG of gnuplot, the
// records lie in it as JSON.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "sweep.hpp"

namespace bench {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// The drawing alone: an XML head is not allowed inside HTML. Names inside it are
// gnuplot's and the same in every plot, so each gets a prefix of its own.
std::string drawing(const std::filesystem::path& file, const std::string& prefix) {
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto begin = text.find("<svg");
  if (begin == std::string::npos) return "";
  text.erase(0, begin);
  // As wide as it was drawn, or a plot of one panel would fill the page.
  if (const auto box = text.find("viewBox=\"0 0 "); box != std::string::npos) {
    const auto width = box + std::string("viewBox=\"0 0 ").size();
    text.insert(box, "width=\"" + text.substr(width, text.find(' ', width) - width) + "\" ");
  }
  for (const char* const mark : {"id='", "id=\"", "href='#", "href=\"#", "url(#"}) {
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
      at += std::string(mark).size();
      text.insert(at, prefix);
    }
  }
  return text;
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Benchmark suite</title><style>
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1400px;padding:0 1em;color:#222}
pre{font:12px/1.35 ui-monospace,monospace;background:#f6f6f6;padding:1em;overflow:auto}
svg{max-width:100%;height:auto}table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:left}
h2{border-top:1px solid #ccc;padding-top:.8em}.failed{color:#b00}
</style></head><body>
)";

}  // namespace

void write_html(const std::filesystem::path& file, const std::string& commit,
                const std::vector<std::pair<const Sweep*, SweepResult>>& results) {
  std::ostringstream out;
  out << kHead << "<h1>Benchmark suite</h1>\n<table>\n";
  const Record machine = environment("all", commit);
  for (const char* const field : {"time_utc", "commit", "cpu_model", "cpus", "kernel"}) {
    const Record& value = machine[field];
    out << "<tr><th>" << field << "</th><td>"
        << escaped(value.is_string() ? value.get<std::string>() : value.dump()) << "</td></tr>\n";
  }
  std::vector<std::string> libraries;
  for (const auto& [sweep, result] : results) {
    for (const Record& record : result.records) {
      const std::string text =
          record.value("mpi", "") + ": " + record.value("mpi_library", std::string());
      if (record.contains("mpi_library") &&
          std::find(libraries.begin(), libraries.end(), text) == libraries.end()) {
        libraries.push_back(text);
      }
    }
  }
  for (const std::string& library : libraries) {
    out << "<tr><th>MPI</th><td>" << escaped(library) << "</td></tr>\n";
  }
  out << "</table>\n<ul>\n";
  for (const auto& [sweep, result] : results) {
    out << "<li><a href=\"#" << sweep->name << "\">" << sweep->name
        << "</a>: " << escaped(sweep->about) << ", "
        << result.records.size() - result.failures.size() << " records";
    if (!result.failures.empty()) {
      out << ", <span class=\"failed\">" << result.failures.size()
          << " points without a result</span>";
    }
    out << "</li>\n";
  }
  out << "</ul>\n";
  for (const auto& [sweep, result] : results) {
    out << "<h2 id=\"" << sweep->name << "\">" << sweep->name << "</h2>\n<p>"
        << escaped(sweep->about) << "</p>\n";
    for (std::size_t i = 0; i < result.plots.size(); ++i) {
      out << drawing(result.plots[i], sweep->name + std::to_string(i) + "-") << '\n';
    }
    out << "<details open><summary>Tables</summary><pre>" << escaped(result.tables)
        << "</pre></details>\n<details><summary>Records (JSON)</summary><pre>"
        << escaped(json_text(result.records)) << "</pre></details>\n";
  }
  out << "</body></html>\n";
  std::ofstream to(file, std::ios::binary);
  to << out.str();
  to.close();
  if (!to) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace bench
