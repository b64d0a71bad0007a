// SPDX-License-Identifier: BSD-3-Clause
//
// Reads what match/trace.hpp describes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "match/tagline.h"
#include "match/trace.hpp"

namespace tagline::tools {

// One record, in the engine's words. Which fields count depends on the kind.
struct TraceEvent {
  TraceKind kind = TraceKind::end;
  bool flag = false;  // probe: found; post: queued
  std::uint64_t context = 0;
  std::int32_t source = TAGLINE_ANY_SOURCE;  // send: destination
  std::int32_t tag = TAGLINE_ANY_TAG;
  std::uint64_t value = 0;  // bytes, times, receives ago, number
  std::int64_t ns = 0;      // since the start that all ranks share, or since the first record
  // context
  std::uint64_t id = 0;
  std::uint64_t ranks = 0;
  std::uint64_t own_rank = 0;
  std::uint64_t matcher = 0;

  // What happened, as opposed to what the writer says about the trace.
  bool is_record() const { return kind != TraceKind::clock && kind != TraceKind::lost; }
};

// A file of one process, mapped. Throws std::runtime_error with a sentence that names the
// file for what is no trace or of another version.
class TraceFile {
 public:
  explicit TraceFile(const std::filesystem::path& path);
  ~TraceFile();
  TraceFile(TraceFile&& other) noexcept;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const TraceHeader& header() const { return header_; }
  std::uint64_t records() const { return records_; }
  std::uint64_t bytes() const { return used_; }
  std::uint64_t lost() const { return lost_; }  // records that were not written
  bool cut() const { return cut_; }             // the process did not end its trace
  std::int64_t first_ns() const;
  std::int64_t last_ns() const;

  // The moment that nanoseconds count from; 0: the first record.
  void set_start(std::int64_t monotonic_ns) { start_ns_ = monotonic_ns; }

  // Hands every record to visit(const TraceEvent&).
  template <class Visit>
  void for_each(Visit visit) const {
    Cursor cursor = begin();
    TraceEvent event;
    while (next(cursor, event)) visit(static_cast<const TraceEvent&>(event));
  }

 private:
  struct Anchor {
    std::uint64_t ticks;
    std::uint64_t ns;
  };
  struct Cursor {
    const unsigned char* at;
    std::uint64_t ticks;
    std::size_t anchor;  // the last one at or before
  };
  Cursor begin() const;
  bool next(Cursor& cursor, TraceEvent& event) const;
  std::int64_t nanoseconds(std::uint64_t ticks, std::size_t anchor) const;
  void scan();

  std::filesystem::path path_;
  const unsigned char* data_ = nullptr;
  std::size_t size_ = 0;
  TraceHeader header_;
  std::vector<Anchor> anchors_;
  std::uint64_t records_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t last_ticks_ = 0;
  bool cut_ = true;
  std::int64_t start_ns_ = 0;
};

}  // namespace tagline::tools
