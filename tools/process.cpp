// SPDX-License-Identifier: BSD-3-Clause
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.hpp"

namespace tagline::tools {

void progress(const std::string& text) {
  if (!isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
}

void progress_bar(const std::string& text, double done) {
  constexpr std::size_t kWidth = 40;
  std::string bar(static_cast<std::size_t>(done * kWidth), '#');
  bar.resize(kWidth, '.');
  progress(text + " [" + bar + "] " + std::to_string(static_cast<int>(done * 100)) + " %");
}

void end_progress() {
  if (isatty(STDERR_FILENO)) std::fputs("\r\033[K", stderr);
}

std::string output_of(const std::vector<std::string>& command) {
  int ends[2];
  if (pipe(ends) != 0) throw Error(std::string("no pipe: ") + std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  ssize_t bytes;
  while ((bytes = read(ends[0], buffer, sizeof buffer)) > 0 || (bytes < 0 && errno == EINTR)) {
    if (bytes > 0) output.append(buffer, static_cast<std::size_t>(bytes));
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(command[0] +
                (WIFEXITED(status) && WEXITSTATUS(status) == 127 ? " is not found" : " failed"));
  }
  return output;
}

}  // namespace tagline::tools
