// SPDX-License-Identifier: BSD-3-Clause
// Traces: what is written is read, whatever happened to the file in between.
#include "match/trace.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "tools/history.hpp"
#include "tools/player.hpp"
#include "tools/record/request_table.hpp"
#include "tools/structures.hpp"

namespace tagline::tools {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tagline-trace-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

// What a matcher did is what its trace makes another one do. The first test: a process
// decides with its first matcher whether it records.
TEST(Recording, PlaysBackToTheSamePairs) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    setenv("TAGLINE_TRACE", folder.path.c_str(), 1);
    tagline_matcher* matcher = nullptr;
    if (tagline_create(nullptr, &matcher) != TAGLINE_OK) _exit(1);
    std::mt19937 random(5);
    std::vector<tagline_handle> queued;
    std::uint64_t unexpected = 0;
    for (std::uintptr_t i = 0; i < 20000; ++i) {
      tagline_envelope envelope = {random() % 3, static_cast<int>(random() % 4),
                                   static_cast<int>(random() % 8) - 1};
      void* partner = nullptr;
      tagline_handle handle = 0;
      switch (random() % 12) {
        case 0:
          tagline_probe(matcher, envelope, &partner, nullptr);
          break;
        case 1:
          tagline_claim(matcher, envelope, &partner, nullptr);
          break;
        case 2:
          if (!queued.empty()) {
            tagline_cancel_handle(matcher, envelope.context_id, queued[random() % queued.size()]);
          }
          break;
        case 3:  // the halves
          if (tagline_match_message(matcher, envelope, &partner) == TAGLINE_NOT_FOUND) {
            tagline_append_message(matcher, envelope, nullptr);
          }
          break;
        case 4:
        case 5:
        case 6:
        case 7:
          if (random() % 5 == 0) envelope.source = TAGLINE_ANY_SOURCE;
          if (random() % 5 == 0) envelope.tag = TAGLINE_ANY_TAG;
          if (tagline_post_receive(matcher, envelope, nullptr, &partner, &handle) ==
              TAGLINE_QUEUED) {
            queued.push_back(handle);
          }
          break;
        default:
          tagline_arrive(matcher, envelope, nullptr, &partner);
      }
    }
    tagline_statistics statistics;
    tagline_get_statistics(matcher, &statistics);
    unexpected = statistics.unexpected.length;
    std::ofstream(folder.path / "lengths")
        << statistics.posted.length << ' ' << unexpected << ' ' << statistics.posted.matches;
    std::exit(0);  // the matcher is alive: it does not empty its contexts
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::uint64_t posted = 0, unexpected = 0, matches = 0;
  std::ifstream(folder.path / "lengths") >> posted >> unexpected >> matches;
  ASSERT_GT(matches, 500u);
  const TraceSet traces(folder.path);
  ASSERT_EQ(traces.ranks().size(), 1u);
  traces.for_each({}, [&](const History& history) {
    EXPECT_EQ(history.lost, 0u);
    for (const std::string& name : structure_names()) {
      const OwnedMatcher matcher = make_matcher(name);
      play(history, matcher.get());
      tagline_statistics statistics;
      tagline_get_statistics(matcher.get(), &statistics);
      EXPECT_EQ(statistics.posted.length, posted) << name;
      EXPECT_EQ(statistics.unexpected.length, unexpected) << name;
      EXPECT_EQ(statistics.posted.matches, matches) << name;
    }
  });
}

// Several threads on one matcher: their operations are one history, in which every message finds
// its receive as it did then. In a process of its own, as all tests of ctest are.
TEST(Recording, OfSeveralThreadsIsOneHistory) {
  const Folder folder;
  constexpr int kThreads = 4;
  constexpr int kMessages = 5000;
  const pid_t child = fork();
  if (child == 0) {
    setenv("TAGLINE_TRACE", folder.path.c_str(), 1);
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.threads = 1;
    tagline_matcher* matcher = nullptr;
    if (tagline_create(&options, &matcher) != TAGLINE_OK) _exit(1);
    if (tagline_matcher_reason(matcher) != std::string("default")) _exit(2);
    std::vector<std::thread> threads;
    for (int source = 0; source < kThreads; ++source) {
      threads.emplace_back([matcher, source] {
        void* partner = nullptr;
        for (int i = 0; i < kMessages; ++i) {
          const auto context = static_cast<std::uint64_t>(source % 2);
          tagline_post_receive(matcher, {context, source, i % 5}, nullptr, &partner, nullptr);
          tagline_arrive(matcher, {context, source, i % 5}, nullptr, &partner);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    tagline_destroy(matcher);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const TraceSet traces(folder.path);
  traces.for_each({}, [&](const History& history) {
    EXPECT_FALSE(history.cut);
    EXPECT_EQ(history.posts, std::uint64_t{kThreads} * kMessages);
    const OwnedMatcher matcher = make_matcher("linear");
    const Played played = play(history, matcher.get());
    EXPECT_EQ(played.expected, std::uint64_t{kThreads} * kMessages);
    EXPECT_EQ(played.unexpected, 0u);
  });
}

// A small history of everything a matcher's trace can have.
std::uint64_t write_small(TraceWriter& writer, unsigned rounds) {
  std::uint64_t records = 0;
  const auto note = [&](TraceKind kind, unsigned flags, auto... fields) {
    writer.record(kind, flags, fields...);
    ++records;
  };
  note(TraceKind::context, 0, 0, 4711, 0, 0, 0);
  for (unsigned i = 0; i < rounds; ++i) {
    const std::uint64_t tag = trace_tag(static_cast<int>(i) - 3, TAGLINE_ANY_TAG);
    note(TraceKind::post, kTraceQueued, 0, trace_source(i, TAGLINE_ANY_SOURCE), tag, 1u << i % 30);
    note(TraceKind::post, kTraceQueued, 0, 0, 0, 0);
    note(TraceKind::arrive, 0, 0, trace_source(i, TAGLINE_ANY_SOURCE), tag, 8);
    note(TraceKind::probe, kTraceFound, 0, 0, tag, 70000);
    note(TraceKind::cancel_queued, 0, 0, i * 2 + 1);
  }
  note(TraceKind::drop_context, 0, 0);
  return records;
}

std::vector<TraceEvent> events_of(const fs::path& path) {
  std::vector<TraceEvent> events;
  TraceFile(path).for_each([&](const TraceEvent& event) {
    if (event.kind != TraceKind::clock) events.push_back(event);
  });
  return events;
}

TEST(Trace, ReadsWhatWasWritten) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  TraceHeader header;
  header.origin = TraceOrigin::matching;
  header.rank = 7;
  TraceWriter writer;
  ASSERT_TRUE(writer.open(path.c_str(), header, 0));
  const std::uint64_t records = write_small(writer, 40);
  writer.close();

  const TraceFile file(path);
  EXPECT_EQ(file.records(), records);
  EXPECT_EQ(file.header().rank, 7u);
  EXPECT_FALSE(file.cut());
  EXPECT_EQ(file.lost(), 0u);
  const auto events = events_of(path);
  ASSERT_EQ(events.size(), records);
  EXPECT_EQ(events[0].id, 4711u);
  for (unsigned i = 0; i < 40; ++i) {
    const TraceEvent& exact = events[1 + 5 * i];
    EXPECT_EQ(exact.kind, TraceKind::post);
    EXPECT_TRUE(exact.flag);
    EXPECT_EQ(exact.source, static_cast<int>(i));
    EXPECT_EQ(exact.tag, static_cast<int>(i) - 3);
    EXPECT_EQ(exact.value, 1u << i % 30);
    EXPECT_EQ(events[2 + 5 * i].source, TAGLINE_ANY_SOURCE);
    EXPECT_EQ(events[2 + 5 * i].tag, TAGLINE_ANY_TAG);
    EXPECT_EQ(events[4 + 5 * i].value, 70000u);
  }
}

TEST(Trace, TimesAreThoseOfTheClock) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  TraceWriter writer;
  ASSERT_TRUE(writer.open(path.c_str(), {}, 0));
  const auto now = [] { return static_cast<double>(trace_nanoseconds()); };
  const double before_first = now();
  writer.record(TraceKind::drop_context, 0, 0);
  const double behind_first = now();
  while (now() < behind_first + 20e6) continue;
  const double before_second = now();
  writer.record(TraceKind::drop_context, 0, 0);
  const double behind_second = now();
  writer.close();
  const auto events = events_of(path);
  ASSERT_EQ(events.size(), 2u);
  const auto between = static_cast<double>(events[1].ns - events[0].ns);
  EXPECT_GE(between, 0.999 * (before_second - behind_first));
  EXPECT_LE(between, 1.001 * (behind_second - before_first));
}

// Wherever it is cut, what is in front of the cut is there, and nothing else.
TEST(Trace, IsReadableUpToAnyCut) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  TraceWriter writer;
  ASSERT_TRUE(writer.open(path.c_str(), {}, 0));
  write_small(writer, 10);
  writer.close();
  const auto whole = events_of(path);
  std::size_t before = 0;
  for (std::size_t bytes = sizeof(TraceHeader); bytes < fs::file_size(path); ++bytes) {
    const fs::path part = folder.path / "part.tagtrace";
    fs::copy_file(path, part, fs::copy_options::overwrite_existing);
    fs::resize_file(part, bytes);
    EXPECT_TRUE(TraceFile(part).cut());
    const auto events = events_of(part);
    ASSERT_LE(events.size(), whole.size());
    ASSERT_GE(events.size(), before);
    ASSERT_LE(events.size(), before + 1);
    before = events.size();
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].kind, whole[i].kind);
      ASSERT_EQ(events[i].tag, whole[i].tag);
    }
  }
  EXPECT_EQ(before, whole.size());
}

// The process ends without a word: no buffer of its own is lost with it.
TEST(Trace, SurvivesTheKillOfItsProcess) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  const pid_t child = fork();
  if (child == 0) {
    TraceWriter writer;
    if (!writer.open(path.c_str(), {}, 0)) _exit(1);
    write_small(writer, 100000);  // several windows
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const TraceFile file(path);
  EXPECT_EQ(file.records(), 2u + 5 * 100000);
  EXPECT_TRUE(file.cut());
}

TEST(Trace, EndsWithACountWhenThereIsNoMoreSpace) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {3 << 20, 3 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    TraceWriter writer;
    if (!writer.open(path.c_str(), {}, 0)) _exit(1);
    const std::uint64_t written = write_small(writer, 200000);
    writer.close();
    _exit(written == 2 + 5 * 200000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const TraceFile file(path);
  EXPECT_GT(file.records(), 1000u);
  EXPECT_EQ(file.records() + file.lost(), 2u + 5 * 200000);
  EXPECT_FALSE(file.cut());
  EXPECT_LE(fs::file_size(path), 3u << 20);
}

TEST(Trace, StaysWithinItsLimit) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  TraceWriter writer;
  ASSERT_TRUE(writer.open(path.c_str(), {}, 2 << 20));
  const std::uint64_t records = write_small(writer, 200000);
  writer.close();
  const TraceFile file(path);
  EXPECT_EQ(file.records() + file.lost(), records);
  EXPECT_GT(file.lost(), 0u);
  EXPECT_LE(fs::file_size(path), 2u << 20);
}

TEST(Trace, RefusesWhatIsNone) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  std::ofstream(path) << std::string(1000, 'x');
  EXPECT_THROW(TraceFile{path}, std::runtime_error);
  std::ofstream(path) << "short";
  EXPECT_THROW(TraceFile{path}, std::runtime_error);
  TraceHeader header;
  std::memcpy(header.magic, kTraceMagic, sizeof kTraceMagic);
  header.version = 99;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char*>(&header), sizeof header);
  try {
    TraceFile file(path);
    FAIL() << "version 99 was read";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("99"), std::string::npos);
  }
}

// Whatever a disk or a copy has made of it: it is played as far as it makes sense, or refused.
TEST(Trace, IsPlayedOrRefusedWhateverByteIsWrong) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  for (const TraceOrigin origin : {TraceOrigin::calls, TraceOrigin::matching}) {
    TraceHeader header;
    header.origin = origin;
    TraceWriter writer;
    fs::remove(path);
    ASSERT_TRUE(writer.open(path.c_str(), header, 0));
    write_small(writer, 6);
    writer.close();
    std::string whole(fs::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(whole.data(), std::ssize(whole));
    unsigned played = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char wrong : {'\0', '\x7f', '\x80', '\xff'}) {
        std::string damaged = whole;
        damaged[at] = wrong;
        fs::remove(path);  // a file that is overwritten waits for the disk
        std::ofstream(path, std::ios::binary) << damaged;
        try {
          TraceSet(path).for_each({}, [&](const History& history) {
            const OwnedMatcher matcher = make_matcher("adaptive");
            played += play(history, matcher.get()).operations > 0;
          });
        } catch (const std::runtime_error& error) {
          // Of the file's header alone.
          EXPECT_LT(at, sizeof(TraceHeader)) << error.what();
        }
      }
    }
    EXPECT_GT(played, whole.size());
  }
}

// Memory has a bound: of a long history the beginning is read.
TEST(Trace, IsReadAsFarAsWanted) {
  const Folder folder;
  const fs::path path = folder.path / "a.tagtrace";
  TraceHeader header;
  header.origin = TraceOrigin::matching;
  TraceWriter writer;
  ASSERT_TRUE(writer.open(path.c_str(), header, 0));
  const std::uint64_t records = write_small(writer, 40);
  writer.close();
  const TraceSet traces(path);
  std::size_t all = 0;
  traces.for_each({}, [&](const History& history) {
    all = history.operations.size();
    EXPECT_EQ(history.left_out, 0u);
  });
  traces.for_each({}, [&](const History& history) {
    EXPECT_EQ(history.left_out, records - 50);
    EXPECT_LE(history.operations.size(), 50u);
    EXPECT_GE(history.operations.size() + 5, 50u);
    EXPECT_LE(history.operations.back().ns, history.duration_ns);
  }, 50);
  traces.for_each({}, [&](const History& history) { EXPECT_EQ(history.operations.size(), all); }, 0);
}

TEST(Csv, IsPlayedLikeATrace) {
  const Folder folder;
  const fs::path path = folder.path / "a.csv";
  std::ofstream(path) << "rank,time_ns,event,context,source,tag,bytes\n"
                         "# two ranks\n"
                         "0, 10, post, 0, *, 7, 8\n"
                         "0, 20, post, 0, 3, *, 8\n"
                         "0, 30, arrive, 0, 3, 7, 8\n"
                         "0, 40, arrive, 0, 3, 1, 8\n"
                         "0, 50, arrive, 0, 9, 9, 8\n"
                         "0, 60, claim, 0, 9, *, 8\n"
                         "2, 10, arrive, 0, 1, 1, 8\n";
  const TraceSet traces(path);
  EXPECT_EQ(traces.ranks(), (std::vector<std::uint32_t>{0, 2}));
  for (const std::string& name : structure_names()) {
    traces.for_each({0}, [&](const History& history) {
      const OwnedMatcher matcher = make_matcher(name);
      const Played played = play(history, matcher.get());
      EXPECT_EQ(played.expected, 2u) << name;
      EXPECT_EQ(played.unexpected, 1u) << name;
      tagline_statistics statistics;
      tagline_get_statistics(matcher.get(), &statistics);
      EXPECT_EQ(statistics.unexpected.length, 0u) << name;
    });
  }
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  const Folder folder;
  const fs::path path = folder.path / "a.csv";
  const std::pair<const char*, const char*> cases[] = {
      {"", "empty"},
      {"event,source\npost,1\n", "no column \"tag\""},
      {"event,source,tag\nposts,1,1\n", ":2: event \"posts\""},
      {"event,source,tag\npost,x,1\n", "no whole number"},
      {"event,source,tag\n\narrive,*,1\n", ":3: a message"},
      {"event,source,tag,time_ns\npost,1,1,5\npost,1,1,4\n", "goes back"},
  };
  for (const auto& [text, reason] : cases) {
    std::ofstream(path) << text;
    try {
      read_csv(path);
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  }
}

TEST(RequestTable, FindsWhatIsThereAndNothingElse) {
  record::RequestTable table;
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t key = (random() % 5000 + 1) * 16;
    if (random() % 2 == 0) {
      table.set(key, static_cast<std::uint64_t>(i));
      model[key] = static_cast<std::uint64_t>(i);
    } else {
      table.remove(key);
      model.erase(key);
    }
    const std::uint64_t other = (random() % 5000 + 1) * 16;
    const auto found = model.find(other);
    ASSERT_EQ(table.get(other), found == model.end() ? record::RequestTable::kNone : found->second);
    ASSERT_EQ(table.empty(), model.empty());
  }
}

}  // namespace
}  // namespace tagline::tools
