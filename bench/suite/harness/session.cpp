// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "../../report.hpp"

namespace suite {
namespace {

const char* level_name(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "single";
    case MPI_THREAD_FUNNELED:
      return "funneled";
    case MPI_THREAD_SERIALIZED:
      return "serialized";
    default:
      return "multiple";
  }
}

std::string first_line(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), text.size()));
}

std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string line = first_line(text);
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

// A control variable by name, if this library has it and it is text: Open MPI's say
// which components were asked for. run_program() has started the tool interface.
std::string control_variable(const char* name) {
  std::string value;
  int index = -1;
  MPI_T_cvar_handle handle;
  int count = 0;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    std::vector<char> text(static_cast<std::size_t>(std::max(count, 1)) + 1, '\0');
    char type_name[8];
    int length = sizeof type_name;
    int verbosity, binding, scope;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum enumeration;
    int no_description = 0;
    MPI_T_cvar_get_info(index, type_name, &length, &verbosity, &type, &enumeration, nullptr,
                        &no_description, &binding, &scope);
    if (type == MPI_CHAR && MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS) {
      value = text.data();
    }
    MPI_T_cvar_handle_free(&handle);
  }
  return value;
}

// The widest of the instruction sets that matter to vector code.
std::string isa() {
#if defined(__x86_64__)
  for (const auto& [name, has] :
       {std::pair<const char*, bool>{"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
        {"avx2", __builtin_cpu_supports("avx2") != 0}}) {
    if (has) return name;
  }
  return "sse2";
#elif defined(__aarch64__)
  return "neon64";
#else
  return "scalar";
#endif
}

// Host and CPUs that this rank may run on: "node17:0-3".
std::string place() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  cpu_set_t set;
  std::string cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &set)) continue;
      int last = i;
      while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
      cpus += (cpus.empty() ? "" : "+") + std::to_string(i);
      if (last > i) cpus += "-" + std::to_string(last);
      i = last;
    }
  }
  return std::string(host) + ":" + cpus;
}

// Sixteen ranks say enough: beyond that placements repeat themselves.
std::string placement(MPI_Comm comm, int rank, int size) {
  char mine[128] = "";
  std::snprintf(mine, sizeof mine, "%s", place().c_str());
  std::vector<char> all(rank == 0 ? sizeof mine * static_cast<std::size_t>(size) : 0);
  MPI_Gather(mine, sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, 0, comm);
  std::string text;
  for (int i = 0; rank == 0 && i < std::min(size, 16); ++i) {
    text += (i == 0 ? "" : " ") + std::string(&all[sizeof mine * static_cast<std::size_t>(i)]);
  }
  return size > 16 ? text + " ..." : text;
}

double rounded(double value) { return std::strtod(bench::format("%.5g", value).c_str(), nullptr); }

bench::Record json_of(const Record& record) {
  bench::Record json = bench::Record::object();
  for (const Record::Field& field : record.fields()) {
    bench::Record& to = json[field.name];
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) to = value;
        },
        field.value);
  }
  return json;
}

std::string cell(const Value* value) {
  if (value == nullptr) return "";
  if (const auto* text = std::get_if<std::string>(value)) return *text;
  if (const auto* number = std::get_if<double>(value)) return bench::format("%.4g", *number);
  if (const auto* whole = std::get_if<long>(value)) return std::to_string(*whole);
  if (const auto* truth = std::get_if<bool>(value)) return *truth ? "yes" : "no";
  return "";
}

}  // namespace

void wrong_data(const std::string& what) {
  std::fprintf(stderr, "wrong data: %s\n", what.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, kWrongData);
  std::abort();
}

Session::Session(std::string name, const Settings& settings, int thread_level)
    : name_(std::move(name)), settings_(settings) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Query_thread(&threads_provided_);
  if (threads_provided_ < thread_level) {
    throw UsageError(std::string("this MPI gives thread support \"") +
                     level_name(threads_provided_) + "\", and \"" + level_name(thread_level) +
                     "\" is needed for what was asked. Take one thread, or an MPI that is built "
                     "with thread support (this one: " +
                     mpi_library() + ")");
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &world_);
  MPI_Comm_dup(MPI_COMM_WORLD, &control_);
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  int on_node = 0;
  MPI_Comm_rank(node, &on_node);
  MPI_Comm_size(node, &ranks_per_node_);
  MPI_Comm_free(&node);
  node_leader_ = on_node == 0;
  nodes_ = static_cast<int>(sum(node_leader_ ? 1 : 0));
  cpu_limit_ = std::make_unique<CpuLimit>(node_leader_ ? settings.cpu_mhz : 0);
  if (maximum(cpu_limit_->refused().empty() ? 0 : 1) > 0) {
    throw UsageError("--cpu-mhz " + std::to_string(settings.cpu_mhz) + " is not possible here: " +
                     cpu_limit_->refused() + ". It takes root and a kernel with cpufreq");
  }
  describe();
}

Session::~Session() {
  if (control_ == MPI_COMM_NULL) return;
  MPI_Comm_free(&control_);
  MPI_Comm_free(&world_);
}

void Session::describe() {
  const std::string ranks_at = placement(control_, rank_, size_);
  if (rank_ != 0) return;
  const bench::Record machine = bench::environment(name_, "");
  for (const char* const field : {"benchmark", "time_utc", "cpu_model", "kernel"}) {
    environment_[field] = machine[field].get<std::string>();
  }
  environment_["cpus"] = machine["cpus"].get<long>();
  environment_["isa"] = isa();
  environment_["mpi_library"] = mpi_library();
  int version = 0;
  int subversion = 0;
  MPI_Get_version(&version, &subversion);
  environment_["mpi_standard"] = std::to_string(version) + "." + std::to_string(subversion);
  for (const char* const component : {"pml", "btl", "osc"}) {
    const std::string value = control_variable(component);
    if (!value.empty()) environment_[std::string("mpi_") + component] = value;
  }
  environment_["thread_level"] = level_name(threads_provided_);
  environment_["nodes"] = nodes_;
  environment_["ranks"] = size_;
  environment_["rank_placement"] = ranks_at;
  environment_["energy_counters"] = EnergyMeter::description();
  environment_["cpu_frequency"] = cpu_frequency_description();
  if (settings_.cpu_mhz > 0) environment_["cpu_mhz_limit"] = settings_.cpu_mhz;
  for (const std::string& note : settings_.notes) {
    const auto equals = note.find('=');
    environment_[note.substr(0, equals)] = note.substr(equals + 1);
  }
  // What the harness adds to each operation, measured here and now and subtracted nowhere.
  constexpr long kMany = 200'000;
  const auto nothing = [](long) { asm volatile("" ::: "memory"); };
  double quietest = HUGE_VAL;
  for (int i = 0; i < 5; ++i) {
    quietest = std::min(quietest, time_of(kMany, nothing));
  }
  environment_["harness_ns_per_operation"] = rounded(quietest / kMany * 1e9);
}

long Session::from_rank_0(long value) const {
  MPI_Bcast(&value, 1, MPI_LONG, 0, control_);
  return value;
}

double Session::maximum(double value) const {
  double all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, control_);
  return all;
}

double Session::sum(double value) const {
  double all = 0;
  MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_SUM, control_);
  return all;
}

double Session::energy_of_all_nodes(double joules) const {
  const bool missing = node_leader_ && joules < 0;
  if (maximum(missing ? 1 : 0) > 0) return -1;
  return sum(node_leader_ ? joules : 0);
}

void Session::report(Record record, const Estimate& time, double messages, double bytes) {
  record["time_us"] = rounded(time.mean * 1e6);
  if (std::isfinite(time.half_width)) {
    record["time_us_ci95"] = rounded(time.half_width * 1e6);
  } else {
    record["time_us_ci95"] = std::monostate{};
  }
  record["time_us_lowest"] = rounded(time.lowest * 1e6);
  record["time_us_highest"] = rounded(time.highest * 1e6);
  record["samples"] = time.samples;
  record["stopped_by"] = time.stopped_by;
  if (messages > 0) record["messages_per_s"] = rounded(messages / time.mean);
  if (const double mhz = cpu_mhz(); mhz > 0) record["cpu_mhz"] = rounded(mhz);
  if (time.joules >= 0 && time.seconds > 0) {
    const double watts = time.joules / time.seconds;
    record["watts"] = rounded(watts);
    if (messages > 0) record["energy_uj_per_message"] = rounded(watts * time.mean / messages * 1e6);
  }
  if (bytes > 0) record["MB_per_s"] = rounded(bytes / time.mean * 1e-6);
  report(std::move(record));
}

void Session::report(Record record) {
  if (rank_ != 0) return;
  if (settings_.json == "-") {
    std::printf("%s\n", json_of(record).dump().c_str());
    std::fflush(stdout);
  }
  records_.push_back(std::move(record));
}

void Session::table(std::string title, std::vector<std::string> fields) {
  title_ = std::move(title);
  fields_ = std::move(fields);
}

void Session::progress(const std::string& text) const {
  if (rank_ == 0 && isatty(STDERR_FILENO)) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }
}

void Session::finish() {
  if (rank_ != 0) return;
  progress("");
  const auto write = [&](const std::string& file, bool json) {
    if (file.empty() || file == "-") return;
    std::vector<bench::Record> records;
    for (const Record& record : records_) records.push_back(json_of(record));
    const std::string text = json ? bench::json_text(records) : bench::csv_text(records);
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw UsageError("cannot write " + file);
  };
  write(settings_.json, true);
  write(settings_.csv, false);
  if (settings_.json == "-" || records_.empty()) return;

  std::vector<std::string> shown;
  for (const std::string& field : fields_) {
    if (std::any_of(records_.begin(), records_.end(),
                    [&](const Record& record) { return record.find(field) != nullptr; })) {
      shown.push_back(field);
    }
  }
  const Record& any = records_.front();
  std::printf(
      "%s\n%s, %d ranks on %d node%s, thread level %s, the harness takes %s ns of an operation\n",
      title_.c_str(), any.text("mpi_library").c_str(), size_, nodes_, nodes_ == 1 ? "" : "s",
      any.text("thread_level").c_str(), cell(any.find("harness_ns_per_operation")).c_str());
  bench::Table table("");
  table.header(shown);
  for (const Record& record : records_) {
    std::vector<std::string> cells;
    for (const std::string& field : shown) {
      cells.push_back(cell(record.find(field)));
    }
    table.row(std::move(cells));
  }
  std::printf("%s", table.text().c_str());
  const auto limited = std::count_if(records_.begin(), records_.end(), [](const Record& record) {
    return record.find("stopped_by") != nullptr && record.text("stopped_by") != "confidence";
  });
  if (limited > 0) {
    std::printf("%ld of %zu points ended by a limit before the confidence asked for\n",
                static_cast<long>(limited), records_.size());
  }
}

int run_program(int argc, char** argv, Options& options, const std::function<int()>& thread_level,
                const std::function<void(Session&)>& body) {
  Settings settings;
  options.group("Common to all programs of the suite");
  options.text("--json", settings.json, "write records to FILE; - prints them, one per line");
  options.text("--csv", settings.csv, "write records to FILE");
  options.texts("--note", settings.notes, "NAME=VALUE, a field of every record");
  options.number("--seconds", settings.repetition.seconds, 0.001, 1e6, "time limit of a point");
  options.number("--precision", settings.repetition.precision, 0, 1,
                 "repeat until the 95 % confidence interval is within this part of the mean");
  options.number("--least", settings.repetition.least, 2, 1000000, "samples, unless time is up");
  options.number("--most", settings.repetition.most, 1, 1000000, "samples");
  options.number("--batch-ms", settings.batch_ms, 0.001, 1e6,
                 "least time that one sample averages over");
  options.number("--cpu-mhz", settings.cpu_mhz, 0, 100000,
                 "limit of the CPUs' frequency for this run, as root; 0: none");
  options.yes("--verify", settings.verify, "compare all data received, outside the timed part");
  CLI::App& app = options.app();

  // Every rank parses; one speaks, and who that is MPI knows.
  int parsed = 0;
  std::string words;
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    parsed = app.exit(error, out, err) == 0 ? -1 : 2;
    words = out.str() + err.str();
  }
  for (const std::string& note : settings.notes) {
    if (parsed == 0 && note.find('=') == std::string::npos) {
      parsed = 2;
      words = app.get_name() + ": --note wants NAME=VALUE, not " + note + "\n";
    }
  }
  const int wanted = parsed == 0 ? thread_level() : MPI_THREAD_SINGLE;
  // Another library of the program's may have started MPI, and will end it.
  int started = 0;
  MPI_Initialized(&started);
  int provided = 0;
  if (started == 0) MPI_Init_thread(&argc, &argv, wanted, &provided);
  // MPICH forgets its settings when nobody uses its tool interface any more, and may crash at
  // the next communicator: we use it to the end. Open MPI takes this level for the program's.
  int tools_provided = 0;
  MPI_Query_thread(&provided);
  MPI_T_init_thread(provided, &tools_provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int result = parsed == -1 ? 0 : parsed;
  if (parsed != 0) {
    if (rank == 0) std::fputs(words.c_str(), parsed == -1 ? stdout : stderr);
  } else {
    try {
      Session session(app.get_name(), settings, wanted);
      body(session);
      session.finish();
    } catch (const UsageError& error) {
      if (rank == 0) std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
      result = 2;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: rank %d: %s\n", app.get_name().c_str(), rank, error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  MPI_T_finalize();
  if (started == 0) MPI_Finalize();
  return result;
}

}  // namespace suite
