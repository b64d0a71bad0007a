// SPDX-License-Identifier: BSD-3-Clause
#include "recorder.hpp"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#ifdef OPEN_MPI
// What mpirun starts need not be an MPI program (a shell): it has to load without them.
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_comm_self
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_group_null
#pragma weak ompi_mpi_unsigned_long_long
#endif

namespace tagline::record {

Recorder recorder;

class Recorder::Hold {
 public:
  explicit Hold(Recorder& of) noexcept : flag_(of.threads_ ? &of.busy_ : nullptr) {
    // acquire: pairs with the release below; what the thread before has changed is seen.
    while (flag_ != nullptr && flag_->test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~Hold() {
    if (flag_ != nullptr) flag_->clear(std::memory_order_release);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::atomic_flag* const flag_;
};

namespace {

constexpr std::uint64_t kIsPersistent = std::uint64_t{1} << 63;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  a = (a ^ b) * 0xff51afd7ed558ccdu;
  a ^= a >> 32;
  a *= 0xc4ceb9fe1a85ec53u;
  return a ^ a >> 29;
}

std::uint64_t bytes_of(int count, MPI_Datatype type) noexcept {
  int size = 0;
  PMPI_Type_size(type, &size);
  return count > 0 && size > 0 ? static_cast<std::uint64_t>(count) * static_cast<unsigned>(size)
                               : 0;
}

// What MPI_Get_count(MPI_BYTE) says, at a tenth of a Sendrecv's cost. The fields are part of
// each MPI's binary interface: programs allocate the status.
std::uint64_t bytes_of(const MPI_Status& status) noexcept {
#ifdef OPEN_MPI
  return status._ucount;
#else
  const auto high = static_cast<unsigned>(status.count_hi_and_cancelled) >> 1;
  return std::uint64_t{high} << 32 | static_cast<unsigned>(status.count_lo);
#endif
}

// Doubles an array when it is full; false if there is no memory for it.
template <class T>
bool make_room(T*& array, std::size_t count, std::size_t& room) noexcept {
  if (count < room) return true;
  const std::size_t more = room == 0 ? 64 : room * 2;
  void* memory = std::realloc(static_cast<void*>(array), more * sizeof(T));
  if (memory == nullptr) return false;
  array = static_cast<T*>(memory);
  room = more;
  return true;
}

}  // namespace

void Recorder::start() noexcept {
  const char* folder = std::getenv("TAGLINE_TRACE");
  if (folder == nullptr || *folder == '\0' || on_) return;
  TraceHeader header;
  int rank = 0;
  int ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  world_rank_ = rank;
  header.rank = static_cast<std::uint32_t>(rank);
  header.ranks = static_cast<std::uint32_t>(ranks);
  header.process = static_cast<std::uint32_t>(getpid());
  header.date_s = std::time(nullptr);
  gethostname(header.host, sizeof header.host - 1);
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(library, &length);
  // Its first line, up to the comma.
  std::snprintf(header.library, sizeof header.library, "%.*s",
                static_cast<int>(std::strcspn(library, ",\n")), library);

  // The processes that start together agree on a name for that, and on a moment.
  unsigned long long world = mix(trace_nanoseconds(), header.process) | 1;
  PMPI_Bcast(&world, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  world_key_ = header.world = world;
  PMPI_Barrier(MPI_COMM_WORLD);
  header.start_ns = static_cast<std::int64_t>(trace_nanoseconds());

  char path[4096];
  const char* limit = std::getenv("TAGLINE_TRACE_LIMIT");
  const std::uint64_t most = limit == nullptr ? 1024 : std::strtoull(limit, nullptr, 10);
  std::snprintf(path, sizeof path, "%s/rank-%06d%s", folder, rank, kTraceSuffix);
  bool opened = writer_.open(path, header, most << 20);
  if (!opened && errno == EEXIST) {
    // Processes that were spawned have ranks of their own.
    std::snprintf(path, sizeof path, "%s/rank-%06d-%016llx%s", folder, rank, world, kTraceSuffix);
    opened = writer_.open(path, header, most << 20);
  }
  if (!opened) {
    std::fprintf(stderr,
                 "tagline record: rank %d is not recorded: %s cannot be written (%s). "
                 "Is there space, and does the folder exist on every node?\n",
                 rank, path, std::strerror(errno));
    return;
  }
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  threads_ = provided == MPI_THREAD_MULTIPLE;
  world_ = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world_);
  on_ = true;
  add(MPI_COMM_WORLD, world_key_);
  add(MPI_COMM_SELF, mix(world_key_, static_cast<std::uint64_t>(rank) + 1));
}

void Recorder::stop() noexcept {
  if (!on_) return;
  const Hold hold(*this);
  flush_misses();
  on_ = false;
  PMPI_Group_free(&world_);
  writer_.close();
}

template <class... Fields>
void Recorder::record(TraceKind kind, unsigned flags, Fields... fields) noexcept {
  if (misses_.times > 0) [[unlikely]]
    flush_misses();
  writer_.record(kind, flags, fields...);
}

void Recorder::flush_misses() noexcept {
  if (misses_.times == 0) return;
  writer_.record(TraceKind::probe, 0, misses_.context, trace_source(misses_.source, MPI_ANY_SOURCE),
                 trace_tag(misses_.tag, MPI_ANY_TAG), misses_.times);
  misses_.times = 0;
}

void Recorder::record_envelope(TraceKind kind, unsigned flags, std::uint32_t context, int source,
                               int tag, std::uint64_t rest) noexcept {
  record(kind, flags, context, trace_source(source, MPI_ANY_SOURCE), trace_tag(tag, MPI_ANY_TAG),
         rest);
}

std::uint64_t Recorder::post(MPI_Comm comm, int source, int tag, int count,
                             MPI_Datatype type) noexcept {
  const Hold hold(*this);
  const std::uint64_t bytes = bytes_of(count, type);
  record_envelope(TraceKind::post, 0, context_of(comm), source, tag, bytes);
  last_post_ = {count, type, bytes};
  return posted_++;
}

void Recorder::send(MPI_Comm comm, int destination, int tag, int count,
                    MPI_Datatype type, bool in_passing) noexcept {
  const Hold hold(*this);
  const std::uint32_t context = context_of(comm);
  // Of the same call, in which a type cannot become another.
  const bool is_known = in_passing && type == last_post_.type && count == last_post_.count;
  const std::uint64_t bytes = is_known ? last_post_.bytes : bytes_of(count, type);
  if (in_passing) {
    writer_.record_at(writer_.last_ticks(), TraceKind::send, 0, context,
                      trace_source(destination, MPI_ANY_SOURCE), trace_tag(tag, MPI_ANY_TAG),
                      bytes);
  } else {
    record_envelope(TraceKind::send, 0, context, destination, tag, bytes);
  }
}

void Recorder::completed(std::uint64_t number, const MPI_Status& status) noexcept {
  const Hold hold(*this);
  // Nobody can cancel what has no request.
  record_completion(number, status);
}

void Recorder::record_end(std::uint64_t number, const MPI_Status& status) noexcept {
  int cancelled = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  if (cancelled != 0) {
    record(TraceKind::cancel, 0, posted_ - 1 - number);
  } else {
    record_completion(number, status);
  }
}

void Recorder::record_completion(std::uint64_t number, const MPI_Status& status) noexcept {
  if (status.MPI_SOURCE < 0) return;
  record(TraceKind::complete, 0, posted_ - 1 - number,
         trace_source(status.MPI_SOURCE, MPI_ANY_SOURCE), trace_tag(status.MPI_TAG, MPI_ANY_TAG),
         bytes_of(status));
}

void Recorder::probe(MPI_Comm comm, int source, int tag, bool found) noexcept {
  const Hold hold(*this);
  const std::uint32_t context = context_of(comm);
  if (misses_.times > 0 &&
      (misses_.context != context || misses_.source != source || misses_.tag != tag)) {
    flush_misses();
  }
  if (!found) {
    misses_ = {misses_.times + 1, context, source, tag};
    return;
  }
  record_envelope(TraceKind::probe, kTraceFound, context, source, tag, 1);
}

void Recorder::claim(MPI_Comm comm, const MPI_Status& found) noexcept {
  if (found.MPI_SOURCE < 0) return;
  const Hold hold(*this);
  record_envelope(TraceKind::claim, 0, context_of(comm), found.MPI_SOURCE, found.MPI_TAG,
                  bytes_of(found));
}

// ---- Requests ----------------------------------------------------------------

void Recorder::remember(MPI_Request request, std::uint64_t number) noexcept {
  const Hold hold(*this);
  requests_.set(key_of(request), number);
}

void Recorder::remember_persistent(MPI_Request request, TraceKind kind, MPI_Comm comm, int peer,
                                   int tag, int count, MPI_Datatype type) noexcept {
  const Hold hold(*this);
  if (!make_room(persistent_, persistent_count_, persistent_room_)) return;
  persistent_[persistent_count_] = {kind, context_of(comm),      peer,
                                    tag,  bytes_of(count, type), RequestTable::kNone};
  requests_.set(key_of(request), kIsPersistent | persistent_count_++);
}

void Recorder::started(MPI_Request request) noexcept {
  const Hold hold(*this);
  const std::uint64_t value = requests_.get(key_of(request));
  if (value == RequestTable::kNone || (value & kIsPersistent) == 0) return;
  Persistent& persistent = persistent_[value & ~kIsPersistent];
  record_envelope(persistent.kind, 0, persistent.context, persistent.peer, persistent.tag,
                  persistent.bytes);
  if (persistent.kind == TraceKind::post) persistent.number = posted_++;
}

void Recorder::request_ended(MPI_Request request, const MPI_Status& status) noexcept {
  const Hold hold(*this);
  const std::uint64_t key = key_of(request);
  const std::uint64_t value = requests_.get(key);
  if (value == RequestTable::kNone) return;
  if ((value & kIsPersistent) == 0) {
    requests_.remove(key);
    record_end(value, status);
    return;
  }
  Persistent& persistent = persistent_[value & ~kIsPersistent];
  if (persistent.number == RequestTable::kNone) return;
  record_end(persistent.number, status);
  persistent.number = RequestTable::kNone;
}

void Recorder::request_cancelled(MPI_Request request, const MPI_Status& status) noexcept {
  int cancelled = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  if (cancelled == 0) return;
  const Hold hold(*this);
  const std::uint64_t value = requests_.get(key_of(request));
  if (value == RequestTable::kNone) return;
  if ((value & kIsPersistent) != 0) {
    Persistent& persistent = persistent_[value & ~kIsPersistent];
    if (persistent.number != RequestTable::kNone) record_end(persistent.number, status);
    persistent.number = RequestTable::kNone;
  } else {
    record_end(value, status);
    requests_.remove(key_of(request));
  }
}

void Recorder::request_freed(MPI_Request request) noexcept {
  const Hold hold(*this);
  requests_.remove(key_of(request));
}

// ---- Communicators -----------------------------------------------------------

Recorder::Communicator* Recorder::known(MPI_Comm comm) noexcept {
  const std::uint64_t at = by_handle_.get(key_of(comm));
  return at == RequestTable::kNone ? nullptr : &communicators_[at];
}

Recorder::Communicator* Recorder::add(MPI_Comm comm, std::uint64_t id) noexcept {
  if (!make_room(communicators_, communicator_count_, communicator_room_)) return nullptr;
  int ranks = 0;
  int rank = 0;
  int between = 0;
  PMPI_Comm_test_inter(comm, &between);
  // What is sent between two groups has ranks of two kinds: not followed to the receiver.
  if (between == 0) {
    PMPI_Comm_size(comm, &ranks);
    PMPI_Comm_rank(comm, &rank);
  }
  const std::uint32_t index = contexts_++;
  record(TraceKind::context, 0, index, id, ranks, rank, 0);
  communicators_[communicator_count_] = {index, id, 0};
  by_handle_.set(key_of(comm), communicator_count_);
  return &communicators_[communicator_count_++];
}

std::uint32_t Recorder::context_of(MPI_Comm comm) noexcept {
  const std::uint64_t key = key_of(comm);
  if (key == last_comm_) [[likely]]
    return last_context_;
  Communicator* communicator = known(comm);
  // From a call that is not followed: nobody else knows it by this name.
  if (communicator == nullptr) {
    communicator = add(comm, mix(world_key_ + contexts_, static_cast<unsigned>(world_rank_)));
  }
  if (communicator == nullptr) return 0;
  last_comm_ = key;
  return last_context_ = communicator->index;
}

// Rank in MPI_COMM_WORLD of its rank 0. Tells apart what one call has made.
int Recorder::leader_of(MPI_Comm comm) noexcept {
  MPI_Group group = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  const int first = 0;
  int leader = 0;
  PMPI_Group_translate_ranks(group, 1, &first, world_, &leader);
  PMPI_Group_free(&group);
  return leader;
}

void Recorder::communicator_made(MPI_Comm parent, MPI_Comm made, bool by_its_members) noexcept {
  const Hold hold(*this);
  context_of(parent);  // now known
  Communicator* const from = known(parent);
  if (from == nullptr) return;
  // Its members count alike, so that none has to ask another. What some of them make is
  // not known to the others and not counted: the second time it gets another name.
  const std::uint64_t number = by_its_members ? ~std::uint64_t{0} : from->children++;
  if (made == MPI_COMM_NULL) return;
  std::uint64_t id = mix(mix(from->id, number), static_cast<unsigned>(leader_of(made)));
  for (std::size_t i = 0; by_its_members && i < communicator_count_; ++i) {
    if (communicators_[i].id == id) id = mix(id, i = 0);
  }
  by_handle_.remove(key_of(made));
  add(made, id);
  last_comm_ = 0;
}

void Recorder::communicator_freed(MPI_Comm comm) noexcept {
  const Hold hold(*this);
  const Communicator* const communicator = known(comm);
  if (communicator == nullptr) return;
  record(TraceKind::drop_context, 0, communicator->index);
  by_handle_.remove(key_of(comm));
  last_comm_ = 0;
}

}  // namespace tagline::record
