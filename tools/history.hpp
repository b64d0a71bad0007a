// SPDX-License-Identifier: BSD-3-Clause
//
// What the matcher of one rank went through, in order: from a matcher's trace as it is, from
// a trace of calls with the arrivals added, from CSV.
//
// Arrivals of a trace of calls. A message arrives when its sender's trace says that it was
// sent, but not later than what received it completed. For senders that were not recorded,
// and between groups, that completion is all there is. The order of messages of one sender
// is the true one; between senders it is as good as the clocks are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace_reader.hpp"

namespace tagline::tools {

struct Operation {
  enum class Kind : std::uint8_t {
    post,
    arrive,
    probe,
    claim,
    cancel,           // receive `number`, with the envelope it was posted with
    cancel_envelope,  // the oldest one with the envelope
    drop_context,
    drop_source,
  };
  Kind kind;
  std::uint32_t context;  // counted from 0 in the rank
  std::int32_t source;
  std::int32_t tag;
  std::int64_t ns;
  std::uint64_t bytes;   // 0: not known, or none
  std::uint64_t number;  // post: of the receive; cancel: which; probe: how often
};

struct History {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;  // of the job; 0: not known
  TraceOrigin origin = TraceOrigin::calls;
  std::string source;   // file
  std::string library;  // who recorded
  std::vector<Operation> operations;
  std::vector<std::uint64_t> context_ranks;  // by context; 0: not known
  std::uint64_t posts = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t guessed_arrivals = 0;  // placed at the completion of their receive
  std::uint64_t lost = 0;              // records the disk had no room for
  std::uint64_t left_out = 0;          // records behind the last one that was wanted
  bool cut = false;
  std::int64_t duration_ns = 0;
  // What receives got, as the run saw it; by number. Empty for a matcher's trace.
  struct Got {
    std::int32_t source = TAGLINE_ANY_SOURCE;  // any: not known
    std::int32_t tag = 0;
  };
  std::vector<Got> got;
};

// The traces in a folder, one trace file, or one CSV file. Throws std::runtime_error with a
// sentence for what cannot be read.
class TraceSet {
 public:
  explicit TraceSet(const std::filesystem::path& path);

  const std::vector<std::uint32_t>& ranks() const { return ranks_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t records() const { return records_; }

  // The histories of these ranks (all: empty), one after the other: memory is for one, and for
  // what is on its way to all of them. Of a rank that has more records than `most` (0: no bound)
  // the history ends with that many: some 200 bytes of memory each.
  static constexpr std::uint64_t kMost = 4'000'000;
  void for_each(const std::vector<std::uint32_t>& ranks,
                const std::function<void(const History&)>& visit, std::uint64_t most = kMost) const;

 private:
  struct Sent {
    std::int64_t ns;
    std::int32_t source;
    std::int32_t tag;
    std::uint64_t bytes;
  };
  // Where a history ends: at that moment, with so many records behind it.
  struct End {
    std::int64_t ns;
    std::uint64_t left_out;
  };
  using Mail = std::unordered_map<std::uint64_t, std::vector<Sent>>;  // by context id and rank
  struct Process {
    std::vector<TraceFile> calls;     // none or one
    std::vector<TraceFile> matching;  // none or one
    std::uint32_t rank = 0;
  };

  void open_folder(const std::filesystem::path& path);
  static End end_of(const TraceFile& file, std::uint64_t most);
  Mail collect_mail(const std::vector<std::uint32_t>& ranks, std::uint64_t most) const;
  History from_calls(const TraceFile& file, const End& end, Mail& mail) const;
  static History from_matching(const TraceFile& file, const End& end);

  std::vector<Process> processes_;
  std::vector<std::uint32_t> ranks_;
  std::filesystem::path csv_;
  std::uint64_t bytes_ = 0;
  std::uint64_t records_ = 0;
};

// One history per rank of a CSV file; see `tagline replay --help` for the columns.
std::vector<History> read_csv(const std::filesystem::path& path);

}  // namespace tagline::tools
