// SPDX-License-Identifier: BSD-3-Clause
//
// Message rate after Sandia's micro-benchmark, with threads and queue lengths: the
// single-direction test. Half of the ranks send, each to its own receiver in the other
// half. Thread t of a sender sends --messages to thread t of its receiver, which posts
// its receives first; caches are swept before every iteration, outside the time.
//
// Behind --posted N every receiver holds N receives that no message fits, behind
// --unexpected N messages that no receive fits, for the whole of a point; they are
// drained, and compared, when it is over.
#include "../harness/buffer.hpp"
#include "../harness/cache.hpp"
#include "../harness/content.hpp"
#include "../harness/session.hpp"
#include "../harness/thread_team.hpp"

namespace {

using suite::Estimate;
using suite::Record;
using suite::Session;
using suite::UsageError;

constexpr int kFenceTag = 500;
constexpr int kAheadTag = 1000;  // + index of the entry

struct Options {
  std::vector<std::uint64_t> bytes{8};
  std::vector<std::uint64_t> posted{0};
  std::vector<std::uint64_t> unexpected{0};
  int threads = 1;
  int messages = 128;
  int cache_mib = 8;
  std::string source = "exact";
};

class Rate {
 public:
  Rate(const Session& session, const Options& options, std::size_t bytes, std::size_t posted,
       std::size_t unexpected)
      : session_(session),
        options_(options),
        sender_(session.rank() < session.size() / 2),
        peer_(sender_ ? session.rank() + session.size() / 2 : session.rank() - session.size() / 2),
        bytes_(bytes),
        posted_(posted),
        unexpected_(unexpected),
        per_thread_(static_cast<std::size_t>(options.messages)),
        buffers_(bytes * per_thread_ * static_cast<std::size_t>(options.threads)),
        requests_(per_thread_ * static_cast<std::size_t>(options.threads)),
        sweep_(static_cast<std::size_t>(options.cache_mib) << 20),
        team_(options.threads > 1 ? options.threads : 0, [this](int t) { exchange(t); }) {
    fill_queues();
  }
  ~Rate() { drain_queues(); }

  double sample(long iterations) {
    double seconds = 0;
    for (long i = 0; i < iterations; ++i) seconds += one();
    return seconds / static_cast<double>(iterations);
  }

 private:
  double one() {
    const bool verified = session_.settings().verify;
    ++iteration_;
    if (verified && sender_)
      for_each(
          [&](std::size_t at, std::uint64_t seed) { suite::fill(&buffers_[at], bytes_, seed); });
    sweep_();
    session_.barrier();
    const double seconds = suite::time_of(1, [&](long) {
      if (options_.threads == 1) {
        exchange(0);
      } else {
        team_.release();
        team_.join();
      }
    });
    session_.barrier();
    if (verified && !sender_)
      for_each([&](std::size_t at, std::uint64_t seed) {
        const std::size_t wrong = suite::first_difference(&buffers_[at], bytes_, seed);
        if (wrong != bytes_) {
          suite::wrong_data("message from rank " + std::to_string(peer_) + " at offset " +
                            std::to_string(at) + ", byte " + std::to_string(wrong) + " of " +
                            std::to_string(bytes_));
        }
      });
    return seconds;
  }

  template <class Visit>
  void for_each(Visit visit) {
    const auto sender = static_cast<std::uint64_t>(sender_ ? session_.rank() : peer_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      visit(i * bytes_, suite::seed_of({iteration_, sender, i}));
    }
  }

  void exchange(int thread) {
    const auto first = static_cast<std::size_t>(thread) * per_thread_;
    const int length = static_cast<int>(bytes_);
    const MPI_Comm comm = session_.world();
    if (sender_) {
      for (std::size_t i = first; i < first + per_thread_; ++i) {
        MPI_Isend(&buffers_[i * bytes_], length, MPI_BYTE, peer_, thread, comm, &requests_[i]);
      }
    } else {
      const int source = options_.source == "any" ? MPI_ANY_SOURCE : peer_;
      for (std::size_t i = first; i < first + per_thread_; ++i) {
        MPI_Irecv(&buffers_[i * bytes_], length, MPI_BYTE, source, thread, comm, &requests_[i]);
      }
    }
    MPI_Waitall(options_.messages, &requests_[first], MPI_STATUSES_IGNORE);
  }

  static unsigned char content(std::size_t i) { return static_cast<unsigned char>(i * 131 + 7); }
  static int ahead_tag(std::size_t i) { return kAheadTag + static_cast<int>(i); }
  int unexpected_tag(std::size_t i) const { return ahead_tag(posted_ + i); }

  void fill_queues() {
    const MPI_Comm comm = session_.world();
    if (sender_) {
      for (std::size_t i = 0; i < unexpected_; ++i) {
        const unsigned char byte = content(i);
        MPI_Send(&byte, 1, MPI_BYTE, peer_, unexpected_tag(i), comm);
      }
      MPI_Send(nullptr, 0, MPI_BYTE, peer_, kFenceTag, comm);
    } else {
      ahead_.resize(posted_);
      waiting_.resize(posted_);
      for (std::size_t i = 0; i < posted_; ++i) {
        MPI_Irecv(&ahead_[i], 1, MPI_BYTE, peer_, ahead_tag(i), comm, &waiting_[i]);
      }
      // One sender's messages arrive in order: behind this one all others are queued.
      MPI_Recv(nullptr, 0, MPI_BYTE, peer_, kFenceTag, comm, MPI_STATUS_IGNORE);
    }
    session_.barrier();
  }

  void drain_queues() {
    const MPI_Comm comm = session_.world();
    if (sender_) {
      for (std::size_t i = 0; i < posted_; ++i) {
        const unsigned char byte = content(i);
        MPI_Send(&byte, 1, MPI_BYTE, peer_, ahead_tag(i), comm);
      }
    } else {
      MPI_Waitall(static_cast<int>(posted_), waiting_.data(), MPI_STATUSES_IGNORE);
      for (std::size_t i = 0; i < posted_; ++i) expect(ahead_[i], i);
      for (std::size_t i = 0; i < unexpected_; ++i) {
        unsigned char byte = 0;
        MPI_Recv(&byte, 1, MPI_BYTE, peer_, unexpected_tag(i), comm, MPI_STATUS_IGNORE);
        expect(byte, i);
      }
    }
    session_.barrier();
  }
  void expect(unsigned char got, std::size_t i) const {
    if (got != content(i)) suite::wrong_data("queued entry " + std::to_string(i));
  }

  const Session& session_;
  const Options& options_;
  const bool sender_;
  const int peer_;
  const std::size_t bytes_;
  const std::size_t posted_;
  const std::size_t unexpected_;
  const std::size_t per_thread_;
  suite::Buffer buffers_;
  std::vector<MPI_Request> requests_;
  suite::CacheSweep sweep_;
  std::uint64_t iteration_ = 0;
  std::vector<unsigned char> ahead_;
  std::vector<MPI_Request> waiting_;
  suite::ThreadTeam team_;
};

void run(Session& session, const Options& options) {
  if (session.size() < 2 || session.size() % 2 != 0) {
    throw UsageError(
        "half of the ranks send to the other half: an even number of ranks is "
        "needed, and there are " +
        std::to_string(session.size()));
  }
  if (options.source == "any" && session.size() != 2 && session.settings().verify) {
    throw UsageError("--source any with --verify needs 2 ranks: more could swap their messages");
  }
  session.table("Message rate, single direction, all pairs together",
                {"threads", "bytes", "posted", "unexpected", "source", "time_us", "time_us_ci95",
                 "messages_per_s", "samples", "stopped_by"});
  for (const std::uint64_t bytes : options.bytes) {
    for (const std::uint64_t posted : options.posted) {
      for (const std::uint64_t unexpected : options.unexpected) {
        session.progress(std::to_string(posted) + " posted, " + std::to_string(unexpected) +
                         " unexpected");
        Rate rate(session, options, bytes, posted, unexpected);
        rate.sample(2);
        double mine = 0;
        const Estimate time = session.repeat([&] {
          const double seconds = rate.sample(1);
          mine += seconds;
          return seconds;
        });
        Record record = session.record();
        record["threads"] = options.threads;
        record["bytes"] = bytes;
        record["posted"] = posted;
        record["unexpected"] = unexpected;
        record["source"] = options.source;
        record["messages_per_thread"] = options.messages;
        record["verified"] = session.settings().verify;
        const double messages = session.size() / 2.0 * options.threads * options.messages;
        // By the mean of all ranks' times instead of the slowest one's.
        record["messages_per_s_average_rank"] =
            messages * session.size() * static_cast<double>(time.samples) / session.sum(mine);
        session.report(std::move(record), time, messages, messages * static_cast<double>(bytes));
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  suite::Options line("msgrate", "Message rate of many pairs, with threads and queue lengths");
  line.numbers("--bytes", options.bytes, 1, 1 << 24, "sizes of a message, one point each");
  line.numbers("--posted", options.posted, 0, 100000, "receives queued ahead, one point each");
  line.numbers("--unexpected", options.unexpected, 0, 100000,
               "messages queued ahead, one point each");
  line.number("--threads", options.threads, 1, 1024, "per rank; 1: the main thread");
  line.number("--messages", options.messages, 1, 100000, "per thread and iteration");
  line.number("--cache-mib", options.cache_mib, 0, 4096, "swept before an iteration");
  line.choice("--source", options.source, {"exact", "any"}, "what the receives ask for");
  return suite::run_program(
      argc, argv, line,
      [&] { return options.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE; },
      [&](Session& session) { run(session, options); });
}
