// SPDX-License-Identifier: BSD-3-Clause
//
// A motif is what each rank does in one iteration, written down as a list of steps:
// receives posted, messages sent, waits between them. The list is made once and
// performed often, so that making it costs the measurement nothing; and the same list
// tells what the match lists must have looked like.
//
// Tags and sizes are the motif's own. One-sided forms put into a part of the target's
// window that belongs to the origin, and notify by messages of no bytes.
#pragma once

#include <cstddef>
#include <vector>

namespace suite::motifs {

constexpr int kAnySource = -1;
constexpr int kNotifyTag = 30000;

struct Step {
  enum class Kind {
    receive,   // post; peer may be kAnySource
    send,      // start
    wait,      // for the receive with this number
    wait_all,  // receives and sends
    probe,     // wait until a message with this tag is here, from anybody, and receive it
    compute,   // seconds
    put,
    flush,
    notify,
    await
  };
  Kind kind;
  int peer = 0;
  int tag = 0;
  std::size_t bytes = 0;
  std::size_t request = 0;  // number of the receive
  double seconds = 0;
};

class Script {
 public:
  // Returns the receive's number, for wait().
  std::size_t receive(int source, int tag, std::size_t bytes) {
    steps_.push_back({Step::Kind::receive, source, tag, bytes, receives_, 0});
    return receives_++;
  }
  void send(int to, int tag, std::size_t bytes) {
    steps_.push_back({Step::Kind::send, to, tag, bytes, 0, 0});
    ++sends_;
  }
  void wait(std::size_t receive) { steps_.push_back({Step::Kind::wait, 0, 0, 0, receive, 0}); }
  void wait_all() { steps_.push_back({Step::Kind::wait_all, 0, 0, 0, 0, 0}); }
  void probe(int tag, std::size_t bytes) {
    steps_.push_back({Step::Kind::probe, kAnySource, tag, bytes, receives_++, 0});
  }
  void compute(double seconds) {
    if (seconds > 0) steps_.push_back({Step::Kind::compute, 0, 0, 0, 0, seconds});
  }
  void put(int to, std::size_t bytes) {
    steps_.push_back({Step::Kind::put, to, 0, bytes, 0, 0});
    put_bytes_ = bytes > put_bytes_ ? bytes : put_bytes_;
    ++sends_;
  }
  void flush(int target) { steps_.push_back({Step::Kind::flush, target, 0, 0, 0, 0}); }
  void notify(int to) { steps_.push_back({Step::Kind::notify, to, kNotifyTag, 0, 0, 0}); }
  void await(int from) { steps_.push_back({Step::Kind::await, from, kNotifyTag, 0, 0, 0}); }

  const std::vector<Step>& steps() const { return steps_; }
  std::size_t receives() const { return receives_; }
  std::size_t sends() const { return sends_; }
  std::size_t put_bytes() const { return put_bytes_; }

 private:
  std::vector<Step> steps_;
  std::size_t receives_ = 0;
  std::size_t sends_ = 0;
  std::size_t put_bytes_ = 0;
};

}  // namespace suite::motifs
