// SPDX-License-Identifier: BSD-3-Clause
//
// Performs a script over MPI: fast, or noting what happens when and comparing all data.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "../harness/session.hpp"
#include "match_model.hpp"
#include "script.hpp"

namespace suite::motifs {

class Performer {
 public:
  Performer(const Session& session, const Script& script);
  ~Performer();
  Performer(const Performer&) = delete;
  Performer& operator=(const Performer&) = delete;

  double iterate(long times);             // seconds
  std::vector<Event> iterate_and_note();  // posts here and arrivals here

 private:
  // What was sent where and when, as the receiver gets to know it.
  struct Note {
    double time;
    int tag;
    int bytes;  // of a put; -1: a message
  };

  template <bool kNoting>
  void perform();
  void note_send(const Step& step, char* data, bool put);
  std::vector<Event> arrivals_and_checks();
  void check_receives() const;
  std::uint64_t seed(int from, int to, int tag, int number) const;

  const Session& session_;
  const Script& script_;
  std::vector<std::size_t> offsets_;  // of each step's data in out_ or in_
  std::vector<char> out_;
  std::vector<char> in_;
  std::vector<MPI_Request> receives_;
  std::vector<MPI_Status> statuses_;
  std::vector<MPI_Request> sends_;
  MPI_Win window_ = MPI_WIN_NULL;
  char* exposed_ = nullptr;
  std::size_t slot_ = 0;  // bytes of the window that belong to one origin

  std::uint64_t iteration_ = 0;
  std::vector<Event> events_;
  std::vector<std::vector<Note>> notes_;                   // by target
  std::map<std::tuple<int, int, bool>, int> sent_before_;  // by target, tag, put
};

}  // namespace suite::motifs
