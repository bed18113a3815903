#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/ledger/segment.h"

// Evaluation as work of the ledger: a *run* evaluates one set of nodes on one set of parameters, in
// *phases* of *chunks*. Every Trainer and standby Trainer takes chunks; a phase opens when all
// chunks of the one before are done.
//
//  PENDING -Take-> TAKEN -Finish-> TRAINED          (of a chunk: done, nobody owns it)
//     ^              |
//     +-- GiveBack --+-- Reclaim (owner dead and reaped)
//
// A chunk is a pure function of the run, the phase and its number, so one that is done again gives
// the same bits. Its word is tagged with the run's number: an earlier tag reads as PENDING.

namespace gnnd {

// The result of a chunk of an evaluation, or of all its chunks.
struct EvalResult {
  TaskSums sums{};                 // no items in phases that do not count
  std::vector<uint64_t> counts{};  // integers of the task, all of them, or none without items
  uint64_t rows = 0;               // computed

  // Adds what a later chunk counted.
  void Add(const TaskSums& more, std::span<const uint64_t> more_counts);
};

// The parts of a run: a function of spec and dataset, the same in every process.
struct EvalShape {
  uint32_t phases = 0;   // 0: there is nothing to evaluate
  uint32_t chunks = 0;   // chunks of each phase
  uint64_t rows = 0;     // rows that all chunks compute; for progress
  bool reduces = false;  // the last phase works up what chunks of the one before it have kept

  // The word of a chunk of the phase that counts.
  uint32_t CountedWord(uint32_t chunk) const {
    return (phases - (reduces ? 2 : 1)) * chunks + chunk;
  }
  bool Reduces(uint32_t phase) const { return reduces && phase + 1 == phases; }
  // The same run with such a phase, if anything is evaluated.
  EvalShape Reducing() const { return {phases == 0 ? 0 : phases + 1, chunks, rows, phases > 0}; }
};

// One executor's view of the chunks; used by one thread.
class Evaluations {
 public:
  // REQUIRES: `id` was registered in this segment.
  Evaluations(Segment& segment, ExecutorId id);

  enum class Found {
    kChunk,       // this executor got a chunk
    kOthersWork,  // others hold the rest of the open phase
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
  // Whether Take would find a chunk, or all are done.
  bool Open(const EvalRun& run, const EvalShape& shape);

  // Hands in a computed chunk. kInternal when it is not this executor's.
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
  // This executor's view of the run; a chunk that is done stays done.
  uint64_t run_ = ~uint64_t{0};
  uint32_t phase_ = 0;  // phases before it are done
  uint32_t done_ = 0;   // chunks of the phase before this one are done
  uint32_t next_ = 0;   // chunks of the phase before this one were not PENDING
};

// The sum of the chunks' results, added in their order. REQUIRES: they are done.
EvalResult SumOfResults(const Segment& segment, const EvalShape& shape);
// Items that the chunks of a run have counted. REQUIRES: those of the phase that counts are done.
uint64_t CountedItems(const Segment& segment, const EvalShape& shape);
// How often chunks of a run were taken again.
uint32_t EvalRetries(const Segment& segment, const EvalRun& run, const EvalShape& shape);

}  // namespace gnnd
