#pragma once

#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/executor/switch_profit.h"
#include "core/image/image.h"
#include "core/ledger/segment.h"
#include "core/metric/metric.h"
#include "node/tables.h"

// The values that the daemon writes to a segment and reads from it.

namespace gnnd::node {

template <>
inline constexpr auto kNames<StalenessCompensation> = NamesOf<StalenessCompensation>(
    "StalenessCompensation",
    {{"PREDICT", StalenessCompensation::kPredict}, {"NONE", StalenessCompensation::kNone}});

template <>
inline constexpr auto kNames<Role> = NamesOf<Role>(
    "Role",
    {{"SAMPLER", Role::kSampler}, {"TRAINER", Role::kTrainer}, {"STANDBY", Role::kStandby}});

template <>
inline constexpr auto kNames<Phase> =
    NamesOf<Phase>("ExecutorPhase", {{"REGISTERED", Phase::kRegistered},
                                     {"LOADING", Phase::kLoading},
                                     {"RUNNING", Phase::kRunning},
                                     {"FINISHED", Phase::kFinished},
                                     {"FAILED", Phase::kFailed},
                                     {"REAPED", Phase::kReaped}});

// The commands of the daemon; executors use the rest of Command themselves in order to stop.
template <>
inline constexpr auto kNames<Command> =
    NamesOf<Command>("SegmentCommand", {{"RUN", Command::kRun}, {"PAUSE", Command::kPause}});

template <>
inline constexpr auto kNames<StandbyPolicy> =
    NamesOf<StandbyPolicy>("StandbyPolicy", {{"AUTO", StandbyPolicy::kAuto},
                                             {"OFF", StandbyPolicy::kOff},
                                             {"ALWAYS", StandbyPolicy::kAlways}});

enum class Which { kLast, kBest };
template <>
inline constexpr auto kNames<Which> =
    NamesOf<Which>("WhichParameters", {{"LAST", Which::kLast}, {"BEST", Which::kBest}});

enum class EvaluationKind { kValidation, kTestLast, kTestBest };
template <>
inline constexpr auto kNames<EvaluationKind> =
    NamesOf<EvaluationKind>("EvaluationKind", {{"VALIDATION", EvaluationKind::kValidation},
                                               {"TEST_LAST", EvaluationKind::kTestLast},
                                               {"TEST_BEST", EvaluationKind::kTestBest}});

template <>
inline constexpr auto kTable<SegmentSpec> = StructOf(
    "SegmentSpec", Field{"batchesPerEpoch", &SegmentSpec::batches_per_epoch, "M."},
    Field{"batchLimit", &SegmentSpec::batch_limit,
          "Only the first so many batches of each epoch; 0 = all."},
    Field{"epochs", &SegmentSpec::epochs}, Field{"firstEpoch", &SegmentSpec::first_epoch},
    Field{"batchesPerStep", &SegmentSpec::group, "G."},
    Field{"staleness", &SegmentSpec::staleness, "S."},
    Field{"stalenessCompensation", &SegmentSpec::compensation},
    Field{"bornReady", &SegmentSpec::born_ready, "Batches are rows: no Sampler makes them."},
    Field{"numSlots", &SegmentSpec::num_slots}, Field{"slotBytes", &SegmentSpec::slot_bytes},
    Field{"queueMaxBytes", &SegmentSpec::queue_max_bytes},
    Field{"registeredBytes", &SegmentSpec::registered_bytes,
          "Of each slot's start: registered with devices, and in the budget from the beginning."},
    Field{"parameterFloats", &SegmentSpec::parameter_floats},
    Field{"optimizerFloats", &SegmentSpec::optimizer_floats},
    Field{"numDevices", &SegmentSpec::num_devices},
    Field{"maxExecutors", &SegmentSpec::max_executors},
    Field{"batchSize", &SegmentSpec::batch_size}, Field{"trainNodes", &SegmentSpec::train_nodes},
    Field{"evaluateEveryEpochs", &SegmentSpec::evaluate_every,
          "The validation nodes after every so-many-th epoch, and after the last one; 0 = only "
          "then."},
    Field{"evaluationChunks", &SegmentSpec::eval_chunks,
          "Of `evaluationSizes`; 0 = nothing is evaluated."},
    Field{"chunkCounts", &SegmentSpec::chunk_counts,
          "Integers that the task counts in each chunk, beside its sums."},
    Field{"keptBytes", &SegmentSpec::kept_bytes,
          "That chunks keep for a last phase of evaluations; 0 = there is none."},
    Field{"lowWater", &SegmentSpec::low_water},
    Field{"stopPatience", [](auto& spec) -> auto& { return spec.early_stop.patience; },
          "Evaluations without improvement that end the job; 0 = never."},
    Field{"stopMinDelta", [](auto& spec) -> auto& { return spec.early_stop.min_delta; },
          "Share by which a quality must exceed the reference (early_stop.h)."},
    Field{"history", &SegmentSpec::history},
    Field{"localityScale", [](auto& spec) -> auto& { return spec.locality.scale; },
          "Of favoured neighbours in sixteenths: of every epoch, or the most."},
    Field{"localityAdapts", [](auto& spec) -> auto& { return spec.locality.adapts; },
          "1: it starts at 16 and follows what extraction takes."});

template <>
inline constexpr auto kTable<LocalityScale> =
    StructOf("LocalityScale", "Of favoured neighbours, in sixteenths (core/draw/locality.h).",
             Field{"scale", &LocalityScale::scale}, Field{"before", &LocalityScale::before},
             Field{"fixed", &LocalityScale::fixed, "It changes no more."});

struct SlotOptions {
  uint64_t group = 0;
  uint64_t staleness = 0;
  uint64_t num_devices = 0;
  uint64_t batches_per_epoch = 0;
  uint64_t queue_max_bytes = 0;
  uint64_t record_bytes = 0;
};

template <>
inline constexpr auto kTable<SlotOptions> = StructOf(
    "SlotOptions", Field{"batchesPerStep", &SlotOptions::group},
    Field{"staleness", &SlotOptions::staleness}, Field{"numDevices", &SlotOptions::num_devices},
    Field{"batchesPerEpoch", &SlotOptions::batches_per_epoch},
    Field{"queueMaxBytes", &SlotOptions::queue_max_bytes},
    Field{"recordBytes", &SlotOptions::record_bytes, "0 = unknown."});

template <>
inline constexpr auto kTable<ReclaimReport> =
    StructOf("ReclaimReport", "What a dead executor held.",
             Field{"claimed", &ReclaimReport::claimed, "Batches whose record must be made again."},
             Field{"taken", &ReclaimReport::taken, "Batches whose record is delivered again."},
             Field{"evaluations", &ReclaimReport::evaluations,
                   "Chunks of evaluations that are computed again."});

template <>
inline constexpr auto kTable<StandbyEstimates> =
    StructOf("StandbyEstimates", Field{"samplerBatchNs", &StandbyEstimates::t_s_ns},
             Field{"trainerBatchNs", &StandbyEstimates::t_t_ns},
             Field{"standbyBatchNs", &StandbyEstimates::t_t_prime_ns},
             Field{"trainers", &StandbyEstimates::n_t, "N_t."});

// ---- what moves -------------------------------------------------------------------------------

template <>
inline constexpr auto kTable<StageSnapshot> = StructOf(
    "StageTimes", Field{"totalNs", &StageSnapshot::busy_ns}, Field{"count", &StageSnapshot::count},
    Field{"buckets", &StageSnapshot::buckets, "By `stageBoundsSeconds`."},
    Field{"medianNs", &StageSnapshot::median_ns});

template <>
inline constexpr auto kTable<WaitSnapshot> = StructOf(
    "Times", Field{"totalNs", &WaitSnapshot::wait_ns}, Field{"count", &WaitSnapshot::count},
    Field{"buckets", &WaitSnapshot::buckets, "By `waitBoundsSeconds`."});

// Names of ExecutorStatus.stage, in the order of Stage.
inline constexpr const char* kStageNames[kNumStages] = {"SAMPLE",  "MARK",  "COPY",  "PRUNE",
                                                        "EXTRACT", "TRAIN", "APPLY", "EVALUATE"};
inline constexpr const char* kWaitSideNames[kNumWaitSides] = {"ENQUEUE", "DEQUEUE", "DUE", "TURN",
                                                              "EXTRACT"};
// Names in the order of Counter.
inline constexpr const char* kCounterNames[] = {"batchesSampled",
                                                "batchesTaken",
                                                "batchesTrained",
                                                "batchesGivenBack",
                                                "stepsApplied",
                                                "evaluationChunks",
                                                "nodes",
                                                "edges",
                                                "seeds",
                                                "queueBytes",
                                                "turnSwitches",
                                                "standbyTakes",
                                                "standbyRefusals",
                                                "lockOwnersDied",
                                                "corruptRecords",
                                                "slotsTrimmed",
                                                "deviceRows",
                                                "hostRows",
                                                "diskRows",
                                                "deviceBytes",
                                                "hostBytes",
                                                "diskBytes",
                                                "cacheRows",
                                                "cacheFillNs",
                                                "workBytes",
                                                "batchesAhead",
                                                "evaluationRows",
                                                "heldTopologyBytes",
                                                "heldCacheBytes",
                                                "heldWorkspaceBytes",
                                                "heldModelBytes",
                                                "copiedInBytes",
                                                "copiedOutBytes",
                                                "busRows",
                                                "busBytes",
                                                "stagedRows",
                                                "stagedBytes",
                                                "registeredBytes",
                                                "deviceNs",
                                                "deviceExtractNs",
                                                "deviceEvalChunks",
                                                "deviceEvalNs",
                                                "deviceMarkNs",
                                                "deviceCopyNs",
                                                "historyLookUps",
                                                "historyHits",
                                                "historyAdmitted",
                                                "historyEvicted",
                                                "historyRows",
                                                "historyOverwritten",
                                                "prunedRows",
                                                "historyUpdateNs",
                                                "historyHits1",
                                                "historyHits2",
                                                "historyHits3",
                                                "historyHits4",
                                                "historyHits5",
                                                "historyHits6",
                                                "historyHits7",
                                                "historyHits8",
                                                "historyAge1",
                                                "historyAge2",
                                                "historyAge3",
                                                "historyAge4",
                                                "historyAge5",
                                                "historyAge6",
                                                "historyAge7",
                                                "historyAge8",
                                                "peerRows",
                                                "peerBytes",
                                                "rowWaitNs",
                                                "historyCompared",
                                                "historySimilar",
                                                "historyCosine",
                                                "historyLag",
                                                "cacheGivenUpRows",
                                                "besideBytes"};
static_assert(std::size(kCounterNames) == static_cast<uint32_t>(Counter::kBesideBytes) + 1);
static_assert(std::size(kCounterNames) <= kNumCounters);

inline std::string NameOfActivity(uint32_t activity) {
  if (activity < kNumStages) return kStageNames[activity];
  return activity == static_cast<uint32_t>(Activity::kIdle) ? "IDLE" : "WAIT";
}

// An executor in the snapshot of its segment.
struct ExecutorView : ExecutorSnapshot {
  bool has_turn = false;
};

template <>
inline constexpr auto kTable<ExecutorView> = StructOf(
    "ExecutorSnapshot", Field{"row", [](auto& executor) -> auto& { return executor.id.row; }},
    Field{"incarnation", [](auto& executor) -> auto& { return executor.id.incarnation; }},
    Field{"role", &ExecutorView::role}, Field{"device", &ExecutorView::device},
    Field{"pid", &ExecutorView::pid, "0 until the process has entered."},
    Field{"hasTurn", &ExecutorView::has_turn,
          "Whether the device is its own now: a Sampler and a standby Trainer on one take turns."},
    Field{"phase", &ExecutorView::phase}, Field{"registeredNs", &ExecutorView::registered_ns},
    Field{"heartbeatNs", &ExecutorView::heartbeat_ns, "CLOCK_MONOTONIC; 0 = no sign of life yet."},
    Field{"stage", [](const ExecutorView& executor) { return NameOfActivity(executor.activity); }},
    Field{"progressNs", &ExecutorView::progress_ns},
    Field{"counters", &ExecutorView::counters, "By `counters`."},
    Field{"stages", &ExecutorView::stages, "By `stages`."},
    Field{"waits", &ExecutorView::waits, "By `waitSides`."});

inline std::vector<ExecutorView> ExecutorsOf(const SegmentSnapshot& snapshot) {
  std::vector<ExecutorView> views;
  for (const ExecutorSnapshot& executor : snapshot.executors) {
    // Only a device that a Sampler shares with a standby Trainer has a turn.
    const bool standby_holds = (snapshot.turns[executor.device] & kTurnStandbyHolds) != 0;
    const bool holds =
        executor.role == Role::kTrainer || standby_holds == (executor.role == Role::kStandby);
    views.push_back({executor, holds});
  }
  return views;
}

struct EvaluationProgress {
  EvaluationKind kind = EvaluationKind::kValidation;
  uint64_t epoch = 0;
  uint64_t done = 0;
  uint64_t total = 0;
};

template <>
inline constexpr auto kTable<EvaluationProgress> =
    StructOf("EvaluationProgress", "What runs, and nothing is trained before it ends.",
             Field{"kind", &EvaluationProgress::kind},
             Field{"epoch", &EvaluationProgress::epoch, "Whose parameters they are."},
             Field{"done", &EvaluationProgress::done,
                   "Rows of hidden layers and of the last one, of all chunks that are done."},
             Field{"total", &EvaluationProgress::total, "0 = not known yet."});

inline std::optional<EvaluationProgress> ProgressOf(const SegmentSnapshot& snapshot) {
  if (!snapshot.evaluation) return std::nullopt;
  const EvalRun& run = *snapshot.evaluation;
  const EvaluationKind test = run.is_best ? EvaluationKind::kTestBest : EvaluationKind::kTestLast;
  return EvaluationProgress{run.nodes == EvalNodes::kTest ? test : EvaluationKind::kValidation,
                            run.epoch, snapshot.evaluation_done, snapshot.evaluation_total};
}

// Number of batches in this state in the present epoch.
template <BatchState kState>
uint64_t CountOf(const SegmentSnapshot& snapshot) {
  return snapshot.states[static_cast<uint32_t>(kState)];
}

inline double ProfitNsOf(const SegmentSnapshot& snapshot) {
  const StandbyEstimates& estimates = snapshot.estimates;
  return static_cast<double>(SwitchProfitNs(snapshot.queue_depth, estimates.t_t_ns, estimates.n_t,
                                            estimates.t_t_prime_ns));
}

inline std::optional<std::string> AbortMessageOf(const SegmentSnapshot& snapshot) {
  if (!snapshot.aborted) return std::nullopt;
  return snapshot.abort_message;
}

template <>
inline constexpr auto kTable<SegmentSnapshot> = StructOf(
    "SegmentSnapshot", Field{"version", &SegmentSnapshot::version, "Committed groups."},
    Field{"committedBatches", &SegmentSnapshot::committed_batches},
    Field{"totalBatches", &SegmentSnapshot::total_batches, "Of `epochsToTrain`."},
    Field{"epochsToTrain", &SegmentSnapshot::epochs_to_train,
          "All epochs, or fewer once an evaluation has stopped the job."},
    Field{"epoch", &SegmentSnapshot::epoch},
    Field{"epochsCommitted", &SegmentSnapshot::epochs_committed},
    Field{"complete", &SegmentSnapshot::complete,
          "All batches that are to be trained and all evaluations."},
    Field{"evaluation", &ProgressOf},
    Field{"queueDepth", &SegmentSnapshot::queue_depth, "READY batches."},
    Field{"queueBytes", &SegmentSnapshot::queue_bytes},
    Field{"claimed", &CountOf<BatchState::kClaimed>, "Batches that Samplers have in hand."},
    Field{"taken", &CountOf<BatchState::kTaken>, "Batches that Trainers have in hand."},
    Field{"numSlots", &SegmentSnapshot::num_slots},
    Field{"largestRecordBytes", &SegmentSnapshot::largest_record_bytes},
    Field{"reclaimed", &SegmentSnapshot::reclaimed}, Field{"standbyProfitNs", &ProfitNsOf},
    Field{"aborted", &AbortMessageOf, "The abort's message; null unless aborted."},
    Field{"executors", &ExecutorsOf});

// ---- what an epoch leaves ---------------------------------------------------------------------

inline std::string HexOf(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

inline std::string LedgerDigestOf(const EpochReport& report) { return HexOf(report.ledger_digest); }

inline std::string ExpectedDigestOf(const EpochReport& report) {
  return HexOf(ExpectedLedgerDigest(report.epoch, report.batches));
}

inline std::string ParametersDigestOf(const EpochReport& report) {
  return report.committed ? gnnd::HexOf(report.parameters_sha256) : "";
}

template <>
inline constexpr auto kTable<EvalRecord> =
    StructOf("EvaluationRecord",
             Field{"metrics", [](auto& record) -> auto& { return record.judgement.metrics; },
                   "By `evaluationMetrics`; NaN: the task has no such metric."});

template <>
inline constexpr auto kTable<EvaluationReport> = StructOf(
    "EvaluationReport", "On the validation nodes after an epoch.",
    Field{"metrics", [](auto& report) -> auto& { return report.record.judgement.metrics; },
          "By `evaluationMetrics`; NaN: the task has no such metric."},
    Field{"bestEpoch", &EvaluationReport::best_epoch}, Field{"endNs", &EvaluationReport::end_ns});

template <>
inline constexpr auto kTable<EpochReport> = StructOf(
    "SegmentEpoch", Field{"epoch", &EpochReport::epoch},
    Field{"committed", &EpochReport::committed}, Field{"startNs", &EpochReport::start_ns},
    Field{"endNs", &EpochReport::end_ns}, Field{"batches", &EpochReport::batches},
    Field{"steps", &EpochReport::steps}, Field{"retries", &EpochReport::retries},
    Field{"seeds", [](auto& report) -> auto& { return report.sums.items; }},
    Field{"correct", [](auto& report) -> auto& { return report.sums.counts[kCorrect]; }},
    Field{"lossSum", [](auto& report) -> auto& { return report.sums.loss; }},
    Field{"ledgerDigest", &LedgerDigestOf,
          "Equal to expectedLedgerDigest iff each batch was committed exactly once, in order."},
    Field{"expectedLedgerDigest", &ExpectedDigestOf},
    Field{"finalVersion", &EpochReport::final_version},
    Field{"extractNs", &EpochReport::extract_ns, "Of all its batches, waited for or not."},
    Field{"trainNs", &EpochReport::train_ns},
    Field{"localityScale", &EpochReport::scale, "In sixteenths; 16: nobody was favoured."},
    Field{"nextScale", &EpochReport::next_scale, "Of the epoch after it, where it adapts."},
    Field{"deviceBatches", &EpochReport::device_batches},
    Field{"parametersSha256", &ParametersDigestOf,
          "Of the parameters after the epoch, padding left out; hex, empty until it is "
          "committed."},
    Field{"complete", &EpochReport::complete, "Committed, and evaluated if that is due."},
    Field{"evaluation", &EpochReport::evaluation},
    Field{"test", &EpochReport::test,
          "On the test nodes with the epoch's parameters: at the end, for the last and the best."});

struct ParametersCopy {
  uint64_t at = 0;
  Napi::Float32Array data;
};

template <>
inline constexpr auto kTable<ParametersCopy> = StructOf(
    "ParametersCopy",
    Field{"at", &ParametersCopy::at, "The version (LAST) or the epoch (BEST) of the copy."},
    Field{"data", &ParametersCopy::data});

inline std::string ImageDigestOf(const ImageFacts& image) { return gnnd::HexOf(image.sha256); }

template <>
inline constexpr auto kTable<ImageFacts> = StructOf(
    "ImageFacts", "Of a file from which a job goes on.", Field{"path", &ImageFacts::path},
    Field{"version", &ImageFacts::version, "Committed groups."},
    Field{"batches", &ImageFacts::batches, "Committed, counted over the job."},
    Field{"epochs", &ImageFacts::epochs, "Whose batches are all committed."},
    Field{"buildId", &ImageFacts::build_id, "Of the build that wrote it."},
    Field{"bytes", &ImageFacts::bytes},
    Field{"sha256", &ImageDigestOf, "Of what precedes the digest at the file's end; hex."});

}  // namespace gnnd::node
