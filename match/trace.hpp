// SPDX-License-Identifier: BSD-3-Clause
//
// Trace of one process: what it posted, sent, probed and received, in order. Written
// by the recorders (tools/record for any MPI program, match/recording.cpp inside the
// library), read by `tagline replay` and `tagline report`.
//
// Layout, version 1, little endian
//
//   TraceHeader | record | record | ... | 0
//
//   record = kind, 1 byte | ticks since the previous record | fields of the kind
//
//   Low four bits of the first byte: TraceKind. High bits: flags. Integers are LEB128
//   (seven bits a byte, low ones first, the top bit says that more follow). A source is the
//   rank + 1, a tag its zigzag code + 1; 0 is the wildcard. A byte 0 where a kind should be
//   ends the trace, as the end of the file does.
//
//   kind          fields
//   clock         ticks, nanoseconds: a point of the line from ticks to CLOCK_MONOTONIC
//   context       index, id, ranks, own rank, matcher: a communicator. In a matcher's trace the
//                 ranks are not known (0); in a trace of calls there is one matcher
//   post          context, source, tag, bytes: a receive. It gets the next number, from 0
//   arrive        context, source, tag, bytes: a message, as the matcher saw it
//   send          context, destination, tag, bytes
//   complete      receives ago, source, tag, bytes: what a receive got
//   probe         context, source, tag, times: looks in a row with the same answer
//   claim         context, source, tag, bytes: an unexpected message was taken
//   cancel        receives ago
//   cancel_queued context, number of the receive among those of its matcher that were queued,
//                 from 0
//   cancel_envelope  context, source, tag, 0: of the receives with this envelope the oldest
//   drop_context  context
//   drop_source   context, source
//   lost          8 bytes: how many records were not written; the last record there is
//
//   "Receives ago" counts back from the newest: 0 names the receive posted last.
//
// Guarantees
//   - The file is memory that the system writes behind: what was recorded before a crash or
//     a kill is there. The byte of the kind is written last, so that a record is whole or not
//     there, and a file that was cut anywhere is readable up to the cut.
//   - Space is reserved before it is written to. When there is no more the trace ends with
//     `lost`, and the program goes on.
//   - Memory: one window of kTraceWindow bytes, whatever the length of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace tagline {

enum class TraceKind : std::uint8_t {
  end = 0,
  clock = 1,
  context = 2,
  post = 3,
  arrive = 4,
  send = 5,
  complete = 6,
  probe = 7,
  claim = 8,
  cancel = 9,
  cancel_queued = 10,
  cancel_envelope = 11,
  drop_context = 12,
  drop_source = 13,
  lost = 14,
};

// Flags beside the kind.
inline constexpr unsigned kTraceLast = 0x10;    // clock: nothing follows, the trace is whole
inline constexpr unsigned kTraceFound = 0x10;   // probe: a message was there
inline constexpr unsigned kTraceQueued = 0x10;  // post: no message was there (a matcher's trace)

enum class TraceOrigin : std::uint32_t {
  calls = 0,      // the program's MPI calls; arrivals follow from the senders' traces
  matching = 1,   // inside the matcher: the true order of arrivals
  simulated = 2,  // `tagline simulate`
};

inline constexpr char kTraceMagic[8] = {'t', 'a', 'g', 't', 'r', 'a', 'c', 'e'};
inline constexpr std::uint32_t kTraceVersion = 1;
inline constexpr char kTraceSuffix[] = ".tagtrace";

struct TraceHeader {
  char magic[8] = {};
  std::uint32_t version = kTraceVersion;
  std::uint32_t header_bytes = sizeof(TraceHeader);  // records begin here
  TraceOrigin origin = TraceOrigin::calls;
  std::uint32_t rank = 0;   // in MPI_COMM_WORLD; ranks == 0: not known
  std::uint32_t ranks = 0;  // of MPI_COMM_WORLD
  std::uint32_t process = 0;
  std::int64_t start_ns = 0;  // CLOCK_MONOTONIC at a moment that all ranks share; 0: not known
  std::int64_t date_s = 0;    // seconds since 1970
  std::uint64_t world = 0;    // the same for the processes of one MPI_COMM_WORLD
  char host[64] = {};
  char library[64] = {};  // who recorded: MPI and its version
};
static_assert(sizeof(TraceHeader) == 184, "version 1 is this layout");

inline std::uint64_t trace_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + now.tv_nsec;
#endif
}

inline std::uint64_t trace_nanoseconds() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
// Fields of an envelope. `any` is the wildcard as the caller knows it.
inline constexpr std::uint64_t trace_source(std::int64_t source, std::int64_t any) noexcept {
  return source == any ? 0 : static_cast<std::uint64_t>(source) + 1;
}
inline constexpr std::uint64_t trace_tag(std::int64_t tag, std::int64_t any) noexcept {
  return tag == any ? 0 : zigzag(tag) + 1;
}
inline constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// One thread at a time.
class TraceWriter {
 public:
  static constexpr std::size_t kTraceWindow = std::size_t{1} << 20;
  static constexpr std::size_t kLongestRecord = 64;

  TraceWriter() = default;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  ~TraceWriter() { close(); }

  // Creates the file, which must not exist. At most `most_bytes` of it are written, 0: no
  // limit. False with errno set. Takes 0.2 ms, to learn what a tick is; a simulated trace
  // counts nanoseconds of its own, by record_at().
  bool open(const char* path, TraceHeader header, std::uint64_t most_bytes) noexcept;
  bool is_open() const noexcept { return descriptor_ >= 0; }
  void close() noexcept;

  // Changes what was not known when the file was made.
  void set_header(const TraceHeader& header) noexcept;

  template <class... Fields>
  void record(TraceKind kind, unsigned flags, Fields... fields) noexcept {
    record_at(trace_ticks(), kind, flags, static_cast<std::uint64_t>(fields)...);
  }

  // Of the newest record.
  std::uint64_t last_ticks() const noexcept { return last_ticks_; }

  // With a clock of the caller's.
  template <class... Fields>
  void record_at(std::uint64_t ticks, TraceKind kind, unsigned flags, Fields... fields) noexcept {
    if (cursor_ >= last_start_) [[unlikely]] {
      if (!next_window()) return;
    }
    // Another core's clock may be a little behind.
    const std::uint64_t since = ticks > last_ticks_ ? ticks - last_ticks_ : 0;
    last_ticks_ += since;
    unsigned char* const start = cursor_;
    unsigned char* end = put(start + 1, since);
    ((end = put(end, fields)), ...);
    cursor_ = end;
    // What follows in memory is 0 still. The kind makes the record one: last.
    asm volatile("" ::: "memory");
    *start = static_cast<unsigned char>(static_cast<unsigned>(kind) | flags);
  }

 private:
  static unsigned char* put(unsigned char* at, std::uint64_t value) noexcept {
    while (value >= 0x80) {
      *at++ = static_cast<unsigned char>(value | 0x80);
      value >>= 7;
    }
    *at++ = static_cast<unsigned char>(value);
    return at;
  }

  bool next_window() noexcept;
  bool map(std::uint64_t offset) noexcept;
  void unmap() noexcept;
  void end_early() noexcept;
  void record_now(unsigned flags = 0) noexcept;

  unsigned char* cursor_ = nullptr;      // where the next record starts
  unsigned char* last_start_ = nullptr;  // where the next window has to come first
  std::uint64_t last_ticks_ = 0;
  unsigned char* window_ = nullptr;
  std::uint64_t window_offset_ = 0;  // in the file
  std::uint64_t most_bytes_ = 0;
  bool simulated_ = false;
  unsigned char* lost_ = nullptr;  // the count in the last record, once the trace has ended
  int descriptor_ = -1;
};

}  // namespace tagline
