#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/base/futex.h"
#include "core/base/mapping.h"
#include "core/base/robust_mutex.h"
#include "core/draw/locality.h"
#include "core/history/job_history.h"
#include "core/ledger/build_id.h"
#include "core/ledger/early_stop.h"
#include "core/ledger/shape.h"
#include "core/ledger/task_sums.h"

// The bytes of a job segment. docs/formats/segment.md draws them and changes with them; the build
// id tells segments of one layout from those of another. Offsets, never pointers; everything starts
// as zero bytes.

namespace gnnd {

inline constexpr uint64_t kSegmentMagic = 0x314745534A444E47;  // "GNDJSEG1", little-endian
// As many as a job spec can ask for. What grows with it (a turn word a device, a count an epoch and
// device) is laid out by the job's own number.
inline constexpr uint32_t kMaxDevices = 1024;
inline constexpr uint32_t kRecentDurations = 64;
inline constexpr uint32_t kAbortMessageBytes = 440;

enum class Stage : uint32_t {
  kSample = 0,   // S
  kMark = 1,     // M
  kCopy = 2,     // C
  kPrune = 3,    // P
  kExtract = 4,  // E
  kTrain = 5,    // T: forward and backward
  kApply = 6,    // the step itself
  kEvaluate = 7,
};
inline constexpr uint32_t kNumStages = 8;

enum class WaitSide : uint32_t {
  kEnqueue = 0,  // a Sampler waits for a batch it may claim
  kDequeue = 1,  // a Trainer waits for a batch it may take
  kDue = 2,      // a Trainer holds a batch and waits for its parameter version
  kTurn = 3,     // the other executor has the device
  kExtract = 4,  // a Trainer waits for its own extraction; what it does not wait for is hidden
};
inline constexpr uint32_t kNumWaitSides = 5;

enum class Counter : uint32_t {
  kBatchesSampled = 0,
  kBatchesTaken = 1,
  kBatchesTrained = 2,
  kBatchesGivenBack = 3,
  kStepsApplied = 4,  // commits by this executor
  kEvalChunks = 5,    // chunks of evaluations computed
  kNodes = 6,         // input nodes sampled
  kEdges = 7,
  kSeeds = 8,             // seeds trained
  kQueueBytes = 9,        // payload bytes published
  kTurnSwitches = 10,     // times this executor handed its device over
  kStandbyTakes = 11,     // batches taken as a standby Trainer
  kStandbyRefusals = 12,  // takes that the profit rule refused
  kLockOwnersDied = 13,
  kCorruptRecords = 14,
  kSlotsTrimmed = 15,
  kDeviceRows = 16,  // input rows that extraction read, by tier
  kHostRows = 17,
  kDiskRows = 18,
  kDeviceBytes = 19,  // input bytes that extraction read, by tier
  kHostBytes = 20,
  kDiskBytes = 21,
  kCacheRows = 22,          // rows the cache holds; set once
  kCacheFillNs = 23,        // time to fill it; set once
  kWorkBytes = 24,          // memory of a batch's work; its largest value
  kBatchesAhead = 25,       // batches taken to be extracted while another one was computed
  kEvalRows = 26,           // rows that chunks of evaluations computed
  kHeldTopologyBytes = 27,  // device memory by purpose; its largest value
  kHeldCacheBytes = 28,
  kHeldWorkspaceBytes = 29,
  kHeldModelBytes = 30,
  kCopiedInBytes = 31,  // to the device
  kCopiedOutBytes = 32,
  kBusRows = 33,  // input rows beyond a device's cache that it read from the host by itself
  kBusBytes = 34,
  kStagedRows = 35,  // input rows that the host gathered and copied to a device
  kStagedBytes = 36,
  kRegisteredBytes = 37,   // host memory registered with a device; its largest value
  kDeviceNs = 38,          // a device's own time for a Sampler's draws or a Trainer's gradients
  kDeviceExtractNs = 39,   // a device's own time for extraction
  kDeviceEvalChunks = 40,  // those of kEvalChunks that a device computed
  kDeviceEvalNs = 41,      // a device's own time for them
  kDeviceMarkNs = 42,      // a device's own time for a Sampler's marks and copies
  kDeviceCopyNs = 43,
  kHistoryLookUps = 44,  // rows of kept levels that batches looked up
  kHistoryHits = 45,     // of these, rows found in history
  kHistoryAdmitted = 46,
  kHistoryEvicted = 47,
  kHistoryRows = 48,         // places of the buffer that were ever written; its largest value
  kHistoryOverwritten = 49,  // embeddings lost for want of places; its largest value
  kPrunedRows = 50,          // input rows of records that were neither read nor computed
  kHistoryUpdateNs = 51,     // time for gradients' norms, admission, eviction
  kHistoryLevelHits = 52,    // kHistoryHits by level: from here on that of level 1 and on
  kHistoryAges = 60,  // kHistoryHits by age: from here on eighths of the oldest that there may be
  kPeerRows = 68,     // input rows that another device's memory was read for
  kPeerBytes = 69,
  kRowWaitNs = 70,  // time for rows beyond a device's own, by a placement's costs
  // Rows that were computed although an embedding of them was stored.
  kHistoryCompared = 71,
  kHistorySimilar = 72,    // of these, rows with a cosine of at least 0.8
  kHistoryCosine = 73,     // sum of the cosines, in millionths
  kHistoryLag = 74,        // sum of the stored embeddings' ages
  kCacheGivenUpRows = 75,  // rows of kCacheRows whose memory embeddings took; its largest value
  kBesideBytes = 76,       // device memory taken by others; its largest value
};
inline constexpr uint32_t kHistoryBuckets = 8;
constexpr Counter CounterAt(Counter first, uint32_t index) {
  return static_cast<Counter>(static_cast<uint32_t>(first) + index);
}
inline constexpr uint32_t kNumCounters = 80;  // a multiple of 8, a cache line's worth

// Upper bounds of the histograms' buckets, in nanoseconds; one more bucket follows for the rest.
inline constexpr uint64_t kStageBoundsNs[] = {
    500'000,       1'000'000,     2'500'000,     5'000'000,      10'000'000,
    25'000'000,    50'000'000,    100'000'000,   250'000'000,    500'000'000,
    1'000'000'000, 2'500'000'000, 5'000'000'000, 10'000'000'000, 30'000'000'000};
inline constexpr uint64_t kWaitBoundsNs[] = {
    500'000,       1'000'000,      2'500'000,      5'000'000,      10'000'000,     25'000'000,
    50'000'000,    100'000'000,    250'000'000,    500'000'000,    1'000'000'000,  2'500'000'000,
    5'000'000'000, 10'000'000'000, 30'000'000'000, 60'000'000'000, 120'000'000'000};
inline constexpr uint32_t kNumStageBuckets = sizeof(kStageBoundsNs) / sizeof(uint64_t) + 1;
inline constexpr uint32_t kNumWaitBuckets = sizeof(kWaitBoundsNs) / sizeof(uint64_t) + 1;

// Compensation for the age of the parameters on which a group is computed.
enum class StalenessCompensation : uint16_t {
  kNone = 0,     // gradients at the parameters of the due version
  kPredict = 1,  // at the parameters predicted from that version's optimizer
};

// The scale by which favoured neighbours are drawn more often (core/draw/locality.h).
struct LocalityConfig {
  uint32_t scale = kScaleOne;  // the scale of every epoch, or the largest
  uint32_t adapts = 0;         // 1: starts at 1 and follows the time of extraction

  // Whether this can be the scale of the epoch after some epoch.
  bool MayFollow(const LocalityScale& next) const {
    const auto may = [this](uint32_t one) { return one >= kScaleOne && one <= scale; };
    return adapts == 0 || (may(next.scale) && may(next.before));
  }
};

// The arguments of Create, which lie frozen in the header; every attacher computes the same Layout
// from them.
struct SegmentConfig {
  uint64_t batches_per_epoch = 0;  // M, at least 1; of this run (after batch_limit)
  uint32_t epochs = 0;
  uint32_t first_epoch = 0;  // number of the segment's epoch 0 in batch keys: kTrialEpoch (with
                             // epochs = 1) in a trial
  uint32_t group = 1;        // G, batches per step
  uint32_t staleness = 0;    // S, in groups
  uint64_t num_slots = 0;    // at least G; see DefaultSlotCount
  uint64_t slot_bytes =
      0;  // virtual: the largest record the job can make; rounded up to kPageBytes
  uint64_t queue_max_bytes = 0;  // budget for payload bytes in the queue; at least 1
  uint64_t parameter_floats = 0;
  uint64_t optimizer_floats = 0;  // may be 0
  uint32_t num_devices = 1;       // devices are 0 .. num_devices - 1
  uint32_t max_executors = 0;     // rows; every start of an executor takes one for good
  uint64_t batch_size = 0;        // seeds per batch; the epoch's last batch may be short
  uint64_t train_nodes = 0;       // ceil(train_nodes / batch_size) batches make a whole epoch
  EarlyStop early_stop;           // needs evaluations before the end
  // Validation nodes are evaluated after every this many epochs and after the last one (0 = only
  // then); test nodes at the end, with the last parameters and (unless they are the same) with the
  // best ones.
  uint32_t evaluate_every = 1;
  uint32_t eval_chunks = 0;  // most chunks of a run; 0 = nothing is evaluated
  uint32_t low_water = 0;    // READY batches at or below which a standby hands its device back
  StalenessCompensation compensation = StalenessCompensation::kNone;
  bool born_ready = false;  // batches are rows: no Sampler makes them, and slots stay empty
  // Bytes at the start of each slot that are allocated from the beginning and registered by
  // processes with a device. They always count in queue_max_bytes; rounded up to kPageBytes.
  uint64_t registered_bytes = 0;
  HistoryConfig history;  // shared by all Trainers; none if each has its own
  LocalityConfig locality;
  uint32_t chunk_counts = 0;  // integers that a chunk of an evaluation has beside its TaskSums
  // Bytes that an evaluation's chunks keep for a last phase; 0 = there is no such phase.
  uint64_t kept_bytes = 0;
};
static_assert(sizeof(SegmentConfig) == 200);

// One cache line per word that different processes write often.
struct alignas(64) SharedEvent {
  EventWord word;
};
struct alignas(64) SharedWord {
  std::atomic<uint64_t> value;
};
static_assert(sizeof(SharedEvent) == 64 && sizeof(SharedWord) == 64);

// The part that only the daemon and Trainers write.
struct alignas(64) SegmentHeader {
  uint64_t magic;
  char build_id[kBuildIdBytes];
  uint64_t total_bytes;
  SegmentConfig config;

  alignas(64) RobustMutex mutex;  // apply, evaluation's commit, first parameters, standby takes

  SharedWord version;       // the commit word: committed groups
  SharedWord evaluation;    // the last committed run, as a ledger word
  SharedWord eval_rows[2];  // rows of a run on validation and on test nodes; 0 = not known yet
  SharedWord reclaims;      // number of reclaimed entries; moves cursors back

  alignas(64) std::atomic<uint32_t> parameters_ready;  // version 0 is written
  std::atomic<uint32_t> next_row;                      // executor rows handed out
  std::atomic<uint32_t> next_incarnation;              // last incarnation handed out
  std::atomic<uint32_t> command;                       // Command, for all
  std::atomic<uint32_t> standby_policy;                // StandbyPolicy
  std::atomic<uint32_t> standby_armed;
  std::atomic<uint64_t> t_s_ns;  // estimates for the profit rule
  std::atomic<uint64_t> t_t_ns;
  std::atomic<uint64_t> t_t_prime_ns;
  std::atomic<uint64_t> n_t;

  // Abort: 0 = not aborted, 1 = the message is being written, else 2 + Code.
  alignas(64) std::atomic<uint32_t> abort_code;
  char abort_message[kAbortMessageBytes];
};
static_assert(std::is_standard_layout_v<SegmentHeader>);
static_assert(offsetof(SegmentHeader, config) == 64);
static_assert(offsetof(SegmentHeader, mutex) == 320);
static_assert(offsetof(SegmentHeader, version) == 384);
static_assert(offsetof(SegmentHeader, parameters_ready) == 704);
static_assert(offsetof(SegmentHeader, abort_code) == 768);
static_assert(sizeof(SegmentHeader) == 1216);

// The part that Samplers also write.
struct alignas(64) QueueHeader {
  SharedEvent sampler_event;   // Samplers sleep here
  SharedEvent trainer_event;   // Trainers sleep here
  SharedEvent standby_event;   // standby Trainers sleep here
  SharedWord claim_frontier;   // no batch from here on was ever claimed; only grows
  SharedWord largest_record;   // payload bytes of the largest record published
  SharedWord largest_counted;  // budget bytes of the largest record
  SharedWord published;        // records published, and their payload bytes: what is usual
  SharedWord published_bytes;
};
static_assert(std::is_standard_layout_v<QueueHeader>);
static_assert(sizeof(QueueHeader) == 512);

struct alignas(64) DeviceEntry {
  std::atomic<uint32_t> turn;  // bits of ledger.h
};
static_assert(sizeof(DeviceEntry) == 64);

// Written by one executor, read by the daemon: relaxed atomics without any promised order.
struct StageTimes {
  std::atomic<uint64_t> busy_ns;
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> buckets[kNumStageBuckets];
  std::atomic<uint64_t> recent_ns[kRecentDurations];  // duration i lies at i % kRecentDurations
};
static_assert(sizeof(StageTimes) == 8 * (2 + 16 + 64));

struct WaitTimes {
  std::atomic<uint64_t> wait_ns;
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> buckets[kNumWaitBuckets];
};
static_assert(sizeof(WaitTimes) == 8 * (2 + 18));

struct alignas(64) ExecutorRow {
  std::atomic<uint32_t> incarnation;  // 0 = the row was never used
  std::atomic<uint32_t> role;         // Role
  std::atomic<uint32_t> device;
  std::atomic<int32_t> pid;
  std::atomic<uint32_t> phase;          // Phase
  std::atomic<uint32_t> command;        // Command, for this executor
  std::atomic<uint64_t> heartbeat_ns;   // last sign of life, waits included
  std::atomic<uint64_t> progress_word;  // activity 8 | epoch 24 | batch 32
  std::atomic<uint64_t> progress_ns;    // when progress_word last changed
  std::atomic<uint64_t> registered_ns;
  alignas(64) std::atomic<uint64_t> counters[kNumCounters];
  StageTimes stages[kNumStages];
  WaitTimes waits[kNumWaitSides];
};
static_assert(std::is_standard_layout_v<ExecutorRow>);
static_assert(offsetof(ExecutorRow, counters) == 64);
static_assert(sizeof(ExecutorRow) == 6784);

struct SlotEntry {
  // Budget bytes: reserved while CLAIMED; from READY on the part of the payload that may lie beyond
  // the registered bytes.
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> peak_bytes;  // largest payload since the slot was last trimmed
};
static_assert(sizeof(SlotEntry) == 16);

// A Trainer's report on a batch beside its gradient; one per ring entry.
struct alignas(64) HandIn {
  uint64_t batch;  // numbered over the job, from the record; checked again at apply
  uint32_t device;
  uint32_t incarnation;
  uint64_t extract_ns;  // that E and T took, whether anybody waited or not; decide no bit by
  uint64_t train_ns;    // themselves
  TaskSums sums;
};
static_assert(sizeof(HandIn) == 128);

// Feature rows that the Trainer on a device lets the others read (row_shares.h); one per device.
struct alignas(64) RowShare {
  std::atomic<uint32_t> owner;  // incarnation; 0 = nobody. The next fields are that executor's
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> handle[8];  // made by the device's plug-in
};
static_assert(std::is_standard_layout_v<RowShare>);
static_assert(sizeof(RowShare) == 128);

// Sums over an epoch, kept twice like the optimizer's state: version v's are at v % 2.
struct alignas(64) EpochSums {
  uint64_t batches;
  uint64_t steps;
  uint64_t retries;  // attempts beyond the first, over all batches
  uint64_t digest;   // ledger digest: batches folded in the order of commits
  uint64_t extract_ns;
  uint64_t train_ns;
  TaskSums task;
};
static_assert(sizeof(EpochSums) == 128);

// The result of a committed run.
struct EvalRecord {
  TaskSums sums;
  Judgement judgement;
};

// The result of a chunk of an evaluation, followed by config.chunk_counts integers of the task.
struct ChunkResult {
  TaskSums sums;  // of the phase that counts; the other phases' have no items
  uint64_t rows;  // rows computed; snapshots read it at any time, hence atomically
};
static_assert(sizeof(ChunkResult) == 72);

struct alignas(64) EpochEntry {
  uint64_t end_ns;                // just before the last commit; valid once that is visible
  EpochSums sums;                 // likewise
  uint8_t parameters_sha256[32];  // likewise: of the epoch's last version
  // Valid once the run on the validation nodes after this epoch is committed:
  EvalRecord val;
  uint64_t eval_end_ns;
  uint32_t eval_retries;
  uint32_t best_epoch;      // best quality so far, first of equals
  uint32_t best_buffer;     // which of the two holds its parameters
  uint32_t stop_reference;  // reference epoch of early_stop.h
  uint32_t stops;           // 1: no epoch follows
  // Valid as end_ns: the scale of the next epoch, where it adapts. The same each time that it is
  // written: what an earlier attempt made of this epoch stands here from the beginning.
  LocalityScale next_scale;
  // Valid once a run on the test nodes with this epoch's parameters is committed.
  EvalRecord test;
};
static_assert(std::is_standard_layout_v<EpochEntry>);
static_assert(sizeof(LocalityScale) == 12);
static_assert(sizeof(EpochEntry) == 704);

// Offsets of all parts, in bytes from the segment's start; a function of the config alone. First,
// with the header, come the parts that only the daemon and Trainers write; from `shared_at` on
// those that Samplers also write; last the slots, which only Samplers write. Each of the three
// starts on a page, so that processes can protect what they must not write.
struct Layout {
  uint64_t epochs_at;         // EpochEntry[epochs]
  uint64_t sums_at;           // EpochSums[2]
  uint64_t epoch_devices_at;  // u64[epochs][num_devices]: batches by device, as EpochEntry.sums
  uint64_t sum_devices_at;    // u64[2][num_devices]: likewise, as sums
  uint64_t eval_ledger_at;    // atomic u64[eval_chunks]
  uint64_t chunk_results_at;  // {ChunkResult, u64[chunk_counts]}[eval_chunks]
  uint64_t kept_at;           // bytes[kept_bytes], of the run that is computed
  uint64_t hand_ins_at;       // HandIn[(S+1) * G]
  uint64_t shares_at;         // RowShare[num_devices]
  uint64_t parameters_at;     // float[S+2][parameter_floats], each from a cache line on
  uint64_t optimizer_at;      // float[optimizer_buffers][optimizer_floats]
  uint64_t gradients_at;      // float[(S+1) * G][parameter_floats]
  uint64_t best_at;           // float[2][parameter_floats]
  uint64_t history_at;        // JobHistory, from a page on
  uint64_t shared_at;         // QueueHeader
  uint64_t devices_at;        // DeviceEntry[num_devices]
  uint64_t executors_at;      // ExecutorRow[max_executors]
  uint64_t starts_at;         // atomic u64[epochs]: first claim, by the monotonic clock
  uint64_t ledger_at;         // atomic u64[batches_per_epoch]
  uint64_t directory_at;      // SlotEntry[num_slots]
  uint64_t slots_at;          // bytes[num_slots][slot_bytes], from a page on
  uint64_t total_bytes;
  uint64_t parameter_stride;  // bytes between parameter buffers and gradients
  uint64_t optimizer_stride;
  uint64_t chunk_result_stride;
  uint64_t optimizer_buffers;  // version v's state is at v % this: 2, or as many as of parameters

  // REQUIRES: a config that ValidateSpec accepted.
  static Layout Of(const SegmentConfig& config);
};

}  // namespace gnnd
