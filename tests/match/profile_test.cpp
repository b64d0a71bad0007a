// SPDX-License-Identifier: BSD-3-Clause
#include "match/profile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/all_matchers.hpp"

namespace tagline::test {
namespace {

// What the library says on stderr is said once per file, so each test has files of its own.
class ProfileTest : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("TAGLINE_PROFILE");
    unsetenv("TAGLINE_QUEUE");
    unsetenv("TAGLINE_ISA");
    std::filesystem::remove(path_);
  }
  void write(const std::string& text) {
    std::filesystem::remove(path_);  // a file that is overwritten waits for the disk
    std::ofstream(path_) << text;
  }
  void write_choices(const std::string& lines) {
    write("tagline profile 1\nmachine " + this_machine() + "\n" + lines);
  }
  MatcherPointer make(bool threads = false, int ranks = 0, unsigned hints = 0) {
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.profile = path_.c_str();
    options.threads = threads;
    options.ranks = ranks;
    options.hints = hints;
    return make_matcher(options);
  }
  std::string complaint() {
    testing::internal::CaptureStderr();
    const MatcherPointer matcher = make();
    EXPECT_STREQ(tagline_matcher_queue(matcher.get()), tagline_queue_name(0));
    EXPECT_STREQ(tagline_matcher_reason(matcher.get()), "default");
    return testing::internal::GetCapturedStderr();
  }

  std::string path_ = testing::TempDir() + "tagline-" + std::to_string(getpid()) + "-" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

constexpr unsigned kExact = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG;

TEST_F(ProfileTest, ChoosesByThreadsHintsAndRanks) {
  write_choices(
      "choose single/any/many linear scalar\n"
      "choose single/any/few array:4 scalar\n"
      "choose single/exact/few vector scalar\n"
      "choose threads/exact/many locked@mcs:fuzzy:8 scalar\n");
  EXPECT_STREQ(tagline_matcher_queue(make().get()), "linear");
  EXPECT_STREQ(tagline_matcher_isa(make().get()), "scalar");
  EXPECT_EQ(tagline_matcher_reason(make().get()), "profile " + path_ + " for single/any/many");
  EXPECT_STREQ(tagline_matcher_queue(make(false, 64).get()), "array:4");
  EXPECT_STREQ(tagline_matcher_queue(make(false, 65).get()), "linear");
  EXPECT_STREQ(tagline_matcher_queue(make(false, 2, kExact).get()), "vector");
  // One promise leaves wildcards of the other kind.
  EXPECT_STREQ(tagline_matcher_queue(make(false, 2, TAGLINE_NO_ANY_TAG).get()), "array:4");
  EXPECT_STREQ(tagline_matcher_queue(make(true, 1000, kExact).get()), "locked@mcs:fuzzy:8");
  // A kind that was not measured.
  EXPECT_STREQ(tagline_matcher_reason(make(true, 2).get()), "default");
}

TEST_F(ProfileTest, WhatIsNamedWins) {
  write_choices("choose single/any/many linear scalar\n");
  setenv("TAGLINE_QUEUE", "vector", 1);
  EXPECT_STREQ(tagline_matcher_queue(make().get()), "vector");
  EXPECT_STREQ(tagline_matcher_isa(make().get()), tagline_isa_name(0));
  EXPECT_STREQ(tagline_matcher_reason(make().get()), "asked for");
  unsetenv("TAGLINE_QUEUE");
  setenv("TAGLINE_ISA", tagline_isa_name(0), 1);
  EXPECT_STREQ(tagline_matcher_queue(make().get()), "linear");
  EXPECT_STREQ(tagline_matcher_isa(make().get()), tagline_isa_name(0));
}

TEST_F(ProfileTest, EnvironmentOverridesTheOption) {
  write_choices("choose single/any/many linear scalar\n");
  const std::string other = path_ + "-other";
  std::filesystem::copy(path_, other);
  write("no profile");
  setenv("TAGLINE_PROFILE", other.c_str(), 1);
  EXPECT_STREQ(tagline_matcher_queue(make().get()), "linear");
  std::filesystem::remove(other);
}

TEST_F(ProfileTest, MissingOneIsSaidOnce) {
  EXPECT_NE(complaint().find("cannot be read (No such file"), std::string::npos);
  EXPECT_EQ(complaint(), "");
}

TEST_F(ProfileTest, WhatIsNoProfileIsSaid) {
  write("hello\n");
  EXPECT_NE(complaint().find("is not a profile"), std::string::npos);
}

TEST_F(ProfileTest, AnotherVersionIsSaid) {
  write("tagline profile 2\n");
  EXPECT_NE(complaint().find("is of version 2"), std::string::npos);
}

TEST_F(ProfileTest, AnotherMachineIsSaid) {
  write("tagline profile 1\nmachine 3 units of sand\nchoose single/any/many linear scalar\n");
  EXPECT_NE(complaint().find("says nothing about this machine"), std::string::npos);
}

TEST_F(ProfileTest, UnknownQueueIsSaid) {
  write_choices("choose single/any/many skiplist scalar\n");
  const std::string said = complaint();
  EXPECT_NE(said.find("\"skiplist\" in the profile " + path_), std::string::npos) << said;
}

TEST_F(ProfileTest, EveryCutIsFoundOrLeavesWholeLines) {
  Profile whole;
  ProfileRun run{"2026-11-21T17:40:00Z", "low", 5, "1.0.0", {}, {}};
  run.times.push_back({"single/short", "adaptive", "avx2", 8.25, 8, 9.5, 40});
  run.scores.push_back({"single/any/few", "vector", "avx2", 1.25, 1.125, 1.5, 3, 40});
  whole.machines.push_back({"2 units of AMD EPYC 9B14", {run}, {{"single/any/few", "vector", "avx2"}}});
  const std::string text = whole.text();
  write(text);
  EXPECT_EQ(read_profile(path_).text(), text);
  unsigned damaged = 0;
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    write(text.substr(0, bytes));
    try {
      const std::string part = read_profile(path_).text();
      EXPECT_TRUE(bytes > 0 && (text[bytes - 1] == '\n' || text[bytes] == '\n' ||
                                text.rfind('\n', bytes - 1) + 1 == bytes ||
                                text[text.rfind('\n', bytes - 1) + 1] == '#'))
          << "cut behind byte " << bytes << " is read as\n" << part;
    } catch (const BadProfile&) {
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 100u);
}

TEST_F(ProfileTest, DamagedLinesAreNamed) {
  const auto said = [&](const std::string& line) -> std::string {
    write_choices(line + "\n");
    try {
      read_profile(path_);
      return "";
    } catch (const BadProfile& error) {
      return error.what();
    }
  };
  EXPECT_NE(said("choose single/any/few vector").find("line 3: it is too short"), std::string::npos);
  EXPECT_NE(said("choose a b c d").find("nothing belongs behind"), std::string::npos);
  EXPECT_NE(said("run now low 5 1.0.0\nchose a b c").find("unknown"), std::string::npos);
  EXPECT_NE(said("run now low -5 1.0.0").find("-5 is not a number"), std::string::npos);
  EXPECT_NE(said("run now low 5s 1.0.0").find("5s is not a number"), std::string::npos);
  EXPECT_NE(said("time a b c 1 2 3 4").find("no run is named"), std::string::npos);
}

}  // namespace
}  // namespace tagline::test
