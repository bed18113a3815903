#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "explore.h"

// Every order of steps and deaths of what Trainers share beside the ledger of batches: chunks of an
// evaluation, entries of rows that devices share, the history of hidden rows. Kills of the real
// code: test/core/executor/parts_kills_test.cc.

namespace gnnd::test {
namespace {

using Step = const char*;

enum Life : uint8_t { kRuns, kStopped, kReaped };

// ---- chunks -------------------------------------------------------------------------------------

// A run of two phases of two chunks: chunks of the second read the rows of all of the first.
class ChunkModel {
 public:
  static constexpr uint32_t kTrainers = 3;
  static constexpr uint32_t kWords = 4;
  enum Word : uint8_t { kPending, kDone, kTaken };  // kTaken + owner

  struct State {
    uint8_t word[kWords];
    uint8_t row[kWords];  // 0: nothing, 1: half, 2: whole
    uint8_t life[kTrainers];
    uint8_t starts[kTrainers];
    uint8_t hand[kTrainers];  // chunk + 1
    uint8_t owed[kTrainers];  // 1 + starts of whom is to be reclaimed from
    uint8_t deaths;
    uint8_t committed;
  };
  using Emit = std::function<void(Step, const State&, const char*)>;

  explicit ChunkModel(std::string dropped = "") : dropped_(std::move(dropped)) {}

  State Initial() const { return State{}; }
  bool Ends(const State& s) const { return s.committed != 0; }

  void Next(const State& s, const Emit& emit) const {
    for (uint32_t t = 0; t < kTrainers; ++t) {
      if (s.life[t] == kRuns && !Ends(s)) Trains(s, t, emit);
      Dies(s, t, emit);
    }
  }

 private:
  bool Keeps(const char* rule) const { return dropped_ != rule; }
  uint8_t OwnerOf(uint32_t t, uint32_t starts) const {
    return static_cast<uint8_t>(kTaken + t + kTrainers * starts);
  }

  void Trains(const State& s, uint32_t t, const Emit& emit) const {
    State next = s;
    if (s.hand[t] == 0) {
      const uint32_t chunk = Open(s);
      if (chunk < kWords) {
        next.word[chunk] = OwnerOf(t, s.starts[t]);
        next.hand[t] = static_cast<uint8_t>(chunk + 1);
        const bool reads_all = s.row[0] == 2 && s.row[1] == 2;
        emit("takes", next,
             chunk < 2 || reads_all ? nullptr : "rows are read before they are whole");
      } else if (AllDone(s)) {
        next.committed = 1;
        bool whole = true;
        for (const uint8_t row : s.row) whole = whole && row == 2;
        emit("commits", next, whole ? nullptr : "a run is committed without a chunk");
      }
      return;
    }
    const uint32_t chunk = s.hand[t] - 1U;
    if (s.row[chunk] == 0) {
      next.row[chunk] = 1;
      return emit("writes", next, nullptr);
    }
    // Written again it is the same: half a row becomes whole, a whole one stays.
    next.row[chunk] = 2;
    next.hand[t] = 0;
    if (s.word[chunk] == OwnerOf(t, s.starts[t])) {
      next.word[chunk] = kDone;
    } else {
      next.life[t] = kStopped;  // it was taken for dead, and is told
    }
    if (!Keeps("done-after-rows") && s.row[chunk] == 1) {
      State early = s;
      early.word[chunk] = kDone;
      early.hand[t] = s.hand[t];
      emit("says done", early, nullptr);
    }
    emit("finishes", next, nullptr);
  }

  void Dies(const State& s, uint32_t t, const Emit& emit) const {
    State next = s;
    if (s.life[t] == kRuns && s.deaths < 2 && !Ends(s)) {
      ++next.deaths;
      next.life[t] = kStopped;
      emit("dies", next, nullptr);
    }
    if (s.life[t] == kStopped && s.owed[t] == 0) {
      next = s;
      next.life[t] = kReaped;
      next.owed[t] = static_cast<uint8_t>(1 + s.starts[t]);
      next.hand[t] = 0;
      emit("is reaped", next, nullptr);
    }
    if (s.owed[t] != 0) {
      next = s;
      for (uint8_t& word : next.word) {
        if (word == OwnerOf(t, s.owed[t] - 1U) && Keeps("reclaim-takes-chunks")) word = kPending;
      }
      next.owed[t] = 0;
      emit("is reclaimed from", next, nullptr);
    }
    if (s.life[t] == kReaped) {
      next = s;
      next.life[t] = kRuns;
      ++next.starts[t];
      emit("is started again", next, nullptr);
    }
  }

  // The lowest chunk that may be taken; kWords: none.
  uint32_t Open(const State& s) const {
    const bool first_done = s.word[0] == kDone && s.word[1] == kDone;
    const bool all_taken = s.word[0] != kPending && s.word[1] != kPending;
    for (uint32_t chunk = 0; chunk < kWords; ++chunk) {
      if (chunk == 2 && !first_done && (Keeps("phase-after-phase") || !all_taken)) return kWords;
      if (s.word[chunk] == kPending) return chunk;
    }
    return kWords;
  }
  static bool AllDone(const State& s) {
    bool done = true;
    for (const uint8_t word : s.word) done = done && word == kDone;
    return done;
  }

  std::string dropped_;
};

// ---- shares -------------------------------------------------------------------------------------

// The entry of one device: its Trainer writes two words and its name; one other reads them.
class ShareModel {
 public:
  static constexpr uint8_t kMost = 3;  // Trainers on the device, one after the other

  struct State {
    uint8_t owner;
    uint8_t part[2];  // whose words these are
    uint8_t who;      // incarnation that is there
    uint8_t at;       // progress: 0 to 2 words written, 3 name written, 4 left
    uint8_t life;
    uint8_t late;   // incarnation whose withdrawal is still to come, told by the daemon
    uint8_t reads;  // reader: 0 nothing, 1 owner, 2 one word, 3 both
    uint8_t saw[3];
  };
  using Emit = std::function<void(Step, const State&, const char*)>;

  explicit ShareModel(std::string dropped = "") : dropped_(std::move(dropped)) {}

  State Initial() const {
    State state{};
    state.who = 1;
    return state;
  }
  bool Ends(const State& s) const { return s.who == kMost && s.at >= 3 && s.life == kRuns; }

  void Next(const State& s, const Emit& emit) const {
    Owns(s, emit);
    Reads(s, emit);
    Reaps(s, emit);
  }

 private:
  bool Keeps(const char* rule) const { return dropped_ != rule; }

  void Owns(const State& s, const Emit& emit) const {
    if (s.life != kRuns) return;
    State next = s;
    if (s.at < 3) {
      const uint8_t name_at = Keeps("share-owner-last") ? 2 : 0;
      if (s.at == name_at) {
        next.owner = s.who;
      } else {
        next.part[Keeps("share-owner-last") ? s.at : s.at - 1] = s.who;
      }
      ++next.at;
      emit("publishes", next, nullptr);
    } else if (s.at == 3 && s.who < kMost) {
      next.at = 4;
      if (s.owner == s.who) next.owner = 0;
      emit("withdraws", next, nullptr);
    }
    if (s.who < kMost) {
      next = s;
      next.life = kStopped;
      emit("dies", next, nullptr);
    }
  }

  void Reads(const State& s, const Emit& emit) const {
    State next = s;
    next.reads = static_cast<uint8_t>((s.reads + 1) % 4);
    if (s.reads == 0) {
      next.saw[0] = s.owner;
      if (s.owner == 0) next.reads = 0;
      emit("looks", next, nullptr);
    } else if (s.reads < 3) {
      next.saw[s.reads] = s.part[s.reads - 1];
      emit("reads", next, nullptr);
    } else {
      const bool same = s.owner == s.saw[0] || !Keeps("share-looks-again");
      const bool whole = s.saw[1] == s.saw[0] && s.saw[2] == s.saw[0];
      next.saw[0] = next.saw[1] = next.saw[2] = 0;
      emit("believes", next, same && !whole ? "parts of two entries are one" : nullptr);
    }
  }

  // The daemon, which has waited for the process; and a second time, late.
  void Reaps(const State& s, const Emit& emit) const {
    State next = s;
    if (s.life == kStopped && Keeps("reap-withdraws")) {
      next.owner = Withdrawn(s, s.who);
      next.life = kReaped;
      emit("is reclaimed from", next, nullptr);
    } else if (s.life == kStopped) {
      next.life = kReaped;
      emit("is reclaimed from", next, nullptr);
    }
    if (s.life == kReaped) {
      next = s;
      next.late = s.who;
      ++next.who;
      next.at = 0;
      next.life = kRuns;
      emit("is replaced", next, nullptr);
    }
    if (s.late != 0) {
      next = s;
      next.late = 0;
      next.owner = Withdrawn(s, s.late);
      const bool lost = s.owner == s.who && next.owner == 0;
      emit("is withdrawn late", next, lost ? "a living Trainer's entry is gone" : nullptr);
    }
    // A process that opens a dead one's share would read memory that is gone.
    if (s.life == kReaped && s.owner == s.who) emit("stays", s, "a dead Trainer's entry stays");
  }
  uint8_t Withdrawn(const State& s, uint8_t whose) const {
    return s.owner == whose || !Keeps("share-withdraws-own") ? 0 : s.owner;
  }

  std::string dropped_;
};

// ---- history ------------------------------------------------------------------------------------

// Two Trainers carry over the notes of steps of two batches, under a mutex that survives its owner.
class HistoryModel {
 public:
  static constexpr uint32_t kTrainers = 2;
  static constexpr uint8_t kVersions = 2;
  static constexpr uint8_t kGroup = 2;
  enum Doing : uint8_t { kNothing, kLocked, kHalfStored, kStored };

  struct State {
    uint8_t version;       // committed
    uint8_t note[kGroup];  // for this version, or for the one being carried over: as rows above
    uint8_t point;         // notes carried over, of all
    uint8_t half;          // part of the note at the point that is in the buffer, but in no state
    uint8_t done[kVersions * kGroup];
    uint8_t life[kTrainers];
    uint8_t hand[kTrainers];  // batch + 1
    uint8_t doing[kTrainers];
    uint8_t at[kTrainers];  // note that is carried over
    uint8_t deaths;
  };
  using Emit = std::function<void(Step, const State&, const char*)>;

  explicit HistoryModel(std::string dropped = "") : dropped_(std::move(dropped)) {}

  State Initial() const { return State{}; }
  bool Ends(const State& s) const { return s.version == kVersions && IsUp(s); }

  void Next(const State& s, const Emit& emit) const {
    for (uint32_t t = 0; t < kTrainers; ++t) {
      State next = s;
      if (s.life[t] == kReaped) {
        next.life[t] = kRuns;
        emit("is started again", next, nullptr);
        continue;
      }
      if (s.doing[t] != kNothing || !IsUp(s)) {
        Carries(s, t, emit);
      } else {
        Trains(s, t, emit);
      }
      if (s.deaths == 2 || Ends(s)) continue;
      ++next.deaths;
      next.life[t] = kReaped;
      next.hand[t] = next.doing[t] = next.at[t] = 0;
      emit("dies", next, nullptr);
    }
  }

 private:
  bool Keeps(const char* rule) const { return dropped_ != rule; }
  static bool IsUp(const State& s) { return s.point == s.version * kGroup; }

  void Trains(const State& s, uint32_t t, const Emit& emit) const {
    if (s.version == kVersions) return;
    State next = s;
    if (s.hand[t] != 0) {
      uint8_t& note = next.note[s.hand[t] - 1];
      ++note;
      if (note == 2) next.hand[t] = 0;
      return emit("notes", next, nullptr);
    }
    bool whole = true;
    for (uint8_t place = 0; place < kGroup; ++place) {
      whole = whole && s.note[place] == 2;
      if (s.note[place] == 2 || s.hand[1 - t] == place + 1) continue;
      next.note[place] = 0;  // begun anew, whoever died with it
      next.hand[t] = static_cast<uint8_t>(place + 1);
      return emit("takes", next, nullptr);
    }
    if (!whole) return;
    ++next.version;
    emit("commits", next, nullptr);
  }

  void Carries(const State& s, uint32_t t, const Emit& emit) const {
    State next = s;
    switch (s.doing[t]) {
      case kNothing: {
        if (s.doing[1 - t] != kNothing && Keeps("history-under-mutex")) return;
        // Restarts from the state at the point: entries that a dead process stored beyond it are
        // stored again in the same places.
        if (Keeps("history-from-the-point")) next.half = 0;
        next.doing[t] = kLocked;
        next.at[t] = s.point;
        return emit("locks", next, nullptr);
      }
      case kLocked: {
        const bool upon = s.half != 0;
        const bool whole = s.note[s.at[t] % kGroup] == 2;
        next.half = 1;
        next.doing[t] = kHalfStored;
        return emit("stores", next,
                    upon     ? "a note is stored upon half of itself"
                    : !whole ? "half a note is carried over"
                             : nullptr);
      }
      case kHalfStored:
        next.doing[t] = kStored;
        return emit("has stored", next, nullptr);
      default: {
        const bool twice = s.done[s.at[t]] != 0;
        next.done[s.at[t]] = 1;
        next.point = static_cast<uint8_t>(s.at[t] + 1);
        next.half = next.doing[t] = 0;
        if (IsUp(next)) next.note[0] = next.note[1] = 0;
        return emit("moves", next, twice ? "a note is carried over twice" : nullptr);
      }
    }
  }

  std::string dropped_;
};

template <typename Model>
void CheckRules(const std::initializer_list<const char*>& rules) {
  const Model kept;
  const Exploration all = Explorer<Model>(kept).Run();
  CHECK_MESSAGE(all.violation.empty(), all.violation);
  CHECK_MESSAGE(all.stuck == 0, "stuck after", all.stuck_after);
  MESSAGE(all.states, " states");
  for (const char* rule : rules) {
    const Model broken(rule);
    INFO(rule);
    CHECK_FALSE(Explorer<Model>(broken).Run().good());
  }
}

}  // namespace

TEST_CASE("chunks: no order of steps and deaths commits a run without a row or reads half of one") {
  CheckRules<ChunkModel>({"phase-after-phase", "reclaim-takes-chunks", "done-after-rows"});
}

TEST_CASE("shared rows: no order of steps and deaths mixes two entries or loses one") {
  CheckRules<ShareModel>(
      {"share-owner-last", "share-looks-again", "share-withdraws-own", "reap-withdraws"});
}

TEST_CASE("history: no order of steps and deaths carries a note over twice, half or not at all") {
  CheckRules<HistoryModel>({"history-under-mutex", "history-from-the-point"});
}

}  // namespace gnnd::test
