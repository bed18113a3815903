#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/memfd.h"

// A trace of a segment: records every change of a word that says who holds what, before it is tried
// and after. test/support/ledger-history.ts reads it and knows the rules.
//
// Tracing is off, and costs one branch per change, unless GNND_LEDGER_TRACE names a folder when a
// segment is created or attached: then the segment has a file there, named by its inode, to which
// every process appends. Each record is one write(2), so the file has a total order: a change took
// effect between its two records or, if its process died between them, perhaps. Records survive
// their writer.

namespace gnnd {

struct SegmentConfig;

class LedgerTrace {
 public:
  enum class Kind : uint32_t {
    kCreated = 1,     // M, epochs, G, S, slots, born_ready (1) + evaluates (2), evaluate_every
    kSet = 2,         // word, index, value: set by the daemon, before anybody else is there
    kRegistered = 3,  // role, device; owner is the new executor
    kReclaims = 4,    // owner is dead and reaped; its changes follow
    kReclaimed = 5,
    kTries = 6,   // word, index, old, new, further; number 6: the process
    kDid = 7,     // fields as in kTries
    kMissed = 8,  // fields as in kTries: the word was not `old`
    kReads = 9,   // batch: until it is handed in, owner reads its slot and version
    kStops = 10,  // epoch: it is the last one if its evaluation is committed
  };
  enum class Word : uint64_t {
    kBatch = 0,  // indexed within the epoch
    kChunk = 1,
    kVersion = 2,
    kEvaluation = 3,
    kTurn = 4,  // indexed by device
  };
  static constexpr size_t kNumbers = 7;
  struct Record {
    uint32_t kind;
    uint32_t owner;  // incarnation; 0: the daemon, or unknown
    uint64_t numbers[kNumbers];
  };
  // A kill may cut a write where a page of the file ends; no record lies across such an end.
  static_assert(sizeof(Record) == 64);

  LedgerTrace() = default;
  // The trace of the segment of `segment_fd`; on only if the environment says so, and the file can
  // be opened.
  static LedgerTrace Of(int segment_fd);

  void Created(const SegmentConfig& config) const;
  void Note(Kind kind, uint32_t owner, const std::array<uint64_t, kNumbers>& numbers = {}) const {
    if (file_.valid()) Write(kind, owner, numbers);
  }

  // word.compare_exchange_strong(old, next, acq_rel, failure), traced.
  template <typename T>
  bool Exchange(Word which, uint64_t index, uint32_t owner, std::atomic<T>& word, T& old, T next,
                std::memory_order failure = std::memory_order_relaxed) const {
    const T seen = old;
    Change(Kind::kTries, owner, which, index, seen, next);
    const bool done = word.compare_exchange_strong(old, next, std::memory_order_acq_rel, failure);
    Change(done ? Kind::kDid : Kind::kMissed, owner, which, index, seen, next);
    return done;
  }
  // word.store(next, release), traced; called with the mutex held. `further` is for the checker.
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
