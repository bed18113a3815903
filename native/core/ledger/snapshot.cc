#include <algorithm>

#include "core/ledger/batches.h"
#include "core/ledger/segment.h"

// The daemon's view: counters, progress, epochs.

namespace gnnd {
namespace {

uint64_t Read(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_relaxed); }

StageSnapshot ReadStage(const StageTimes& times) {
  StageSnapshot stage;
  stage.busy_ns = Read(times.busy_ns);
  stage.count = Read(times.count);
  for (uint32_t i = 0; i < kNumStageBuckets; ++i) stage.buckets[i] = Read(times.buckets[i]);
  uint64_t recent[kRecentDurations];
  const auto held = static_cast<uint32_t>(std::min<uint64_t>(stage.count, kRecentDurations));
  for (uint32_t i = 0; i < held; ++i) recent[i] = Read(times.recent_ns[i]);
  if (held > 0) {
    std::nth_element(recent, recent + held / 2, recent + held);
    stage.median_ns = recent[held / 2];
  }
  return stage;
}

WaitSnapshot ReadWait(const WaitTimes& times) {
  WaitSnapshot wait;
  wait.wait_ns = Read(times.wait_ns);
  wait.count = Read(times.count);
  for (uint32_t i = 0; i < kNumWaitBuckets; ++i) wait.buckets[i] = Read(times.buckets[i]);
  return wait;
}

ExecutorSnapshot ReadExecutor(uint32_t row, const ExecutorRow& entry) {
  ExecutorSnapshot executor;
  executor.id = ExecutorId{row, entry.incarnation.load(std::memory_order_acquire)};
  executor.role = static_cast<Role>(entry.role.load(std::memory_order_relaxed));
  executor.device = entry.device.load(std::memory_order_relaxed);
  executor.pid = entry.pid.load(std::memory_order_relaxed);
  // Its acquire also shows the sign of life before the phase.
  executor.phase = static_cast<Phase>(entry.phase.load(std::memory_order_acquire));
  executor.registered_ns = Read(entry.registered_ns);
  executor.heartbeat_ns = Read(entry.heartbeat_ns);
  const uint64_t progress = Read(entry.progress_word);
  executor.activity = static_cast<uint32_t>(progress >> 56);
  executor.epoch = static_cast<uint32_t>(progress >> 32) & 0xFFFFFF;
  executor.batch = static_cast<uint32_t>(progress);
  executor.progress_ns = Read(entry.progress_ns);
  for (uint32_t i = 0; i < kNumCounters; ++i) executor.counters[i] = Read(entry.counters[i]);
  for (uint32_t i = 0; i < kNumStages; ++i) executor.stages[i] = ReadStage(entry.stages[i]);
  for (uint32_t i = 0; i < kNumWaitSides; ++i) executor.waits[i] = ReadWait(entry.waits[i]);
  return executor;
}

void CountStates(const Segment& segment, SegmentSnapshot* snapshot) {
  const JobShape& shape = segment.shape();
  const uint64_t groups = shape.GroupsPerEpoch();
  const uint64_t epoch =
      std::min<uint64_t>(snapshot->version / groups, snapshot->epochs_to_train - 1);
  const uint64_t first = epoch * shape.batches_per_epoch;
  for (uint64_t index = 0; index < shape.batches_per_epoch; ++index) {
    BatchState state = BatchState::kCommitted;
    if (first + index >= snapshot->committed_batches) {
      const uint64_t word = segment.ledger(index).load(std::memory_order_acquire);
      state = LedgerWord::OfBatch(word, epoch, shape.born_ready).state;
    }
    ++snapshot->states[static_cast<uint32_t>(state)];
  }
  snapshot->queue_depth = snapshot->states[static_cast<uint32_t>(BatchState::kReady)];
  snapshot->epoch = segment.EpochNumber(epoch);
}

// Progress of the open run; a chunk counts once it is done.
void ReadEvaluation(const Segment& segment, SegmentSnapshot* snapshot) {
  snapshot->evaluation = segment.OpenRun();
  if (!snapshot->evaluation) return;
  const EvalRun& run = *snapshot->evaluation;
  snapshot->evaluation_total =
      Read(segment.header().eval_rows[static_cast<uint32_t>(run.nodes)].value);
  for (uint32_t chunk = 0; chunk < segment.config().eval_chunks; ++chunk) {
    const std::atomic<uint64_t>& shared = segment.eval_word(chunk);
    const uint64_t seen = shared.load(std::memory_order_acquire);
    const LedgerWord word = LedgerWord::Unpack(seen);
    if (word.epoch != run.number || word.state != BatchState::kTrained) continue;
    // Acquire: pairs with Finish. Where a later run has taken the chunk, the rows may be its.
    const uint64_t rows =
        std::atomic_ref(segment.chunk_result(chunk).rows).load(std::memory_order_acquire);
    if (shared.load(std::memory_order_relaxed) == seen) snapshot->evaluation_done += rows;
  }
}

void CopySums(const EpochSums& sums, std::span<const uint64_t> devices, EpochReport* report) {
  report->batches = sums.batches;
  report->steps = sums.steps;
  report->retries = sums.retries;
  report->sums = sums.task;
  report->ledger_digest = sums.digest;
  report->extract_ns = sums.extract_ns;
  report->train_ns = sums.train_ns;
  report->device_batches.assign(devices.begin(), devices.end());
}

}  // namespace

SegmentSnapshot Segment::Snapshot() const {
  SegmentSnapshot snapshot;
  const SegmentHeader& header = *header_;
  snapshot.version = Version();
  snapshot.committed_batches = shape_.CommittedBatches(snapshot.version);
  snapshot.epochs_to_train = static_cast<uint32_t>(EpochsToTrain());
  snapshot.total_batches = snapshot.epochs_to_train * shape_.batches_per_epoch;
  snapshot.epochs_committed = static_cast<uint32_t>(snapshot.version / shape_.GroupsPerEpoch());
  snapshot.complete = Complete();
  CountStates(*this, &snapshot);
  ReadEvaluation(*this, &snapshot);
  snapshot.queue_bytes = QueueBytes(*this);
  snapshot.queue_max_bytes = config().queue_max_bytes;
  snapshot.num_slots = config().num_slots;
  snapshot.largest_record_bytes = Read(queue().largest_record.value);
  snapshot.reclaimed = Read(header.reclaims.value);
  snapshot.standby_armed = header.standby_armed.load(std::memory_order_relaxed) != 0;
  snapshot.standby_policy =
      static_cast<StandbyPolicy>(header.standby_policy.load(std::memory_order_relaxed));
  snapshot.estimates = StandbyEstimates{Read(header.t_s_ns), Read(header.t_t_ns),
                                        Read(header.t_t_prime_ns), Read(header.n_t)};
  const uint32_t code = header.abort_code.load(std::memory_order_acquire);
  if (code >= 2) {
    snapshot.aborted = true;
    snapshot.abort_code = static_cast<Code>(code - 2);
    snapshot.abort_message = header.abort_message;
  }
  for (uint32_t i = 0; i < config().num_devices; ++i) {
    snapshot.turns.push_back(device(i).turn.load(std::memory_order_acquire));
  }
  const uint32_t rows = header.next_row.load(std::memory_order_acquire);
  for (uint32_t row = 0; row < rows; ++row) {
    snapshot.executors.push_back(ReadExecutor(row, executor(row)));
  }
  return snapshot;
}

EpochReport Segment::ReportEpoch(uint32_t epoch_index) const {
  const EpochEntry& entry = epoch(epoch_index);
  const uint64_t groups = shape_.GroupsPerEpoch();
  EpochReport report;
  report.epoch = EpochNumber(epoch_index);
  report.start_ns = Read(epoch_start(epoch_index));
  report.device_batches.resize(config().num_devices);
  const uint64_t begun = Version() / groups;
  report.scale = begun >= epoch_index ? ScaleOf(epoch_index) : 0;
  report.final_version = (uint64_t{epoch_index} + 1) * groups;
  report.committed = Version() >= report.final_version;
  if (report.committed) {
    report.end_ns = entry.end_ns;
    if (config().locality.adapts != 0) report.next_scale = entry.next_scale;
    CopySums(entry.sums, epoch_devices(epoch_index), &report);
  } else {
    // In progress: this version's sums, unless the next two steps come in between.
    uint64_t version = 0;
    do {
      version = Version();
      if (version / groups != epoch_index || version % groups == 0) break;
      CopySums(sums(version), sum_devices(version), &report);
      std::atomic_thread_fence(std::memory_order_acquire);
    } while (Version() != version);
  }
  if (report.committed) {
    std::copy(std::begin(entry.parameters_sha256), std::end(entry.parameters_sha256),
              report.parameters_sha256.begin());
  }
  const bool evaluated = EvaluationCommitted(epoch_index);
  report.complete = report.committed && evaluated;
  if (evaluated && EvaluationDue(epoch_index)) {
    report.evaluation = EvaluationReport{entry.val, entry.eval_end_ns, entry.eval_retries,
                                         EpochNumber(entry.best_epoch)};
  }
  // Values that no run has written are zero.
  if (Complete() && entry.test.sums.items > 0) report.test = entry.test;
  return report;
}

uint64_t FoldLedgerDigest(uint64_t digest, uint32_t epoch, uint64_t index) {
  // splitmix64's finalizer, chained: a swap, an omission or a repetition changes the end.
  uint64_t x = digest + 0x9E3779B97F4A7C15ULL + (static_cast<uint64_t>(epoch) << 32 ^ index);
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ x >> 27) * 0x94D049BB133111EBULL;
  return x ^ x >> 31;
}

uint64_t ExpectedLedgerDigest(uint32_t epoch, uint64_t batches) {
  uint64_t digest = 0;
  for (uint64_t index = 0; index < batches; ++index) {
    digest = FoldLedgerDigest(digest, epoch, index);
  }
  return digest;
}

}  // namespace gnnd
