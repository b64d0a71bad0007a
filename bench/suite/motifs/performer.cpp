// SPDX-License-Identifier: BSD-3-Clause
#include "performer.hpp"

#include "../harness/content.hpp"

namespace suite::motifs {

Performer::Performer(const Session& session, const Script& script)
    : session_(session), script_(script), receives_(script.receives(), MPI_REQUEST_NULL) {
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t sends = 0;
  for (const Step& step : script.steps()) {
    const bool incoming = step.kind == Step::Kind::receive || step.kind == Step::Kind::probe;
    const bool outgoing = step.kind == Step::Kind::send || step.kind == Step::Kind::put;
    offsets_.push_back(incoming ? in : out);
    if (incoming) in += step.bytes;
    if (outgoing) out += step.bytes;
    if (step.kind == Step::Kind::send) ++sends;
  }
  in_.resize(in + 1);
  out_.resize(out + 1);
  statuses_.resize(script.receives());
  sends_.reserve(sends);
  slot_ = static_cast<std::size_t>(session.maximum(static_cast<double>(script.put_bytes())));
  if (slot_ > 0) {
    const auto bytes = static_cast<MPI_Aint>(slot_ * static_cast<std::size_t>(session.size()));
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, session.world(), &exposed_, &window_);
    MPI_Win_lock_all(0, window_);
  }
  session.barrier();
}

Performer::~Performer() {
  if (window_ == MPI_WIN_NULL) return;
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

std::uint64_t Performer::seed(int from, int to, int tag, int number) const {
  return seed_of({iteration_, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to),
                  static_cast<std::uint64_t>(tag), static_cast<std::uint64_t>(number)});
}

// The data of the n-th message of a tag to a rank say so.
void Performer::note_send(const Step& step, char* data, bool put) {
  const int number = sent_before_[{step.peer, step.tag, put}]++;
  fill(data, step.bytes, seed(session_.rank(), step.peer, put ? -1 : step.tag, number));
  notes_[static_cast<std::size_t>(step.peer)].push_back(
      {now(), step.tag, put ? static_cast<int>(step.bytes) : -1});
}

template <bool kNoting>
void Performer::perform() {
  const MPI_Comm comm = session_.world();
  sends_.clear();
  const Step* const first = script_.steps().data();
  for (const Step& step : script_.steps()) {
    const std::size_t offset = offsets_[static_cast<std::size_t>(&step - first)];
    const int length = static_cast<int>(step.bytes);
    switch (step.kind) {
      case Step::Kind::receive:
        if constexpr (kNoting) events_.push_back({now(), false, step.peer, step.tag});
        MPI_Irecv(&in_[offset], length, MPI_BYTE,
                  step.peer == kAnySource ? MPI_ANY_SOURCE : step.peer, step.tag, comm,
                  &receives_[step.request]);
        break;
      case Step::Kind::send:
        if constexpr (kNoting) note_send(step, &out_[offset], false);
        MPI_Isend(&out_[offset], length, MPI_BYTE, step.peer, step.tag, comm,
                  &sends_.emplace_back());
        break;
      case Step::Kind::wait:
        MPI_Wait(&receives_[step.request], &statuses_[step.request]);
        break;
      case Step::Kind::wait_all:
        // One by one where the sources count: those waited for before keep theirs.
        if constexpr (kNoting) {
          for (std::size_t i = 0; i < receives_.size(); ++i) {
            if (receives_[i] != MPI_REQUEST_NULL) MPI_Wait(&receives_[i], &statuses_[i]);
          }
        } else {
          MPI_Waitall(static_cast<int>(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE);
        }
        MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
        sends_.clear();
        break;
      case Step::Kind::probe: {
        MPI_Status found;
        MPI_Probe(MPI_ANY_SOURCE, step.tag, comm, &found);
        if constexpr (kNoting) events_.push_back({now(), false, found.MPI_SOURCE, step.tag});
        MPI_Recv(&in_[offset], length, MPI_BYTE, found.MPI_SOURCE, step.tag, comm,
                 &statuses_[step.request]);
        break;
      }
      case Step::Kind::compute:
        for (const double end = now() + step.seconds; now() < end;) {
        }
        break;
      case Step::Kind::put:
        if constexpr (kNoting) note_send(step, &out_[offset], true);
        MPI_Put(&out_[offset], length, MPI_BYTE, step.peer,
                static_cast<MPI_Aint>(slot_ * static_cast<std::size_t>(session_.rank())), length,
                MPI_BYTE, window_);
        break;
      case Step::Kind::flush:
        MPI_Win_flush(step.peer, window_);
        break;
      case Step::Kind::notify:
        if constexpr (kNoting) {
          notes_[static_cast<std::size_t>(step.peer)].push_back({now(), step.tag, -1});
        }
        MPI_Send(nullptr, 0, MPI_BYTE, step.peer, step.tag, comm);
        break;
      case Step::Kind::await:
        if constexpr (kNoting) events_.push_back({now(), false, step.peer, step.tag});
        MPI_Recv(nullptr, 0, MPI_BYTE, step.peer, step.tag, comm, MPI_STATUS_IGNORE);
        break;
    }
  }
}

double Performer::iterate(long times) {
  session_.barrier();
  const double seconds = time_of(times, [&](long) { perform<false>(); });
  session_.barrier();
  return seconds;
}

std::vector<Event> Performer::iterate_and_note() {
  ++iteration_;
  events_.clear();
  notes_.assign(static_cast<std::size_t>(session_.size()), {});
  sent_before_.clear();
  session_.barrier();
  perform<true>();
  session_.barrier();
  check_receives();
  return arrivals_and_checks();
}

void Performer::check_receives() const {
  std::map<std::pair<int, int>, int> received_before;
  const Step* const first = script_.steps().data();
  for (const Step& step : script_.steps()) {
    if (step.kind != Step::Kind::receive && step.kind != Step::Kind::probe) continue;
    const MPI_Status& status = statuses_[step.request];
    const int source = status.MPI_SOURCE;
    const int number = received_before[{source, step.tag}]++;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    const char* const data = &in_[offsets_[static_cast<std::size_t>(&step - first)]];
    const std::size_t wrong =
        first_difference(data, step.bytes, seed(source, session_.rank(), step.tag, number));
    if (wrong == step.bytes && static_cast<std::size_t>(count) == step.bytes) continue;
    wrong_data("message " + std::to_string(number) + " with tag " + std::to_string(step.tag) +
               " from rank " + std::to_string(source) + " at rank " +
               std::to_string(session_.rank()) + ": " + std::to_string(count) + " of " +
               std::to_string(step.bytes) + " bytes, byte " + std::to_string(wrong));
  }
}

// Everybody tells everybody what it has sent there; the last put of each origin must lie
// in its part of the window.
std::vector<Event> Performer::arrivals_and_checks() {
  const int size = session_.size();
  const auto n = static_cast<std::size_t>(size);
  std::vector<int> out_bytes(n), in_bytes(n), out_at(n), in_at(n);
  std::vector<Note> out;
  for (std::size_t i = 0; i < n; ++i) {
    out_at[i] = static_cast<int>(out.size() * sizeof(Note));
    out.insert(out.end(), notes_[i].begin(), notes_[i].end());
    out_bytes[i] = static_cast<int>(notes_[i].size() * sizeof(Note));
  }
  MPI_Alltoall(out_bytes.data(), 1, MPI_INT, in_bytes.data(), 1, MPI_INT, session_.world());
  int total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    in_at[i] = total;
    total += in_bytes[i];
  }
  std::vector<Note> in(static_cast<std::size_t>(total) / sizeof(Note));
  MPI_Alltoallv(out.data(), out_bytes.data(), out_at.data(), MPI_BYTE, in.data(), in_bytes.data(),
                in_at.data(), MPI_BYTE, session_.world());

  std::vector<Event> events = events_;
  if (window_ != MPI_WIN_NULL) MPI_Win_sync(window_);
  for (std::size_t from = 0; from < n; ++from) {
    int puts = 0;
    std::size_t last_put = 0;
    const std::size_t begin = static_cast<std::size_t>(in_at[from]) / sizeof(Note);
    const std::size_t end = begin + static_cast<std::size_t>(in_bytes[from]) / sizeof(Note);
    for (std::size_t i = begin; i < end; ++i) {
      if (in[i].bytes < 0) {
        events.push_back({in[i].time, true, static_cast<int>(from), in[i].tag});
      } else {
        ++puts;
        last_put = static_cast<std::size_t>(in[i].bytes);
      }
    }
    if (puts == 0) continue;
    const std::size_t wrong =
        first_difference(exposed_ + slot_ * from, last_put,
                         seed(static_cast<int>(from), session_.rank(), -1, puts - 1));
    if (wrong != last_put) {
      wrong_data("put " + std::to_string(puts - 1) + " of rank " + std::to_string(from) +
                 " at rank " + std::to_string(session_.rank()) + ", byte " + std::to_string(wrong) +
                 " of " + std::to_string(last_put));
    }
  }
  return events;
}

}  // namespace suite::motifs
