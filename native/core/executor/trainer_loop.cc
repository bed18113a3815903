#include "core/executor/trainer_loop.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/base/finite.h"
#include "core/batch/epoch_name.h"
#include "core/executor/committer.h"
#include "core/executor/executor.h"
#include "core/executor/extractor.h"
#include "core/ledger/news.h"

namespace gnnd {
namespace {

constexpr uint64_t kLockSliceNs = kNsPerSecond;
// Time to wait for the lock while there may be other work: outlasts a standby's take, but no step.
constexpr uint64_t kBriefLockNs = kNsPerMs;

class TrainerLoop {
 public:
  TrainerLoop(Segment& segment, ExecutorId id, TrainWork& work, bool prefetch)
      : self_(segment, id),
        segment_(segment),
        work_(work),
        committer_(self_, work),
        standby_(self_.log().role() == Role::kStandby),
        extractor_(segment, work, prefetch) {}

  Result<LoopEnd> Run() {
    GNND_TRY(self_.Enter());
    if (standby_) self_.turn().StandbyEnters();
    const Result<LoopEnd> end = Loop();
    // After an error the daemon gives the turn back, together with what this executor still holds.
    if (standby_ && end.ok()) self_.turn().StandbyLeaves();
    segment_.WakeTrainers();  // passes on a wake-up that one of them may need
    return self_.Leave(end);
  }

 private:
  // The result of one look at the segment.
  enum class Next { kLookAgain, kWait };

  Result<LoopEnd> Loop() {
    GNND_TRY(committer_.EnsureParameters());
    QueueHeader& queue = segment_.queue();
    EventWord& event = standby_ ? queue.standby_event.word : queue.trainer_event.word;
    while (true) {
      const uint32_t seen = event.Load();
      GNND_TRY(segment_.AbortStatus());
      static_cast<void>(GNND_VALUE(committer_.TryApply(kBriefLockNs)));
      if (segment_.Complete()) {
        // The held batch is of an epoch that will not be trained: the job has stopped early.
        GNND_TRY(PutDown());
        return LoopEnd::kComplete;
      }
      const Command command = self_.command();
      if (command == Command::kStop || (command == Command::kDrain && self_.batches().Drained())) {
        GNND_TRY(PutDown());
        return LoopEnd::kStopped;
      }
      const Next next = GNND_VALUE(held_ ? Hold(command) : Look(command));
      if (next == Next::kLookAgain) continue;
      // Nothing else to do: the lock's holder applies the group, or is dead or stopped, and then
      // this Trainer should be the one to learn of it.
      if (GNND_VALUE(committer_.TryApply(kLockSliceNs))) continue;
      if (command == Command::kPause) {
        self_.WaitPaused(event, seen, held_ ? News() : kNewsRare);
      } else {
        self_.Wait(event, seen, WaitingFor(), News());
      }
    }
  }

  // The news that it sleeps for. A standby may take, yield or refuse on any news, and has a word of
  // its own; one without its device's turn can do nothing before that changes, which is rare.
  uint32_t News() {
    if (standby_) return MayWork() ? kAllNews : kNewsRare;
    return held_ ? NewsOfGroup(segment_.shape().GroupOfBatch(*held_)) : kNewsBatch;
  }

  WaitSide WaitingFor() {
    if (held_) return WaitSide::kDue;
    return MayWork() ? WaitSide::kDequeue : WaitSide::kTurn;
  }

  // Whether this Trainer may compute on its device.
  bool MayWork() { return !standby_ || self_.turn().StandbyHolds(); }

  // ---- without a batch ----------------------------------------------------------------------

  Result<Next> Look(Command command) {
    if (command == Command::kPause || !MayWork()) return Next::kWait;
    if (standby_ && MustYield()) {
      GNND_TRY(Yield());
      return Next::kLookAgain;
    }
    if (command != Command::kDrain) {
      const std::optional<EvalRun> run = segment_.OpenRun();
      // Nothing else is due until the run is committed, so there is no other work.
      if (run) return HelpEvaluate(*run);
    }
    GNND_FAILPOINT("look.before_take");
    const auto which = command == Command::kDrain ? Batches::Which::kDueOnly : Batches::Which::kAny;
    const std::optional<uint64_t> batch =
        standby_ ? TakeAsStandby(which) : self_.batches().Take(which);
    if (!batch) return Next::kWait;
    self_.EndWait();
    self_.log().Add(Counter::kBatchesTaken, 1);
    held_ = batch;
    GNND_TRY(extractor_.Start(*batch));
    return Next::kLookAgain;
  }

  // Before each take, a standby hands its device back when its Sampler has work and the queue runs
  // low, or no READY batch is due, or the standby would not take anyway.
  bool MustYield() {
    if (self_.turn().SamplerGone()) return false;
    Batches& batches = self_.batches();
    const uint64_t low_water = segment_.config().low_water;
    const uint64_t depth = batches.Depth(std::max(DecisiveDepth(segment_), low_water + 1));
    const bool may_take = StandbyMayTake(segment_, depth);
    if (!batches.Claimable()) return false;
    return !may_take || depth <= low_water || !batches.DueBatchReady();
  }

  Status Yield() {
    GNND_FAILPOINT("turn.before_yield");
    self_.EndWait();
    if (self_.turn().StandbyYields()) self_.log().Add(Counter::kTurnSwitches, 1);
    GNND_FAILPOINT("turn.after_yield");
    return Status::Ok();
  }

  // The rule and the take under one lock, so that two standbys do not take on the same depth.
  std::optional<uint64_t> TakeAsStandby(Batches::Which which) {
    Batches& batches = self_.batches();
    if (self_.turn().SamplerGone()) return batches.Take(which);  // an ordinary Trainer by now
    if (batches.Depth(1) == 0 || !committer_.Lock(kLockSliceNs)) return std::nullopt;
    std::optional<uint64_t> batch;
    if (StandbyMayTake(segment_, batches.Depth(DecisiveDepth(segment_)))) {
      batch = batches.Take(which);
    } else {
      self_.log().Add(Counter::kStandbyRefusals, 1);
    }
    GNND_FAILPOINT("standby.take_locked");
    committer_.Unlock();
    if (batch) self_.log().Add(Counter::kStandbyTakes, 1);
    return batch;
  }

  // ---- with a batch -------------------------------------------------------------------------

  Result<Next> Hold(Command command) {
    const uint64_t batch = *held_;
    Batches& batches = self_.batches();
    const bool reads_steps = work_.keeps_history();
    if (extractor_.started() && (!reads_steps || batches.Due(batch))) {
      GNND_TRY(FinishExtraction(batch));
    }
    GNND_FAILPOINT("hold.before_due");
    if (!extractor_.started() && batches.Due(batch)) {
      self_.EndWait();
      GNND_TRY(Train(batch));
      return Next::kLookAgain;
    }
    const bool lower = batches.ReadyBelow(batch) && !GNND_BROKEN("give-back-for-lower");
    const bool evaluation =
        segment_.OpenRun().has_value() && !GNND_BROKEN("give-back-for-evaluation");
    // A drain ends even though batches before this one are never sampled.
    if (lower || evaluation || command == Command::kDrain) {
      GNND_TRY(PutDown());
      return Next::kLookAgain;
    }
    if (standby_ && !self_.turn().SamplerGone() && batches.ClaimableBelow(batch) &&
        !GNND_BROKEN("standby-gives-back-turn")) {
      GNND_TRY(PutDown());
      GNND_TRY(Yield());
      return Next::kLookAgain;
    }
    return Next::kWait;
  }

  // Gives the held batch back, once we read its slot no more.
  Status PutDown() {
    if (!held_) return Status::Ok();
    extractor_.Discard();
    GNND_TRY(self_.batches().GiveBack(*held_));
    self_.log().Add(Counter::kBatchesGivenBack, 1);
    held_.reset();
    return Status::Ok();
  }

  // Waits until the held batch is extracted. This counts as a stage, not as a wait for others: an
  // extraction that hangs shows no sign of life, so that the daemon ends it.
  Status FinishExtraction(uint64_t batch) {
    self_.EndWait();
    self_.Progress(Stage::kExtract, batch);
    const uint64_t start_ns = MonotonicNs();
    const Result<Extracted> extracted = extractor_.Finish();
    self_.log().AddWait(WaitSide::kExtract, MonotonicNs() - start_ns);
    if (!extracted.ok()) {
      if (extracted.status().code() == Code::kShmCorrupted) {
        self_.log().Add(Counter::kCorruptRecords, 1);
      }
      return extracted.status();
    }
    extracted_ = *extracted;
    const uint64_t prune_ns = extracted_.report.history.prune_ns;
    if (work_.keeps_history()) self_.log().AddStage(Stage::kPrune, prune_ns);
    extracted_ns_ = extracted_.busy_ns - prune_ns;
    self_.log().AddStage(Stage::kExtract, extracted_ns_);
    CountExtracted(extracted_.report);
    CountHistory(extracted_.report.history);
    return Status::Ok();
  }

  // Takes a batch to extract while another one is computed, unless that could leave another Trainer
  // without: at least as many are READY as there are Trainers. Takes none on a device that its
  // Sampler may want back, nor once the job is to pause or end.
  std::optional<uint64_t> TakeAhead() {
    if (!extractor_.ahead() || self_.command() != Command::kRun) return std::nullopt;
    const uint64_t trainers = segment_.header().n_t.load(std::memory_order_relaxed);
    if (standby_ && !self_.turn().SamplerGone()) {
      // On devices that are only shared, each executor trains until the queue is low; beside
      // Trainers the profit of each single batch decides.
      if (trainers > 0 || MustYield()) return std::nullopt;
    }
    const uint64_t alone = standby_ ? segment_.config().num_devices : 1;
    const uint64_t takers = trainers > 0 ? trainers : alone;
    if (self_.batches().Depth(takers) < takers) return std::nullopt;
    const std::optional<uint64_t> batch = self_.batches().Take(Batches::Which::kAny);
    if (!batch) return std::nullopt;
    GNND_FAILPOINT("ahead.after_take");
    self_.log().Add(Counter::kBatchesTaken, 1);
    self_.log().Add(Counter::kBatchesAhead, 1);
    return batch;
  }

  void CountExtracted(const ExtractReport& report) {
    ExecutorLog& log = self_.log();
    constexpr Counter kRows[] = {Counter::kDeviceRows, Counter::kPeerRows, Counter::kHostRows,
                                 Counter::kDiskRows};
    constexpr Counter kBytes[] = {Counter::kDeviceBytes, Counter::kPeerBytes, Counter::kHostBytes,
                                  Counter::kDiskBytes};
    for (uint32_t tier = 0; tier < kNumTiers; ++tier) {
      log.Add(kRows[tier], report.traffic.rows[tier]);
      log.Add(kBytes[tier], report.traffic.bytes[tier]);
    }
    log.Add(Counter::kBusRows, report.bus_rows);
    log.Add(Counter::kBusBytes, report.bus_bytes);
    log.Add(Counter::kStagedRows, report.staged_rows);
    log.Add(Counter::kStagedBytes, report.staged_bytes);
    log.Add(Counter::kRowWaitNs, report.row_wait_ns);
    log.Add(Counter::kDeviceExtractNs, report.device_ns);
    log.Raise(Counter::kCacheRows, report.cache_rows);
    log.Raise(Counter::kCacheGivenUpRows, report.cache_given_up_rows);
    log.Raise(Counter::kCacheFillNs, report.cache_fill_ns);
    log.Raise(Counter::kWorkBytes, report.work_bytes);
    log.RaiseDeviceUse(report.device);
  }

  void CountHistory(const HistoryReport& report) {
    if (!work_.keeps_history()) return;
    ExecutorLog& log = self_.log();
    log.Add(Counter::kHistoryLookUps, report.look_ups);
    log.Add(Counter::kPrunedRows, report.pruned_rows);
    for (uint32_t i = 0; i < kHistoryBuckets; ++i) {
      log.Add(Counter::kHistoryHits, report.level_hits[i]);
      log.Add(CounterAt(Counter::kHistoryLevelHits, i), report.level_hits[i]);
      log.Add(CounterAt(Counter::kHistoryAges, i), report.ages[i]);
    }
  }

  void CountUpdate(const HistoryUpdate& update) {
    if (!work_.keeps_history()) return;
    ExecutorLog& log = self_.log();
    log.Add(Counter::kHistoryAdmitted, update.admitted);
    log.Add(Counter::kHistoryEvicted, update.evicted);
    log.Add(Counter::kHistoryUpdateNs, update.ns);
    log.Add(Counter::kHistoryCompared, update.compared);
    log.Add(Counter::kHistorySimilar, update.similar);
    log.Add(Counter::kHistoryCosine, update.cosine_millionths);
    log.Add(Counter::kHistoryLag, update.lag);
    log.Raise(Counter::kHistoryRows, update.rows);
    log.Raise(Counter::kHistoryOverwritten, update.overwritten);
  }

  // A gradient that is not finite is never handed in: a step would spread it to every parameter,
  // and the blame would fall on a later batch, or on none after the last one.
  Status CheckGradient(uint64_t batch, const Status& computed) const {
    const JobShape& shape = segment_.shape();
    std::string what = "the gradient is not finite";
    if (!computed.ok()) {
      if (computed.code() != Code::kNumericDivergence) return computed;
      what = computed.message();
    } else if (AllFinite(segment_.gradient(shape.RingEntry(batch)))) {
      return Status::Ok();
    }
    const uint32_t epoch = segment_.EpochNumber(shape.EpochOfBatch(batch));
    return Status(Code::kNumericDivergence, what + " in batch " +
                                                std::to_string(shape.IndexOfBatch(batch)) + " of " +
                                                EpochName(epoch) + ", for step " +
                                                std::to_string(shape.GroupOfBatch(batch) + 1));
  }

  // Computes and hands in the held batch. Afterwards the batch taken ahead, if any, is held: two
  // are held only while one of them is computed, which waits for nobody.
  Status Train(uint64_t batch) {
    const std::optional<uint64_t> ahead = TakeAhead();
    if (ahead) GNND_TRY(extractor_.Start(*ahead));
    const Sample& sample = extracted_.sample;
    const uint64_t entry = segment_.shape().RingEntry(batch);
    self_.Progress(Stage::kTrain, batch);
    const uint64_t start_ns = MonotonicNs();
    BatchReport report;
    segment_.trace().Note(LedgerTrace::Kind::kReads, self_.id().incarnation, {batch});
    const Status computed =
        work_.ComputeGradient(sample, extracted_.buffer, committer_.ParametersFor(batch),
                              segment_.gradient(entry), &report);
    GNND_TRY(CheckGradient(batch, computed));
    GNND_FAILPOINT("train.after");
    HandIn& hand_in = segment_.hand_in(entry);
    hand_in = HandIn{};
    const JobShape& shape = segment_.shape();
    hand_in.batch = shape.EpochOfBatch(batch) * shape.batches_per_epoch + sample.key().batch;
    hand_in.sums = report.sums;
    hand_in.device = self_.log().device();
    hand_in.incarnation = self_.id().incarnation;
    hand_in.extract_ns = extracted_ns_;
    hand_in.train_ns = MonotonicNs() - start_ns;
    GNND_TRY(self_.batches().MarkTrained(batch));
    held_ = ahead;
    self_.log().AddStage(Stage::kTrain, MonotonicNs() - start_ns);
    self_.log().Add(Counter::kBatchesTrained, 1);
    self_.log().Add(Counter::kSeeds, report.sums.items);
    self_.log().Add(Counter::kDeviceNs, report.device_ns);
    CountUpdate(report.history);
    return Status::Ok();
  }

  // ---- evaluation ---------------------------------------------------------------------------

  // Takes and computes a chunk of the run, or commits it when all are done; waits while others
  // compute the rest.
  Result<Next> HelpEvaluate(const EvalRun& run) {
    const auto alive = [this] {
      self_.log().Heartbeat();
      return segment_.AbortStatus().ok() && self_.command() != Command::kStop;
    };
    const Result<EvalShape> shape = ShapeOf(run, alive);
    if (!shape.ok()) {
      if (shape.status().code() == Code::kAborted) return Next::kLookAgain;
      return shape.status();
    }
    const Evaluations::Offer offer = self_.evaluations().Take(run, *shape);
    if (offer.found == Evaluations::Found::kOthersWork) return Next::kWait;
    self_.EndWait();
    if (offer.found == Evaluations::Found::kAllDone) {
      GNND_TRY(CommitEvaluation(run, *shape));
    } else {
      GNND_TRY(EvaluateChunk(run, *shape, offer, alive));
    }
    return Next::kLookAgain;
  }

  Result<EvalShape> ShapeOf(const EvalRun& run, const Alive& alive) {
    const auto which = static_cast<uint32_t>(run.nodes);
    if (!shapes_[which]) {
      self_.EndWait();
      ShowEvaluation(run);
      const uint64_t start_ns = MonotonicNs();
      const Result<EvalShape> shape = work_.PlanEvaluation(run.nodes, alive);
      self_.log().AddStage(Stage::kEvaluate, MonotonicNs() - start_ns);
      if (!shape.ok()) return shape.status();
      shapes_[which] = segment_.config().kept_bytes > 0 ? shape->Reducing() : *shape;
    }
    if (uint64_t{shapes_[which]->phases} * shapes_[which]->chunks > segment_.config().eval_chunks) {
      return Status(Code::kInternal, "an evaluation has more chunks than the segment has words");
    }
    segment_.header().eval_rows[which].value.store(shapes_[which]->rows, std::memory_order_relaxed);
    return *shapes_[which];
  }

  void ShowEvaluation(const EvalRun& run) {
    const JobShape& shape = segment_.shape();
    self_.Progress(Stage::kEvaluate, (run.epoch + 1) * shape.batches_per_epoch - 1);
  }

  Status EvaluateChunk(const EvalRun& run, const EvalShape& shape, const Evaluations::Offer& mine,
                       const Alive& alive) {
    ShowEvaluation(run);
    const uint64_t start_ns = MonotonicNs();
    EvalResult result{};
    ChunkReport report;
    const ParametersView parameters{segment_.VersionOf(run), 0, segment_.ParametersOf(run)};
    const Status evaluated =
        shape.Reduces(mine.phase)
            ? work_.Reduce(
                  {segment_.kept(), CountedItems(segment_, shape), mine.chunk, shape.chunks}, alive)
            : work_.EvaluateChunk({run, mine.phase, mine.chunk, segment_.kept(), &report},
                                  parameters, alive, &result);
    if (!evaluated.ok()) {
      if (evaluated.code() != Code::kAborted) return evaluated;
      return self_.evaluations().GiveBack(run, shape, mine);
    }
    GNND_TRY(self_.evaluations().Finish(run, shape, mine, result));
    self_.log().AddStage(Stage::kEvaluate, MonotonicNs() - start_ns);
    if (report.was_done) return Status::Ok();
    self_.log().Add(Counter::kEvalChunks, 1);
    self_.log().Add(Counter::kEvalRows, result.rows);
    if (!report.on_device) return Status::Ok();
    self_.log().Add(Counter::kDeviceEvalChunks, 1);
    self_.log().Add(Counter::kDeviceEvalNs, report.device_ns);
    self_.log().RaiseDeviceUse(report.device);
    return Status::Ok();
  }

  Status CommitEvaluation(const EvalRun& run, const EvalShape& shape) {
    while (true) {
      if (GNND_VALUE(committer_.CommitEvaluation(run, shape))) return Status::Ok();
      GNND_TRY(segment_.AbortStatus());
      self_.log().Heartbeat();
    }
  }

  Executor self_;
  Segment& segment_;
  TrainWork& work_;
  Committer committer_;
  const bool standby_;
  std::optional<uint64_t> held_;        // taken, counted over the job
  uint64_t extracted_ns_ = 0;           // time of its extraction
  Extracted extracted_;                 // held_, once its extraction is finished
  std::optional<EvalShape> shapes_[2];  // by EvalNodes
  // Declared last, so that its thread ends first.
  Extractor extractor_;
};

}  // namespace

Result<LoopEnd> RunTrainerLoop(Segment& segment, ExecutorId executor, TrainWork& work,
                               bool prefetch) {
  return TrainerLoop(segment, executor, work, prefetch).Run();
}

}  // namespace gnnd
