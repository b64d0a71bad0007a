// SPDX-License-Identifier: BSD-3-Clause
#include "trace_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace tagline::tools {

namespace {

std::runtime_error unreadable(const std::filesystem::path& path, const std::string& why) {
  return std::runtime_error(path.string() + ": " + why);
}

// False at the end of the data or for what is no number of 64 bits.
bool take(const unsigned char*& at, const unsigned char* end, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    const unsigned char byte = *at++;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw unreadable(path, std::strerror(errno));
  struct stat status = {};
  fstat(descriptor, &status);
  size_ = static_cast<std::size_t>(status.st_size);
  void* memory =
      size_ < 16 ? MAP_FAILED : mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) throw unreadable(path, "is no trace of tagline: it is too short");
  data_ = static_cast<const unsigned char*>(memory);
  std::memcpy(&header_, data_, std::min(size_, sizeof header_));
  if (std::memcmp(header_.magic, kTraceMagic, sizeof kTraceMagic) != 0) {
    munmap(memory, size_);
    throw unreadable(path, "is no trace of tagline (and a CSV file's name ends in .csv)");
  }
  if (size_ < sizeof header_ || header_.header_bytes > size_) {
    munmap(memory, size_);
    throw unreadable(path, "is a trace that was cut before its first record: nothing is in it");
  }
  if (header_.version != kTraceVersion) {
    munmap(memory, size_);
    throw unreadable(path, "is a trace of version " + std::to_string(header_.version) +
                               ", and this command reads version " + std::to_string(kTraceVersion) +
                               ": take the command that came with the recorder");
  }
  scan();
}

TraceFile::TraceFile(TraceFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      header_(other.header_),
      anchors_(std::move(other.anchors_)),
      records_(other.records_),
      used_(other.used_),
      lost_(other.lost_),
      last_ticks_(other.last_ticks_),
      cut_(other.cut_),
      start_ns_(other.start_ns_) {}

TraceFile::~TraceFile() {
  if (data_ != nullptr) munmap(const_cast<unsigned char*>(data_), size_);
}

TraceFile::Cursor TraceFile::begin() const { return {data_ + header_.header_bytes, 0, 0}; }

void TraceFile::scan() {
  Cursor cursor = begin();
  TraceEvent event;
  bool ended = false;
  while (next(cursor, event)) {
    ended = (event.kind == TraceKind::clock && event.flag) || event.kind == TraceKind::lost;
    if (event.kind == TraceKind::clock) {
      anchors_.push_back({event.id, event.value});
    } else if (event.kind == TraceKind::lost) {
      lost_ = event.value;
    } else if (event.is_record()) {
      ++records_;
    }
  }
  last_ticks_ = cursor.ticks;
  used_ = static_cast<std::uint64_t>(cursor.at - data_);
  cut_ = !ended;
  start_ns_ = header_.start_ns != 0 || anchors_.empty() ? header_.start_ns
                                                        : static_cast<std::int64_t>(anchors_[0].ns);
}

std::int64_t TraceFile::nanoseconds(std::uint64_t ticks, std::size_t anchor) const {
  if (anchors_.empty()) return 0;
  // On the line through the points around it; the last line goes on.
  std::size_t from = anchor;
  if (from + 1 >= anchors_.size()) from = anchors_.size() < 2 ? 0 : anchors_.size() - 2;
  const Anchor& a = anchors_[from];
  const Anchor& b = anchors_[std::min(from + 1, anchors_.size() - 1)];
  const double slope =
      b.ticks > a.ticks
          ? static_cast<double>(static_cast<std::int64_t>(b.ns - a.ns)) /
                static_cast<double>(b.ticks - a.ticks)
          : 1.0;
  const double since = static_cast<double>(static_cast<std::int64_t>(ticks - a.ticks)) * slope;
  // A damaged header or clock may say anything; unsigned, it has to mean nothing.
  constexpr double kCenturies = 9e18;
  return static_cast<std::int64_t>(
      a.ns - static_cast<std::uint64_t>(start_ns_) +
      static_cast<std::uint64_t>(
          static_cast<std::int64_t>(std::clamp(since, -kCenturies, kCenturies))));
}

std::int64_t TraceFile::first_ns() const {
  return anchors_.empty() ? 0
                          : static_cast<std::int64_t>(anchors_[0].ns -
                                                      static_cast<std::uint64_t>(start_ns_));
}
std::int64_t TraceFile::last_ns() const { return nanoseconds(last_ticks_, anchors_.size()); }

bool TraceFile::next(Cursor& cursor, TraceEvent& event) const {
  const unsigned char* const end = data_ + size_;
  const unsigned char* at = cursor.at;
  if (at >= end || *at == 0) return false;
  event.kind = static_cast<TraceKind>(*at & 0x0f);
  event.flag = (*at & kTraceFound) != 0;
  ++at;
  std::uint64_t since;
  if (!take(at, end, since)) return false;
  const std::uint64_t ticks = cursor.ticks + since;
  std::uint64_t source = 0;
  std::uint64_t tag = 0;
  const auto number = [&](std::uint64_t& value) { return take(at, end, value); };
  const auto envelope = [&] {
    constexpr std::uint64_t kMostRank = std::numeric_limits<std::int32_t>::max();
    // A zigzag code has two values per distance from 0.
    return number(source) && number(tag) && source <= kMostRank + 1 && tag <= 2 * kMostRank + 1;
  };
  bool whole = false;
  switch (event.kind) {
    case TraceKind::clock:
      whole = number(event.id) && number(event.value);
      break;
    case TraceKind::context:
      whole = number(event.context) && number(event.id) && number(event.ranks) &&
              number(event.own_rank) && number(event.matcher);
      break;
    case TraceKind::arrive:
    case TraceKind::send:
      // Without wildcards.
      whole = number(event.context) && envelope() && source != 0 && tag != 0 && number(event.value);
      break;
    case TraceKind::post:
    case TraceKind::probe:
    case TraceKind::claim:
    case TraceKind::cancel_envelope:
      whole = number(event.context) && envelope() && number(event.value);
      break;
    case TraceKind::complete:
      whole = number(event.id) && envelope() && source != 0 && tag != 0 && number(event.value);
      break;
    case TraceKind::cancel:
      whole = number(event.value);
      break;
    case TraceKind::cancel_queued:
      whole = number(event.context) && number(event.value);
      break;
    case TraceKind::drop_context:
      whole = number(event.context);
      break;
    case TraceKind::drop_source:
      whole = number(event.context) && number(source) && source <= 0x80000000u;
      break;
    case TraceKind::lost:
      whole = end - at >= static_cast<std::ptrdiff_t>(sizeof event.value);
      if (whole) {
        std::memcpy(&event.value, at, sizeof event.value);
        at += sizeof event.value;
      }
      break;
    default:
      break;  // damaged: as good as cut here
  }
  // They are indices, and no process has made so many.
  constexpr std::uint64_t kMostContexts = 1 << 24;
  if (!whole || event.context > kMostContexts || event.matcher > kMostContexts) return false;
  event.source = source == 0 ? TAGLINE_ANY_SOURCE : static_cast<std::int32_t>(source - 1);
  event.tag = tag == 0 ? TAGLINE_ANY_TAG : static_cast<std::int32_t>(unzigzag(tag - 1));
  while (cursor.anchor + 1 < anchors_.size() && anchors_[cursor.anchor + 1].ticks <= ticks) {
    ++cursor.anchor;
  }
  event.ns = nanoseconds(ticks, cursor.anchor);
  cursor.at = at;
  cursor.ticks = ticks;
  return true;
}

}  // namespace tagline::tools
