// SPDX-License-Identifier: BSD-3-Clause
//
// tagline info: what is installed here, and whether it fits together.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "match/profile.hpp"
#include "match/tagline.h"
#include "profile_place.hpp"
#include "structures.hpp"

namespace tagline::tools {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string first_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Json caches() {
  Json all = Json::array();
  for (int index = 0; index < 8; ++index) {
    const fs::path folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    const std::string type = first_line_of(folder / "type");
    if (type.empty() || type == "Instruction") continue;
    all.push_back({{"level", std::atoi(first_line_of(folder / "level").c_str())},
                   {"size", first_line_of(folder / "size")},
                   {"line_bytes", std::atoi(first_line_of(folder / "coherency_line_size").c_str())},
                   {"shared_by", first_line_of(folder / "shared_cpu_list")}});
  }
  return all;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (unsigned i = 0; tagline_isa_name(i) != nullptr; ++i) names.emplace_back(tagline_isa_name(i));
  return names;
}

// What a program says, its first line; empty if it is not there.
std::string ask(const std::vector<std::string>& command) {
  try {
    return output_of(command);
  } catch (const Error&) {
    return {};
  }
}

bool in_path(const std::string& program) {
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  path += ':';
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = path.find(':', at);
    if (access((fs::path(path.substr(at, end - at)) / program).c_str(), X_OK) == 0) return true;
    at = end + 1;
  }
  return false;
}

// The Open MPI of this machine loads the component, or says nothing about it.
Json open_mpi(const Context& context) {
  const std::string info = in_path("ompi_info") ? "ompi_info" : "ompi_info.openmpi";
  if (!in_path(info)) return {{"installed", false}};
  const std::string text = ask({info, "--version"});
  const fs::path component = context.components / "mca_pml_tagline.so";
  Json object = {{"installed", true},
                 {"version", text.substr(0, text.find('\n'))},
                 {"recorder", fs::exists(context.libraries / "libtagline_record_openmpi.so")},
                 {"component", fs::exists(component) ? Json(component.string()) : Json()},
                 {"component_loads", false}};
  if (fs::exists(component)) {
    const std::string known =
        ask({"env", "OMPI_MCA_mca_base_component_path=" + context.components.string() +
                        ":SYSTEM_DEFAULT",
             info, "--parsable", "--param", "pml", "tagline", "--level", "9"});
    object["component_loads"] = known.find("mca:pml:tagline:param:") != std::string::npos;
  }
  return object;
}

Json mpich(const Context& context) {
  const std::string launcher = "mpirun.mpich";
  if (!in_path(launcher)) return {{"installed", false}};
  const std::string text = ask({launcher, "--version"});
  const std::size_t at = text.find("Version:");
  const std::size_t begin = at == std::string::npos ? 0 : text.find_first_not_of(' ', at + 8);
  return {{"installed", true},
          {"version", "Hydra " + text.substr(begin, text.find('\n', begin) - begin)},
          {"recorder", fs::exists(context.libraries / "libtagline_record_mpich.so")}};
}

// The one that TAGLINE_PROFILE names, else the one that `tagline tune` has written.
Json profile() {
  const char* named = std::getenv("TAGLINE_PROFILE");
  const bool in_use = named != nullptr && *named != '\0';
  std::string path;
  try {
    path = in_use ? named : usual_profile().string();
  } catch (const Error&) {
  }
  if (!in_use && !fs::exists(path)) return {};
  Json object = {{"file", path}, {"in_use", in_use}};
  try {
    const Profile found = read_profile(path);
    const MachineProfile* machine = found.find(this_machine());
    object["runs"] = machine == nullptr ? 0 : machine->runs.size();
    if (machine == nullptr) {
      object["error"] = "it says nothing about this machine (" + this_machine() + ")";
    } else {
      for (const ProfileChoice& choice : machine->choices) {
        object["choices"][choice.kind] = {{"queue", choice.queue}, {"instruction_set", choice.isa}};
      }
    }
  } catch (const BadProfile& error) {
    object["error"] = error.what();
  }
  return object;
}

Json collect(const Context& context) {
  tagline_memory_use memory;
  tagline_memory(&memory);
  Json settings = Json::object();
  for (const char* name : {"TAGLINE_QUEUE", "TAGLINE_ISA", "TAGLINE_PROFILE", "TAGLINE_TRACE",
                           "TAGLINE_TRACE_LIMIT"}) {
    if (const char* value = std::getenv(name)) settings[name] = value;
  }
  const bool counts_lines = fs::exists(context.libraries / "tagline_lines");
  Json object = {{"version", tagline_version()},
                 {"allocator", memory.allocator},
                 {"processor", processor()},
                 {"processing_units", sysconf(_SC_NPROCESSORS_ONLN)},
                 {"caches", caches()},
                 {"instruction_sets", instruction_sets()},
                 {"structures", structure_names()},
                 {"environment", settings},
                 {"replay_counts_cache_lines", counts_lines}};
  // What the environment asks for has to be valid: a matcher says so.
  tagline_matcher* matcher = nullptr;
  if (tagline_create(nullptr, &matcher) == TAGLINE_OK) {
    object["matcher"] = {{"queue", tagline_matcher_queue(matcher)},
                         {"instruction_set", tagline_matcher_isa(matcher)},
                         {"reason", tagline_matcher_reason(matcher)}};
    tagline_destroy(matcher);
  } else {
    object["matcher"] = {{"error", tagline_error_message()}};
  }
  object["profile"] = profile();
  object["open_mpi"] = open_mpi(context);
  object["mpich"] = mpich(context);
  return object;
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& each : list) text += (text.empty() ? "" : ", ") + each.get<std::string>();
  return text;
}

void say(const char* what, const std::string& text) {
  std::printf("%-17s %s\n", what, text.c_str());
}

void print(const Json& info) {
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  say("tagline", text(info["version"]) + ", node memory from " + text(info["allocator"]));
  say("processor", text(info["processor"]) + ", " + info["processing_units"].dump() + " units");
  for (const Json& cache : info["caches"]) {
    say(cache == info["caches"][0] ? "caches" : "",
        "L" + cache["level"].dump() + " " + text(cache["size"]) + ", lines of " +
            cache["line_bytes"].dump() + " B, shared by " + text(cache["shared_by"]));
  }
  say("instruction sets", joined(info["instruction_sets"]) + " (best first)");
  say("structures", joined(info["structures"]) + " (the first one is the default)");
  const Json& matcher = info["matcher"];
  say("a matcher now", matcher.contains("error") ? text(matcher["error"])
                                                 : text(matcher["queue"]) + " on " +
                                                       text(matcher["instruction_set"]) + " (" +
                                                       text(matcher["reason"]) + ")");
  for (const auto& [name, value] : info["environment"].items()) {
    say("environment", name + "=" + text(value));
  }
  const Json& profile = info["profile"];
  if (profile.is_null()) {
    say("profile", "none; tagline tune makes one");
  } else {
    say("profile", text(profile["file"]) +
                       (profile["in_use"].get<bool>() ? ", in use" : ", not in use: TAGLINE_PROFILE "
                                                                     "does not name it") +
                       (profile.contains("error") ? ": " + text(profile["error"])
                                                  : ", " + profile["runs"].dump() + " runs"));
    if (profile.contains("choices")) {
      for (const auto& [kind, choice] : profile["choices"].items()) {
        say("", kind + ": " + text(choice["queue"]) + " on " + text(choice["instruction_set"]));
      }
    }
  }
  const auto recorder = [](const Json& mpi) {
    return std::string(mpi["recorder"].get<bool>() ? "can be recorded" : "no recorder is built");
  };
  const Json& open_mpi = info["open_mpi"];
  if (!open_mpi["installed"].get<bool>()) {
    say("Open MPI", "not found in PATH (ompi_info)");
  } else {
    std::string component = "the component is not built";
    if (open_mpi["component_loads"].get<bool>()) {
      component = "the component fits and loads: " + text(open_mpi["component"]);
    } else if (!open_mpi["component"].is_null()) {
      component = "the component does not load: it is built for another release. Configure again "
                  "with this one's mpicc first in PATH";
    }
    say("Open MPI", text(open_mpi["version"]) + ", " + recorder(open_mpi) + "; " + component);
  }
  const Json& mpich = info["mpich"];
  say("MPICH", mpich["installed"].get<bool>()
                   ? text(mpich["version"]) + ", " + recorder(mpich) +
                         "; tagline is in one that mpich-plugin/build.sh has built"
                   : "not found in PATH (mpirun.mpich)");
  if (!info["replay_counts_cache_lines"].get<bool>()) {
    say("replay", "counts no cache lines: tagline_lines is not built (with the benchmarks)");
  }
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "info", "version, processor, structures, and the MPIs that are installed");
  command->add_flag("--json", *as_json, "for programs");
  command->footer(
      "Examples:\n"
      "  tagline info\n"
      "  TAGLINE_QUEUE=vector tagline info      is that valid?\n"
      "\n"
      "Exit status 1 if the environment asks for what does not exist, a profile included.");
  command->callback([as_json, &context] {
    const Json info = collect(context);
    if (*as_json) {
      std::printf("%s\n", info.dump(1).c_str());
    } else {
      print(info);
    }
    const Json& profile = info["profile"];
    if (info["matcher"].contains("error") || (profile.contains("error") && profile["in_use"])) {
      context.exit_code = 1;
    }
  });
}

}  // namespace tagline::tools
