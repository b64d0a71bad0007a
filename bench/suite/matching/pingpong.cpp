// SPDX-License-Identifier: BSD-3-Clause
//
// Extended parallel ping-pong, after Karlsson: 1 to all pairs at once, and how many
// receives are posted ahead.
//
//   latency        one message there, one back; the time is half of it
//   bandwidth      --window messages there, a reply of no bytes back
//   bidirectional  the same from both sides at once
//
// --preposted D: a receiver has D receives posted, and another one whenever one is
// complete. With fewer than the window, messages that come early are unexpected.
//
// --uncached M: each message goes from and to a place of M MiB that has not been used for
// as long as they last, so that no cache holds it; without it the same places come again.
//
// --places: where data lie, which decides what caches hold of a large message
//   own  each message of a window has its own, and what is received goes elsewhere than what is
//        sent comes from; a ping-pong brings back the data that came
//   two  all messages go from one place and into another one, and a ping-pong brings back other
//        data, so that caches keep what is only ever sent (as in OSU's benchmarks)
//   one  a ping-pong goes from and to the same place on either side (as in NetPIPE)
//
// Pair i is rank i and rank i + half of all (--pairing halves: between nodes, if ranks
// are placed node by node) or ranks 2i and 2i + 1 (neighbours: inside a node). Pairs
// that are not active wait in a barrier. The time is the slowest pair's; the mean over
// the pairs stands beside it.
//
// Hockney's model, T = alpha + m / bandwidth, is fitted to a latency test of at least
// three sizes: alpha from sizes to 64 KiB, bandwidth from sizes of 128 KiB on, each by a
// least-squares line through the round trips.
#include "../harness/buffer.hpp"
#include "../harness/content.hpp"
#include "../harness/session.hpp"

namespace {

using suite::Estimate;
using suite::Record;
using suite::Session;
using suite::UsageError;

constexpr int kDataTag = 1;
constexpr int kReplyTag = 2;  // one of its own: a window's receives are posted ahead

struct Options {
  std::string test = "latency";
  std::string pairing = "halves";
  std::vector<std::uint64_t> pairs{1};
  std::vector<std::uint64_t> bytes{8};
  int window = 64;
  int preposted = 0;  // all of the window
  int uncached = 0;   // MiB
  std::string places = "own";
  int rounds = 0;  // as many as fill --batch-ms
};

enum class Test { latency, bandwidth, bidirectional };

Test test_of(const std::string& name) {
  return name == "latency"     ? Test::latency
         : name == "bandwidth" ? Test::bandwidth
                               : Test::bidirectional;
}

class Pair {
 public:
  Pair(const Session& session, const Options& options, int active, std::size_t bytes)
      : session_(session),
        test_(test_of(options.test)),
        window_(test_ == Test::latency ? 1 : options.window),
        depth_(options.preposted == 0 ? window_ : std::min(options.preposted, window_)),
        bytes_(bytes),
        places_(options.places != "own"
                    ? 1
                    : std::max(window_,
                               static_cast<int>((static_cast<std::size_t>(options.uncached) << 20) /
                                                bytes))),
        in_(options.places == "one" ? out_ : apart_),
        back_(options.places == "two" ? out_ : in_) {
    const bool halves = options.pairing == "halves";
    const int half = session.size() / 2;
    const int pair = halves ? session.rank() % half : session.rank() / 2;
    first_ = halves ? session.rank() < half : session.rank() % 2 == 0;
    peer_ = halves ? (first_ ? session.rank() + half : session.rank() - half) : session.rank() ^ 1;
    active_ = pair < active && session.rank() < 2 * half;
    out_.resize(bytes * static_cast<std::size_t>(places_));
    in_.resize(out_.size());
    requests_.resize(static_cast<std::size_t>(window_));
    sends_.resize(requests_.size());
  }

  bool active() const { return active_; }
  bool first() const { return first_; }

  // Seconds per round on this rank; 0 where the pair rests.
  double sample(long rounds) {
    const bool verified = session_.settings().verify;
    ++samples_;
    const auto seed = [&](int from, int slot) {
      return suite::seed_of(
          {samples_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(place(slot))});
    };
    const bool sends = active_ && (first_ || test_ == Test::bidirectional);
    const bool receives = active_ && (!first_ || test_ != Test::bandwidth);
    for (int slot = 0; verified && sends && slot < places_; ++slot) {
      suite::fill(at(out_, slot), bytes_, seed(session_.rank(), slot));
    }
    session_.barrier();
    double seconds = 0;
    if (active_) seconds = suite::time_of(rounds, [&](long) { round(); });
    session_.barrier();
    for (int slot = 0; verified && receives && slot < window_; ++slot) {
      // A ping-pong brings the first rank's own data back to it.
      const int from = test_ == Test::latency && first_ ? session_.rank() : peer_;
      const std::size_t wrong = suite::first_difference(at(in_, slot), bytes_, seed(from, slot));
      if (wrong != bytes_) {
        suite::wrong_data("message " + std::to_string(slot) + " of rank " + std::to_string(from) +
                          " at rank " + std::to_string(session_.rank()) + ", byte " +
                          std::to_string(wrong) + " of " + std::to_string(bytes_));
      }
    }
    return seconds / static_cast<double>(rounds);
  }

 private:
  // Of this round's messages.
  int place(int slot) const { return (first_place_ + slot) % places_; }
  char* at(suite::Buffer& buffer, int slot) {
    return buffer.data() + bytes_ * static_cast<std::size_t>(place(slot));
  }

  void round() {
    first_place_ = place(window_);
    const MPI_Comm comm = session_.world();
    const int length = static_cast<int>(bytes_);
    if (test_ == Test::latency) {
      if (first_) {
        MPI_Send(at(out_, 0), length, MPI_BYTE, peer_, kDataTag, comm);
        MPI_Recv(at(in_, 0), length, MPI_BYTE, peer_, kDataTag, comm, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(at(in_, 0), length, MPI_BYTE, peer_, kDataTag, comm, MPI_STATUS_IGNORE);
        MPI_Send(at(back_, 0), length, MPI_BYTE, peer_, kDataTag, comm);
      }
    } else if (test_ == Test::bandwidth) {
      if (first_) {
        start_sends();
        MPI_Waitall(window_, sends_.data(), MPI_STATUSES_IGNORE);
        MPI_Recv(nullptr, 0, MPI_BYTE, peer_, kReplyTag, comm, MPI_STATUS_IGNORE);
      } else {
        post_ahead();
        receive_rest();
        MPI_Send(nullptr, 0, MPI_BYTE, peer_, kReplyTag, comm);
      }
    } else {
      post_ahead();
      start_sends();
      receive_rest();
      MPI_Waitall(window_, sends_.data(), MPI_STATUSES_IGNORE);
    }
  }

  void start_sends() {
    for (int i = 0; i < window_; ++i) {
      MPI_Isend(at(out_, i), static_cast<int>(bytes_), MPI_BYTE, peer_, kDataTag, session_.world(),
                &sends_[static_cast<std::size_t>(i)]);
    }
  }
  void post(int i) {
    MPI_Irecv(at(in_, i), static_cast<int>(bytes_), MPI_BYTE, peer_, kDataTag, session_.world(),
              &requests_[static_cast<std::size_t>(i)]);
  }
  void post_ahead() {
    for (int i = 0; i < depth_; ++i) post(i);
  }
  void receive_rest() {
    if (depth_ == window_) {
      MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
      return;
    }
    if (depth_ == window_) {
      MPI_Waitall(window_, requests_.data(), MPI_STATUSES_IGNORE);
      return;
    }
    for (int i = 0; i < window_; ++i) {
      MPI_Wait(&requests_[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
      if (i + depth_ < window_) post(i + depth_);
    }
  }

  const Session& session_;
  const Test test_;
  const int window_;
  const int depth_;
  const std::size_t bytes_;
  int peer_ = 0;
  bool first_ = false;
  bool active_ = false;
  std::uint64_t samples_ = 0;
  const int places_;  // of messages in a buffer
  int first_place_ = 0;
  suite::Buffer out_;
  suite::Buffer apart_;
  suite::Buffer& in_;
  suite::Buffer& back_;  // what a ping-pong brings back
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Request> sends_;
};

struct RoundTrip {
  double bytes;
  double seconds;
};

// Slope and mean of the round trips whose size lies between the bounds.
struct Line {
  double slope = 0;
  double mean_bytes = 0;
  double mean_seconds = 0;
  int points = 0;
};

Line line_through(const std::vector<RoundTrip>& trips, double least, double most) {
  Line line;
  for (const RoundTrip& trip : trips) {
    if (trip.bytes < least || trip.bytes > most) continue;
    ++line.points;
    line.mean_bytes += trip.bytes;
    line.mean_seconds += trip.seconds;
  }
  if (line.points < 2) return line;
  line.mean_bytes /= line.points;
  line.mean_seconds /= line.points;
  double covariance = 0;
  double variance = 0;
  for (const RoundTrip& trip : trips) {
    if (trip.bytes < least || trip.bytes > most) continue;
    covariance += (trip.bytes - line.mean_bytes) * (trip.seconds - line.mean_seconds);
    variance += (trip.bytes - line.mean_bytes) * (trip.bytes - line.mean_bytes);
  }
  line.slope = variance > 0 ? covariance / variance : 0;
  return line;
}

void report_fit(Session& session, const std::vector<RoundTrip>& trips, std::uint64_t pairs) {
  constexpr double kKi = 1024;
  const Line small = line_through(trips, 1, 64 * kKi);
  const Line large = line_through(trips, 128 * kKi, 16 * kKi * kKi);
  if (small.points + large.points < 3) return;
  Record record = session.record();
  record["test"] = "hockney fit";
  record["pairs"] = pairs;
  if (small.points >= 2) {
    record["alpha_us"] = (small.mean_seconds - small.slope * small.mean_bytes) / 2 * 1e6;
  }
  if (large.points >= 2 && large.slope > 0) {
    record["bandwidth_MB_per_s"] = 2 / large.slope * 1e-6;
  }
  session.report(std::move(record));
}

void run(Session& session, const Options& options) {
  if (session.size() < 2 || session.size() % 2 != 0) {
    throw UsageError("pairs need an even number of ranks, and there are " +
                     std::to_string(session.size()));
  }
  for (const std::uint64_t pairs : options.pairs) {
    if (pairs * 2 > static_cast<std::uint64_t>(session.size())) {
      throw UsageError(std::to_string(pairs) + " pairs need " + std::to_string(2 * pairs) +
                       " ranks, and there are " + std::to_string(session.size()));
    }
  }
  if (options.places != "own" && (options.uncached > 0 || session.settings().verify)) {
    throw UsageError("--places " + options.places +
                     " lets messages overwrite each other: neither --uncached nor --verify goes "
                     "with it");
  }
  if (options.places == "one" && options.test != "latency") {
    throw UsageError(
        "--places one is for --test latency: a place cannot be sent from and "
        "received into at a time");
  }
  if (options.preposted > options.window) {
    throw UsageError("--preposted " + std::to_string(options.preposted) +
                     " is more than the --window of " + std::to_string(options.window));
  }
  session.table(
      "Parallel ping-pong",
      {"test", "uncached_MiB", "pairs", "bytes", "window", "preposted", "cpu_mhz", "time_us",
       "time_us_ci95", "time_us_average_pair", "messages_per_s", "MB_per_s", "watts",
       "energy_uj_per_message", "alpha_us", "bandwidth_MB_per_s", "samples", "stopped_by"});
  const bool latency = options.test == "latency";
  for (const std::uint64_t pairs : options.pairs) {
    std::vector<RoundTrip> trips;
    for (const std::uint64_t bytes : options.bytes) {
      session.progress(options.test + ", " + std::to_string(pairs) + " pairs, " +
                       std::to_string(bytes) + " bytes");
      Pair pair(session, options, static_cast<int>(pairs), bytes);
      long rounds = options.rounds;
      if (rounds > 0) {
        pair.sample(rounds);  // warms up
      } else {
        rounds =
            session.batch_size([&](long n) { return pair.sample(n) * static_cast<double>(n); });
      }
      double mine = 0;
      long samples = 0;
      Estimate time = session.repeat([&] {
        const double seconds = pair.sample(rounds);
        mine += seconds;
        ++samples;
        return seconds / (latency ? 2 : 1);
      });
      trips.push_back({static_cast<double>(bytes), time.mean * 2});
      Record record = session.record();
      record["test"] = options.test;
      if (options.uncached > 0) record["uncached_MiB"] = options.uncached;
      record["places"] = options.places;
      record["pairing"] = options.pairing;
      record["pairs"] = pairs;
      record["bytes"] = bytes;
      if (!latency) {
        record["window"] = options.window;
        record["preposted"] = options.preposted == 0 ? options.window : options.preposted;
      }
      const double per_round = mine / static_cast<double>(samples) / (latency ? 2 : 1);
      record["time_us_average_pair"] =
          session.sum(pair.first() ? per_round : 0) / static_cast<double>(pairs) * 1e6;
      record["verified"] = session.settings().verify;
      const double messages = static_cast<double>(pairs) * (latency ? 1 : options.window) *
                              (options.test == "bidirectional" ? 2 : 1);
      session.report(std::move(record), time, messages, messages * static_cast<double>(bytes));
    }
    if (latency) report_fit(session, trips, pairs);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  suite::Options line("pingpong", "Parallel ping-pong: latency, bandwidth, receives posted ahead");
  line.choice("--test", options.test, {"latency", "bandwidth", "bidirectional"}, "what is timed");
  line.choice("--pairing", options.pairing, {"halves", "neighbours"}, "who is whose peer");
  line.numbers("--pairs", options.pairs, 1, 1 << 20, "active pairs, one point each");
  line.numbers("--bytes", options.bytes, 1, 1 << 30, "sizes of a message, one point each");
  line.number("--window", options.window, 1, 1 << 16, "messages in flight");
  line.number("--preposted", options.preposted, 0, 1 << 16,
              "receives posted ahead; 0: all of the window");
  line.number("--uncached", options.uncached, 0, 4096,
              "MiB that the messages' places are spread over; 0: the same places again");
  line.number("--rounds", options.rounds, 0, 1 << 30,
              "that a sample averages over; 0: as many as take --batch-ms");
  line.choice("--places", options.places, {"own", "two", "one"},
              "how many places messages go from and to");
  return suite::run_program(
      argc, argv, line, [] { return MPI_THREAD_SINGLE; },
      [&](Session& session) { run(session, options); });
}
