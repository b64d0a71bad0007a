// SPDX-License-Identifier: BSD-3-Clause
//
// Point-to-point benchmark: messages of many sizes between two ranks on one node,
// as the ping-pongs and windows of the literature; any MPI library.
//
//   measure        what one iteration is
//   latency        Send and Recv there and back; half of its time counts
//   bandwidth      a window of 16 Isend, answered by one byte when all have arrived
//   bidirectional  the same from both sides at once, no answer
//   rate           as bandwidth, 64 messages, counted instead of weighed
//
// Hot, receives are posted while messages are under way. Cold is the way of the
// dissertation: rank 1 posts its receives, both ranks sweep a buffer larger than
// the last-level cache, and only then does rank 0 send. With --depths rank 1 holds
// that many receives with other tags in front of all.
//
// The first window's content is checked after each point, every byte. Rank 0
// prints one JSON object per point on stdout.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "pair.hpp"

namespace {

using bench::now_us;

constexpr int kDataTag = 1;
constexpr int kAnswerTag = 2;
constexpr int kAheadTag = 1000;  // + index of the entry
constexpr std::size_t kMostMemory = std::size_t{16} << 20;

struct Options {
  std::vector<std::string> measures{"latency", "bandwidth", "bidirectional", "rate"};
  std::vector<int> sizes{1};
  std::vector<int> depths{0};
  bool cold = false;
  double budget_ms = 10;
  int cold_samples = 5;
  int window = 0;  // 0: by measure
};

class Bench : private bench::Pair {
 public:
  explicit Bench(const Options& options) : Pair("stream"), options_(options) {}
  void run();

 private:
  void point(const std::string& measure, int depth, int bytes);
  void fill_queue(int depth);
  void drain_queue();
  void prepare(int bytes, int window);
  void check() const;

  template <class Iteration>
  std::vector<double> hot_times(Iteration iteration);
  template <class Iteration>
  std::vector<double> cold_times(Iteration iteration);

  void ping_pong();
  void ping_pong_cold();
  void window_one_way();
  void window_one_way_cold();
  void window_both_ways();
  void answer();

  std::uint8_t* out(int index) { return out_.data() + slot(index); }
  std::uint8_t* in(int index) { return in_.data() + slot(index); }
  std::size_t slot(int index) const {
    return static_cast<std::size_t>(index) % slots_ * static_cast<std::size_t>(bytes_);
  }
  void post_receives() {
    for (int i = 0; i < window_; ++i) {
      MPI_Irecv(in(i), bytes_, MPI_BYTE, peer_, kDataTag, comm_, &requests_[i]);
    }
  }
  void start_sends(MPI_Request* requests) {
    for (int i = 0; i < window_; ++i) {
      MPI_Isend(out(i), bytes_, MPI_BYTE, peer_, kDataTag, comm_, &requests[i]);
    }
  }

  const Options& options_;
  int bytes_ = 0;
  int window_ = 1;
  std::size_t slots_ = 1;  // buffers that a window's messages share
  std::vector<std::uint8_t> out_;
  std::vector<std::uint8_t> in_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Request> ahead_requests_;
  std::vector<std::uint8_t> ahead_;
};

// ---- buffers and queue ---------------------------------------------------

void Bench::prepare(int bytes, int window) {
  bytes_ = bytes;
  window_ = window;
  slots_ = std::clamp<std::size_t>(kMostMemory / static_cast<std::size_t>(std::max(bytes, 1)), 1,
                                   static_cast<std::size_t>(window));
  requests_.assign(2 * static_cast<std::size_t>(window), MPI_REQUEST_NULL);
  out_.resize(slots_ * static_cast<std::size_t>(bytes) + 1);
  in_.assign(out_.size(), 0);
  for (std::size_t i = 0; i < out_.size(); ++i) {
    out_[i] = static_cast<std::uint8_t>(i * 7 + 3 + static_cast<std::size_t>(bytes));
  }
}

void Bench::check() const {
  const bool received = std::equal(in_.begin(), in_.end() - 1, out_.begin());
  if (!received) fail("wrong data in messages of " + std::to_string(bytes_) + " bytes");
}

void Bench::fill_queue(int depth) {
  ahead_.assign(static_cast<std::size_t>(depth), 0);
  ahead_requests_.assign(ahead_.size(), MPI_REQUEST_NULL);
  if (rank_ == 1) {
    for (int i = 0; i < depth; ++i) {
      const auto at = static_cast<std::size_t>(i);
      MPI_Irecv(&ahead_[at], 1, MPI_BYTE, peer_, kAheadTag + i, comm_, &ahead_requests_[at]);
    }
  }
  barrier();
}

void Bench::drain_queue() {
  for (std::size_t i = 0; rank_ == 0 && i < ahead_.size(); ++i) {
    MPI_Send(&ahead_[i], 1, MPI_BYTE, peer_, kAheadTag + static_cast<int>(i), comm_);
  }
  MPI_Waitall(static_cast<int>(ahead_requests_.size()), ahead_requests_.data(),
              MPI_STATUSES_IGNORE);
  barrier();
}

// ---- iterations ----------------------------------------------------------

void Bench::ping_pong() {
  if (rank_ == 0) {
    MPI_Send(out(0), bytes_, MPI_BYTE, peer_, kDataTag, comm_);
    MPI_Recv(in(0), bytes_, MPI_BYTE, peer_, kDataTag, comm_, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in(0), bytes_, MPI_BYTE, peer_, kDataTag, comm_, MPI_STATUS_IGNORE);
    MPI_Send(out(0), bytes_, MPI_BYTE, peer_, kDataTag, comm_);
  }
}

void Bench::ping_pong_cold() {
  if (rank_ == 0) {
    ping_pong();
  } else {
    MPI_Wait(&requests_[0], MPI_STATUS_IGNORE);
    MPI_Send(out(0), bytes_, MPI_BYTE, peer_, kDataTag, comm_);
  }
}

void Bench::answer() {
  std::uint8_t byte = 0;
  if (rank_ == 0) {
    MPI_Recv(&byte, 1, MPI_BYTE, peer_, kAnswerTag, comm_, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&byte, 1, MPI_BYTE, peer_, kAnswerTag, comm_);
  }
}

void Bench::window_one_way() {
  if (rank_ == 0) {
    start_sends(requests_.data());
  } else {
    post_receives();
  }
  MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
  answer();
}

void Bench::window_one_way_cold() {
  if (rank_ == 0) start_sends(requests_.data());
  MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
  answer();
}

void Bench::window_both_ways() {
  post_receives();
  start_sends(requests_.data() + window_);
  MPI_Waitall(2 * window_, requests_.data(), MPI_STATUSES_IGNORE);
}

// ---- times ---------------------------------------------------------------

// Microseconds per iteration: means over batches that drown the clock and fill the budget.
template <class Iteration>
std::vector<double> Bench::hot_times(Iteration iteration) {
  constexpr double kBatchUs = 200;
  const auto batch = [&](int iterations) {
    const double start = now_us();
    for (int i = 0; i < iterations; ++i) iteration();
    return (now_us() - start) / iterations;
  };
  double warm = batch(2);
  warm = batch(decide_on_rank_0(static_cast<int>(std::clamp(kBatchUs / warm, 1.0, 1000.0))));
  const int per_batch =
      decide_on_rank_0(static_cast<int>(std::clamp(kBatchUs / warm, 1.0, 1000.0)));
  const int batches = decide_on_rank_0(
      static_cast<int>(std::clamp(options_.budget_ms * 1e3 / (warm * per_batch), 3.0, 200.0)));
  std::vector<double> times;
  for (int i = 0; i < batches; ++i) times.push_back(batch(per_batch));
  return times;
}

template <class Iteration>
std::vector<double> Bench::cold_times(Iteration iteration) {
  std::vector<double> times;
  for (int i = 0; i <= options_.cold_samples; ++i) {
    if (rank_ == 1) post_receives();
    sweep();
    next_turn();
    const double start = now_us();
    iteration();
    if (i > 0) times.push_back(now_us() - start);  // the first touches code and buffers
  }
  return times;
}

void Bench::point(const std::string& measure, int depth, int bytes) {
  const bool latency = measure == "latency";
  const int usual = latency ? 1 : measure == "rate" ? 64 : 16;
  prepare(bytes, latency || options_.window == 0 ? usual : options_.window);
  fill_queue(depth);
  note_placement();
  std::vector<double> times;
  if (options_.cold) {
    times = latency ? cold_times([this] { ping_pong_cold(); })
                    : cold_times([this] { window_one_way_cold(); });
  } else if (latency) {
    times = hot_times([this] { ping_pong(); });
  } else if (measure == "bidirectional") {
    times = hot_times([this] { window_both_ways(); });
  } else {
    times = hot_times([this] { window_one_way(); });
  }
  drain_queue();
  if (rank_ == 1 || measure == "bidirectional") check();

  const double messages = measure == "bidirectional" ? 2.0 * window_ : window_;
  for (double& time : times) {
    if (latency) {
      time /= 2;
    } else if (measure == "rate") {
      time = messages / time * 1e6;
    } else {
      time = messages * bytes / time * 1e6 / (1 << 20);
    }
  }
  print(measure.c_str(), "posted", options_.cold ? "cold" : "hot", depth, bytes,
        latency             ? "samples_us"
        : measure == "rate" ? "samples_per_s"
                            : "samples_mib_per_s",
        times);
}

void Bench::run() {
  print_setup();
  for (const std::string& measure : options_.measures) {
    for (const int depth : options_.depths) {
      for (const int bytes : options_.sizes) {
        if (bytes > 0 || measure == "latency" || measure == "rate") point(measure, depth, bytes);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  bench::Options line("stream",
                      "Latency, bandwidth and message rate between two ranks by message size");
  line.choices("--measures", options.measures, {"latency", "bandwidth", "bidirectional", "rate"},
               "what to measure");
  line.numbers("--sizes", options.sizes, 0, 1 << 26, "bytes per message");
  line.numbers("--depths", options.depths, 0, 30000, "receives with other tags ahead");
  line.yes("--cold", options.cold, "sweep the caches before each iteration");
  line.number("--budget-ms", options.budget_ms, 0.001, 1e6, "time per hot point, milliseconds");
  line.number("--cold-samples", options.cold_samples, 1, 1000, "iterations per cold point");
  line.number("--window", options.window, 0, 1024, "messages per window (0: 16, for rate 64)");
  if (const std::optional<int> ended = line.parse(argc, argv)) return *ended;
  if (options.cold && std::count(options.measures.begin(), options.measures.end(),
                                 std::string("bidirectional")) != 0) {
    std::fprintf(stderr, "stream: --cold has no bidirectional measure\n");
    return 2;
  }

  MPI_Init(&argc, &argv);
  {
    Bench bench(options);
    bench.run();
  }
  MPI_Finalize();
  return 0;
}
