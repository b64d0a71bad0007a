// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI calls that the recorder stands in front of. Each does what the program asked for,
// through the PMPI name, and tells the recorder. A receive is recorded when it is posted and
// when it has completed, a send when it starts.
#include <cstdlib>

#include "recorder.hpp"

using tagline::TraceKind;
using tagline::record::recorder;

namespace {

bool concerns(int peer) { return recorder.on() && peer != MPI_PROC_NULL; }

// Statuses and requests of the calls with many requests.
template <class T>
class Scratch {
 public:
  explicit Scratch(int count) : begin_(here_) {
    if (count > kHere)
      begin_ = static_cast<T*>(std::malloc(sizeof(T) * static_cast<size_t>(count)));
  }
  ~Scratch() {
    if (begin_ != here_) std::free(begin_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() { return begin_; }  // nullptr: no memory
  T& operator[](int i) { return begin_[i]; }

 private:
  static constexpr int kHere = 64;
  T here_[kHere];
  T* begin_;
};

// What the requests of a call were before it, and where its statuses go.
class Completion {
 public:
  Completion(int count, const MPI_Request* requests, MPI_Status* statuses)
      : requests_(count), own_(statuses == MPI_STATUSES_IGNORE ? count : 0), statuses_(statuses) {
    if (statuses == MPI_STATUSES_IGNORE) statuses_ = own_.get();
    if (requests_.get() == nullptr) statuses_ = nullptr;
    for (int i = 0; statuses_ != nullptr && i < count; ++i) requests_[i] = requests[i];
  }
  bool works() const { return statuses_ != nullptr; }
  MPI_Status* statuses() { return statuses_; }
  void ended(int request, int status) {
    recorder.request_ended(requests_[request], statuses_[status]);
  }

 private:
  Scratch<MPI_Request> requests_;
  Scratch<MPI_Status> own_;
  MPI_Status* statuses_;
};

}  // namespace

// C names of the interface; an MPI that declares them otherwise does not compile.
#define RECORDED extern "C" __attribute__((visibility("default"))) int

// ---- Begin and end -----------------------------------------------------------

RECORDED MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  if (result == MPI_SUCCESS) recorder.start();
  return result;
}

RECORDED MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result == MPI_SUCCESS) recorder.start();
  return result;
}

RECORDED MPI_Finalize() {
  recorder.stop();
  return PMPI_Finalize();
}

// ---- Sends -------------------------------------------------------------------

#define RECORDED_SEND(blocking, nonblocking, persistent)                                      \
  RECORDED MPI_##blocking(const void* data, int count, MPI_Datatype type, int destination,    \
                          int tag, MPI_Comm comm) {                                           \
    if (concerns(destination)) recorder.send(comm, destination, tag, count, type);            \
    return PMPI_##blocking(data, count, type, destination, tag, comm);                        \
  }                                                                                           \
  RECORDED MPI_##nonblocking(const void* data, int count, MPI_Datatype type, int destination, \
                             int tag, MPI_Comm comm, MPI_Request* request) {                  \
    if (concerns(destination)) recorder.send(comm, destination, tag, count, type);            \
    return PMPI_##nonblocking(data, count, type, destination, tag, comm, request);            \
  }                                                                                           \
  RECORDED MPI_##persistent(const void* data, int count, MPI_Datatype type, int destination,  \
                            int tag, MPI_Comm comm, MPI_Request* request) {                   \
    const int result = PMPI_##persistent(data, count, type, destination, tag, comm, request); \
    if (result == MPI_SUCCESS && concerns(destination)) {                                     \
      recorder.remember_persistent(*request, TraceKind::send, comm, destination, tag, count,  \
                                   type);                                                     \
    }                                                                                         \
    return result;                                                                            \
  }
RECORDED_SEND(Send, Isend, Send_init)
RECORDED_SEND(Ssend, Issend, Ssend_init)
RECORDED_SEND(Bsend, Ibsend, Bsend_init)
RECORDED_SEND(Rsend, Irsend, Rsend_init)

// ---- Receives ----------------------------------------------------------------

RECORDED MPI_Recv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Status* status) {
  if (!concerns(source)) return PMPI_Recv(data, count, type, source, tag, comm, status);
  const auto number = recorder.post(comm, source, tag, count, type);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int result = PMPI_Recv(data, count, type, source, tag, comm, status);
  if (result == MPI_SUCCESS) recorder.completed(number, *status);
  return result;
}

RECORDED MPI_Irecv(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  if (!concerns(source)) return PMPI_Irecv(data, count, type, source, tag, comm, request);
  const auto number = recorder.post(comm, source, tag, count, type);
  const int result = PMPI_Irecv(data, count, type, source, tag, comm, request);
  if (result == MPI_SUCCESS) recorder.remember(*request, number);
  return result;
}

RECORDED MPI_Recv_init(void* data, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                       MPI_Request* request) {
  const int result = PMPI_Recv_init(data, count, type, source, tag, comm, request);
  if (result == MPI_SUCCESS && concerns(source)) {
    recorder.remember_persistent(*request, TraceKind::post, comm, source, tag, count, type);
  }
  return result;
}

RECORDED MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int destination,
                      int out_tag, void* in, int in_count, MPI_Datatype in_type, int source,
                      int in_tag, MPI_Comm comm, MPI_Status* status) {
  const bool receives = concerns(source);
  const auto number = receives ? recorder.post(comm, source, in_tag, in_count, in_type) : 0;
  if (concerns(destination)) {
    recorder.send(comm, destination, out_tag, out_count, out_type, receives);
  }
  MPI_Status own;
  if (receives && status == MPI_STATUS_IGNORE) status = &own;
  const int result = PMPI_Sendrecv(out, out_count, out_type, destination, out_tag, in, in_count,
                                   in_type, source, in_tag, comm, status);
  if (receives && result == MPI_SUCCESS) recorder.completed(number, *status);
  return result;
}

RECORDED MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int destination,
                              int out_tag, int source, int in_tag, MPI_Comm comm,
                              MPI_Status* status) {
  const bool receives = concerns(source);
  const auto number = receives ? recorder.post(comm, source, in_tag, count, type) : 0;
  if (concerns(destination)) recorder.send(comm, destination, out_tag, count, type, receives);
  MPI_Status own;
  if (receives && status == MPI_STATUS_IGNORE) status = &own;
  const int result =
      PMPI_Sendrecv_replace(data, count, type, destination, out_tag, source, in_tag, comm, status);
  if (receives && result == MPI_SUCCESS) recorder.completed(number, *status);
  return result;
}

// ---- Probes ------------------------------------------------------------------

RECORDED MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const int result = PMPI_Probe(source, tag, comm, status);
  if (result == MPI_SUCCESS && concerns(source)) recorder.probe(comm, source, tag, true);
  return result;
}

RECORDED MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const int result = PMPI_Iprobe(source, tag, comm, flag, status);
  if (result == MPI_SUCCESS && concerns(source)) recorder.probe(comm, source, tag, *flag != 0);
  return result;
}

RECORDED MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int result = PMPI_Mprobe(source, tag, comm, message, status);
  if (result == MPI_SUCCESS && concerns(source)) recorder.claim(comm, *status);
  return result;
}

RECORDED MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                     MPI_Status* status) {
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const int result = PMPI_Improbe(source, tag, comm, flag, message, status);
  if (result != MPI_SUCCESS || !concerns(source)) return result;
  if (*flag != 0) {
    recorder.claim(comm, *status);
  } else {
    recorder.probe(comm, source, tag, false);
  }
  return result;
}

// ---- Requests ----------------------------------------------------------------

RECORDED MPI_Start(MPI_Request* request) {
  if (recorder.on()) recorder.started(*request);
  return PMPI_Start(request);
}

RECORDED MPI_Startall(int count, MPI_Request* requests) {
  for (int i = 0; recorder.on() && i < count; ++i) recorder.started(requests[i]);
  return PMPI_Startall(count, requests);
}

RECORDED MPI_Request_free(MPI_Request* request) {
  if (recorder.follows_requests()) recorder.request_freed(*request);
  return PMPI_Request_free(request);
}

// Whether it took effect is asked at once: later, a message that comes in between would
// seem to have found the receive.
RECORDED MPI_Cancel(MPI_Request* request) {
  const int result = PMPI_Cancel(request);
  if (result != MPI_SUCCESS || !recorder.follows_requests()) return result;
  int done = 0;
  MPI_Status status;
  if (PMPI_Request_get_status(*request, &done, &status) == MPI_SUCCESS && done != 0) {
    recorder.request_cancelled(*request, status);
  }
  return result;
}

RECORDED MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!recorder.follows_requests()) return PMPI_Wait(request, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const MPI_Request before = *request;
  const int result = PMPI_Wait(request, status);
  if (result == MPI_SUCCESS) recorder.request_ended(before, *status);
  return result;
}

RECORDED MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (!recorder.follows_requests()) return PMPI_Test(request, flag, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  const MPI_Request before = *request;
  const int result = PMPI_Test(request, flag, status);
  if (result == MPI_SUCCESS && *flag != 0) recorder.request_ended(before, *status);
  return result;
}

RECORDED MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (!recorder.follows_requests()) return PMPI_Waitall(count, requests, statuses);
  Completion completion(count, requests, statuses);
  if (!completion.works()) return PMPI_Waitall(count, requests, statuses);
  const int result = PMPI_Waitall(count, requests, completion.statuses());
  for (int i = 0; result == MPI_SUCCESS && i < count; ++i) completion.ended(i, i);
  return result;
}

RECORDED MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!recorder.follows_requests()) return PMPI_Testall(count, requests, flag, statuses);
  Completion completion(count, requests, statuses);
  if (!completion.works()) return PMPI_Testall(count, requests, flag, statuses);
  const int result = PMPI_Testall(count, requests, flag, completion.statuses());
  for (int i = 0; result == MPI_SUCCESS && *flag != 0 && i < count; ++i) completion.ended(i, i);
  return result;
}

RECORDED MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!recorder.follows_requests()) return PMPI_Waitany(count, requests, index, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  Completion completion(count, requests, status);
  const int result = PMPI_Waitany(count, requests, index, status);
  if (result == MPI_SUCCESS && *index != MPI_UNDEFINED && completion.works()) {
    completion.ended(*index, 0);
  }
  return result;
}

RECORDED MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (!recorder.follows_requests()) return PMPI_Testany(count, requests, index, flag, status);
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  Completion completion(count, requests, status);
  const int result = PMPI_Testany(count, requests, index, flag, status);
  if (result == MPI_SUCCESS && *flag != 0 && *index != MPI_UNDEFINED && completion.works()) {
    completion.ended(*index, 0);
  }
  return result;
}

#define RECORDED_SOME(name)                                                                \
  RECORDED MPI_##name(int count, MPI_Request* requests, int* done, int* indices,           \
                      MPI_Status* statuses) {                                              \
    if (!recorder.follows_requests()) {                                                    \
      return PMPI_##name(count, requests, done, indices, statuses);                        \
    }                                                                                      \
    Completion completion(count, requests, statuses);                                      \
    if (!completion.works()) return PMPI_##name(count, requests, done, indices, statuses); \
    const int result = PMPI_##name(count, requests, done, indices, completion.statuses()); \
    for (int i = 0; result == MPI_SUCCESS && *done != MPI_UNDEFINED && i < *done; ++i) {   \
      completion.ended(indices[i], i);                                                     \
    }                                                                                      \
    return result;                                                                         \
  }
RECORDED_SOME(Waitsome)
RECORDED_SOME(Testsome)

// ---- Communicators -----------------------------------------------------------

#define RECORDED_COMM(name, parent, made, parameters, arguments) \
  RECORDED MPI_##name parameters {                               \
    const int result = PMPI_##name arguments;                    \
    if (result == MPI_SUCCESS && recorder.on()) {                \
      recorder.communicator_made(parent, *made);                 \
    }                                                            \
    return result;                                               \
  }

RECORDED_COMM(Comm_dup, comm, made, (MPI_Comm comm, MPI_Comm* made), (comm, made))
RECORDED_COMM(Comm_dup_with_info, comm, made, (MPI_Comm comm, MPI_Info info, MPI_Comm* made),
              (comm, info, made))
RECORDED_COMM(Comm_create, comm, made, (MPI_Comm comm, MPI_Group group, MPI_Comm* made),
              (comm, group, made))
RECORDED_COMM(Comm_split, comm, made, (MPI_Comm comm, int color, int key, MPI_Comm* made),
              (comm, color, key, made))
RECORDED_COMM(Comm_split_type, comm, made,
              (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
              (comm, type, key, info, made))
RECORDED_COMM(Cart_create, comm, made,
              (MPI_Comm comm, int dimensions, const int* sizes, const int* periods, int reorder,
               MPI_Comm* made),
              (comm, dimensions, sizes, periods, reorder, made))
RECORDED_COMM(Cart_sub, comm, made, (MPI_Comm comm, const int* remain, MPI_Comm* made),
              (comm, remain, made))
RECORDED_COMM(Graph_create, comm, made,
              (MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
               MPI_Comm* made),
              (comm, nodes, index, edges, reorder, made))
RECORDED_COMM(Dist_graph_create, comm, made,
              (MPI_Comm comm, int n, const int* sources, const int* degrees,
               const int* destinations, const int* weights, MPI_Info info, int reorder,
               MPI_Comm* made),
              (comm, n, sources, degrees, destinations, weights, info, reorder, made))
RECORDED_COMM(Dist_graph_create_adjacent, comm, made,
              (MPI_Comm comm, int indegree, const int* sources, const int* source_weights,
               int outdegree, const int* destinations, const int* destination_weights,
               MPI_Info info, int reorder, MPI_Comm* made),
              (comm, indegree, sources, source_weights, outdegree, destinations,
               destination_weights, info, reorder, made))
RECORDED_COMM(Intercomm_create, local, made,
              (MPI_Comm local, int local_leader, MPI_Comm peer, int remote_leader, int tag,
               MPI_Comm* made),
              (local, local_leader, peer, remote_leader, tag, made))
RECORDED_COMM(Intercomm_merge, between, made, (MPI_Comm between, int high, MPI_Comm* made),
              (between, high, made))

RECORDED MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  const int result = PMPI_Comm_create_group(comm, group, tag, made);
  if (result == MPI_SUCCESS && recorder.on()) recorder.communicator_made(comm, *made, true);
  return result;
}

RECORDED MPI_Comm_free(MPI_Comm* comm) {
  if (recorder.on()) recorder.communicator_freed(*comm);
  return PMPI_Comm_free(comm);
}

RECORDED MPI_Comm_disconnect(MPI_Comm* comm) {
  if (recorder.on()) recorder.communicator_freed(*comm);
  return PMPI_Comm_disconnect(comm);
}
