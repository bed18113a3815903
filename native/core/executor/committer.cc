#include "core/executor/committer.h"

#include <algorithm>
#include <string>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/base/finite.h"
#include "core/batch/epoch_name.h"
#include "core/ledger/early_stop.h"

namespace gnnd {
namespace {

constexpr uint64_t kLockSliceNs = kNsPerSecond;

Quality QualityOf(const EpochEntry& epoch) { return epoch.val.judgement.quality; }

}  // namespace

Committer::Committer(Executor& self, TrainWork& work)
    : self_(self), segment_(self.segment()), work_(work) {
  gradients_.reserve(segment_.shape().group);
  const SegmentConfig& config = segment_.config();
  const bool predicts = config.compensation == StalenessCompensation::kPredict;
  if (predicts && config.staleness > 0) predicted_ = HugeArray<float>(config.parameter_floats);
}

bool Committer::Lock(uint64_t timeout_ns) {
  const LockResult result = segment_.header().mutex.Lock(timeout_ns);
  if (result == LockResult::kOwnerDied) self_.log().Add(Counter::kLockOwnersDied, 1);
  return result != LockResult::kTimedOut;
}

void Committer::Unlock() { segment_.header().mutex.Unlock(); }

Status Committer::EnsureParameters() {
  std::atomic<uint32_t>& ready = segment_.header().parameters_ready;
  // Acquire: pairs with the release below, so that the parameters are visible.
  while (ready.load(std::memory_order_acquire) == 0) {
    GNND_TRY(segment_.AbortStatus());
    self_.log().Heartbeat();
    if (!Lock(kLockSliceNs)) continue;
    if (ready.load(std::memory_order_acquire) == 0) {
      work_.InitParameters(segment_.parameters(0));
      GNND_FAILPOINT("init.before_ready");
      ready.store(1, std::memory_order_release);
    }
    Unlock();
  }
  return Status::Ok();
}

ParametersView Committer::ParametersFor(uint64_t batch) {
  const JobShape& shape = segment_.shape();
  const uint64_t group = shape.GroupOfBatch(batch);
  const uint64_t version = shape.RequiredVersion(group);
  const uint64_t lag = group - version;
  const std::span<const float> parameters = segment_.parameters(version);
  // Version 0 has no moments to predict from.
  if (predicted_.size() == 0 || lag == 0 || version == 0) return {version, 0, parameters};
  const std::span<float> predicted(predicted_.data(), predicted_.size());
  if (predicted_group_ != group) {
    work_.PredictParameters(version, lag, parameters, segment_.optimizer(version), predicted);
    predicted_group_ = group;
  }
  return {version, lag, predicted};
}

Result<bool> Committer::TryApply(uint64_t timeout_ns) {
  if (!self_.batches().HeadGroupTrained(segment_.Version())) return false;
  if (!Lock(timeout_ns)) return false;
  GNND_FAILPOINT("apply.locked");
  // Again, under the lock: a former owner may have committed it before it died or unlocked.
  const uint64_t version = segment_.Version();
  if (!self_.batches().HeadGroupTrained(version)) {
    Unlock();
    return false;
  }
  self_.EndWait();  // the rest is work, and counted once
  self_.Progress(Stage::kApply, segment_.shape().FirstBatch(version));
  const uint64_t start_ns = MonotonicNs();
  const Status applied = ApplyHeadGroup(version);
  if (!applied.ok()) {
    Unlock();
    return applied;
  }
  GNND_FAILPOINT("apply.after_write_before_cas");
  uint64_t expected = version;
  // The commit. Release: parameters, optimizer state and sums; pairs with Segment::Version.
  const bool committed =
      segment_.trace().Exchange(LedgerTrace::Word::kVersion, 0, self_.id().incarnation,
                                segment_.header().version.value, expected, version + 1);
  GNND_FAILPOINT("apply.after_cas");
  Unlock();
  if (!committed) return Status(Code::kInternal, "a step was committed without the lock");
  self_.log().AddStage(Stage::kApply, MonotonicNs() - start_ns);
  self_.log().Add(Counter::kStepsApplied, 1);
  GNND_FAILPOINT("apply.before_wake");
  self_.batches().AnnounceStep(version + 1);
  return true;
}

Status Committer::ApplyHeadGroup(uint64_t version) {
  const JobShape& shape = segment_.shape();
  const uint64_t end = shape.FirstBatch(version + 1);
  gradients_.clear();
  for (uint64_t b = shape.FirstBatch(version); b < end; ++b) {
    const uint64_t entry = shape.RingEntry(b);
    const bool is_own = segment_.hand_in(entry).incarnation == self_.id().incarnation;
    gradients_.push_back({b, is_own, segment_.gradient(entry)});
  }
  uint64_t step_items = 0;
  EpochSums& sums = segment_.sums(version + 1);
  GNND_TRY(FoldSums(version, &sums, &step_items));
  work_.Apply({version, step_items, gradients_, segment_.parameters(version),
               segment_.optimizer(version), segment_.parameters(version + 1),
               segment_.optimizer(version + 1)});
  if (!AllFinite(segment_.parameters(version + 1))) {
    return Status(Code::kNumericDivergence,
                  "a parameter is not finite after step " + std::to_string(version + 1) + ", in " +
                      EpochName(segment_.EpochNumber(shape.EpochOfGroup(version))));
  }
  if (end % shape.batches_per_epoch == 0) {
    EpochEntry& epoch = segment_.epoch(shape.EpochOfGroup(version));
    epoch.sums = sums;
    const std::span<const uint64_t> devices = segment_.sum_devices(version + 1);
    std::copy(devices.begin(), devices.end(),
              segment_.epoch_devices(shape.EpochOfGroup(version)).begin());
    const Sha256Digest digest = work_.DigestOf(segment_.parameters(version + 1));
    std::copy(digest.begin(), digest.end(), epoch.parameters_sha256);
    WriteScale(shape.EpochOfGroup(version));
    epoch.end_ns = MonotonicNs();
  }
  return Status::Ok();
}

void Committer::WriteScale(uint64_t epoch) {
  const LocalityConfig& locality = segment_.config().locality;
  EpochEntry& entry = segment_.epoch(epoch);
  // Recorded by an earlier attempt, or by a committer that died before its commit.
  if (locality.adapts == 0 || entry.next_scale.scale != 0) return;
  const LocalityScale now = epoch == 0 ? LocalityScale{} : segment_.epoch(epoch - 1).next_scale;
  entry.next_scale = NextScale(now, entry.sums.extract_ns, entry.sums.train_ns, locality.scale);
}

Status Committer::FoldSums(uint64_t version, EpochSums* sums, uint64_t* step_items) {
  const JobShape& shape = segment_.shape();
  const uint64_t end = shape.FirstBatch(version + 1);
  const uint64_t epoch = shape.EpochOfGroup(version);
  const bool first_of_epoch = version % shape.GroupsPerEpoch() == 0;
  *sums = first_of_epoch ? EpochSums{} : segment_.sums(version);
  const std::span<const uint64_t> before = segment_.sum_devices(version);
  const std::span<uint64_t> devices = segment_.sum_devices(version + 1);
  if (first_of_epoch) {
    std::fill(devices.begin(), devices.end(), 0);
  } else {
    std::copy(before.begin(), before.end(), devices.begin());
  }
  ++sums->steps;
  for (uint64_t b = shape.FirstBatch(version); b < end; ++b) {
    const HandIn& hand_in = segment_.hand_in(shape.RingEntry(b));
    if (hand_in.batch != b || hand_in.device >= devices.size()) {
      return Status(Code::kShmCorrupted, "the ring holds batch " + std::to_string(hand_in.batch) +
                                             " where " + std::to_string(b) + " must be");
    }
    const uint64_t word = segment_.ledger(shape.IndexOfBatch(b)).load(std::memory_order_relaxed);
    ++sums->batches;
    sums->retries += LedgerWord::InEpoch(word, epoch).attempt;
    sums->task.Add(hand_in.sums);
    sums->extract_ns += hand_in.extract_ns;
    sums->train_ns += hand_in.train_ns;
    sums->digest = FoldLedgerDigest(sums->digest, segment_.EpochNumber(epoch),
                                    shape.IndexOfBatch(hand_in.batch));
    ++devices[hand_in.device];
    *step_items += hand_in.sums.items;
  }
  return Status::Ok();
}

Result<bool> Committer::CommitEvaluation(const EvalRun& run, const EvalShape& shape) {
  if (!Lock(kLockSliceNs)) return false;
  if (segment_.OpenRun() != run) {
    Unlock();  // a former owner of the lock has committed it
    return true;
  }
  WriteRun(run, shape);
  GNND_FAILPOINT("evaluate.before_end");
  work_.EndEvaluation(run);
  GNND_FAILPOINT("evaluate.before_commit");
  // Release: report and best parameters; pairs with Segment::EvaluationCommitted.
  segment_.trace().Store(LedgerTrace::Word::kEvaluation, self_.id().incarnation,
                         segment_.header().evaluation.value,
                         LedgerWord{BatchState::kCommitted, 0, run.number, 0}.Pack(),
                         uint64_t{shape.phases} * shape.chunks);
  GNND_FAILPOINT("evaluate.after_commit");
  Unlock();
  segment_.WakeAll();
  return true;
}

void Committer::WriteRun(const EvalRun& run, const EvalShape& shape) {
  EpochEntry& entry = segment_.epoch(run.epoch);
  const EvalResult whole = SumOfResults(segment_, shape);
  const EvalRecord record{whole.sums, work_.Judge(whole, segment_.kept())};
  if (run.nodes == EvalNodes::kTest) {
    entry.test = record;
    return;
  }
  entry.val = record;
  entry.eval_end_ns = MonotonicNs();
  entry.eval_retries = EvalRetries(segment_, run, shape);
  const std::optional<uint64_t> before = segment_.EvaluatedBefore(run.epoch);
  WriteStop(run.epoch, before);
  WriteBest(run.epoch, before);
}

void Committer::WriteBest(uint64_t epoch, std::optional<uint64_t> before) {
  EpochEntry& entry = segment_.epoch(epoch);
  entry.best_epoch = static_cast<uint32_t>(epoch);
  entry.best_buffer = 0;
  if (before) {
    const EpochEntry& last = segment_.epoch(*before);
    // Without a node to compare by, the latest parameters count as the best.
    const bool compares = entry.val.sums.items > 0;
    if (compares && !Exceeds(QualityOf(entry), QualityOf(segment_.epoch(last.best_epoch)))) {
      entry.best_epoch = last.best_epoch;
      entry.best_buffer = last.best_buffer;
      return;
    }
    entry.best_buffer = 1 - last.best_buffer;
  }
  const uint64_t version = (epoch + 1) * segment_.shape().GroupsPerEpoch();
  const std::span<const float> parameters = segment_.parameters(version);
  std::copy(parameters.begin(), parameters.end(), segment_.best(entry.best_buffer).begin());
}

void Committer::WriteStop(uint64_t epoch, std::optional<uint64_t> before) {
  const EarlyStop& rule = segment_.config().early_stop;
  EpochEntry& entry = segment_.epoch(epoch);
  uint64_t reference = epoch;
  if (before) {
    const uint64_t last = segment_.epoch(*before).stop_reference;
    reference = NextReference(rule, epoch, QualityOf(entry), last, QualityOf(segment_.epoch(last)));
  }
  // With every_epochs 0 only the evaluation at the end exists.
  const uint64_t every = std::max<uint64_t>(1, segment_.config().evaluate_every);
  entry.stop_reference = static_cast<uint32_t>(reference);
  entry.stops = StopsAfter(rule, (epoch - reference + every - 1) / every) ? 1 : 0;
  if (entry.stops != 0) {
    segment_.trace().Note(LedgerTrace::Kind::kStops, self_.id().incarnation, {epoch});
  }
}

}  // namespace gnnd
