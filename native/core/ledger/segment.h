#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/memfd.h"
#include "core/base/registrar.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/ledger/layout.h"
#include "core/ledger/ledger.h"
#include "core/ledger/shape.h"
#include "core/ledger/trace.h"

// The job segment: everything that a job's processes share. One sealed memfd holds the ledger, the
// queue's slots, the parameters, and the daemon's commands and view. docs/formats/segment.md draws
// it and states its rules.
//
// This header has the daemon's functions and those of every process: create, attach, register,
// watch, command, reclaim. Executors use batches.h (a batch's way) and committer.h (parameters).
// Any thread of any process may call Segment's functions, except Create (before all others),
// RegisterExecutor (the daemon only, one call at a time) and Reclaim (the daemon only; several
// executors at once, each by one call at a time).

namespace gnnd {

inline constexpr uint32_t kMaxEvalChunks = 1U << 24;
inline constexpr uint32_t kMaxChunkCounts = 1U << 22;

// One evaluation of a job: a set of nodes with one version of the parameters. Numbers grow in the
// order in which runs are committed, and are never used again.
enum class EvalNodes : uint32_t { kValidation = 0, kTest = 1 };
struct EvalRun {
  uint32_t number = 0;  // validation: the epoch's index; test: epochs (last), epochs + 1 (best)
  EvalNodes nodes = EvalNodes::kValidation;
  uint64_t epoch = 0;    // index of the epoch whose parameters it evaluates
  bool is_best = false;  // the parameters are in best(), not among the versions

  bool operator==(const EvalRun&) const = default;
};

enum class Role : uint32_t { kSampler = 1, kTrainer = 2, kStandby = 3 };
enum class StandbyPolicy : uint32_t { kOff = 0, kAuto = 1, kAlways = 2 };

enum class Command : uint32_t {
  kRun = 0,
  kPause = 1,  // finish the batch in hand, then start no other; committing goes on
  kDrain = 2,  // claim nothing more; train what is ready and due; then return
  kStop = 3,   // finish (Trainers: or give back) the batch in hand, then return
};

enum class Phase : uint32_t {
  kRegistered = 0,  // registered by the daemon; no process yet
  kLoading = 1,     // the process has started and prepares
  kRunning = 2,     // in its loop
  kFinished = 3,    // its loop ended well
  kFailed = 4,      // its loop returned an error
  kReaped = 5,      // the daemon has reaped the process and reclaimed what it held
};

// The present activity of an executor; the first eight are the stages. An executor that waits for
// its own extraction is in that stage.
enum class Activity : uint32_t {
  kIdle = 16,
  kWaitEnqueue = 17,
  kWaitDequeue = 18,
  kWaitDue = 19,
  kWaitTurn = 20,
  kPaused = 21,
};

struct SegmentSpec : SegmentConfig {
  uint64_t batch_limit = 0;  // run only this many batches of each epoch; 0 = all
};

// kInvalidArgument names the first impossible field, and why.
Status ValidateSpec(const SegmentSpec& spec);

// Slots of a job: at least G * (S + 1) + devices. More, up to an epoch's batches, while
// `queue_max_bytes` has room for records of `record_bytes` (0 = unknown).
uint64_t DefaultSlotCount(uint64_t group, uint64_t staleness, uint64_t num_devices,
                          uint64_t batches_per_epoch, uint64_t queue_max_bytes,
                          uint64_t record_bytes);

// Names one start of one executor. `incarnation` is never used again in the segment's life.
struct ExecutorId {
  uint32_t row = 0;
  uint32_t incarnation = 0;
};

// The input of the standby Trainers' profit rule.
struct StandbyEstimates {
  uint64_t t_s_ns = 0;        // per batch of a Sampler (reported only)
  uint64_t t_t_ns = 0;        // per batch of a normal Trainer
  uint64_t t_t_prime_ns = 0;  // per batch of a standby Trainer
  uint64_t n_t = 0;           // normal Trainers; 0 = a standby Trainer always takes
};

struct StageSnapshot {
  uint64_t busy_ns = 0;
  uint64_t count = 0;
  uint64_t buckets[kNumStageBuckets] = {};  // not cumulative; bounds: kStageBoundsNs, then the rest
  uint64_t median_ns = 0;                   // of the last 64; 0 = none yet
};

struct WaitSnapshot {
  uint64_t wait_ns = 0;
  uint64_t count = 0;
  uint64_t buckets[kNumWaitBuckets] = {};
};

struct ExecutorSnapshot {
  ExecutorId id;
  Role role = Role::kSampler;
  uint32_t device = 0;
  int32_t pid = 0;  // 0 until the process has entered
  Phase phase = Phase::kRegistered;
  uint64_t registered_ns = 0;
  uint64_t heartbeat_ns = 0;  // last sign of life (waits give one at least every second), 0 = none
  uint32_t activity = 0;      // Stage or Activity
  uint32_t epoch = 0;         // of the batch in hand, as in batch keys
  uint32_t batch = 0;         // index within the epoch
  uint64_t progress_ns = 0;   // when activity, epoch and batch last changed
  uint64_t counters[kNumCounters] = {};
  StageSnapshot stages[kNumStages];
  WaitSnapshot waits[kNumWaitSides];
};

struct EvaluationReport {
  EvalRecord record{};
  uint64_t end_ns = 0;
  uint32_t retries = 0;
  // The epoch with the best quality so far (first of equals), as in batch keys.
  uint32_t best_epoch = 0;
};

// An epoch's report for the store. Complete once `batches` is the epoch's number of batches.
struct EpochReport {
  uint32_t epoch = 0;      // as in batch keys
  bool committed = false;  // all batches are; else the sums are those of the steps so far
  uint64_t start_ns = 0;   // first claim, 0 = not begun
  uint64_t end_ns = 0;     // last commit, 0 = not ended
  uint64_t batches = 0;    // batches committed, each counted by the step that applied it
  uint64_t steps = 0;
  uint64_t retries = 0;  // attempts beyond the first, all batches
  TaskSums sums{};       // of the training batches, before their step
  uint64_t ledger_digest =
      0;  // equals ExpectedLedgerDigest iff each batch was committed once, in order
  uint64_t final_version = 0;  // version after the epoch
  uint64_t extract_ns = 0;     // time of E and T, summed over its batches
  uint64_t train_ns = 0;
  uint32_t scale = 0;  // of favoured neighbours, in sixteenths; 16: none were favoured
  std::optional<LocalityScale> next_scale;  // scale of the next epoch, if it adapts
  std::vector<uint64_t> device_batches;
  Sha256Digest parameters_sha256{};  // after the epoch, padding left out; zero until then
  // The report is final, except for the test nodes' record at the end.
  bool complete = false;
  std::optional<EvaluationReport> evaluation;  // the evaluation after this epoch, if any
  std::optional<EvalRecord> test;              // the test with its parameters, if any
};

// The digest of an epoch (as in batch keys) whose batches 0 .. batches-1 were committed once each,
// in order. A function of these two numbers alone.
uint64_t ExpectedLedgerDigest(uint32_t epoch, uint64_t batches);

// One commit more in the digest of an epoch (as in batch keys): `digest` is 0 before the first.
uint64_t FoldLedgerDigest(uint64_t digest, uint32_t epoch, uint64_t index);

// A snapshot of everything that changes; no two numbers need be of the same instant.
struct SegmentSnapshot {
  uint64_t version = 0;
  uint64_t committed_batches = 0;
  uint64_t total_batches = 0;    // of epochs_to_train
  uint32_t epochs_to_train = 0;  // all, or fewer once an evaluation has stopped the job
  uint32_t epoch = 0;            // in progress, as in batch keys; the last one when complete
  uint32_t epochs_committed = 0;
  bool complete = false;                  // all batches and all evaluations
  uint64_t states[kNumBatchStates] = {};  // batches of the epoch in progress, by BatchState
  std::optional<EvalRun> evaluation;      // the open run
  uint64_t evaluation_done = 0;           // rows that the open run's chunks have computed
  uint64_t evaluation_total = 0;          // of this many; 0 = not known yet
  uint64_t queue_depth = 0;               // READY batches
  uint64_t queue_bytes = 0;  // payload and reserved bytes of what is claimed and uncommitted
  uint64_t queue_max_bytes = 0;
  uint64_t num_slots = 0;
  uint64_t largest_record_bytes = 0;
  uint64_t reclaimed = 0;  // entries reclaimed so far
  bool standby_armed = false;
  StandbyPolicy standby_policy = StandbyPolicy::kOff;
  StandbyEstimates estimates;
  bool aborted = false;
  Code abort_code = Code::kOk;
  std::string abort_message;
  std::vector<uint32_t> turns;  // bits of ledger.h, by device
  std::vector<ExecutorSnapshot> executors;
};

struct ReclaimReport {
  uint32_t claimed = 0;      // batches whose record must be made again
  uint32_t taken = 0;        // batches whose record will be delivered again
  uint32_t evaluations = 0;  // chunks of evaluations that must be computed again
  uint32_t turns = 0;        // devices given back to their Sampler
};

// The memory that a process may write; a store elsewhere faults at once.
enum class Access {
  kReadWrite,      // the daemon
  kSlotsReadOnly,  // Trainers: records are immutable
  kModelReadOnly,  // Samplers, which may run code of the user's: no parameters, gradients,
                   // optimizer state, hand-ins, epoch reports, commit word, nor what Create was
                   // told
};

class Segment {
 public:
  // A new segment as a sealed memfd of ValidateSpec-checked shape. kInvalidArgument,
  // kShmAllocationFailed.
  static Result<UniqueFd> Create(const SegmentSpec& spec);

  // Maps a segment and keeps a duplicate of `fd`. kShmCorrupted when magic, build or sizes do not
  // match.
  //
  // With `registrar` the registered prefix of each slot is registered, before anything is
  // protected. A device that refuses is no error: registration_status() says why, and
  // registered_bytes() is 0 in this process.
  static Result<Segment> Attach(int fd, Access access, const Registrar* registrar = nullptr);
  uint64_t registered_bytes() const { return registration_.bytes(); }
  const Status& registration_status() const { return registration_status_; }

  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&&) noexcept = default;

  // ---- the daemon's side --------------------------------------------------------------------

  // Makes given parameters the last version of a segment with one batch and one epoch, so that only
  // its evaluation is left: for work that trains nothing. Called before anybody registers.
  // kInvalidArgument for another segment, or parameters of another size.
  Status BeginTrained(std::span<const float> parameters);

  // Records the scales that followed the first epochs, in order, in an earlier attempt, so that
  // they follow again if these epochs are trained again. Called before anybody registers.
  // kInvalidArgument for more scales than epochs, or for an impossible scale.
  Status RecordScales(std::span<const LocalityScale> scales);

  // Registers an executor that is about to be started. kInvalidArgument when the device does not
  // exist or no row is left: the attempt has used up its restarts.
  Result<ExecutorId> RegisterExecutor(Role role, uint32_t device);

  SegmentSnapshot Snapshot() const;

  // `epoch_index` counts from 0 in the segment. REQUIRES: epoch_index < epochs.
  EpochReport ReportEpoch(uint32_t epoch_index) const;

  // Frees everything that a dead executor held: CLAIMED -> PENDING, TAKEN -> READY, its chunks of
  // an evaluation, its turn; wakes everybody. REQUIRES: the process has been *reaped* (waited for),
  // not merely killed: a stopped owner that woke up would go on. Idempotent. kInvalidArgument for
  // an unknown incarnation.
  Result<ReclaimReport> Reclaim(uint32_t incarnation);

  // No Sampler will be started on this device again: the standby Trainer has the turn from now on.
  // REQUIRES: the device's last Sampler is reaped and reclaimed.
  void MarkSamplerGone(uint32_t device);

  void SetCommand(Command command);
  void SetExecutorCommand(uint32_t row, Command command);
  void SetStandby(StandbyPolicy policy, bool armed);
  void SetEstimates(const StandbyEstimates& estimates);

  // Ends every loop with kAborted and this reason. The first call wins; later ones change nothing.
  void Abort(Code code, const std::string& message);

  // Copies the newest version's parameters; returns that version. `out` is parameter_floats() long.
  // Never blocks on an executor. kAborted when commits overtook the copy ten times in a row,
  // kNotFound before version 0 is written.
  Result<uint64_t> CopyLastParameters(std::span<float> out) const;
  // Copies the parameters of the best evaluation so far; returns its epoch, as in batch keys.
  // kNotFound before the first evaluation.
  Result<uint32_t> CopyBestParameters(std::span<float> out) const;

  // ---- every process ------------------------------------------------------------------------

  const SegmentConfig& config() const { return header_->config; }
  const JobShape& shape() const { return shape_; }
  uint64_t parameter_floats() const { return config().parameter_floats; }
  int fd() const { return fd_.get(); }
  const LedgerTrace& trace() const { return trace_; }

  // The scale of favoured neighbours in the epoch's batches, in sixteenths. REQUIRES: its batches
  // may be claimed.
  uint32_t ScaleOf(uint64_t epoch_index) const;

  // The number of a segment epoch in batch keys.
  uint32_t EpochNumber(uint64_t epoch_index) const {
    return config().first_epoch + static_cast<uint32_t>(epoch_index);
  }
  // Seeds of a batch, by its index within the epoch: batch_size, fewer in the epoch's last batch.
  uint64_t SeedsOfBatch(uint64_t index) const;

  // Committed groups. Acquire: pairs with the commit, so that what it committed is visible.
  uint64_t Version() const { return header_->version.value.load(std::memory_order_acquire); }
  bool EvaluationDue(uint64_t epoch_index) const;        // on the validation nodes, by the plan?
  bool EvaluationCommitted(uint64_t epoch_index) const;  // done, or none is asked for
  std::optional<uint64_t> LastEvaluated() const;  // latest epoch whose evaluation is committed
  // The latest epoch before this one after which there is an evaluation.
  std::optional<uint64_t> EvaluatedBefore(uint64_t epoch_index) const;
  // The open run: nothing is due before it is committed.
  std::optional<EvalRun> OpenRun() const;
  // The parameters of a run, and their version.
  std::span<const float> ParametersOf(const EvalRun& run) const;
  uint64_t VersionOf(const EvalRun& run) const { return (run.epoch + 1) * shape_.GroupsPerEpoch(); }
  // All epochs, or fewer once a committed evaluation has stopped the job with its epoch. Batches of
  // later epochs that were sampled already are never trained.
  uint64_t EpochsToTrain() const;
  // Batches from CommittedBatches(version) up to here (exclusive) may be claimed.
  uint64_t ClaimEnd(uint64_t version) const;
  // Whether every batch that is to be trained is committed.
  bool TrainingDone() const;
  // Whether also all evaluations are committed.
  bool Complete() const;
  // Ok, or kAborted with the reason of Abort.
  Status AbortStatus() const;

  void WakeSamplers() { queue().sampler_event.word.Notify(); }
  void WakeTrainers() {
    queue().trainer_event.word.Notify();
    queue().standby_event.word.Notify();
  }
  void WakeAll();

  // Budget bytes of all slots' registered prefixes, and of a record beside its slot's prefix: the
  // part of its elements that may lie beyond it.
  uint64_t PrefixBytes() const { return shape_.num_slots * config().registered_bytes; }
  uint64_t BeyondPrefix(uint64_t payload_bytes, uint64_t extent_bytes) const {
    const uint64_t prefix = config().registered_bytes;
    return std::min(payload_bytes, extent_bytes - std::min(extent_bytes, prefix));
  }

  // Raw parts, for batches.h, committer.h and executor_log.h.
  using Word = std::atomic<uint64_t>;
  SegmentHeader& header() const { return *header_; }
  QueueHeader& queue() const { return *At<QueueHeader>(layout_.shared_at); }
  Word& epoch_start(uint64_t epoch_index) const {
    return Entry<Word>(layout_.starts_at, epoch_index, config().epochs);
  }
  DeviceEntry& device(uint32_t index) const {
    return Entry<DeviceEntry>(layout_.devices_at, index, config().num_devices);
  }
  RowShare& share(uint32_t device) const {
    return Entry<RowShare>(layout_.shares_at, device, config().num_devices);
  }
  ExecutorRow& executor(uint32_t row) const {
    return Entry<ExecutorRow>(layout_.executors_at, row, config().max_executors);
  }
  EpochEntry& epoch(uint64_t epoch_index) const {
    return Entry<EpochEntry>(layout_.epochs_at, epoch_index, config().epochs);
  }
  EpochSums& sums(uint64_t version) const {
    return Entry<EpochSums>(layout_.sums_at, version % 2, 2);
  }
  // Batches of an epoch by the device that trained them; stored beside epoch() and sums().
  std::span<uint64_t> epoch_devices(uint64_t epoch_index) const {
    GNND_CHECK(epoch_index < config().epochs);
    return DeviceCounts(layout_.epoch_devices_at, epoch_index);
  }
  std::span<uint64_t> sum_devices(uint64_t version) const {
    return DeviceCounts(layout_.sum_devices_at, version % 2);
  }
  Word& ledger(uint64_t index) const {
    return Entry<Word>(layout_.ledger_at, index, shape_.batches_per_epoch);
  }
  Word& eval_word(uint32_t index) const {
    return Entry<Word>(layout_.eval_ledger_at, index, config().eval_chunks);
  }
  ChunkResult& chunk_result(uint32_t index) const { return *At<ChunkResult>(ChunkResultAt(index)); }
  std::span<uint64_t> chunk_counts(uint32_t index) const {
    return {At<uint64_t>(ChunkResultAt(index) + sizeof(ChunkResult)), config().chunk_counts};
  }
  // Memory in which chunks of an evaluation keep data for its last phase.
  std::span<std::byte> kept() const {
    return {At<std::byte>(layout_.kept_at), config().kept_bytes};
  }
  SlotEntry& slot_entry(uint64_t slot) const {
    return Entry<SlotEntry>(layout_.directory_at, slot, shape_.num_slots);
  }
  HandIn& hand_in(uint64_t ring_entry) const {
    return Entry<HandIn>(layout_.hand_ins_at, ring_entry, shape_.RingEntries());
  }
  std::span<float> parameters(uint64_t version) const {
    return Parameters(layout_.parameters_at, shape_.ParameterBuffer(version));
  }
  std::span<float> optimizer(uint64_t version) const;
  std::span<float> gradient(uint64_t ring_entry) const {
    GNND_CHECK(ring_entry < shape_.RingEntries());
    return Parameters(layout_.gradients_at, ring_entry);
  }
  std::span<float> best(uint32_t buffer) const { return Parameters(layout_.best_at, buffer); }
  // Memory of the shared history; null if there is none.
  std::byte* history() const {
    return config().history.bytes == 0 ? nullptr : mapping_.data() + layout_.history_at;
  }
  uint64_t history_offset() const { return layout_.history_at; }  // within the memfd
  std::span<std::byte> slot(uint64_t slot_index) const;
  uint64_t slot_offset(uint64_t slot_index) const;  // within the memfd

 private:
  Segment() = default;
  void Register(const Registrar& registrar);
  Status Protect(Access access);

  // Entry `index` of an array of `count` entries.
  template <typename T>
  T& Entry(uint64_t at, uint64_t index, uint64_t count) const {
    GNND_CHECK(index < count);
    return At<T>(at)[index];
  }
  // Buffer `index` of an array laid out like the parameters.
  std::span<float> Parameters(uint64_t at, uint64_t index) const {
    return {At<float>(at + index * layout_.parameter_stride), config().parameter_floats};
  }

  uint64_t ChunkResultAt(uint32_t index) const {
    GNND_CHECK(index < config().eval_chunks);
    return layout_.chunk_results_at + index * layout_.chunk_result_stride;
  }

  std::span<uint64_t> DeviceCounts(uint64_t at, uint64_t index) const {
    return {At<uint64_t>(at) + index * config().num_devices, config().num_devices};
  }

  template <typename T>
  T* At(uint64_t offset) const {
    return reinterpret_cast<T*>(mapping_.data() + offset);
  }

  Mapping mapping_;
  Registration registration_;  // declared after the mapping, so that it ends first
  Status registration_status_;
  UniqueFd fd_;
  LedgerTrace trace_;
  SegmentHeader* header_ = nullptr;
  JobShape shape_{};
  Layout layout_{};
};

// Makes a new segment begin with these parameters, another job's, instead of fresh ones. REQUIRES:
// nobody is registered in the segment yet. kInvalidArgument when their number is not the model's.
Status BeginWith(Segment& segment, std::span<const float> parameters);

}  // namespace gnnd
