// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace tagline::test {

namespace {

using Kind = Operation::Kind;

void* pointer(std::uintptr_t cookie) { return reinterpret_cast<void*>(cookie); }
std::uintptr_t number(void* cookie) { return reinterpret_cast<std::uintptr_t>(cookie); }

// What is left at the end, per context and side.
using Remains = std::vector<std::uintptr_t>;

Outcome remains_outcome(const Remains& posted, const Remains& unexpected) {
  Outcome outcome{TAGLINE_OK, 0, {}, posted.size(), unexpected.size(), posted};
  outcome.dropped.insert(outcome.dropped.end(), unexpected.begin(), unexpected.end());
  return outcome;
}

// The library behind the calls of a history.
class Library {
 public:
  explicit Library(const tagline_options& options) {
    EXPECT_EQ(tagline_create(&options, &matcher_), TAGLINE_OK) << tagline_error_message();
  }
  ~Library() { tagline_destroy(matcher_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Outcome play(const Operation& operation) {
    Outcome outcome{};
    void* cookie = nullptr;
    const tagline_envelope envelope = operation.envelope;
    switch (operation.kind) {
      case Kind::post_receive: {
        tagline_handle handle = 0;
        outcome.status =
            tagline_post_receive(matcher_, envelope, pointer(operation.cookie), &cookie, &handle);
        if (outcome.status == TAGLINE_QUEUED) handles_[operation.cookie] = handle;
        break;
      }
      case Kind::claim_then_append:
        outcome.status = tagline_claim(matcher_, envelope, &cookie, nullptr);
        if (outcome.status == TAGLINE_NOT_FOUND) {
          outcome.status = tagline_append_receive(matcher_, envelope, pointer(operation.cookie),
                                                  &handles_[operation.cookie]);
        }
        break;
      case Kind::arrive:
        outcome.status = tagline_arrive(matcher_, envelope, pointer(operation.cookie), &cookie);
        break;
      case Kind::match_then_append:
        outcome.status = tagline_match_message(matcher_, envelope, &cookie);
        if (outcome.status == TAGLINE_NOT_FOUND) {
          outcome.status = tagline_append_message(matcher_, envelope, pointer(operation.cookie));
        }
        break;
      case Kind::probe:
        outcome.status = tagline_probe(matcher_, envelope, &cookie, &outcome.found);
        break;
      case Kind::claim:
        outcome.status = tagline_claim(matcher_, envelope, &cookie, &outcome.found);
        break;
      case Kind::cancel_receive:
        outcome.status = tagline_cancel_receive(matcher_, envelope, pointer(operation.cookie));
        break;
      case Kind::cancel_handle:
        outcome.status =
            tagline_cancel_handle(matcher_, envelope.context_id, handles_[operation.cookie]);
        break;
      case Kind::drop_context:
        tagline_drop_context(matcher_, envelope.context_id, note_dropped, &outcome);
        break;
      case Kind::drop_source:
        tagline_drop_source(matcher_, envelope.context_id, envelope.source, note_dropped, &outcome);
        break;
    }
    outcome.cookie = number(cookie);
    tagline_statistics statistics;
    tagline_get_statistics(matcher_, &statistics);
    outcome.posted = statistics.posted.length;
    outcome.unexpected = statistics.unexpected.length;
    return outcome;
  }

  Outcome remains(std::uint64_t context) const {
    struct Collected {
      std::uint64_t context;
      Remains side[2];
    } collected{context, {}};
    tagline_for_each(
        matcher_,
        [](void* user, tagline_side side, tagline_envelope envelope, void* cookie) {
          auto* all = static_cast<Collected*>(user);
          if (envelope.context_id == all->context) all->side[side].push_back(number(cookie));
        },
        &collected);
    return remains_outcome(collected.side[0], collected.side[1]);
  }

 private:
  static void note_dropped(void* user, tagline_side, tagline_envelope, void* cookie) {
    static_cast<Outcome*>(user)->dropped.push_back(number(cookie));
  }

  tagline_matcher* matcher_ = nullptr;
  std::unordered_map<std::uintptr_t, tagline_handle> handles_;
};

// MPI's rules in their plainest form.
class Model {
 public:
  Outcome play(const Operation& operation) {
    Outcome outcome{};
    const tagline_envelope& envelope = operation.envelope;
    switch (operation.kind) {
      case Kind::post_receive:
      case Kind::claim_then_append:
        if (const auto hit = find_message(envelope); hit != unexpected_.end()) {
          outcome = {TAGLINE_MATCHED, hit->cookie, {}, 0, 0, {}};
          unexpected_.erase(hit);
        } else {
          outcome.status = TAGLINE_QUEUED;
          posted_.push_back({envelope, operation.cookie});
        }
        break;
      case Kind::arrive:
      case Kind::match_then_append: {
        const auto hit = std::find_if(posted_.begin(), posted_.end(), [&](const Entry& receive) {
          return accepts(receive.envelope, envelope);
        });
        if (hit != posted_.end()) {
          outcome = {TAGLINE_MATCHED, hit->cookie, {}, 0, 0, {}};
          posted_.erase(hit);
        } else {
          outcome.status = TAGLINE_QUEUED;
          unexpected_.push_back({envelope, operation.cookie});
        }
        break;
      }
      case Kind::probe:
      case Kind::claim:
        if (const auto hit = find_message(envelope); hit != unexpected_.end()) {
          outcome = {TAGLINE_MATCHED, hit->cookie, hit->envelope, 0, 0, {}};
          if (operation.kind == Kind::claim) unexpected_.erase(hit);
        } else {
          outcome.status = TAGLINE_NOT_FOUND;
        }
        break;
      case Kind::cancel_receive:
      case Kind::cancel_handle: {
        const auto hit = std::find_if(posted_.begin(), posted_.end(), [&](const Entry& receive) {
          return receive.cookie == operation.cookie;
        });
        outcome.status = hit == posted_.end() ? TAGLINE_NOT_FOUND : TAGLINE_OK;
        if (hit != posted_.end()) posted_.erase(hit);
        break;
      }
      case Kind::drop_context:
        drop(outcome,
             [&](const Entry& entry) { return entry.envelope.context_id == envelope.context_id; });
        break;
      case Kind::drop_source:
        drop(outcome, [&](const Entry& entry) {
          return entry.envelope.context_id == envelope.context_id &&
                 entry.envelope.source == envelope.source;
        });
        break;
    }
    outcome.posted = posted_.size();
    outcome.unexpected = unexpected_.size();
    return outcome;
  }

  Outcome remains(std::uint64_t context) const {
    const auto of_context = [&](const std::vector<Entry>& entries) {
      Remains cookies;
      for (const Entry& entry : entries) {
        if (entry.envelope.context_id == context) cookies.push_back(entry.cookie);
      }
      return cookies;
    };
    return remains_outcome(of_context(posted_), of_context(unexpected_));
  }

 private:
  struct Entry {
    tagline_envelope envelope;
    std::uintptr_t cookie;
  };

  static bool accepts(const tagline_envelope& receive, const tagline_envelope& message) {
    if (receive.context_id != message.context_id) return false;
    if (receive.source != TAGLINE_ANY_SOURCE && receive.source != message.source) return false;
    return receive.tag == TAGLINE_ANY_TAG ? message.tag >= 0 : receive.tag == message.tag;
  }

  std::vector<Entry>::iterator find_message(const tagline_envelope& envelope) {
    return std::find_if(unexpected_.begin(), unexpected_.end(),
                        [&](const Entry& message) { return accepts(envelope, message.envelope); });
  }

  template <class Predicate>
  void drop(Outcome& outcome, Predicate wanted) {
    for (std::vector<Entry>* queue : {&posted_, &unexpected_}) {
      for (const Entry& entry : *queue) {
        if (wanted(entry)) outcome.dropped.push_back(entry.cookie);
      }
      std::erase_if(*queue, wanted);
    }
  }

  std::vector<Entry> posted_;
  std::vector<Entry> unexpected_;
};

template <class Player>
std::vector<Outcome> play_all(Player& player, const std::vector<Operation>& history, int contexts) {
  std::vector<Outcome> outcomes;
  outcomes.reserve(history.size() + static_cast<std::size_t>(contexts));
  for (const Operation& operation : history) outcomes.push_back(player.play(operation));
  for (int context = 0; context < contexts; ++context) {
    outcomes.push_back(player.remains(static_cast<std::uint64_t>(context)));
  }
  return outcomes;
}

}  // namespace

bool operator==(const Outcome& a, const Outcome& b) {
  return a.status == b.status && a.cookie == b.cookie && a.found.context_id == b.found.context_id &&
         a.found.source == b.found.source && a.found.tag == b.found.tag && a.posted == b.posted &&
         a.unexpected == b.unexpected && a.dropped == b.dropped;
}

std::vector<Operation> random_history(const Mix& mix) {
  std::mt19937 random(mix.seed);
  const auto below = [&](int bound) { return std::uniform_int_distribution(0, bound - 1)(random); };
  const auto chance = [&](double p) { return std::bernoulli_distribution(p)(random); };
  const auto message_envelope = [&] {
    return tagline_envelope{static_cast<std::uint64_t>(below(mix.contexts)), below(mix.sources),
                            below(mix.tags + mix.tags / 4) - mix.tags / 4};
  };
  const auto receive_envelope = [&] {
    tagline_envelope envelope = message_envelope();
    if (chance(mix.wildcards)) envelope.source = TAGLINE_ANY_SOURCE;
    if (chance(mix.wildcards)) envelope.tag = TAGLINE_ANY_TAG;
    return envelope;
  };

  std::vector<Operation> history;
  std::vector<Operation> posts;  // candidates for a cancel, matched by now or not
  for (int i = 0; i < mix.operations; ++i) {
    const auto cookie = static_cast<std::uintptr_t>(i) + 1;
    if (!chance(mix.rare)) {
      if (chance(mix.posted_bias)) {
        const Kind kind = chance(0.8) ? Kind::post_receive : Kind::claim_then_append;
        history.push_back({kind, receive_envelope(), cookie});
        posts.push_back(history.back());
      } else {
        const Kind kind = chance(0.8) ? Kind::arrive : Kind::match_then_append;
        history.push_back({kind, message_envelope(), cookie});
      }
      continue;
    }
    const int choice = below(100);
    if (choice < 35) {
      history.push_back({Kind::probe, receive_envelope(), 0});
    } else if (choice < 60) {
      history.push_back({Kind::claim, receive_envelope(), 0});
    } else if (choice < 97 && !posts.empty()) {
      // The oldest, the newest or any one: ends of a queue are where lists break.
      const int last = static_cast<int>(posts.size()) - 1;
      const int which = choice < 70 ? last : choice < 75 ? 0 : below(last + 1);
      const Operation& post = posts[static_cast<std::size_t>(which)];
      const Kind kind = chance(0.5) ? Kind::cancel_receive : Kind::cancel_handle;
      history.push_back({kind, post.envelope, post.cookie});
      posts.erase(posts.begin() + which);
    } else if (choice < 99) {
      history.push_back({Kind::drop_source, message_envelope(), 0});
    } else {
      history.push_back({Kind::drop_context, message_envelope(), 0});
    }
  }
  return history;
}

std::vector<Outcome> replay(const std::vector<Operation>& history, const tagline_options& options,
                            int contexts) {
  Library library(options);
  return play_all(library, history, contexts);
}

std::vector<Outcome> replay_model(const std::vector<Operation>& history, int contexts) {
  Model model;
  return play_all(model, history, contexts);
}

void expect_same(const std::vector<Operation>& history, const std::vector<Outcome>& expected,
                 const std::vector<Outcome>& actual, const std::string& name) {
  ASSERT_EQ(expected.size(), actual.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == actual[i]) continue;
    const auto describe = [](const Outcome& outcome) {
      std::string text = "status " + std::to_string(outcome.status) + ", cookie " +
                         std::to_string(outcome.cookie) + ", lengths " +
                         std::to_string(outcome.posted) + " and " +
                         std::to_string(outcome.unexpected) + ", listed";
      for (const auto cookie : outcome.dropped) text += " " + std::to_string(cookie);
      return text;
    };
    std::string what = "the entries left";
    if (i < history.size()) {
      const Operation& operation = history[i];
      what = "kind " + std::to_string(static_cast<int>(operation.kind)) + ", context " +
             std::to_string(operation.envelope.context_id) + ", source " +
             std::to_string(operation.envelope.source) + ", tag " +
             std::to_string(operation.envelope.tag);
    }
    FAIL() << name << " differs at call " << i << " (" << what << ")\n  expected "
           << describe(expected[i]) << "\n  got      " << describe(actual[i]);
  }
}

}  // namespace tagline::test
