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
//   random      nothing more: `depth` receives, whose messages come in random order
//
// What is timed
//   posted, any_source: half a round trip of Send and Recv. As in the ping-pongs
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
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kMeasuredTag = 1;
constexpr int kFenceTag = 2;
constexpr int kNeverTag = 3;
constexpr int kAheadTag = 1000;  // + index of the entry
constexpr std::size_t kLine = 64;
constexpr std::size_t kSmallestSweep = std::size_t{48} << 20;

struct Options {
  std::vector<std::string> cases{"posted", "unexpected", "any_source", "random"};
  std::vector<std::string> caches{"hot", "cold"};
  std::vector<int> depths{0, 1, 16, 64, 256, 1024, 4096, 16384};
  double budget_ms = 40;
  int cold_samples = 9;
  bool both_hold = false;
  int bandwidth_bytes = 1 << 20;
  bool bandwidth = true;
};

// Counters that the ranks hand each other outside MPI, each on a line of its own.
struct Shared {
  struct alignas(kLine) {
    std::atomic<std::uint64_t> count;               // messages whose Send has returned
  } sent[2];                                        // by sender
  alignas(kLine) std::atomic<std::uint64_t> ready;  // turns for which rank 1 is ready
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "depth: %s\n", message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// From sysfs: what sysconf() says on a virtual machine may be the whole host's.
std::size_t last_level_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kib = 0;
    if (file >> kib) largest = std::max(largest, kib << 10);
  }
  return largest;
}

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

class Bench {
 public:
  explicit Bench(const Options& options);
  ~Bench();
  void run();

 private:
  void latency(const std::string& which, const std::string& cache, int depth);
  void random_order(const std::string& cache, int depth);
  void bandwidth();

  bool holds_queue(int rank, const std::string& which, const std::string& cache) const;
  void send_ahead(std::size_t index);
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
  void wait_until_queued();

  // Rank 0 stands still, outside MPI, until rank 1 has prepared a turn.
  void next_turn() {
    ++turn_;
    if (rank_ == 1) {
      shared_->ready.store(turn_, std::memory_order_release);
    } else {
      while (shared_->ready.load(std::memory_order_acquire) < turn_) {
      }
    }
  }
  void barrier() { MPI_Barrier(control_); }
  int decide_on_rank_0(int value) {
    MPI_Bcast(&value, 1, MPI_INT, 0, control_);
    return value;
  }
  bool decide_on_rank_1(bool value);
  std::vector<double> take_from_rank_1(std::vector<double> values);
  void sweep();
  void expect(std::uint8_t got, std::uint8_t wanted) const {
    if (got != wanted) [[unlikely]] {
      fail("wrong data: received " + std::to_string(got) + ", sent " + std::to_string(wanted));
    }
  }
  static std::uint8_t content(std::size_t index) {
    return static_cast<std::uint8_t>(index * 131 + 7);
  }
  void print(const char* measure, const std::string& which, const std::string& cache, int depth,
             int bytes, const char* unit, const std::vector<double>& samples) const;

  const Options& options_;
  int rank_ = 0;
  int peer_ = 0;
  MPI_Comm comm_ = MPI_COMM_WORLD;
  MPI_Comm control_ = MPI_COMM_NULL;  // keeps agreements and barriers off the measured queues
  Shared* shared_ = nullptr;
  std::uint64_t told_ = 0;  // messages of send_and_tell() so far
  std::uint64_t late_ = 0;  // messages of wait_until_queued() so far
  std::uint64_t turn_ = 0;
  std::uint8_t next_out_ = 1;
  std::uint8_t next_in_ = 1;
  MPI_Request never_ = MPI_REQUEST_NULL;  // testing it makes progress and matches nothing
  std::uint8_t never_buffer_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint8_t> ahead_;
  std::vector<char> sweep_buffer_;
};

Bench::Bench(const Options& options) : options_(options) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  if (size != 2) fail("needs exactly 2 ranks, has " + std::to_string(size));
  peer_ = 1 - rank_;
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);

  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int on_node = 0;
  MPI_Comm_size(node, &on_node);
  MPI_Comm_free(&node);
  if (on_node != 2) fail("both ranks must run on one node");

  char name[64];
  std::snprintf(name, sizeof name, "/tagline-depth-%ld", static_cast<long>(getpid()));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, control_);
  int file = -1;
  if (rank_ == 0) {
    file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) fail("no shared memory (/dev/shm)");
  }
  barrier();
  if (rank_ == 1) file = shm_open(name, O_RDWR, 0600);
  void* memory = file < 0
                     ? MAP_FAILED
                     : mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  shared_ = static_cast<Shared*>(memory);  // zero-filled, which is what every counter starts from
  barrier();
  close(file);
  if (rank_ == 0) shm_unlink(name);

  sweep_buffer_.resize(std::max(kSmallestSweep, last_level_cache_bytes() * 3 / 2));
  MPI_Irecv(&never_buffer_, 1, MPI_BYTE, 0, kNeverTag, MPI_COMM_SELF, &never_);
}

Bench::~Bench() {
  MPI_Send(&never_buffer_, 1, MPI_BYTE, 0, kNeverTag, MPI_COMM_SELF);
  MPI_Wait(&never_, MPI_STATUS_IGNORE);
  munmap(shared_, sizeof(Shared));
  MPI_Comm_free(&control_);
}

void Bench::sweep() {
  volatile char* const line = sweep_buffer_.data();
  for (std::size_t i = 0; i < sweep_buffer_.size(); i += kLine) line[i] = line[i] + 1;
}

void Bench::print(const char* measure, const std::string& which, const std::string& cache,
                  int depth, int bytes, const char* unit,
                  const std::vector<double>& samples) const {
  if (rank_ != 0) return;
  std::printf(R"({"measure":"%s","case":"%s","cache":"%s","depth":%d,"message_bytes":%d,"%s":[)",
              measure, which.c_str(), cache.c_str(), depth, bytes, unit);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::printf("%s%.5g", i == 0 ? "" : ",", samples[i]);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

// ---- the queue ahead of the match --------------------------------------

bool Bench::holds_queue(int rank, const std::string& which, const std::string& cache) const {
  return rank == 1 || (options_.both_hold && cache == "hot" && which != "random");
}

void Bench::fill(const std::string& which, const std::string& cache, int depth) {
  const auto n = static_cast<std::size_t>(depth);
  requests_.assign(n, MPI_REQUEST_NULL);
  ahead_.assign(n, 0);
  if (which == "unexpected") {
    if (holds_queue(peer_, which, cache)) {
      for (std::size_t i = 0; i < n; ++i) send_ahead(i);
      const std::uint8_t fence = 0;
      MPI_Send(&fence, 1, MPI_BYTE, peer_, kFenceTag, comm_);
    }
    if (holds_queue(rank_, which, cache)) {
      // Messages of one sender arrive in order: behind the fence all others are queued.
      std::uint8_t fence = 0;
      MPI_Recv(&fence, 1, MPI_BYTE, peer_, kFenceTag, comm_, MPI_STATUS_IGNORE);
    }
  } else if (holds_queue(rank_, which, cache)) {
    const int source = which == "any_source" ? MPI_ANY_SOURCE : peer_;
    for (std::size_t i = 0; i < n; ++i) {
      MPI_Irecv(&ahead_[i], 1, MPI_BYTE, source, kAheadTag + static_cast<int>(i), comm_,
                &requests_[i]);
    }
  }
  barrier();
}

void Bench::drain(const std::string& which, const std::string& cache, int depth) {
  if (which != "unexpected" && holds_queue(peer_, which, cache)) {
    for (int i = 0; i < depth; ++i) send_ahead(static_cast<std::size_t>(i));
  }
  if (holds_queue(rank_, which, cache)) {
    if (which == "unexpected") {
      for (int i = 0; i < depth; ++i) {
        MPI_Recv(&ahead_[static_cast<std::size_t>(i)], 1, MPI_BYTE, peer_, kAheadTag + i, comm_,
                 MPI_STATUS_IGNORE);
      }
    } else {
      MPI_Waitall(depth, requests_.data(), MPI_STATUSES_IGNORE);
    }
    for (std::size_t i = 0; i < ahead_.size(); ++i) expect(ahead_[i], content(i));
  }
  barrier();
}

void Bench::send_ahead(std::size_t index) {
  const std::uint8_t byte = content(index);
  MPI_Send(&byte, 1, MPI_BYTE, peer_, kAheadTag + static_cast<int>(index), comm_);
}

// ---- the measured message ----------------------------------------------

void Bench::send() {
  MPI_Send(&next_out_, 1, MPI_BYTE, peer_, kMeasuredTag, comm_);
  ++next_out_;
}

void Bench::receive() {
  std::uint8_t in = 0;
  MPI_Recv(&in, 1, MPI_BYTE, peer_, kMeasuredTag, comm_, MPI_STATUS_IGNORE);
  expect(in, next_in_++);
}

void Bench::send_and_tell() {
  send();
  // release: pairs with the acquire in wait_until_queued(); the message is on its way
  shared_->sent[rank_].count.store(++told_, std::memory_order_release);
}

void Bench::wait_until_queued() {
  ++late_;
  int flag = 0;
  while (shared_->sent[peer_].count.load(std::memory_order_acquire) < late_) {
    MPI_Test(&never_, &flag, MPI_STATUS_IGNORE);
  }
  // The message may have landed after the last progress: this one queues it.
  MPI_Test(&never_, &flag, MPI_STATUS_IGNORE);
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
    MPI_Irecv(&in, 1, MPI_BYTE, peer_, kMeasuredTag, comm_, &request);
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
        send_ahead(order[k]);
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
      for (std::size_t k = singles; k < order.size(); ++k) send_ahead(order[k]);
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

bool Bench::decide_on_rank_1(bool value) {
  int number = value ? 1 : 0;
  MPI_Bcast(&number, 1, MPI_INT, 1, control_);
  return number != 0;
}

std::vector<double> Bench::take_from_rank_1(std::vector<double> values) {
  int count = static_cast<int>(values.size());
  MPI_Bcast(&count, 1, MPI_INT, 1, control_);
  values.resize(static_cast<std::size_t>(count));
  MPI_Bcast(values.data(), count, MPI_DOUBLE, 1, control_);
  return values;
}

// ---- bandwidth ---------------------------------------------------------

// A window of messages in flight, answered by one byte when all are there.
void Bench::bandwidth() {
  constexpr int kWindow = 8;
  const auto bytes = static_cast<std::size_t>(options_.bandwidth_bytes);
  std::vector<std::uint8_t> buffer(bytes * kWindow);
  std::vector<double> samples;
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
  if (rank_ == 0) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    std::string text(version, static_cast<std::size_t>(length));
    // "Open MPI v4.1.4, package: ..., ident: ..." or several lines from MPICH
    text = text.substr(0, text.find_first_of(",\n"));
    std::replace(text.begin(), text.end(), '\t', ' ');
    std::printf("{\"measure\":\"setup\",\"library\":\"%s\",\"sweep_bytes\":%zu}\n", text.c_str(),
                sweep_buffer_.size());
  }
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
  CLI::App app{"Time of a 1-byte message whose match lies behind others in the queue"};
  app.add_option("--cases", options.cases, "posted unexpected any_source random")
      ->delimiter(',')
      ->check(CLI::IsMember({"posted", "unexpected", "any_source", "random"}));
  app.add_option("--caches", options.caches, "hot cold")
      ->delimiter(',')
      ->check(CLI::IsMember({"hot", "cold"}));
  app.add_option("--depths", options.depths, "entries ahead of the match")
      ->delimiter(',')
      ->check(CLI::Range(0, 30000));
  app.add_option("--budget-ms", options.budget_ms, "time per hot point, milliseconds")
      ->check(CLI::PositiveNumber);
  app.add_option("--cold-samples", options.cold_samples, "messages per cold point")
      ->check(CLI::Range(1, 1000));
  app.add_option_function<std::string>(
         "--queue-on", [&](const std::string& where) { options.both_hold = where == "both"; },
         "who holds the queue, hot")
      ->check(CLI::IsMember({"receiver", "both"}));
  app.add_flag("--bandwidth,!--no-bandwidth", options.bandwidth, "1 MiB bandwidth at depth 0");
  CLI11_PARSE(app, argc, argv);

  MPI_Init(&argc, &argv);
  {
    Bench bench(options);
    bench.run();
  }
  MPI_Finalize();
  return 0;
}
