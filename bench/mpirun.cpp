// SPDX-License-Identifier: BSD-3-Clause
#include "mpirun.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

volatile sig_atomic_t interrupted_by = 0;

extern "C" void note_interrupt(int signal) { interrupted_by = signal; }

// Debian's mpirun may be another MPI's by way of alternatives: Open MPI's own name first.
std::string find_launcher(const std::vector<std::string>& names) {
  const char* const path = std::getenv("PATH");
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) return name;
    std::string rest = path != nullptr ? path : "/usr/bin:/bin";
    for (std::size_t at = 0; at != std::string::npos;) {
      const std::size_t end = rest.find(':', at);
      const fs::path file = fs::path(rest.substr(at, end - at)) / name;
      if (access(file.c_str(), X_OK) == 0) return file;
      at = end == std::string::npos ? end : end + 1;
    }
  }
  throw std::runtime_error("no " + names.front() + " in PATH (packages openmpi-bin, mpich)");
}

// Signal every process of a session: mpirun puts its ranks into groups of their
// own, the session they cannot leave by that.
int signal_session(pid_t session, int signal) {
  int alive = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const auto close = text.rfind(')');  // the command may hold anything, brackets too
    if (close == std::string::npos) continue;
    char state = 0;
    long parent = 0;
    long group = 0;
    long its_session = 0;
    if (std::sscanf(text.c_str() + close + 1, " %c %ld %ld %ld", &state, &parent, &group,
                    &its_session) != 4) {
      continue;
    }
    if (its_session != session || state == 'Z') continue;
    ++alive;
    kill(static_cast<pid_t>(std::stol(name)), signal);
  }
  return alive;
}

// The way out: mpirun ends its ranks when told to; who does not listen is killed.
void end_session(pid_t session, bool ask_first) {
  if (ask_first) {
    kill(session, SIGTERM);
    for (int i = 0; i < 30 && signal_session(session, 0) > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  for (int i = 0; i < 50 && signal_session(session, SIGKILL) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Open MPI frames its messages with dashes and blank lines; the first sentences say most.
std::string shorten(const std::string& text) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size() && result.size() < 240) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line.find_first_not_of("-= ") == std::string::npos) continue;
    line.erase(0, first);
    result += (result.empty() ? "" : " ") + line;
  }
  if (result.size() > 300) result = result.substr(0, 300) + " ...";
  return result;
}

}  // namespace

bool interrupted() { return interrupted_by != 0; }

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;  // without SA_RESTART: poll() has to return
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

Configuration ob1(const std::string& transport) {
  return {"ob1", {"--mca", "pml", "ob1", "--mca", "btl", transport + ",self"}};
}

Configuration ucx() {
  // UCX takes shared memory only if told that any device will do.
  return {
      "ucx",
      {"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"}};
}

Configuration tagline(const fs::path& component_directory, const std::string& transport) {
  // The system's folder stays in the path: without it mpirun finds none of its parts.
  return {"tagline",
          {"--mca", "mca_base_component_path", component_directory.string() + ":SYSTEM_DEFAULT",
           "--mca", "pml", "tagline", "--mca", "btl", transport + ",self"}};
}

Configuration mpich() { return {"mpich", {}, {"mpirun.mpich", "mpiexec.hydra"}, "mpich"}; }

Configuration mpich(const std::string& name, const fs::path& prefix) {
  // One program for all: whichever MPICH it was linked with, it runs with this one.
  return {name,
          {"-genv", "LD_LIBRARY_PATH", (prefix / "lib").string()},
          {(prefix / "bin/mpiexec").string()},
          "mpich"};
}

// The transport for InfiniBand is left out: with it programs of Open MPI 4.1 crash when they end.
Configuration oshmem() { return {"oshmem", {"--mca", "btl", "^openib"}, {"oshrun"}}; }

std::vector<std::string> mpirun_command(const Configuration& configuration, int ranks) {
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  std::vector<std::string> command{find_launcher(configuration.launchers), "-n",
                                   std::to_string(ranks)};
  if (configuration.mpi == "openmpi" &&
      static_cast<int>(std::thread::hardware_concurrency()) < ranks) {
    command.emplace_back("--oversubscribe");
  }
  command.insert(command.end(), configuration.arguments.begin(), configuration.arguments.end());
  return command;
}

JobResult run_job(const std::vector<std::string>& command, std::chrono::seconds limit,
                  const std::function<void(const std::string&)>& on_line) {
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    return {false, std::string("pipe: ") + std::strerror(errno), false, 0, ""};
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  const pid_t us = getpid();
  const pid_t child = fork();
  if (child < 0) return {false, std::string("fork: ") + std::strerror(errno), false, 0, ""};
  if (child == 0) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != us) _exit(127);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    execv(arguments[0], arguments.data());
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
  }
  close(out[1]);
  close(err[1]);

  const Clock::time_point deadline = Clock::now() + limit;
  std::string line;
  std::string errors;
  bool timed_out = false;
  pollfd ends[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    timed_out = left <= 0;
    if (timed_out || interrupted()) break;
    if (poll(ends, 2, static_cast<int>(std::min<long>(left, 1000))) <= 0) continue;
    for (pollfd& end : ends) {
      if (end.fd < 0 || end.revents == 0) continue;
      char buffer[65536];
      const ssize_t got = read(end.fd, buffer, sizeof buffer);
      if (got <= 0) {
        end.fd = -1;
        continue;
      }
      if (&end == &ends[1]) {
        errors.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      for (ssize_t i = 0; i < got; ++i) {
        if (buffer[i] != '\n') {
          line += buffer[i];
        } else {
          on_line(line);
          line.clear();
        }
      }
    }
  }
  close(out[0]);
  close(err[0]);

  // Both ends are closed, so mpirun is about to leave; its exit code is worth a wait.
  int status = 0;
  bool left = false;
  if (!timed_out && !interrupted()) {
    for (int i = 0; i < 500 && !left; ++i) {
      left = waitpid(child, &status, WNOHANG) == child;
      if (!left) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  end_session(child, !left);
  if (!left) waitpid(child, &status, 0);
  if (interrupted()) return {false, "interrupted", false, 0, errors};
  if (timed_out) {
    return {false, "ran longer than " + std::to_string(limit.count()) + " s", true, 0, errors};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, "", false, 0, errors};
  const std::string what = WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                                             : "signal " + std::to_string(WTERMSIG(status));
  return {false, what + (errors.empty() ? "" : ": " + shorten(errors)), false,
          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), errors};
}

}  // namespace bench
