#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/ledger/segment.h"

// Evaluation as work of the ledger (design §2.1): a *run* evaluates one set of nodes on one set of
// parameters, in *phases* of *chunks*. Every Trainer and standby Trainer takes chunks; a phase
// opens when all chunks of the one before are done.
//
//  PENDING -Take-> TAKEN -Finish-> TRAINED          (of a chunk: done, nobody owns it)
//     ^              |
//     +-- GiveBack --+-- Reclaim (owner dead and reaped)
//
// A chunk is a pure function of the run, the phase and its number, so one that is done again gives
// the same bits. Its word is tagged with the run's number: an earlier tag reads as PENDING.

namespace gnnd {

// What a chunk of an evaluation came to, or all chunks of one.
struct EvalResult {
  TaskSums sums{};                 // no items where nobody counts
  std::vector<uint64_t> counts{};  // integers of the task, all of them, or none without items
  uint64_t rows = 0;               // computed

  // Adds what a later chunk counted.
  void Add(const TaskSums& more, std::span<const uint64_t> more_counts);
};

// What a run consists of: a function of spec and dataset, the same in every process.
struct EvalShape {
  uint32_t phases = 0;   // 0: there is nothing to evaluate
  uint32_t chunks = 0;   // of each phase
  uint64_t rows = 0;     // rows that all chunks compute; for progress
  bool reduces = false;  // the last phase works up what chunks of the one before it have kept

  // The word of a chunk of the phase that counts.
  uint32_t CountedWord(uint32_t chunk) const {
    return (phases - (reduces ? 2 : 1)) * chunks + chunk;
  }
  bool Reduces(uint32_t phase) const { return reduces && phase + 1 == phases; }
  // With such a phase, where anything is evaluated.
  EvalShape Reducing() const { return {phases == 0 ? 0 : phases + 1, chunks, rows, phases > 0}; }
};

// One executor's view of the chunks; used by one thread.
class Evaluations {
 public:
  // REQUIRES: `id` was registered in this segment.
  Evaluations(Segment& segment, ExecutorId id);

  enum class Found {
    kChunk,       // it is ours
    kOthersWork,  // what is left of the open phase is in others' hands
    kAllDone,     // the run can be committed
  };
  struct Offer {
    Found found = Found::kOthersWork;
    uint32_t phase = 0;
    uint32_t chunk = 0;  // within its phase
  };

  // Takes the lowest PENDING chunk of the open phase. REQUIRES: shape.phases * shape.chunks is at
  // most config().eval_chunks.
  Offer Take(const EvalRun& run, const EvalShape& shape);
  // Whether Take would find one, or all are done.
  bool Open(const EvalRun& run, const EvalShape& shape);

  // The chunk is computed. kInternal when it is not this executor's.
  Status Finish(const EvalRun& run, const EvalShape& shape, const Offer& mine,
                const EvalResult& result);
  Status GiveBack(const EvalRun& run, const EvalShape& shape, const Offer& mine);

 private:
  uint32_t WordOf(const EvalShape& shape, uint32_t phase, uint32_t chunk) const {
    return phase * shape.chunks + chunk;
  }
  LedgerWord EntryOf(const EvalRun& run, uint32_t word) const;
  Status Leave(const EvalRun& run, uint32_t word, BatchState to, const char* what);
  // The first PENDING chunk of the open phase, if any; moves on over phases that are done.
  Offer Look(const EvalRun& run, const EvalShape& shape);

  Segment& segment_;
  uint32_t owner_;
  // What this executor saw of the run; done is never undone.
  uint64_t run_ = ~uint64_t{0};
  uint32_t phase_ = 0;  // phases before it are done
  uint32_t done_ = 0;   // chunks of the phase before it are
  uint32_t next_ = 0;   // chunks of the phase before it were not PENDING
};

// What the chunks of a run have counted, added in their order. REQUIRES: they are done.
EvalResult SumOfResults(const Segment& segment, const EvalShape& shape);
// Items that the chunks of a run have counted. REQUIRES: those of the phase that counts are done.
uint64_t CountedItems(const Segment& segment, const EvalShape& shape);
// How often chunks of a run were begun anew.
uint32_t EvalRetries(const Segment& segment, const EvalRun& run, const EvalShape& shape);

}  // namespace gnnd
