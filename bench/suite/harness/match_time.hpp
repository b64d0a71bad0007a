// SPDX-License-Identifier: BSD-3-Clause
//
// Seconds that this process has spent in matching, from MPI libraries that count them:
// with tagline's component, --mca pml_tagline_match_time 1.
#pragma once

#include "session.hpp"

namespace suite {

class MatchTime {
 public:
  MatchTime();  // counts from here
  ~MatchTime();
  MatchTime(const MatchTime&) = delete;
  MatchTime& operator=(const MatchTime&) = delete;

  // Sets FIELD_s for each of posted_match (searches of the posted receives), unexpected_match
  // and match (both): the largest of all ranks, per `parts`. None where nothing is counted.
  void report(const Session& session, Record& record, double parts) const;

 private:
  static constexpr int kVariables = 3;
  double seconds(int variable) const;  // 0: not counted

  MPI_T_pvar_session session_;
  MPI_T_pvar_handle handles_[kVariables];
};

}  // namespace suite
