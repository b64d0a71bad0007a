// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "match/locks.hpp"
#include "match/operations.hpp"

namespace tagline {

// One lock around a matcher: what MPI libraries do, and the baseline of the others.
template <class Core>
class LockedMatcher final : public tagline_matcher {
 public:
  template <class... Arguments>
  explicit LockedMatcher(LockKind lock, Arguments&&... arguments)
      : lock_(lock), core_(std::forward<Arguments>(arguments)...) {
    describe_as(core_);
  }

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle* handle) noexcept override {
    LockGuard guard(lock_);
    return core_.post_receive(envelope, receive, message, handle);
  }
  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    LockGuard guard(lock_);
    return core_.arrive(envelope, message, receive);
  }
  tagline_status claim(Envelope envelope, void** message, Envelope* found) noexcept override {
    LockGuard guard(lock_);
    return core_.claim(envelope, message, found);
  }
  tagline_status append_receive(Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept override {
    LockGuard guard(lock_);
    return core_.append_receive(envelope, receive, handle);
  }
  tagline_status match_message(Envelope envelope, void** receive) noexcept override {
    LockGuard guard(lock_);
    return core_.match_message(envelope, receive);
  }
  tagline_status append_message(Envelope envelope, void* message) noexcept override {
    LockGuard guard(lock_);
    return core_.append_message(envelope, message);
  }
  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    LockGuard guard(lock_);
    return core_.probe(envelope, message, found);
  }
  tagline_status inspect(Envelope envelope, tagline_visitor visit, void* user) override {
    LockGuard guard(lock_);
    return core_.inspect(envelope, visit, user);
  }
  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    LockGuard guard(lock_);
    return core_.cancel_receive(envelope, receive);
  }
  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    LockGuard guard(lock_);
    return core_.cancel_handle(context_id, handle);
  }
  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    LockGuard guard(lock_);
    return core_.drop_context(context_id, visit, user);
  }
  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    LockGuard guard(lock_);
    return core_.drop_source(context_id, source, visit, user);
  }
  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    LockGuard guard(lock_);
    return core_.set_hints(context_id, hints);
  }
  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    LockGuard guard(lock_);
    if (observer != nullptr) core_.tell_of_code(*observer);
    return core_.observe_memory(observer);
  }
  void for_each(tagline_visitor visit, void* user) const override {
    LockGuard guard(lock_);
    core_.for_each(visit, user);
  }
  tagline_statistics statistics() const noexcept override {
    LockGuard guard(lock_);
    return core_.statistics();
  }

 private:
  mutable Lock lock_;
  Core core_;
};

}  // namespace tagline
