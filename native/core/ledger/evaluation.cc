#include "core/ledger/evaluation.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "core/base/check.h"
#include "core/base/failpoint.h"
#include "core/ledger/batches.h"

namespace gnnd {

Evaluations::Evaluations(Segment& segment, ExecutorId id)
    : segment_(segment), owner_(OwnerOf(segment, id)) {}

LedgerWord Evaluations::EntryOf(const EvalRun& run, uint32_t word) const {
  // Acquire: pairs with Finish, so that the rows of a finished chunk are visible.
  return LedgerWord::InEpoch(segment_.eval_word(word).load(std::memory_order_acquire), run.number);
}

Evaluations::Offer Evaluations::Look(const EvalRun& run, const EvalShape& shape) {
  GNND_CHECK(uint64_t{shape.phases} * shape.chunks <= segment_.config().eval_chunks);
  if (run_ != run.number) {
    run_ = run.number;
    phase_ = done_ = next_ = 0;
  }
  while (phase_ < shape.phases) {
    const auto state = [&](uint32_t chunk) {
      return EntryOf(run, WordOf(shape, phase_, chunk)).state;
    };
    // A word of a later run means that this one is over: COMMITTED, which counts as done.
    while (done_ < shape.chunks && state(done_) >= BatchState::kTrained) ++done_;
    next_ = std::max(next_, done_);
    while (next_ < shape.chunks && state(next_) != BatchState::kPending) ++next_;
    if (next_ == shape.chunks) {
      // A chunk that was passed may be PENDING again: given back, or reclaimed.
      next_ = done_;
      while (next_ < shape.chunks && state(next_) != BatchState::kPending) ++next_;
    }
    if (next_ < shape.chunks) return {Found::kChunk, phase_, next_};
    if (done_ < shape.chunks && !GNND_BROKEN("phase-after-phase")) {
      return {Found::kOthersWork, phase_, 0};
    }
    ++phase_;
    done_ = next_ = 0;
  }
  return {Found::kAllDone, shape.phases, 0};
}

bool Evaluations::Open(const EvalRun& run, const EvalShape& shape) {
  return Look(run, shape).found != Found::kOthersWork;
}

Evaluations::Offer Evaluations::Take(const EvalRun& run, const EvalShape& shape) {
  while (true) {
    const Offer offer = Look(run, shape);
    if (offer.found != Found::kChunk) return offer;
    std::atomic<uint64_t>& word = segment_.eval_word(WordOf(shape, offer.phase, offer.chunk));
    uint64_t old = word.load(std::memory_order_acquire);
    const LedgerWord entry = LedgerWord::InEpoch(old, run.number);
    if (entry.state != BatchState::kPending) continue;
    // Release: pairs with the daemon's look at who owns what.
    if (segment_.trace().Exchange(LedgerTrace::Word::kChunk,
                                  WordOf(shape, offer.phase, offer.chunk), owner_, word, old,
                                  entry.With(BatchState::kTaken, owner_).Pack())) {
      GNND_FAILPOINT("evaluate.after_take");
      return offer;
    }
  }
}

Status Evaluations::Leave(const EvalRun& run, uint32_t word, BatchState to, const char* what) {
  return LeaveEntry(segment_, {LedgerTrace::Word::kChunk, word, run.number}, owner_,
                    BatchState::kTaken, to, what);
}

Status Evaluations::Finish(const EvalRun& run, const EvalShape& shape, const Offer& mine,
                           const EvalResult& result) {
  const uint32_t word = WordOf(shape, mine.phase, mine.chunk);
  GNND_FAILPOINT("evaluate.before_result");
  const std::span<uint64_t> counts = segment_.chunk_counts(word);
  const bool has_items = result.sums.items > 0;
  if (has_items && result.counts.size() != counts.size()) {
    return Status(Code::kInternal, "a chunk has " + std::to_string(result.counts.size()) +
                                       " counts of " + std::to_string(counts.size()));
  }
  // Clears everything from an earlier run, or from an owner that died.
  if (has_items) std::ranges::copy(result.counts, counts.begin());
  if (!has_items) std::ranges::fill(counts, 0);
  ChunkResult& shared = segment_.chunk_result(word);
  shared.sums = result.sums;
  // Release: a snapshot that reads these rows also sees that the chunk was taken for this run.
  std::atomic_ref(shared.rows).store(result.rows, std::memory_order_release);
  GNND_FAILPOINT("evaluate.before_done");
  GNND_TRY(Leave(run, word, BatchState::kTrained, "finishing a chunk of an evaluation"));
  GNND_FAILPOINT("evaluate.after_done");
  segment_.WakeTrainers();  // some may wait for the last chunk of the phase
  return Status::Ok();
}

Status Evaluations::GiveBack(const EvalRun& run, const EvalShape& shape, const Offer& mine) {
  GNND_TRY(Leave(run, WordOf(shape, mine.phase, mine.chunk), BatchState::kPending,
                 "giving back a chunk of an evaluation"));
  segment_.WakeTrainers();
  return Status::Ok();
}

void EvalResult::Add(const TaskSums& more, std::span<const uint64_t> more_counts) {
  GNND_CHECK(counts.empty() || counts.size() == more_counts.size());
  sums.Add(more);
  counts.resize(more_counts.size());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] += more_counts[i];
}

EvalResult SumOfResults(const Segment& segment, const EvalShape& shape) {
  EvalResult sum;
  for (uint32_t chunk = 0; shape.phases > 0 && chunk < shape.chunks; ++chunk) {
    const uint32_t word = shape.CountedWord(chunk);
    sum.Add(segment.chunk_result(word).sums, segment.chunk_counts(word));
  }
  return sum;
}

uint64_t CountedItems(const Segment& segment, const EvalShape& shape) {
  uint64_t items = 0;
  for (uint32_t chunk = 0; chunk < shape.chunks; ++chunk) {
    items += segment.chunk_result(shape.CountedWord(chunk)).sums.items;
  }
  return items;
}

uint32_t EvalRetries(const Segment& segment, const EvalRun& run, const EvalShape& shape) {
  uint32_t retries = 0;
  for (uint32_t word = 0; word < shape.phases * shape.chunks; ++word) {
    const uint64_t value = segment.eval_word(word).load(std::memory_order_relaxed);
    retries += LedgerWord::InEpoch(value, run.number).attempt;
  }
  return retries;
}

}  // namespace gnnd
