// SPDX-License-Identifier: BSD-3-Clause
#include "copy_choice.hpp"

#include <algorithm>
#include <bit>

namespace tagline::pml {
namespace {

// Costs and counts stand for themselves: nobody concludes from one what another thread has written.
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

constexpr std::size_t index(CopyWay way) { return static_cast<std::size_t>(way); }

}  // namespace

CopyWay CopyChoice::Size::faster() const {
  return cost[index(CopyWay::kShare)].load(kRelaxed) <
                 kWorthIt * cost[index(CopyWay::kRead)].load(kRelaxed)
             ? CopyWay::kShare
             : CopyWay::kRead;
}

CopyWay CopyChoice::choose(std::size_t bytes) {
  Size& size = sizes_[std::bit_width(bytes) % sizes_.size()];
  for (const CopyWay way : {CopyWay::kRead, CopyWay::kShare}) {
    if (size.cost[index(way)].load(kRelaxed) == 0) return way;
  }
  const CopyWay faster = size.faster();
  const std::uint32_t messages = size.messages.load(kRelaxed) + 1;
  const std::uint32_t trial_after = size.trial_after.load(kRelaxed);
  if (messages < trial_after) {
    size.messages.store(messages, kRelaxed);
    return faster;
  }
  size.messages.store(0, kRelaxed);
  size.trial_after.store(std::min(trial_after * 2, kRarestTrial), kRelaxed);
  return faster == CopyWay::kRead ? CopyWay::kShare : CopyWay::kRead;
}

void CopyChoice::note(CopyWay way, std::size_t bytes, std::uint64_t nanoseconds) {
  Size& size = sizes_[std::bit_width(bytes) % sizes_.size()];
  std::atomic<float>& cost = size.cost[index(way)];
  const float before = cost.load(kRelaxed);
  const float now = std::max(static_cast<float>(nanoseconds), 1.0F) / static_cast<float>(bytes);
  if (before == 0) {
    cost.store(now, kRelaxed);
    return;
  }
  const CopyWay was_faster = size.faster();
  // Of a process that was interrupted meanwhile not everything is believed at once.
  cost.store(before + (std::min(now, 2 * before) - before) / 4, kRelaxed);
  // What has changed, or seems to, is looked at again soon.
  const bool surprise =
      way != was_faster && now < size.cost[index(was_faster)].load(kRelaxed) * kWorthIt;
  if (surprise || size.faster() != was_faster) size.trial_after.store(kFirstTrial, kRelaxed);
}

}  // namespace tagline::pml
