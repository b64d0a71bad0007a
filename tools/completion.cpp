// SPDX-License-Identifier: BSD-3-Clause
//
// tagline completion bash: what a shell has to know of the commands, taken from the very
// objects that read the command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "commands.hpp"

namespace tagline::tools {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "{low,medium,high}" in what an option says about its values; nothing if any will do.
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::string values = type.substr(begin + 1, end - begin - 1);
  std::replace(values.begin(), values.end(), ',', ' ');
  return values;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::string cases_of(const CLI::App& command, const std::string& name) {
  std::string text;
  std::vector<std::string> words;
  std::string positional;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = names_of(*option);
    words.insert(words.end(), names.begin(), names.end());
    if (names.empty()) {
      positional += (positional.empty() ? "" : " ") + values_of(*option);
    } else if (option->get_expected_max() > 0) {
      for (const std::string& each : names) {
        text += "    " + name + ":" + each + ") words='" + values_of(*option) + "' ;;\n";
      }
    }
  }
  // Dashes first: a word that begins with one is an option.
  text += "    " + name + ":*)\n      if [[ $current == -* ]]; then words='" + joined(words) +
          "'; else words='" + positional + "'; fi ;;\n";
  return text;
}

std::string bash_completion(const CLI::App& app) {
  std::string text =
      "# Completion of the command tagline in bash, made by `tagline completion bash`.\n"
      "_tagline() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local command= words= i\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
      "      # The user's own command line.\n"
      "      if declare -F _command_offset >/dev/null; then\n"
      "        _command_offset $((i + 1))\n"
      "      elif ((i + 1 == COMP_CWORD)); then\n"
      "        mapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
      "      fi\n"
      "      return\n"
      "    fi\n"
      "    [[ -n $command || ${COMP_WORDS[i]} == -* ]] || command=${COMP_WORDS[i]}\n"
      "  done\n"
      "  case $command:$previous in\n";
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back(command->get_name());
    text += cases_of(*command, command->get_name());
  }
  text += "    :*) words='" + joined(commands) + "'\n";
  text += "      if [[ $current == -* ]]; then words='";
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : names_of(*option)) words.push_back(name);
  }
  text += joined(words) +
          "'; fi ;;\n"
          "  esac\n"
          "  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "}\n"
          "# Where there are no words there are files.\n"
          "complete -o default -F _tagline tagline\n";
  return text;
}

// Letters to insert, remove or exchange.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::string near;
  std::size_t least = 3;  // more than two letters wrong is another word
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string& name = command->get_name();
    if (name == word) return {};
    const bool begins = word.size() > 1 && name.rfind(word, 0) == 0;
    const std::size_t wrong = begins ? 0 : distance(word, name);
    if (wrong < least) {
      least = wrong;
      near = name;
    }
  }
  return "\"" + word + "\" is no command" +
         (near.empty() ? "" : ": did you mean " + near + "?") + " (tagline --help lists them)";
}

void add_completion(CLI::App& app, Context&) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "what a shell needs to complete this command");
  command->add_option("shell", *shell, "the shell")->required()->check(CLI::IsMember({"bash"}));
  command->footer(
      "Examples:\n"
      "  eval \"$(tagline completion bash)\"\n"
      "  tagline completion bash > ~/.local/share/bash-completion/completions/tagline\n"
      "\n"
      "Installed, it is in share/bash-completion/completions, where bash finds it by itself.");
  command->callback([&app, shell] { std::fputs(bash_completion(app).c_str(), stdout); });
}

}  // namespace tagline::tools
