// SPDX-License-Identifier: BSD-3-Clause
//
// Queue depth: what a message costs when its match lies behind D other entries. Two ranks;
// rank 1 holds the queue, rank 0 holds none.
//
//   --ahead      what lies ahead of the match on rank 1
//   posted       receives from the same rank with other tags
//   any_source   ANY_SOURCE receives with other tags
//   any_tag      ANY_TAG receives for another source; what is timed asks for any tag too
//   unexpected   messages with other tags that nobody receives
//   random       nothing more: D receives, whose messages come in random order
//
//   --test       what an iteration is
//   latency      one message and its reply (random: one after the other until all D have
//                come); the time is half of a round trip, which holds one search
//   bandwidth    --window messages at once (random: all D), a reply to all of them
//
// The receives of an iteration are posted before its first message is sent. Before
// unexpected messages are received they all lie there, and what is timed is receiving them
// alone, on rank 1. Between posting and sending both ranks write a buffer larger than their
// caches (--cache-mib 0: they do not), and no message crosses the queue after that. Each
// rank stays on one CPU if there is one for each. Entries ahead are drained, and compared,
// when a point is over.
#include <sched.h>

#include <numeric>
#include <random>

#include "../harness/buffer.hpp"
#include "../harness/cache.hpp"
#include "../harness/content.hpp"
#include "../harness/session.hpp"

namespace {

using suite::Estimate;
using suite::Record;
using suite::Session;
using suite::UsageError;

constexpr int kReadyTag = 1;                       // to rank 0: go on
constexpr int kReplyTag = 2;                       // to rank 0: received
constexpr int kDataTag = 10;                       // + index of the message, to rank 1
constexpr int kMostAtOnce = 16000;                 // MPI promises tags up to 32767
constexpr int kAheadTag = kDataTag + kMostAtOnce;  // + index of the entry

struct Options {
  std::string test = "latency";
  std::vector<std::string> ahead{"posted"};
  std::vector<std::uint64_t> depths{0, 1, 16, 64, 256, 1024};
  std::vector<std::uint64_t> bytes{1};
  int window = 64;
  int cache_mib = 64;
};

class Queue {
 public:
  Queue(const Session& session, const Options& options, const std::string& ahead, std::size_t depth,
        std::size_t bytes)
      : session_(session),
        holder_(session.rank() == 1),
        latency_(options.test == "latency"),
        ahead_(ahead),
        depth_(ahead == "random" ? 0 : depth),
        bytes_(bytes),
        messages_(ahead == "random" ? std::max<std::size_t>(depth, 1)
                  : latency_        ? 1
                                    : static_cast<std::size_t>(options.window)),
        data_(bytes * messages_),
        requests_(messages_),
        order_(messages_),
        sweep_(static_cast<std::size_t>(options.cache_mib) << 20) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    fill_queue();
  }
  ~Queue() { drain_queue(); }

  double messages() const { return static_cast<double>(messages_); }

  // Seconds of an iteration on the rank that times it; 0 on the other one.
  double iterate() {
    ++iteration_;
    if (ahead_ == "random") std::shuffle(order_.begin(), order_.end(), random_);
    const bool verified = session_.settings().verify;
    if (verified && !holder_) {
      for (std::size_t i = 0; i < messages_; ++i) suite::fill(at(i), bytes_, seed(i));
    }
    const double seconds = ahead_ == "unexpected" ? unexpected() : posted();
    for (std::size_t i = 0; verified && holder_ && i < messages_; ++i) {
      const std::size_t wrong = suite::first_difference(at(i), bytes_, seed(i));
      if (wrong != bytes_) {
        suite::wrong_data("message " + std::to_string(i) + ", byte " + std::to_string(wrong) +
                          " of " + std::to_string(bytes_));
      }
    }
    return seconds;
  }

 private:
  char* at(std::size_t i) { return data_.data() + i * bytes_; }
  std::uint64_t seed(std::size_t i) const { return suite::seed_of({iteration_, i}); }
  static int tag(std::size_t i) { return kDataTag + static_cast<int>(i); }
  int length() const { return static_cast<int>(bytes_); }

  // An empty message of the holder's to rank 0.
  void tell(int what) { MPI_Send(nullptr, 0, MPI_BYTE, 0, what, session_.world()); }
  void hear(int what) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, what, session_.world(), MPI_STATUS_IGNORE);
  }

  void post(std::size_t i) {
    MPI_Irecv(at(i), length(), MPI_BYTE, 0, ahead_ == "any_tag" ? MPI_ANY_TAG : tag(i),
              session_.world(), &requests_[i]);
  }
  void start(std::size_t i) {
    MPI_Isend(at(i), length(), MPI_BYTE, 1, tag(i), session_.world(), &requests_[i]);
  }
  void wait_all() {
    MPI_Waitall(static_cast<int>(messages_), requests_.data(), MPI_STATUSES_IGNORE);
  }

  double posted() {
    if (!holder_) {
      sweep_();
      hear(kReadyTag);
      return suite::time_of(1,
                            [&](long) {
                              if (latency_) {
                                for (const std::size_t i : order_) {
                                  MPI_Send(at(i), length(), MPI_BYTE, 1, tag(i), session_.world());
                                  hear(kReplyTag);
                                }
                              } else {
                                for (const std::size_t i : order_) start(i);
                                wait_all();
                                hear(kReplyTag);
                              }
                            }) /
             (latency_ ? 2 : 1);
    }
    for (std::size_t i = 0; i < messages_; ++i) post(i);
    sweep_();
    tell(kReadyTag);
    if (latency_) {
      for (const std::size_t i : order_) {
        MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
        tell(kReplyTag);
      }
    } else {
      wait_all();
      tell(kReplyTag);
    }
    return 0;
  }

  double unexpected() {
    if (!holder_) {
      hear(kReadyTag);
      for (std::size_t i = 0; i < messages_; ++i) start(i);
      hear(kReplyTag);
      wait_all();
      return 0;
    }
    tell(kReadyTag);
    // One sender's messages arrive in order: with the last one all are here.
    MPI_Probe(0, tag(messages_ - 1), session_.world(), MPI_STATUS_IGNORE);
    sweep_();
    const double seconds = suite::time_of(1, [&](long) {
      for (std::size_t i = 0; i < messages_; ++i) post(i);
      wait_all();
    });
    tell(kReplyTag);
    return seconds;
  }

  // ---- the entries ahead

  static unsigned char content(std::size_t i) { return static_cast<unsigned char>(i * 131 + 7); }
  static int ahead_tag(std::size_t i) { return kAheadTag + static_cast<int>(i); }
  void send_ahead(std::size_t i, int to) {
    const unsigned char byte = content(i);
    MPI_Send(&byte, 1, MPI_BYTE, to, ahead_tag(i), session_.world());
  }

  void fill_queue() {
    if (ahead_ == "unexpected" && !holder_) {
      for (std::size_t i = 0; i < depth_; ++i) send_ahead(i, 1);
    }
    if (holder_) {
      got_.resize(depth_);
      waiting_.assign(depth_, MPI_REQUEST_NULL);
    }
    if (holder_ && ahead_ == "unexpected") {
      if (depth_ > 0) {
        MPI_Probe(0, ahead_tag(depth_ - 1), session_.world(), MPI_STATUS_IGNORE);
      }
    } else if (holder_) {
      // An ANY_TAG receive for rank 0 would take what is timed: these are for the holder's own.
      const bool any_tag = ahead_ == "any_tag";
      const int source = any_tag ? 1 : ahead_ == "any_source" ? MPI_ANY_SOURCE : 0;
      for (std::size_t i = 0; i < depth_; ++i) {
        MPI_Irecv(&got_[i], 1, MPI_BYTE, source, any_tag ? MPI_ANY_TAG : ahead_tag(i),
                  session_.world(), &waiting_[i]);
      }
    }
    session_.barrier();
  }

  void drain_queue() {
    const int sender = ahead_ == "any_tag" ? 1 : 0;
    for (std::size_t i = 0; ahead_ != "unexpected" && i < depth_; ++i) {
      if (session_.rank() == sender) send_ahead(i, 1);
    }
    if (holder_) {
      for (std::size_t i = 0; ahead_ == "unexpected" && i < depth_; ++i) {
        MPI_Recv(&got_[i], 1, MPI_BYTE, 0, ahead_tag(i), session_.world(), MPI_STATUS_IGNORE);
      }
      MPI_Waitall(static_cast<int>(depth_), waiting_.data(), MPI_STATUSES_IGNORE);
      for (std::size_t i = 0; i < depth_; ++i) {
        if (got_[i] != content(i)) suite::wrong_data("queued entry " + std::to_string(i));
      }
    }
    session_.barrier();
  }

  const Session& session_;
  const bool holder_;
  const bool latency_;
  const std::string ahead_;
  const std::size_t depth_;
  const std::size_t bytes_;
  const std::size_t messages_;  // of an iteration
  suite::Buffer data_;
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> order_;
  std::mt19937 random_{12345};  // the same order on both ranks
  suite::CacheSweep sweep_;
  std::uint64_t iteration_ = 0;
  std::vector<unsigned char> got_;
  std::vector<MPI_Request> waiting_;
};

// Rank i of a node stays on the i-th of the CPUs that it may use; false without enough.
bool stay_on_one_cpu(const Session& session) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  if (CPU_COUNT(&allowed) < session.ranks_per_node()) return false;
  int left = session.rank() % session.ranks_per_node();
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    CPU_ZERO(&allowed);
    CPU_SET(cpu, &allowed);
    return sched_setaffinity(0, sizeof allowed, &allowed) == 0;
  }
  return false;
}

void run(Session& session, const Options& options) {
  if (session.size() != 2) {
    throw UsageError("one rank sends and one holds the queue: 2 ranks are needed, and there are " +
                     std::to_string(session.size()));
  }
  session.table("Messages behind queues of some depth",
                {"test", "ahead", "depth", "bytes", "time_us", "time_us_ci95", "MB_per_s",
                 "samples", "stopped_by"});
  const bool pinned = session.maximum(stay_on_one_cpu(session) ? 0 : 1) == 0;
  for (const std::string& ahead : options.ahead) {
    for (const std::uint64_t depth : options.depths) {
      for (const std::uint64_t bytes : options.bytes) {
        session.progress(ahead + ", depth " + std::to_string(depth) + ", " + std::to_string(bytes) +
                         " bytes");
        Queue queue(session, options, ahead, depth, bytes);
        queue.iterate();
        // Caches that are swept make every iteration a sample.
        const long batch = options.cache_mib > 0 ? 1 : session.batch_size([&](long n) {
          double seconds = 0;
          for (long i = 0; i < n; ++i) seconds += queue.iterate();
          return seconds;
        });
        const Estimate time = session.repeat([&] {
          double seconds = 0;
          for (long i = 0; i < batch; ++i) seconds += queue.iterate();
          return seconds / static_cast<double>(batch) / queue.messages();
        });
        Record record = session.record();
        record["test"] = options.test;
        record["ahead"] = ahead;
        record["depth"] = depth;
        record["bytes"] = bytes;
        record["window"] = static_cast<long>(queue.messages());
        record["cache_sweep_mib"] = options.cache_mib;
        record["pinned"] = pinned;
        record["verified"] = session.settings().verify;
        session.report(std::move(record), time, 1, static_cast<double>(bytes));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  suite::Options line("queue_depth", "Latency and bandwidth behind queues of some depth");
  line.choice("--test", options.test, {"latency", "bandwidth"}, "what is timed, per message");
  line.choices("--ahead", options.ahead,
               {"posted", "any_source", "any_tag", "unexpected", "random"},
               "what lies ahead of the match, one point each");
  line.numbers("--depths", options.depths, 0, kMostAtOnce, "entries ahead, one point each");
  line.numbers("--bytes", options.bytes, 1, 1 << 24, "sizes of a message, one point each");
  line.number("--window", options.window, 1, kMostAtOnce, "messages at once (bandwidth)");
  line.number("--cache-mib", options.cache_mib, 0, 4096,
              "written before each iteration; 0: caches stay as they are");
  return suite::run_program(
      argc, argv, line, [] { return MPI_THREAD_SINGLE; },
      [&](Session& session) { run(session, options); });
}
