// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "match/tagline.h"
#include "queues/node_memory.hpp"

// What a host holds: the operations of tagline.h with the arguments checked.
// One call through the table per operation, or none, see is_default; everything below it is inlined
// for the queue structure chosen.
struct tagline_matcher {
  using Envelope = tagline_envelope;

  virtual ~tagline_matcher() = default;
  // The six operations of every message come first, for tell_of_code().
  virtual tagline_status post_receive(Envelope, void* receive, void** message,
                                      tagline_handle* handle) noexcept = 0;
  virtual tagline_status arrive(Envelope, void* message, void** receive) noexcept = 0;
  virtual tagline_status claim(Envelope, void** message, Envelope* found) noexcept = 0;
  virtual tagline_status append_receive(Envelope, void* receive,
                                        tagline_handle* handle) noexcept = 0;
  virtual tagline_status match_message(Envelope, void** receive) noexcept = 0;
  virtual tagline_status append_message(Envelope, void* message) noexcept = 0;
  virtual tagline_status probe(Envelope, void** message, Envelope* found) noexcept = 0;
  virtual tagline_status cancel_receive(Envelope, void* receive) noexcept = 0;
  virtual tagline_status cancel_handle(std::uint64_t context_id, tagline_handle) noexcept = 0;
  virtual std::size_t drop_context(std::uint64_t context_id, tagline_visitor, void* user) = 0;
  virtual std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor,
                                  void* user) = 0;
  virtual tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept = 0;
  virtual void for_each(tagline_visitor, void* user) const = 0;
  virtual tagline_statistics statistics() const noexcept = 0;

  // The observer is told of all memory that matching touches, by any thread that calls;
  // nullptr: nobody is any more. TAGLINE_OK or TAGLINE_NO_MEMORY.
  virtual tagline_status observe_memory(tagline::MemoryObserver* observer) noexcept = 0;

  // The visitor sees the message while it cannot leave.
  virtual tagline_status inspect(Envelope envelope, tagline_visitor visit, void* user) {
    void* message = nullptr;
    Envelope found;
    const tagline_status status = probe(envelope, &message, &found);
    if (status == TAGLINE_MATCHED) visit(user, TAGLINE_UNEXPECTED, found, message);
    return status;
  }

  // Tells the observer of the code of the six operations of every message, and of the table
  // that leads there: for a match in cold caches, as many lines as a short queue or an index.
  void tell_of_code(tagline::MemoryObserver& observer) const noexcept;

  // What it says of itself. Apart, so that all that every call looks at is one line.
  struct Description {
    std::string queue_name;  // as asked for, with its parameter
    std::string reason;      // why that one
    const char* isa_name = nullptr;
    bool is_for_threads = false;
    // Who is told, if the matcher is to keep it. Outlives the queues: they are members of what is
    // derived from a matcher.
    std::unique_ptr<tagline::MemoryObserver> memory_observer;
  };
  const std::unique_ptr<Description> about = std::make_unique<Description>();
  // Whether it is the default structure's, for one thread: then tagline.cpp knows where its
  // operations are, without the table.
  bool is_default = false;

  // Of a matcher around another one.
  void describe_as(const tagline_matcher& other) {
    about->queue_name = other.about->queue_name;
    about->reason = other.about->reason;
    about->isa_name = other.about->isa_name;
    about->is_for_threads = other.about->is_for_threads;
  }
};

namespace tagline {

// Failures are rare and their sentence is read later, if at all.
void set_error_message(const char* sentence) noexcept;

[[gnu::noinline, gnu::cold]] inline tagline_status no_memory() noexcept {
  set_error_message("the matcher has no memory for another entry: raise pool_bytes or free memory");
  return TAGLINE_NO_MEMORY;
}

}  // namespace tagline
