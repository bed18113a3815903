#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/memfd.h"

// What happened to a segment, written down: every change of one of its words that say who has what,
// before it is tried and after. test/support/ledger-history.ts reads it and knows the rules.
//
// Off, and one branch a change, unless GNND_LEDGER_TRACE names a folder when a segment is created
// or attached: then it has a file there, named by the segment's inode, to which every process
// appends. One write(2) a record, so their order in the file is a total one: a change took effect
// between its two records, or, of a process that died between them, perhaps. What was written
// survives whoever wrote it.

namespace gnnd {

struct SegmentConfig;

class LedgerTrace {
 public:
  enum class Kind : uint32_t {
    kCreated = 1,     // M, epochs, G, S, slots, born_ready (1) + evaluates (2), evaluate_every
    kSet = 2,         // word, index, value: by the daemon, before anybody else is there
    kRegistered = 3,  // role, device; of owner
    kReclaims = 4,    // from owner, which is dead and reaped; changes follow
    kReclaimed = 5,
    kTries = 6,   // word, index, old, new, further; number 6: the process
    kDid = 7,     // as kTries
    kMissed = 8,  // as kTries: the word was not `old`
    kReads = 9,   // batch: from here on until it is handed in, owner reads its slot and version
    kStops = 10,  // epoch: its evaluation, once committed, is the last
  };
  enum class Word : uint64_t {
    kBatch = 0,  // by index in the epoch
    kChunk = 1,
    kVersion = 2,
    kEvaluation = 3,
    kTurn = 4,  // by device
  };
  static constexpr size_t kNumbers = 7;
  struct Record {
    uint32_t kind;
    uint32_t owner;  // incarnation; 0: the daemon, or nobody says
    uint64_t numbers[kNumbers];
  };
  // A kill may cut a write where a page of the file ends; no record lies across such an end.
  static_assert(sizeof(Record) == 64);

  LedgerTrace() = default;
  // Of the segment that `segment_fd` is; on only where the environment says so, and a file can be
  // opened.
  static LedgerTrace Of(int segment_fd);

  void Created(const SegmentConfig& config) const;
  void Note(Kind kind, uint32_t owner, const std::array<uint64_t, kNumbers>& numbers = {}) const {
    if (file_.valid()) Write(kind, owner, numbers);
  }

  // word.compare_exchange_strong(old, next, acq_rel, failure), written down.
  template <typename T>
  bool Exchange(Word which, uint64_t index, uint32_t owner, std::atomic<T>& word, T& old, T next,
                std::memory_order failure = std::memory_order_relaxed) const {
    const T seen = old;
    Change(Kind::kTries, owner, which, index, seen, next);
    const bool done = word.compare_exchange_strong(old, next, std::memory_order_acq_rel, failure);
    Change(done ? Kind::kDid : Kind::kMissed, owner, which, index, seen, next);
    return done;
  }
  // word.store(next, release), likewise: by the holder of the mutex. `further` is for who checks.
  void Store(Word which, uint32_t owner, std::atomic<uint64_t>& word, uint64_t next,
             uint64_t further = 0) const {
    const uint64_t seen = word.load(std::memory_order_relaxed);
    Change(Kind::kTries, owner, which, 0, seen, next, further);
    word.store(next, std::memory_order_release);
    Change(Kind::kDid, owner, which, 0, seen, next, further);
  }

 private:
  void Change(Kind kind, uint32_t owner, Word which, uint64_t index, uint64_t old, uint64_t next,
              uint64_t further = 0) const {
    if (!file_.valid()) return;
    Write(kind, owner,
          {static_cast<uint64_t>(which), index, old, next, further, 0,
           static_cast<uint64_t>(getpid())});
  }
  void Write(Kind kind, uint32_t owner, const std::array<uint64_t, kNumbers>& numbers) const;

  UniqueFd file_;
};

}  // namespace gnnd
