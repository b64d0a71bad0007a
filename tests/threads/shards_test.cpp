// SPDX-License-Identifier: BSD-3-Clause
// Who has a shard to itself (match/shards.hpp).
#include "match/shards.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "match/tagline.h"
#include "queues/linear.hpp"
#include "simd/kernels.hpp"

namespace tagline {
namespace {

using Parts = Shards<LinearQueue>;
constexpr MatchEnvelope kEnvelope = {0, 1, 2};

void post_by_the_lock(Parts& parts) {
  void* message = nullptr;
  parts.visit(
      kEnvelope,
      [&](Parts::Shard& shard) {
        parts.number_receive(shard);
        return shard.core->post_receive(kEnvelope, &message, &message, nullptr);
      },
      [] { return TAGLINE_OK; });
}

bool enters(Parts::Shard* shard) {
  if (shard == nullptr) return false;
  shard->core->turns().end();
  return true;
}

TEST(Shards, OneShardFavoursAThreadAgainThatHasItToItself) {
  if (!allow_barriers()) GTEST_SKIP() << "the system has no membarrier()";
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 1);
  post_by_the_lock(parts);
  EXPECT_TRUE(enters(parts.enter_alone()));

  std::thread([&] { parts.with_whole([&] { parts.statistics(); }); }).join();
  EXPECT_FALSE(enters(parts.enter_alone()));
  EXPECT_FALSE(enters(parts.enter(kEnvelope)));
  for (int i = 0; i < 3 * 1024; ++i) post_by_the_lock(parts);
  EXPECT_TRUE(enters(parts.enter(kEnvelope)));
  EXPECT_FALSE(enters(parts.enter_alone())) << "that is for the first favour";
}

}  // namespace
}  // namespace tagline
