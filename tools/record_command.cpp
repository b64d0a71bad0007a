// SPDX-License-Identifier: BSD-3-Clause
//
// tagline record: preloads the recorder into what the user starts, and stays out of the way.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "commands.hpp"
#include "history.hpp"

namespace tagline::tools {

namespace fs = std::filesystem;

namespace {

struct Options {
  fs::path folder = "tagline-trace";
  std::uint64_t limit_mib = 1024;
  std::string mpi = "auto";
  bool replace = false;
  std::vector<std::string> command;
};

bool is_launcher(const std::string& word) {
  const std::string name = fs::path(word).filename();
  for (const char* known : {"mpirun", "mpiexec", "orterun", "prterun"}) {
    if (name.rfind(known, 0) == 0) return true;
  }
  return false;
}

// By what the launcher says about itself.
std::string mpi_of(const std::string& launcher) {
  std::string text;
  try {
    text = output_of({launcher, "--version"});
  } catch (const Error&) {
    throw Error(launcher +
                " cannot be asked for its version: is it the command that starts "
                "your MPI programs? --mpi openmpi or --mpi mpich says what it is");
  }
  if (text.find("Open MPI") != std::string::npos || text.find("OpenRTE") != std::string::npos) {
    return "openmpi";
  }
  for (const char* hydra : {"HYDRA", "MPICH", "Intel", "MVAPICH"}) {
    if (text.find(hydra) != std::string::npos) return "mpich";
  }
  throw Error(launcher + " is of an MPI that is not known here (" +
              text.substr(0, text.find('\n')) +
              "): say --mpi openmpi, or --mpi mpich for one "
              "of MPICH's ABI");
}

void prepare_folder(const Options& options) {
  const fs::path& folder = options.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string() + " cannot be made: " + error.message());
  if (access(folder.c_str(), W_OK) != 0) {
    throw Error(folder.string() + " cannot be written: " + std::strerror(errno));
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != kTraceSuffix) continue;
    if (!options.replace) {
      throw Error(folder.string() +
                  " has traces already: name another folder with -o, or say "
                  "--replace to delete them");
    }
    fs::remove(entry.path());
  }
}

volatile pid_t running = 0;
extern "C" void pass_on(int signal) {
  if (running > 0) kill(running, signal);
}

int run(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw Error(std::string("no process: ") + std::strerror(errno));
  if (child == 0) {
    execvp(words[0], words.data());
    std::fprintf(stderr, "tagline: %s cannot be started: %s\n", words[0], std::strerror(errno));
    _exit(127);
  }
  running = child;
  // A terminal sends its interrupt to both; the job ends first, then we say what there is.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, pass_on);
  std::signal(SIGHUP, pass_on);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  running = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void record(const Options& options, Context& context) {
  const bool launches = is_launcher(options.command[0]);
  std::string mpi = options.mpi;
  if (mpi == "auto") mpi = mpi_of(launches ? options.command[0] : "mpirun");
  const fs::path library = context.libraries / ("libtagline_record_" + mpi + ".so");
  if (!fs::exists(library)) {
    throw Error(library.string() + " is missing: the recorder for " +
                (mpi == "mpich" ? "MPICH is built where mpicc.mpich is found (Debian: "
                                  "apt-get install libmpich-dev)"
                                : "Open MPI is built where its mpicc is found (Debian: "
                                  "apt-get install libopenmpi-dev)"));
  }
  prepare_folder(options);

  std::string preload = fs::canonical(library);
  if (const char* before = std::getenv("LD_PRELOAD"); before != nullptr && *before != '\0') {
    preload += std::string(":") + before;
  }
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"LD_PRELOAD", preload},
      {"TAGLINE_TRACE", fs::canonical(options.folder)},
      {"TAGLINE_TRACE_LIMIT", std::to_string(options.limit_mib)}};
  std::vector<std::string> command = options.command;
  if (launches) {
    // To every node. The launcher itself needs no recorder.
    std::vector<std::string> words;
    for (const auto& [name, value] : variables) {
      if (mpi == "openmpi") {
        words.insert(words.end(), {"-x", name + "=" + value});
      } else {
        words.insert(words.end(), {"-genv", name, value});
      }
    }
    command.insert(command.begin() + 1, words.begin(), words.end());
  } else {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }
  context.exit_code = run(command);
  unsetenv("LD_PRELOAD");

  try {
    const TraceSet traces(options.folder);
    std::fprintf(stderr, "tagline: %zu ranks, %llu records, %.1f MiB in %s\n",
                 traces.ranks().size(), static_cast<unsigned long long>(traces.records()),
                 static_cast<double>(traces.bytes()) / 1048576.0, options.folder.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr,
                 "tagline: nothing was recorded. Was it an MPI program, linked to the shared "
                 "library of %s? (%s)\n",
                 mpi.c_str(), error.what());
    if (context.exit_code == 0) context.exit_code = 1;
  }
}

}  // namespace

void add_record(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "record", "run an MPI program and write what it posts, sends, probes and receives");
  command
      ->add_option("-o,--output", options->folder,
                   "folder of the traces, one per rank; on "
                   "several nodes one that all of them see")
      ->capture_default_str();
  command->add_option("--limit", options->limit_mib, "most MiB per rank; 0: no limit")
      ->capture_default_str();
  command->add_option("--mpi", options->mpi, "whose ABI the program has")
      ->check(CLI::IsMember({"auto", "openmpi", "mpich"}))
      ->capture_default_str();
  command->add_flag("--replace", options->replace, "delete the traces that the folder has");
  command->add_option("command", options->command, "what to run, behind --")->required();
  command->footer(
      "Examples:\n"
      "  tagline record -- mpirun -n 4 ./app args\n"
      "  tagline record -o run2 -- srun -n 64 ./app           (a launcher that passes the "
      "environment)\n"
      "  tagline record -o run3 -- mpirun --mca mca_base_component_path DIR:SYSTEM_DEFAULT \\\n"
      "                                   --mca pml tagline -n 4 ./app\n"
      "\n"
      "The program is not changed: a library is preloaded that stands in front of its MPI calls.\n"
      "Under tagline's component (third example) the matcher itself writes as well, and the true\n"
      "order of arrivals is known; otherwise arrivals are worked out from the senders' traces.\n"
      "Not seen without the component: messages inside collectives, Open MPI's Fortran calls,\n"
      "and programs linked statically. The exit status is that of the command, 128 and the number of\n"
      "the signal if one ended it, 127 if it cannot be started, 1 if nothing could be recorded.");
  command->callback([options, &context] { record(*options, context); });
}

}  // namespace tagline::tools
