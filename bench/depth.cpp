// SPDX-License-Identifier: BSD-3-Clause
//
// Queue-depth benchmark: what a 1-byte message costs when its match lies behind
// `depth` other entries. Two ranks on one node; any MPI library. Rank 1 holds the
// queue, rank 0 holds none.
//
//   case        what lies ahead of the match on rank 1
//   posted      receives for the same peer with other tags
//   unexpected  messages with other tags that nobody receives
//   any_source  ANY_SOURCE receives with other tags
//   any_tag     ANY_TAG receives for another source; what is timed asks for any tag, too
//   mixed       `depth` receives, of these three kinds in turn, and `depth` unexpected
//               messages
//   random      nothing more: `depth` receives, whose messages come in random order
//
// What is timed
//   posted, any_source, any_tag, mixed: half a round trip of Send and Recv. As in the ping-pongs
//     of the literature the round trip holds one search of the queue, so the
//     figure holds half of one, and ratios between libraries err on the low side.
//     With --queue-on both rank 0 holds a queue too, and half a hot round trip holds
//     one whole search.
//   unexpected: the same, but rank 1 posts its receive only once the message lies
//     in its unexpected queue: a flag in shared memory, set after the send has
//     returned, tells it so. Were the receive posted earlier, its search would
//     overlap with the peer's work and vanish from the figure.
//   random: from the moment the sender is let go until the last receive has
//     completed, divided by their number. Nothing overlaps rank 1's searches but
//     the sending.
//   cold: single round trips, halved; just before each, rank 1 sweeps a buffer
//     larger than the last-level cache. The sweep lies outside the time. In random
//     order a cold sample is one message of it.
//
// Every byte received is compared with the one that was sent. Rank 0 prints one
// JSON object per point on stdout, samples in the order taken.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "options.hpp"
#include "pair.hpp"

namespace {

using bench::now_us;

constexpr int kMeasuredTag = 1;
constexpr int kFenceTag = 2;
constexpr int kAheadTag = 1000;  // + index of the entry

struct Options {
  std::vector<std::string> cases{"posted",  "unexpected", "any_source",
                                 "any_tag", "mixed",      "random"};
  std::vector<std::string> caches{"hot", "cold"};
  std::vector<int> depths{0, 1, 16, 64, 256, 1024, 4096, 16384};
  double budget_ms = 40;
  int cold_samples = 9;
  bool both_hold = false;
  int bandwidth_bytes = 1 << 20;
  bool bandwidth = true;
};

class Bench : private bench::Pair {
 public:
  explicit Bench(const Options& options) : Pair("depth"), options_(options) {}
  void run();

 private:
  void latency(const std::string& which, const std::string& cache, int depth);
  void random_order(const std::string& cache, int depth);
  void bandwidth();

  bool holds_queue(int rank, const std::string& which, const std::string& cache) const;
  struct Entries {
    std::size_t posted;
    std::size_t all;
  };
  static Entries entries_of(const std::string& which, int depth);
  static bool from_myself(const std::string& which, std::size_t index);
  void send_ahead(std::size_t index, int to);
  void fill(const std::string& which, const std::string& cache, int depth);
  void drain(const std::string& which, const std::string& cache, int depth);

  template <class RoundTrip>
  std::vector<double> round_trips(RoundTrip round_trip);
  void ping_pong();
  void ping_pong_unexpected();
  double cold_trip(const std::string& which);
  void send();
  void receive();
  void send_and_tell();

  void expect(std::uint8_t got, std::uint8_t wanted) const {
    if (got != wanted) [[unlikely]] {
      fail("wrong data: received " + std::to_string(got) + ", sent " + std::to_string(wanted));
    }
  }
  static std::uint8_t content(std::size_t index) {
    return static_cast<std::uint8_t>(index * 131 + 7);
  }

  const Options& options_;
  int measured_receive_ = kMeasuredTag;  // tag that the timed receives ask for
  std::uint8_t next_out_ = 1;
  std::uint8_t next_in_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint8_t> ahead_;
};

// ---- the queue ahead of the match --------------------------------------

bool Bench::holds_queue(int rank, const std::string& which, const std::string& cache) const {
  return rank == 1 || (options_.both_hold && cache == "hot" && which != "random");
}

// Entries [0, posted) are receives, [posted, all) are unexpected messages.
Bench::Entries Bench::entries_of(const std::string& which, int depth) {
  const auto n = static_cast<std::size_t>(depth);
  if (which == "unexpected") return {0, n};
  return {n, which == "mixed" ? 2 * n : n};
}

// An ANY_TAG receive for the peer would take what is timed, so it asks for messages
// from its own rank.
bool Bench::from_myself(const std::string& which, std::size_t index) {
  return which == "any_tag" || (which == "mixed" && index % 3 == 2);
}

void Bench::fill(const std::string& which, const std::string& cache, int depth) {
  const Entries entries = entries_of(which, depth);
  measured_receive_ = which == "any_tag" ? MPI_ANY_TAG : kMeasuredTag;
  requests_.assign(entries.posted, MPI_REQUEST_NULL);
  ahead_.assign(entries.all, 0);
  if (entries.all != entries.posted) {
    if (holds_queue(peer_, which, cache)) {
      for (std::size_t i = entries.posted; i < entries.all; ++i) send_ahead(i, peer_);
      const std::uint8_t fence = 0;
      MPI_Send(&fence, 1, MPI_BYTE, peer_, kFenceTag, comm_);
    }
    if (holds_queue(rank_, which, cache)) {
      // Messages of one sender arrive in order: behind the fence all others are queued.
      std::uint8_t fence = 0;
      MPI_Recv(&fence, 1, MPI_BYTE, peer_, kFenceTag, comm_, MPI_STATUS_IGNORE);
    }
  }
  if (holds_queue(rank_, which, cache)) {
    for (std::size_t i = 0; i < entries.posted; ++i) {
      const bool mine = from_myself(which, i);
      const bool any = which == "any_source" || (which == "mixed" && i % 3 == 1);
      MPI_Irecv(&ahead_[i], 1, MPI_BYTE,
                mine  ? rank_
                : any ? MPI_ANY_SOURCE
                      : peer_,
                mine ? MPI_ANY_TAG : kAheadTag + static_cast<int>(i), comm_, &requests_[i]);
    }
  }
  barrier();
}

void Bench::drain(const std::string& which, const std::string& cache, int depth) {
  const Entries entries = entries_of(which, depth);
  for (std::size_t i = 0; i < entries.posted; ++i) {
    const int holder = from_myself(which, i) ? rank_ : peer_;
    if (holds_queue(holder, which, cache)) send_ahead(i, holder);
  }
  if (holds_queue(rank_, which, cache)) {
    for (std::size_t i = entries.posted; i < entries.all; ++i) {
      MPI_Recv(&ahead_[i], 1, MPI_BYTE, peer_, kAheadTag + static_cast<int>(i), comm_,
               MPI_STATUS_IGNORE);
    }
    MPI_Waitall(static_cast<int>(entries.posted), requests_.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < ahead_.size(); ++i) expect(ahead_[i], content(i));
  }
  barrier();
}

void Bench::send_ahead(std::size_t index, int to) {
  const std::uint8_t byte = content(index);
  MPI_Send(&byte, 1, MPI_BYTE, to, kAheadTag + static_cast<int>(index), comm_);
}

// ---- the measured message ----------------------------------------------

void Bench::send() {
  MPI_Send(&next_out_, 1, MPI_BYTE, peer_, kMeasuredTag, comm_);
  ++next_out_;
}

void Bench::receive() {
  std::uint8_t in = 0;
  MPI_Recv(&in, 1, MPI_BYTE, peer_, measured_receive_, comm_, MPI_STATUS_IGNORE);
  expect(in, next_in_++);
}

void Bench::send_and_tell() {
  send();
  tell_sent();
}

// ---- hot ---------------------------------------------------------------

void Bench::ping_pong() {
  if (rank_ == 0) {
    send();
    receive();
  } else {
    receive();
    send();
  }
}

void Bench::ping_pong_unexpected() {
  if (rank_ == 0) {
    send_and_tell();
    if (options_.both_hold) wait_until_queued();
    receive();
  } else {
    wait_until_queued();
    receive();
    send_and_tell();
  }
}

// Samples are means over a batch long enough to drown the clock; the batches
// fill the time budget.
template <class RoundTrip>
std::vector<double> Bench::round_trips(RoundTrip round_trip) {
  constexpr double kBatchUs = 300;
  const auto batch = [&](int trips) {
    const double start = now_us();
    for (int i = 0; i < trips; ++i) round_trip();
    return (now_us() - start) / trips;
  };
  batch(3);
  const double warm =
      batch(decide_on_rank_0(static_cast<int>(std::clamp(2000.0 / batch(5), 5.0, 2000.0))));
  const int trips = decide_on_rank_0(static_cast<int>(std::clamp(kBatchUs / warm, 1.0, 1000.0)));
  const int batches = decide_on_rank_0(
      static_cast<int>(std::clamp(options_.budget_ms * 1e3 / (warm * trips), 5.0, 200.0)));
  std::vector<double> samples;
  for (int i = 0; i < batches; ++i) samples.push_back(batch(trips) / 2);
  return samples;
}

// ---- cold --------------------------------------------------------------

double Bench::cold_trip(const std::string& which) {
  if (rank_ == 0) {
    next_turn();
    const double start = now_us();
    if (which == "unexpected") {
      send_and_tell();
    } else {
      send();
    }
    receive();
    return (now_us() - start) / 2;
  }
  if (which == "unexpected") {
    sweep();
    next_turn();
    wait_until_queued();
    receive();
  } else {
    // Posted before the sweep, or the posting would warm the end of the queue.
    std::uint8_t in = 0;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_BYTE, peer_, measured_receive_, comm_, &request);
    sweep();
    next_turn();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(in, next_in_++);
  }
  send();
  return 0;
}

void Bench::latency(const std::string& which, const std::string& cache, int depth) {
  fill(which, cache, depth);
  note_placement();
  std::vector<double> samples;
  if (cache == "cold") {
    cold_trip(which);  // touches code and buffers for the first time
    for (int i = 0; i < options_.cold_samples; ++i) samples.push_back(cold_trip(which));
  } else if (which == "unexpected") {
    samples = round_trips([this] { ping_pong_unexpected(); });
  } else {
    samples = round_trips([this] { ping_pong(); });
  }
  drain(which, cache, depth);
  print("latency", which, cache, depth, 1, "samples_us", samples);
}

// ---- receives in random order ------------------------------------------

void Bench::random_order(const std::string& cache, int depth) {
  const bool cold = cache == "cold";
  const auto wanted = static_cast<std::size_t>(options_.cold_samples);
  std::vector<std::size_t> order(static_cast<std::size_t>(depth));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(12345);  // the same order on both ranks
  std::vector<double> samples;
  note_placement();
  const double begin = now_us();
  for (bool more = true; more;) {
    std::shuffle(order.begin(), order.end(), random);
    fill("random", cache, depth);
    // Cold samples are the first messages of the order; the rest follows untimed.
    const std::size_t singles = cold ? std::min(order.size(), wanted - samples.size()) : 0;
    for (std::size_t k = 0; k < singles; ++k) {
      if (rank_ == 0) {
        next_turn();
        const double start = now_us();
        send_ahead(order[k], peer_);
        receive();
        samples.push_back((now_us() - start) / 2);
      } else {
        sweep();
        next_turn();
        MPI_Wait(&requests_[order[k]], MPI_STATUS_IGNORE);
        send();
        samples.push_back(0);
      }
    }
    if (rank_ == 0) {
      next_turn();
      for (std::size_t k = singles; k < order.size(); ++k) send_ahead(order[k], peer_);
    } else {
      const double start = now_us();
      next_turn();
      MPI_Waitall(depth, requests_.data(), MPI_STATUSES_IGNORE);
      if (!cold) samples.push_back((now_us() - start) / depth);
      for (std::size_t i = 0; i < ahead_.size(); ++i) expect(ahead_[i], content(i));
    }
    more = cold ? samples.size() < wanted
                : decide_on_rank_1(
                      samples.size() < 2 ||
                      (now_us() - begin < options_.budget_ms * 1e3 && samples.size() < 200));
  }
  if (!cold) {
    if (rank_ == 1) samples.erase(samples.begin());  // the first drain warms up
    samples = take_from_rank_1(std::move(samples));
  }
  print("latency", "random", cache, depth, 1, "samples_us", samples);
}

// ---- bandwidth ---------------------------------------------------------

// A window of messages in flight, answered by one byte when all are there.
void Bench::bandwidth() {
  constexpr int kWindow = 8;
  const auto bytes = static_cast<std::size_t>(options_.bandwidth_bytes);
  std::vector<std::uint8_t> buffer(bytes * kWindow);
  std::vector<double> samples;
  note_placement();
  std::uint8_t round = 0;
  const double begin = now_us();
  const double budget_us = std::max(3 * options_.budget_ms, 100.0) * 1e3;
  MPI_Request requests[kWindow];
  for (bool more = true; more; ++round) {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      buffer[i] = rank_ == 0 ? static_cast<std::uint8_t>(i * 7 + i / bytes + round) : 0;
    }
    constexpr int kWindows = 10;
    barrier();
    const double start = now_us();
    std::uint8_t answer = 0;
    for (int w = 0; w < kWindows; ++w) {
      for (int i = 0; i < kWindow; ++i) {
        std::uint8_t* const slot = buffer.data() + static_cast<std::size_t>(i) * bytes;
        if (rank_ == 0) {
          MPI_Isend(slot, options_.bandwidth_bytes, MPI_BYTE, peer_, kMeasuredTag, comm_,
                    &requests[i]);
        } else {
          MPI_Irecv(slot, options_.bandwidth_bytes, MPI_BYTE, peer_, kMeasuredTag, comm_,
                    &requests[i]);
        }
      }
      MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
      if (rank_ == 0) {
        MPI_Recv(&answer, 1, MPI_BYTE, peer_, kFenceTag, comm_, MPI_STATUS_IGNORE);
      } else {
        MPI_Send(&answer, 1, MPI_BYTE, peer_, kFenceTag, comm_);
      }
    }
    const double seconds = (now_us() - start) * 1e-6;
    samples.push_back(static_cast<double>(bytes) * kWindow * kWindows / seconds / (1 << 20));
    if (rank_ == 1) {
      for (std::size_t i = 0; i < buffer.size(); ++i) {
        expect(buffer[i], static_cast<std::uint8_t>(i * 7 + i / bytes + round));
      }
    }
    more = decide_on_rank_0(samples.size() < 5 ||
                            (now_us() - begin < budget_us && samples.size() < 100)) != 0;
  }
  samples.erase(samples.begin());  // pages, registrations
  print("bandwidth", "posted", "hot", 0, options_.bandwidth_bytes, "samples_mib_per_s", samples);
}

void Bench::run() {
  print_setup();
  if (options_.bandwidth) bandwidth();
  for (const std::string& which : options_.cases) {
    for (const std::string& cache : options_.caches) {
      for (const int depth : options_.depths) {
        if (which != "random") {
          latency(which, cache, depth);
        } else if (depth > 0) {
          random_order(cache, depth);
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bench::Options line("depth",
                      "Time of a 1-byte message whose match lies behind others in the queue");
  line.choices("--cases", options.cases,
               {"posted", "unexpected", "any_source", "any_tag", "mixed", "random"},
               "what lies ahead of the match");
  line.choices("--caches", options.caches, {"hot", "cold"}, "cold: swept before each message");
  line.numbers("--depths", options.depths, 0, 30000, "entries ahead of the match");
  line.number("--budget-ms", options.budget_ms, 0.001, 1e6, "time per hot point, milliseconds");
  line.number("--cold-samples", options.cold_samples, 1, 1000, "messages per cold point");
  std::string queue_on = "receiver";
  line.choice("--queue-on", queue_on, {"receiver", "both"}, "who holds the queue, hot");
  line.yes("--bandwidth,!--no-bandwidth", options.bandwidth, "1 MiB bandwidth at depth 0");
  if (const std::optional<int> ended = line.parse(argc, argv)) return *ended;
  options.both_hold = queue_on == "both";

  MPI_Init(&argc, &argv);
  {
    Bench bench(options);
    bench.run();
  }
  MPI_Finalize();
  return 0;
}
