// SPDX-License-Identifier: BSD-3-Clause
#include "match/recording.hpp"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "match/locked_matcher.hpp"
#include "match/trace.hpp"

namespace tagline {

namespace {

// The trace of the process, shared by its matchers.
class Trace {
 public:
  // Nullptr where nothing is to be recorded.
  static Trace* of_process() {
    // Never destroyed: matchers may outlive what the process cleans up.
    static Trace* const trace = [] {
      const char* folder = std::getenv("TAGLINE_TRACE");
      return folder == nullptr || *folder == '\0' ? nullptr : open(folder);
    }();
    return trace;
  }

  std::uint64_t new_context() noexcept { return contexts_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t new_matcher() noexcept { return matchers_.fetch_add(1, std::memory_order_relaxed); }

  template <class... Fields>
  void record(TraceKind kind, unsigned flags, Fields... fields) noexcept {
    // acquire: pairs with the release of the thread before, whose record is complete then.
    while (busy_.test_and_set(std::memory_order_acquire)) sched_yield();
    writer_.record(kind, flags, fields...);
    busy_.clear(std::memory_order_release);
  }

 private:
  static Trace* open(const char* folder) {
    TraceHeader header;
    header.origin = TraceOrigin::matching;
    header.process = static_cast<std::uint32_t>(getpid());
    header.date_s = std::time(nullptr);
    gethostname(header.host, sizeof header.host - 1);
    std::snprintf(header.library, sizeof header.library, "tagline %s", TAGLINE_VERSION);
    const std::string path = std::string(folder) + "/matching-" + header.host + "-" +
                             std::to_string(header.process) + kTraceSuffix;
    const char* limit = std::getenv("TAGLINE_TRACE_LIMIT");
    const std::uint64_t mebibytes = limit == nullptr ? 1024 : std::strtoull(limit, nullptr, 10);
    auto trace = std::make_unique<Trace>();
    if (!trace->writer_.open(path.c_str(), header, mebibytes << 20)) {
      std::fprintf(stderr,
                   "tagline: nothing is recorded in this process: %s cannot be written (%s). "
                   "TAGLINE_TRACE has to name a folder with free space.\n",
                   path.c_str(), std::strerror(errno));
      return nullptr;
    }
    static Trace* opened = trace.get();
    std::atexit([] { opened->close(); });
    return trace.release();
  }

  void close() noexcept {
    // acquire and release: of a lock, as in every record.
    while (busy_.test_and_set(std::memory_order_acquire)) sched_yield();
    writer_.close();  // records that come later are dropped
    busy_.clear(std::memory_order_release);
  }

  TraceWriter writer_;
  std::atomic_flag busy_;
  std::atomic<std::uint64_t> contexts_{0};
  std::atomic<std::uint64_t> matchers_{0};
};

// Records after the operation, whose result is part of the record. The halves of a post
// or an arrival are one record, written by the half that decides.
class RecordingMatcher final : public tagline_matcher {
 public:
  RecordingMatcher(tagline_matcher* matcher, Trace& trace, tagline_handle first_handle)
      : matcher_(matcher),
        trace_(trace),
        number_(trace.new_matcher()),
        first_handle_(first_handle == 0 ? 1 : first_handle) {
    describe_as(*matcher);
  }

  ~RecordingMatcher() override {
    flush_miss();
    for (const auto& [id, index] : contexts_) trace_.record(TraceKind::drop_context, 0, index);
  }

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle* handle) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->post_receive(envelope, receive, message, handle);
    if (status >= 0) post(envelope, status);
    return status;
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->arrive(envelope, message, receive);
    if (status >= 0) operation(TraceKind::arrive, 0, envelope, 0);
    return status;
  }

  tagline_status claim(Envelope envelope, void** message, Envelope* found) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->claim(envelope, message, found);
    if (status == TAGLINE_MATCHED) operation(TraceKind::claim, 0, envelope, 0);
    // Without a message: a probe, unless append_receive() follows and makes it a post.
    if (status == TAGLINE_NOT_FOUND) {
      missed_ = true;
      miss_ = envelope;
    }
    return status;
  }

  tagline_status append_receive(Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept override {
    missed_ = false;
    const tagline_status status = matcher_->append_receive(envelope, receive, handle);
    if (status >= 0) post(envelope, status);
    return status;
  }

  tagline_status match_message(Envelope envelope, void** receive) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->match_message(envelope, receive);
    if (status == TAGLINE_MATCHED) operation(TraceKind::arrive, 0, envelope, 0);
    return status;
  }

  tagline_status append_message(Envelope envelope, void* message) noexcept override {
    const tagline_status status = matcher_->append_message(envelope, message);
    if (status >= 0) operation(TraceKind::arrive, 0, envelope, 0);
    return status;
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->probe(envelope, message, found);
    if (status >= 0) {
      operation(TraceKind::probe, status == TAGLINE_MATCHED ? kTraceFound : 0u, envelope, 1);
    }
    return status;
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->cancel_receive(envelope, receive);
    if (status == TAGLINE_OK) operation(TraceKind::cancel_envelope, 0, envelope, 0);
    return status;
  }

  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    flush_miss();
    const tagline_status status = matcher_->cancel_handle(context_id, handle);
    if (status == TAGLINE_OK) {
      trace_.record(TraceKind::cancel_queued, 0, index_of(context_id), handle - first_handle_);
    }
    return status;
  }

  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    flush_miss();
    trace_.record(TraceKind::drop_context, 0, index_of(context_id));
    contexts_.erase(context_id);
    last_index_ = kNone;
    return matcher_->drop_context(context_id, visit, user);
  }

  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    flush_miss();
    trace_.record(TraceKind::drop_source, 0, index_of(context_id),
                  trace_source(source, TAGLINE_ANY_SOURCE));
    return matcher_->drop_source(context_id, source, visit, user);
  }

  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    return matcher_->set_hints(context_id, hints);
  }

  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    if (observer != nullptr) matcher_->tell_of_code(*observer);
    return matcher_->observe_memory(observer);
  }

  void for_each(tagline_visitor visit, void* user) const override {
    matcher_->for_each(visit, user);
  }
  tagline_statistics statistics() const noexcept override { return matcher_->statistics(); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  void post(const Envelope& envelope, tagline_status status) noexcept {
    operation(TraceKind::post, status == TAGLINE_QUEUED ? kTraceQueued : 0u, envelope, 0);
  }

  template <class... Fields>
  void operation(TraceKind kind, unsigned flags, const Envelope& envelope,
                 Fields... rest) noexcept {
    trace_.record(kind, flags, index_of(envelope.context_id),
                  trace_source(envelope.source, TAGLINE_ANY_SOURCE),
                  trace_tag(envelope.tag, TAGLINE_ANY_TAG), rest...);
  }

  void flush_miss() noexcept {
    if (!missed_) [[likely]]
      return;
    missed_ = false;
    operation(TraceKind::probe, 0, miss_, 1);
  }

  std::uint64_t index_of(std::uint64_t context_id) noexcept {
    if (last_index_ != kNone && last_context_ == context_id) [[likely]] {
      return last_index_;
    }
    last_context_ = context_id;
    try {
      const auto [at, added] = contexts_.try_emplace(context_id, 0);
      if (added) {
        at->second = trace_.new_context();
        trace_.record(TraceKind::context, 0, at->second, context_id, 0, 0, number_);
      }
      last_index_ = at->second;
    } catch (const std::bad_alloc&) {
      return 0;  // mixed up with another context, which is better than to end the program
    }
    return last_index_;
  }

  const std::unique_ptr<tagline_matcher> matcher_;  // owned
  Trace& trace_;
  const std::uint64_t number_;
  const tagline_handle first_handle_;
  std::unordered_map<std::uint64_t, std::uint64_t> contexts_;  // by id: index in the trace
  std::uint64_t last_context_ = 0;
  std::uint64_t last_index_ = kNone;
  bool missed_ = false;
  Envelope miss_ = {};
};

}  // namespace

tagline_matcher* recorded(tagline_matcher* matcher, tagline_handle first_handle) {
  std::unique_ptr<tagline_matcher> owner(matcher);
  Trace* const trace = Trace::of_process();
  if (trace == nullptr) return owner.release();
  std::unique_ptr<tagline_matcher> recording;
  if (matcher->about->is_for_threads) {
    recording = std::make_unique<LockedMatcher<RecordingMatcher>>(LockKind::mutex, matcher, *trace,
                                                                  first_handle);
  } else {
    recording = std::make_unique<RecordingMatcher>(matcher, *trace, first_handle);
  }
  owner.release();  // it is the recording one's now
  return recording.release();
}

}  // namespace tagline
