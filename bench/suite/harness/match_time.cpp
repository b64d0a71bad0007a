// SPDX-License-Identifier: BSD-3-Clause
#include "match_time.hpp"

namespace suite {
namespace {

constexpr const char* kFields[] = {"posted_match", "unexpected_match", "match"};

MPI_T_pvar_handle handle_of(MPI_T_pvar_session session, const std::string& wanted) {
  int variables = 0;
#ifdef OPEN_MPI  // MPICH without variables of its own (4.0.2) crashes when asked for their number
  MPI_T_pvar_get_num(&variables);
#endif
  for (int i = 0; i < variables; ++i) {
    char name[256] = "";
    int length = sizeof name;
    int no_help = 0;
    int verbosity, kind, binding, readonly, continuous, atomic;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(i, name, &length, &verbosity, &kind, &type, &values, nullptr, &no_help,
                            &binding, &readonly, &continuous, &atomic) != MPI_SUCCESS ||
        wanted != name || type != MPI_UNSIGNED_LONG_LONG) {
      continue;
    }
    MPI_T_pvar_handle handle;
    int count = 0;
    if (MPI_T_pvar_handle_alloc(session, i, nullptr, &handle, &count) == MPI_SUCCESS) return handle;
  }
  return MPI_T_PVAR_HANDLE_NULL;
}

}  // namespace

MatchTime::MatchTime() {
  MPI_T_pvar_session_create(&session_);
  for (int i = 0; i < kVariables; ++i) {
    handles_[i] = handle_of(session_, std::string("pml_tagline_total_") + kFields[i] + "_time");
  }
}

MatchTime::~MatchTime() {
  for (MPI_T_pvar_handle& handle : handles_) {
    if (handle != MPI_T_PVAR_HANDLE_NULL) MPI_T_pvar_handle_free(session_, &handle);
  }
  MPI_T_pvar_session_free(&session_);
}

double MatchTime::seconds(int variable) const {
  unsigned long long nanoseconds = 0;
  if (handles_[variable] != MPI_T_PVAR_HANDLE_NULL) {
    MPI_T_pvar_read(session_, handles_[variable], &nanoseconds);
  }
  return static_cast<double>(nanoseconds) * 1e-9;
}

void MatchTime::report(const Session& session, Record& record, double parts) const {
  for (int i = 0; i < kVariables; ++i) {
    const double most = session.maximum(seconds(i));
    if (most > 0) record[std::string(kFields[i]) + "_s"] = most / parts;
  }
}

}  // namespace suite
