// SPDX-License-Identifier: BSD-3-Clause
#include "credit.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>

#include "arrival.hpp"
#include "pending.hpp"
#include "plugin.hpp"

namespace tagline::pml {

struct CreditAccount {
  std::mutex lock;
  ompi_proc_t* proc = nullptr;
  std::uint64_t spent = 0;    // as a sender: on packets to the peer
  std::uint64_t allowed = 0;  // as a sender: the most `spent` may become
  std::uint64_t share = 0;    // as a receiver: what the peer may have on the way or stored here
  std::uint64_t granted = 0;  // as a receiver: the peer's `allowed`
  std::uint64_t consumed =
      0;  // as a receiver: the part of the peer's `spent` that is stored no more
};

namespace {

// One list for all communicators: the limit is the process's.
std::mutex accounts_lock;
std::unordered_map<std::uint64_t, CreditAccount> accounts;
std::uint64_t first_share = 0;  // of a process of this job
std::uint64_t spare = 0;        // not in anybody's share yet

// Shares grow by this much at least: a few messages, so that a grant is worth its message.
constexpr std::uint64_t kSmallestGrowth = 16 * 1024;

std::uint64_t key_of(const ompi_process_name_t& name) {
  return std::uint64_t{name.jobid} << 32 | name.vpid;
}

// What the share of a peer that needs more may grow by.
std::uint64_t take_spare(std::uint64_t share) {
  Guard guard(accounts_lock);
  const std::uint64_t taken = std::min(std::max(share, kSmallestGrowth), spare / 2);
  spare -= taken;
  return taken;
}

void grant(CreditAccount& account, std::uint64_t allowed) {
  // A peer that is about to exit as well needs none, and may be gone.
  if (ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED) return;
  const ompi_process_name_t name = ompi_proc_local()->super.proc_name;
  const CreditHeader header = {key_of(name), allowed};
  mca_bml_base_endpoint_t* endpoint = mca_bml_base_get_endpoint(account.proc);
  if (endpoint != nullptr) send_control(endpoint, nullptr, kCredit, &header, sizeof(header));
}

}  // namespace

void open_credit() {
  Parameters& parameters = plugin.parameters;
  plugin.credit = parameters.unexpected_limit != 0;
  if (!plugin.credit) return;
  parameters.unexpected_inline = std::min(parameters.unexpected_inline, kLargestInline);
  spare = parameters.unexpected_limit;
}

void share_credit(std::uint64_t processes) {
  if (!plugin.credit) return;
  first_share = plugin.parameters.unexpected_limit / 2 / processes;
  spare -= first_share * processes;
}

std::uint64_t charge_of(const Arrival& arrival) {
  const std::size_t payload = arrival.payload_bytes();
  // A header alone is what a sender without credit may always have stored.
  return arrival.kind == kEager || payload != 0 ? charge_of(payload) : 0;
}

bool starved(const Arrival& arrival) {
  return arrival.kind == kRendezvous && (arrival.header<RendezvousHeader>().flags & kStarved) != 0;
}

CreditAccount* credit_account(ompi_proc_t* proc) {
  const ompi_process_name_t& name = proc->super.proc_name;
  Guard guard(accounts_lock);
  try {
    const auto [entry, added] = accounts.try_emplace(key_of(name));
    CreditAccount& account = entry->second;
    if (added) {
      account.proc = proc;
      const bool same_job = name.jobid == ompi_proc_local()->super.proc_name.jobid;
      account.share = account.granted = account.allowed = same_job ? first_share : 0;
    }
    return &account;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool spend(CreditAccount* account, std::uint64_t charge) {
  if (account == nullptr) return false;
  Guard guard(account->lock);
  if (account->allowed - account->spent < charge) return false;
  account->spent += charge;
  return true;
}

void refund(CreditAccount* account, std::uint64_t charge) {
  Guard guard(account->lock);
  account->spent -= charge;
}

void consume(CreditAccount* account, std::uint64_t charge, bool starved) {
  if (account == nullptr) return;
  const std::uint64_t growth = starved ? take_spare(account->share) : 0;
  std::uint64_t allowed = 0;
  {
    Guard guard(account->lock);
    account->consumed += charge;
    account->share += growth;
    const std::uint64_t owed = account->consumed + account->share - account->granted;
    if (owed == 0 || (!starved && owed < account->share / 2)) return;
    allowed = account->granted += owed;
  }
  // Without the lock: btl/self delivers it before it returns.
  grant(*account, allowed);
}

void close_credit_account(ompi_proc_t* proc) {
  Guard guard(accounts_lock);
  const auto found = accounts.find(key_of(proc->super.proc_name));
  if (found == accounts.end()) return;
  const bool same_job = proc->super.proc_name.jobid == ompi_proc_local()->super.proc_name.jobid;
  spare += found->second.share - (same_job ? first_share : 0);
  accounts.erase(found);
}

void close_credit() { accounts.clear(); }

TAGLINE_BTL_CALLBACK(tagline_on_credit) {
  (void)btl;
  CreditHeader header;
  std::memcpy(&header, TAGLINE_BTL_SEGMENTS(descriptor)[0].seg_addr.pval, sizeof(header));
  CreditAccount* account = nullptr;
  {
    Guard guard(accounts_lock);
    const auto found = accounts.find(header.process);
    if (found == accounts.end()) return;  // no limit here, or the peer was closed
    account = &found->second;
  }
  Guard guard(account->lock);
  account->allowed = std::max(account->allowed, header.allowed);
}

}  // namespace tagline::pml
