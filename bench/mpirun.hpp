// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs of the installed Open MPI, or an MPICH, under several configurations. A job has a time
// limit and leaves no process behind, whatever happens to it or to us.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

// A way to run MPI programs: what mpirun gets beside the program.
struct Configuration {
  std::string name;
  std::vector<std::string> arguments;
  // Of the programs that can start it the first one found in PATH is taken.
  std::vector<std::string> launchers{"mpirun.openmpi", "mpirun"};
  std::string mpi = "openmpi";  // whose compiler wrapper the programs are built with
};

// ob1 and tagline over the same transport (vader: shared memory, or tcp) and self.
Configuration ob1(const std::string& transport);
Configuration ucx();
Configuration tagline(const std::filesystem::path& component_directory,
                      const std::string& transport);
Configuration mpich();
Configuration oshmem();  // Open MPI's OpenSHMEM

// An MPICH, by the folder that it is installed in.
Configuration mpich(const std::string& name, const std::filesystem::path& prefix);

struct JobResult {
  bool ok = false;
  std::string reason;  // why not, in a few words
  bool timed_out = false;
  int exit_code = 0;
  std::string errors;  // all that it wrote to stderr
};

// mpirun and its options for a configuration; the program follows.
std::vector<std::string> mpirun_command(const Configuration& configuration, int ranks);

// Run a command, hand each line of its stdout to on_line, and wait for its end.
// Its stderr is kept and shortened to the reason of a failure.
JobResult run_job(const std::vector<std::string>& command, std::chrono::seconds limit,
                  const std::function<void(const std::string&)>& on_line);

// True once the user or the system has asked us to stop (SIGINT, SIGTERM, SIGHUP).
bool interrupted();
void watch_for_interrupts();

}  // namespace bench
