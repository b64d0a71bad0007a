// SPDX-License-Identifier: BSD-3-Clause
//
// Messages per second of several threads, MPI_THREAD_MULTIPLE; any MPI library. Thread t of
// rank 0 sends 1-byte messages to thread t of rank 1: a window at a time, once its receives
// are posted behind `depth` others that stay. All threads use one communicator and tags of
// their own, or each a communicator of its own. A rank alone sends to itself: half as many
// threads, so that they have cores of their own where cores are few.
//
// Bursts (--burst): the threads of rank 0 send so many messages each, all at once, to rank 1,
// which sleeps meanwhile and then has one thread receive them. So two threads and two ranks need
// two cores. Nanoseconds per message of the senders, and of the receiver, medians.
//
// Every byte received is compared with the one that was sent. Rank 0 prints one JSON object
// per point on stdout.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "options.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindow = 64;
constexpr int kReadyTag = 1;
constexpr int kMessageTag = 1000;  // + thread
constexpr int kAheadTag = 100000;  // + thread * kMostAhead + index
constexpr int kMostAhead = 10000;

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "mt_rate: %s\n", message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

std::uint8_t content(int thread, int index) {
  return static_cast<std::uint8_t>(thread * 31 + index * 7 + 1);
}

void post_window(std::uint8_t* received, int from, int thread, MPI_Comm comm,
                 MPI_Request* requests) {
  for (int i = 0; i < kWindow; ++i) {
    MPI_Irecv(&received[i], 1, MPI_BYTE, from, kMessageTag + thread, comm, &requests[i]);
  }
}

void send_window(std::uint8_t* sent, int to, int thread, MPI_Comm comm, MPI_Request* requests) {
  for (int i = 0; i < kWindow; ++i) {
    sent[i] = content(thread, i);
    MPI_Isend(&sent[i], 1, MPI_BYTE, to, kMessageTag + thread, comm, &requests[i]);
  }
}

void check_window(const std::uint8_t* received, int thread) {
  for (int i = 0; i < kWindow; ++i) {
    if (received[i] != content(thread, i)) fail("wrong data: messages out of order or damaged");
  }
}

// The windows of one thread, to the other rank or to this one.
void exchange(int rank, int peer, int thread, MPI_Comm comm, int windows) {
  std::uint8_t received[kWindow];
  std::uint8_t sent[kWindow];
  MPI_Request requests[2 * kWindow];
  for (int w = 0; w < windows; ++w) {
    if (rank == peer) {
      post_window(received, peer, thread, comm, requests);
      send_window(sent, peer, thread, comm, requests + kWindow);
      MPI_Waitall(2 * kWindow, requests, MPI_STATUSES_IGNORE);
      check_window(received, thread);
    } else if (rank == 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, peer, kReadyTag + thread, comm, MPI_STATUS_IGNORE);
      send_window(sent, peer, thread, comm, requests);
      MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    } else {
      post_window(received, peer, thread, comm, requests);
      MPI_Send(nullptr, 0, MPI_BYTE, peer, kReadyTag + thread, comm);
      MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
      check_window(received, thread);
    }
  }
}

double run(int rank, int peer, const std::vector<MPI_Comm>& comms, int windows) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t < comms.size(); ++t) {
    threads.emplace_back([&, t] { exchange(rank, peer, static_cast<int>(t), comms[t], windows); });
  }
  exchange(rank, peer, 0, comms[0], windows);
  for (std::thread& thread : threads) thread.join();
  MPI_Barrier(MPI_COMM_WORLD);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double rate(int rank, int peer, const std::vector<MPI_Comm>& comms, int depth, double ms) {
  const int threads = static_cast<int>(comms.size());
  // The receives ahead: as many for each thread, on its communicator.
  std::vector<std::uint8_t> ahead(static_cast<std::size_t>(depth));
  std::vector<MPI_Request> requests(ahead.size(), MPI_REQUEST_NULL);
  const auto place = [&](int i) { return comms[static_cast<std::size_t>(i % threads)]; };
  const bool receives = peer == 0;
  if (receives) {
    for (int i = 0; i < depth; ++i) {
      MPI_Irecv(&ahead[static_cast<std::size_t>(i)], 1, MPI_BYTE, 0, kAheadTag + i, place(i),
                &requests[static_cast<std::size_t>(i)]);
    }
  }
  run(rank, peer, comms, 2);
  const double trial = run(rank, peer, comms, 4) / 4;
  int windows = std::clamp(static_cast<int>(ms * 1e-3 / trial), 2, 100000);
  MPI_Bcast(&windows, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const double seconds = run(rank, peer, comms, windows);
  if (rank == 0) {
    for (int i = 0; i < depth; ++i) {
      const std::uint8_t byte = content(0, i);
      MPI_Send(&byte, 1, MPI_BYTE, peer, kAheadTag + i, place(i));
    }
  }
  if (receives) MPI_Waitall(depth, requests.data(), MPI_STATUSES_IGNORE);
  return static_cast<double>(windows) * kWindow * threads / seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// The processing units that the process may use.
const cpu_set_t& allowed() {
  static const cpu_set_t units = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  }();
  return units;
}
int allowed_units() { return CPU_COUNT(&allowed()); }

// To one of them, another one for each thread.
void pin(int thread) {
  for (int unit = 0; unit < CPU_SETSIZE; ++unit) {
    if (!CPU_ISSET(unit, &allowed()) || thread-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(unit, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

constexpr int kBursts = 200;
constexpr auto kSleep = std::chrono::milliseconds(2);

// Until the last thread has handed over its last message, per message.
double send_bursts(const std::vector<MPI_Comm>& comms, int messages) {
  const int threads = static_cast<int>(comms.size());
  std::vector<double> samples;
  std::atomic<int> ready{0};
  std::atomic<int> burst{0};
  std::atomic<int> done{0};
  std::vector<Clock::time_point> ends(comms.size());
  std::vector<std::vector<std::uint8_t>> sent(
      comms.size(), std::vector<std::uint8_t>(static_cast<std::size_t>(messages)));
  std::vector<std::vector<MPI_Request>> requests(comms.size(),
                                                 std::vector<MPI_Request>(sent[0].size()));
  const auto send = [&](int thread, int b) {
    const auto t = static_cast<std::size_t>(thread);
    for (int i = 0; i < messages; ++i) {
      const auto m = static_cast<std::size_t>(i);
      sent[t][m] = content(thread, b + i);
      MPI_Isend(&sent[t][m], 1, MPI_BYTE, 1, kMessageTag + thread, comms[t], &requests[t][m]);
    }
    ends[t] = Clock::now();
    MPI_Waitall(messages, requests[t].data(), MPI_STATUSES_IGNORE);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) {
    others.emplace_back([&, t] {
      pin(t);
      for (int b = 1; b <= kBursts; ++b) {
        while (ready.load() < b) std::this_thread::yield();
        while (burst.load() < b) continue;  // a burst takes no longer than a yield
        send(t, b);
        ++done;
      }
    });
  }
  pin(0);
  for (int b = 1; b <= kBursts; ++b) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, kReadyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ready = b;
    // Then the receiver has fallen asleep, and the other threads have a core each.
    std::this_thread::sleep_for(kSleep / 8);
    const auto begin = Clock::now();
    burst = b;
    send(0, b);
    while (done.load() < b * (threads - 1)) std::this_thread::yield();
    const auto end = *std::max_element(ends.begin(), ends.end());
    samples.push_back(std::chrono::duration<double, std::nano>(end - begin).count() /
                      (messages * threads));
  }
  for (std::thread& thread : others) thread.join();
  return median(samples);
}

double receive_bursts(const std::vector<MPI_Comm>& comms, int messages) {
  const std::size_t threads = comms.size();
  std::vector<double> samples;
  std::vector<std::uint8_t> received(threads * static_cast<std::size_t>(messages));
  std::vector<MPI_Request> requests(received.size());
  for (int b = 1; b <= kBursts; ++b) {
    for (std::size_t i = 0; i < received.size(); ++i) {
      MPI_Irecv(&received[i], 1, MPI_BYTE, 0, kMessageTag + static_cast<int>(i % threads),
                comms[i % threads], &requests[i]);
    }
    MPI_Send(nullptr, 0, MPI_BYTE, 0, kReadyTag, MPI_COMM_WORLD);
    std::this_thread::sleep_for(kSleep);
    const auto begin = Clock::now();
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    const auto end = Clock::now();
    samples.push_back(std::chrono::duration<double, std::nano>(end - begin).count() /
                      static_cast<double>(requests.size()));
    for (std::size_t i = 0; i < received.size(); ++i) {
      const int index = b + static_cast<int>(i / threads);
      if (received[i] != content(static_cast<int>(i % threads), index))
        fail("wrong data: messages out of order or damaged");
    }
  }
  return median(samples);
}

void measure_bursts(int rank, const std::vector<MPI_Comm>& comms, const std::string& which,
                    int messages) {
  MPI_Barrier(MPI_COMM_WORLD);
  double own = rank == 0 ? send_bursts(comms, messages) : receive_bursts(comms, messages);
  double receive = 0;
  if (rank == 1) {
    MPI_Send(&own, 1, MPI_DOUBLE, 0, kReadyTag, MPI_COMM_WORLD);
    return;
  }
  MPI_Recv(&receive, 1, MPI_DOUBLE, 1, kReadyTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::printf(R"({"ranks":2,"threads":%zu,"communicators":"%s","burst_messages":%d,)"
              R"("send_ns":%.1f,"receive_ns":%.1f})"
              "\n",
              comms.size(), which.c_str(), messages, own, receive);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) fail("MPI_THREAD_MULTIPLE is not provided");
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > 2) fail("needs 1 or 2 ranks, has " + std::to_string(size));
  const int peer = size - 1 - rank;
  bench::Options options("mt_rate", "Messages per second of several threads");
  std::vector<int> thread_counts{1, 2, 4};
  std::vector<int> depths{0, 64, 1024};
  std::vector<std::string> communicators{"one", "own"};
  double ms = 40;
  int burst = 0;
  options.numbers("--threads", thread_counts, 1, 1024, "threads of each rank");
  options.numbers("--depths", depths, 0, kMostAhead, "receives ahead of the matches");
  options.choices("--communicators", communicators, {"one", "own"}, "own: each thread its own");
  options.number("--ms", ms, 0.001, 1e6, "length of a measurement");
  options.number("--burst", burst, 0, 1000,
                 "bursts of so many messages of each thread instead; 2 ranks");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  if (burst != 0 && size != 2) fail("bursts need 2 ranks, there is " + std::to_string(size));

  for (const int threads : thread_counts) {
    for (const std::string& which : communicators) {
      if (threads == 1 && which != communicators.front()) continue;
      std::vector<MPI_Comm> comms(static_cast<std::size_t>(threads));
      MPI_Comm shared;
      MPI_Comm_dup(MPI_COMM_WORLD, &shared);
      for (MPI_Comm& comm : comms) {
        comm = shared;
        if (which == "own") MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      }
      // Threads that wait for each other's cores would measure the system's scheduler.
      if (burst != 0 && threads <= allowed_units()) measure_bursts(rank, comms, which, burst);
      for (const int depth : burst != 0 ? std::vector<int>{} : depths) {
        const double messages = rate(rank, peer, comms, depth, ms);
        if (rank != 0) continue;
        std::printf(
            R"({"ranks":%d,"threads":%d,"communicators":"%s","depth":%d,"messages_per_second":%.0f})"
            "\n",
            size, threads, which.c_str(), depth, messages);
        std::fflush(stdout);
      }
      if (which == "own") {
        for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
      }
      MPI_Comm_free(&shared);
    }
  }
  MPI_Finalize();
  return 0;
}
