// SPDX-License-Identifier: BSD-3-Clause
#include "pair.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace bench {
namespace {

constexpr std::size_t kSmallestSweep = std::size_t{48} << 20;

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

}  // namespace

double now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

Pair::Pair(const char* program) : program_(program) {
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
  std::snprintf(name, sizeof name, "/tagline-bench-%ld", static_cast<long>(getpid()));
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

Pair::~Pair() {
  const std::uint8_t end = 0;  // MPI forbids sending out of the buffer that receives
  MPI_Send(&end, 1, MPI_BYTE, 0, kNeverTag, MPI_COMM_SELF);
  MPI_Wait(&never_, MPI_STATUS_IGNORE);
  munmap(shared_, sizeof(Shared));
  MPI_Comm_free(&control_);
}

void Pair::fail(const std::string& message) const {
  std::fprintf(stderr, "%s: %s\n", program_, message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void Pair::print_setup() const {
  if (rank_ != 0) return;
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

void Pair::print(const char* measure, const std::string& which, const std::string& cache, int depth,
                 int bytes, const char* unit, const std::vector<double>& samples) const {
  if (rank_ != 0) return;
  std::printf(R"({"measure":"%s","case":"%s","cache":"%s","depth":%d,"message_bytes":%d,)"
              R"("line_ns":%.0f,"%s":[)",
              measure, which.c_str(), cache.c_str(), depth, bytes, line_ns_, unit);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::printf("%s%.5g", i == 0 ? "" : ",", samples[i]);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

int Pair::decide_on_rank_0(int value) {
  MPI_Bcast(&value, 1, MPI_INT, 0, control_);
  return value;
}

bool Pair::decide_on_rank_1(bool value) {
  int number = value ? 1 : 0;
  MPI_Bcast(&number, 1, MPI_INT, 1, control_);
  return number != 0;
}

std::vector<double> Pair::take_from_rank_1(std::vector<double> values) {
  int count = static_cast<int>(values.size());
  MPI_Bcast(&count, 1, MPI_INT, 1, control_);
  values.resize(static_cast<std::size_t>(count));
  MPI_Bcast(values.data(), count, MPI_DOUBLE, 1, control_);
  return values;
}

void Pair::wait_until_queued() {
  ++late_;
  int flag = 0;
  while (shared_->sent[peer_].count.load(std::memory_order_acquire) < late_) {
    MPI_Test(&never_, &flag, MPI_STATUS_IGNORE);
  }
  // The message may have landed after the last progress: this one queues it.
  MPI_Test(&never_, &flag, MPI_STATUS_IGNORE);
}

void Pair::note_placement() {
  constexpr int kTrips = 300;
  std::atomic<std::uint64_t>& ball = shared_->ball;
  double fastest = 0;
  for (int batch = 0; batch < 5; ++batch) {
    const double start = now_us();
    for (int i = 0; i < kTrips; ++i) {
      if (rank_ == 0) {
        ball.store(ball_ + 1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != ball_ + 2) {
        }
      } else {
        while (ball.load(std::memory_order_acquire) != ball_ + 1) {
        }
        ball.store(ball_ + 2, std::memory_order_release);
      }
      ball_ += 2;
    }
    const double trip = (now_us() - start) / kTrips;
    fastest = batch == 0 ? trip : std::min(fastest, trip);
  }
  line_ns_ = fastest * 1e3 / 2;
}

void Pair::sweep() {
  volatile char* const line = sweep_buffer_.data();
  for (std::size_t i = 0; i < sweep_buffer_.size(); i += kLine) line[i] = line[i] + 1;
}

}  // namespace bench
