// SPDX-License-Identifier: BSD-3-Clause
#include "match/trace.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace tagline {

bool TraceWriter::open(const char* path, TraceHeader header, std::uint64_t most_bytes) noexcept {
  close();
  descriptor_ = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return false;
  most_bytes_ = most_bytes;
  if (!map(0)) {
    const int error = errno;
    ::close(descriptor_);
    descriptor_ = -1;
    unlink(path);
    errno = error;
    return false;
  }
  std::memcpy(header.magic, kTraceMagic, sizeof header.magic);
  std::memcpy(window_, &header, sizeof header);
  cursor_ = window_ + sizeof header;
  last_ticks_ = 0;
  simulated_ = header.origin == TraceOrigin::simulated;
  record_now();
  // A second point at once: a trace that is cut has it.
  const std::uint64_t soon = trace_nanoseconds() + 200'000;
  while (!simulated_ && trace_nanoseconds() < soon) continue;
  record_now();
  return true;
}

void TraceWriter::set_header(const TraceHeader& header) noexcept {
  TraceHeader whole = header;
  std::memcpy(whole.magic, kTraceMagic, sizeof whole.magic);
  if (is_open() && pwrite(descriptor_, &whole, sizeof whole, 0) < 0) {
    // The trace is readable without; its rank is not known then.
  }
}

void TraceWriter::close() noexcept {
  if (!is_open()) return;
  if (window_ != nullptr) {
    if (lost_ == nullptr) record_now(kTraceLast);
    const std::uint64_t used = window_offset_ + static_cast<std::uint64_t>(cursor_ - window_);
    unmap();
    // What is behind is 0 and means the end: to leave it there costs disk space only.
    if (ftruncate(descriptor_, static_cast<off_t>(used)) != 0) errno = 0;
  }
  ::close(descriptor_);
  descriptor_ = -1;
  cursor_ = last_start_ = lost_ = nullptr;
}

// A point of the line from ticks to nanoseconds.
void TraceWriter::record_now(unsigned flags) noexcept {
  const std::uint64_t ticks = simulated_ ? last_ticks_ : trace_ticks();
  record_at(ticks, TraceKind::clock, flags, ticks, simulated_ ? ticks : trace_nanoseconds());
}

bool TraceWriter::map(std::uint64_t offset) noexcept {
  // Reserved now: a page that cannot be written later would end the program.
  const int error =
      posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(kTraceWindow));
  if (error != 0) {
    errno = error;
    return false;
  }
  void* memory = mmap(nullptr, kTraceWindow, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                      static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return false;
  unmap();
  window_ = static_cast<unsigned char*>(memory);
  window_offset_ = offset;
  // Room for a clock and for the record that tells of an early end.
  last_start_ = window_ + kTraceWindow - 3 * kLongestRecord;
  return true;
}

void TraceWriter::unmap() noexcept {
  if (window_ != nullptr) munmap(window_, kTraceWindow);
  window_ = nullptr;
}

bool TraceWriter::next_window() noexcept {
  if (lost_ != nullptr) {
    std::uint64_t count;
    std::memcpy(&count, lost_, sizeof count);
    ++count;
    std::memcpy(lost_, &count, sizeof count);
    return false;
  }
  if (window_ == nullptr) return false;
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t used = window_offset_ + static_cast<std::uint64_t>(cursor_ - window_);
  const std::uint64_t offset = used / page * page;
  if ((most_bytes_ != 0 && offset + kTraceWindow > most_bytes_) || !map(offset)) {
    end_early();
    return false;
  }
  cursor_ = window_ + (used - offset);
  record_now();
  return true;
}

void TraceWriter::end_early() noexcept {
  last_start_ = window_ + kTraceWindow;  // for these two records
  record_now();
  unsigned char* const start = cursor_;
  const std::uint64_t one = 1;
  lost_ = put(start + 1, 0);
  std::memcpy(lost_, &one, sizeof one);
  cursor_ = lost_ + sizeof one;
  asm volatile("" ::: "memory");
  *start = static_cast<unsigned char>(TraceKind::lost);
  last_start_ = cursor_;  // every record comes to next_window() from now on
}

}  // namespace tagline
