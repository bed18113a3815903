#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/device/use.h"
#include "core/feature/feature_store.h"
#include "core/ledger/evaluation.h"

// A Trainer's computation without its scheduling: the Trainer loop (trainer_loop.h) decides which
// batch is due and what is committed; an implementation of this interface does the arithmetic. The
// product's are in train/work; tests of the segment's rules use one that needs no torch.
//
// Every function is a pure function of its arguments and of Extract's input: the same inputs give
// the same bits, whichever Trainer and whichever thread runs it. All calls come from one thread,
// except that Extract may come from a second one: one Extract at a time, and never into the buffer
// that a ComputeGradient is reading.

namespace gnnd {

// The part of an ExtractReport and a BatchReport about history (core/history).
struct HistoryReport {
  uint64_t look_ups = 0;
  uint64_t level_hits[kHistoryBuckets] = {};  // hits by level, from level 1 on
  uint64_t ages[kHistoryBuckets] = {};        // hits by age, in eighths of the largest
  uint64_t pruned_rows = 0;                   // input nodes that were not read
  uint64_t prune_ns = 0;
};
inline constexpr double kSimilarCosine = 0.8;
struct HistoryUpdate {
  uint64_t admitted = 0;
  uint64_t evicted = 0;
  uint64_t rows = 0;         // places of the buffer ever written
  uint64_t overwritten = 0;  // embeddings lost so far for lack of places
  // Rows that were computed although an older embedding was stored, compared with it.
  uint64_t compared = 0;
  uint64_t similar = 0;            // rows with a cosine of at least kSimilarCosine
  uint64_t cosine_millionths = 0;  // sum of the cosines, negative ones as 0
  uint64_t lag = 0;                // sum of the stored embeddings' ages, in versions
  uint64_t ns = 0;
};

struct BatchReport {
  TaskSums sums{};
  uint64_t device_ns = 0;  // a device's own time, where it has events to tell it by
  HistoryUpdate history{};
};

// How a chunk of an evaluation was computed.
struct ChunkReport {
  bool was_done = false;   // an earlier attempt did it, so nothing was done now
  bool on_device = false;  // on a device with memory of its own
  uint64_t device_ns = 0;  // time there, from the first operation to the end of the last
  DeviceUse device{};
};

// One chunk of an evaluation (core/ledger/evaluation.h).
struct EvalTask {
  EvalRun run;
  uint32_t phase = 0;
  uint32_t chunk = 0;
  std::span<std::byte> kept{};    // memory that all Trainers share, for the last phase; or none
  ChunkReport* report = nullptr;  // filled in unless it is null
};

// One chunk of the last phase, which works up what chunks have kept.
struct ReduceTask {
  std::span<std::byte> kept;
  uint64_t items = 0;  // that the chunks have counted
  uint32_t chunk = 0;
  uint32_t chunks = 0;
};

// Parameters in memory, and their identity: within a job equal `version` and `lag` mean equal
// floats, whoever holds them and wherever they lie. So a device copies only what it lacks.
struct ParametersView {
  uint64_t version = 0;  // updates made so far
  uint64_t lag = 0;      // updates predicted ahead (PredictParameters); 0 = none
  std::span<const float> floats{};

  bool SameAs(const ParametersView& other) const {
    return version == other.version && lag == other.lag;
  }
};

// The gradient of a batch in its ring entry.
struct GradientView {
  uint64_t batch = 0;  // numbered over the job
  // Whether this very TrainWork wrote it, the last time that it computed this batch, so that its
  // own copy of the gradient is equal.
  bool is_own = false;
  std::span<const float> floats{};
};

// One optimizer step: from `version` to `version` + 1.
struct StepView {
  uint64_t version = 0;
  uint64_t num_items = 0;                     // items of all gradients together
  std::span<const GradientView> gradients{};  // each a sum over items; added in this order
  std::span<const float> parameters_in{};
  std::span<const float> optimizer_in{};
  std::span<float> parameters_out{};
  std::span<float> optimizer_out{};
};

// Reports that its caller is alive; false: give up.
using Alive = std::function<bool()>;

// Number of batches that an implementation holds extracted: the present one and the next one.
inline constexpr uint32_t kExtractBuffers = 2;

// The report of an Extract, and about its sources.
struct ExtractReport {
  TierTraffic traffic;               // rows of the sample's input nodes
  uint64_t cache_rows = 0;           // largest size of the Trainer's cache
  uint64_t cache_given_up_rows = 0;  // rows of it whose memory embeddings took
  uint64_t cache_fill_ns = 0;        // time to fill the cache, reported once
  uint64_t work_bytes = 0;           // memory of batches so far, without the cache
  // Rows beyond a device's own cache: those that the device read from the host's memory by itself,
  // and those that the host gathered and copied to it.
  uint64_t bus_rows = 0;
  uint64_t bus_bytes = 0;
  uint64_t staged_rows = 0;
  uint64_t staged_bytes = 0;
  uint64_t row_wait_ns = 0;  // time by a placement's costs for rows that the device lacked
  uint64_t device_ns = 0;    // as in BatchReport
  DeviceUse device{};
  HistoryReport history{};
};

// A batch's place in the order of steps.
struct BatchPoint {
  uint64_t version = 0;         // the version on which it is computed
  uint32_t place = 0;           // index in its group
  uint32_t batches_before = 0;  // in the group whose commit made `version`; 0 of the first
};

class TrainWork {
 public:
  virtual ~TrainWork() = default;

  // Whether extraction depends on the steps before: then Extract is called once its batch is due,
  // on the thread of ComputeGradient, after BringHistoryTo, which says which batch it is.
  virtual bool keeps_history() const { return false; }
  virtual Status BringHistoryTo(const BatchPoint&) { return Status::Ok(); }

  // Makes version 0 of the parameters from the job's random seed. Padding is set to zero.
  virtual void InitParameters(std::span<float> parameters) = 0;

  // E: reads the sample's features and labels into memory of its own, the buffer of this number
  // (below kExtractBuffers), replacing its content. Its record may be released only after
  // ComputeGradient of the same batch returned. `report` stays unchanged if no feature is read.
  virtual Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) = 0;

  // T: writes the gradient of the *sum* of the losses of the batch in `buffer`, which is the
  // sample's, to every float of `gradient` (padding zero). kNumericDivergence when the loss is not
  // finite; the loop checks the gradient itself.
  virtual Status ComputeGradient(const Sample& sample, uint32_t buffer,
                                 const ParametersView& parameters, std::span<float> gradient,
                                 BatchReport* report) = 0;

  // One optimizer step: the mean gradient is (sum of the gradients, in order) / `num_items`. Writes
  // every float of the outputs. The optimizer's memory is optimizer_floats() floats, all zero
  // before the first step.
  //
  // A device may keep a master copy of parameters and optimizer, by version, and read that instead.
  // Its copy of version + 1 counts only once that version is asked for: the step may never be
  // committed, and be repeated by another Trainer.
  virtual void Apply(const StepView& step) = 0;

  // Predicts the parameters `lag` updates (at least 1) after `version` updates (at least 1),
  // writing every float of `predicted`. Reads nothing but that version's data.
  virtual void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                                 std::span<const float> optimizer, std::span<float> predicted) = 0;

  // The shape of an evaluation of these nodes. Calls `alive` at least every 100 ms of work, like
  // EvaluateChunk; when it returns false, gives up with kAborted.
  virtual Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive& alive) = 0;

  // Computes one chunk of a run. All chunks of earlier phases are done, by any Trainers: their
  // results lie in memory that all Trainers share. A repeated chunk gives the same.
  // kNumericDivergence when the loss is not finite.
  virtual Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters,
                               const Alive& alive, EvalResult* result) = 0;

  // One chunk of the last phase of a run. It leaves what it finds in the same memory. Done again,
  // it leaves the same.
  virtual Status Reduce(const ReduceTask& task, const Alive& alive) = 0;

  // The task's judgement of a whole evaluation. Depends on nothing but its arguments, so that
  // whichever Trainer commits writes the same.
  virtual Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const = 0;

  // Called when all chunks of a run are done and nobody reads their intermediate results any more,
  // under the segment's mutex, perhaps again by another Trainer if the caller dies.
  virtual void EndEvaluation(const EvalRun& run) = 0;

  // SHA-256 of the parameters without padding (core/model/parameter_digest.h).
  virtual Sha256Digest DigestOf(std::span<const float> parameters) = 0;
};

}  // namespace gnnd
