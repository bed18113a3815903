#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/executor/sampler_loop.h"
#include "core/executor/trainer_loop.h"
#include "fake_works.h"

// Whole jobs in one process: what must come out, and crews of threads that make it.

namespace gnnd::test {

struct FakeJob {
  uint64_t batches = 7;
  uint32_t epochs = 3;
  uint32_t group = 1;
  uint32_t staleness = 0;
  StalenessCompensation compensation = StalenessCompensation::kNone;
  uint64_t num_slots = 0;  // 0 = the default
  uint64_t queue_max_bytes = uint64_t{1} << 40;
  uint32_t low_water = 1;
  uint32_t every_epochs = 1;
  bool evaluates = true;
  EarlyStop early_stop;
  uint32_t devices = 6;
  bool born_ready = false;  // batches are rows: nobody samples
  LocalityConfig locality;
  HistoryConfig history;
  bool ranks = false;  // and the ROC AUC decides

  SegmentSpec Spec() const {
    SegmentSpec spec;
    spec.batches_per_epoch = batches;
    spec.epochs = epochs;
    spec.group = group;
    spec.staleness = staleness;
    spec.compensation = compensation;
    spec.num_slots =
        num_slots != 0 ? num_slots : DefaultSlotCount(group, staleness, devices, batches, 0, 0);
    spec.slot_bytes = kFakeSlotBytes;
    spec.queue_max_bytes = queue_max_bytes;
    spec.parameter_floats = kFakeFloats;
    spec.optimizer_floats = kFakeFloats;
    spec.num_devices = devices;
    spec.max_executors = std::max(64U, 3 * devices);
    spec.batch_size = 3;
    spec.train_nodes = 3 * batches - 1;  // the last batch is short
    spec.evaluate_every = every_epochs;
    spec.eval_chunks = evaluates ? (FakeScratch::kPhases + 1) * FakeScratch::kChunks : 0;
    spec.chunk_counts = FakeTrainWork::kCounts;
    spec.kept_bytes = ranks ? FakeTrainWork::kKeptBytes : 0;
    spec.early_stop = early_stop;
    spec.low_water = low_water;
    spec.born_ready = born_ready;
    spec.locality = locality;
    spec.history = history;
    return spec;
  }
};

// Random numbers of a randomised test; its seed is printed on failure and taken from GNND_SEED.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}
  uint64_t operator()(uint64_t bound) { return Mix(state_ += 0x9E3779B97F4A7C15ULL) % bound; }

 private:
  uint64_t state_;
};

inline FakeJob RandomJob(Draws& draw) {
  FakeJob job;
  job.batches = 1 + draw(14);
  job.epochs = static_cast<uint32_t>(1 + draw(3));
  job.group = static_cast<uint32_t>(1 + draw(4));
  job.staleness = static_cast<uint32_t>(draw(4));
  if (draw(2) == 0) job.compensation = StalenessCompensation::kPredict;
  job.num_slots = job.group + draw(8);
  job.queue_max_bytes = draw(2) == 0 ? uint64_t{1} << 40 : 1 + draw(3000);
  job.low_water = static_cast<uint32_t>(draw(4));
  job.every_epochs = static_cast<uint32_t>(draw(4));
  job.ranks = draw(2) == 0;
  if (draw(2) == 0) {
    job.epochs = static_cast<uint32_t>(2 + draw(6));
    job.every_epochs = static_cast<uint32_t>(1 + draw(2));
    job.early_stop = {static_cast<uint32_t>(1 + draw(2)), draw(2) == 0 ? 0 : 0.15};
  }
  return job;
}

struct Outcome {
  std::vector<float> last;
  std::vector<float> best;
  uint32_t best_epoch = 0;
  std::vector<double> loss_sums;      // by epoch
  std::vector<uint64_t> digests;      // of the parameters, by epoch
  std::vector<double> val_loss_sums;  // by evaluation
  std::vector<double> roc_aucs;       // likewise
  uint64_t test_correct_last = 0;
  uint64_t test_correct_best = 0;
  bool operator==(const Outcome&) const = default;
};

// What the job must end with, computed in a straight line: no segment, no queue, no crew.
inline Outcome Expected(const FakeJob& job) {
  const SegmentSpec spec = job.Spec();
  const uint64_t groups = (job.batches + job.group - 1) / job.group;
  std::vector<std::vector<float>> versions(1, std::vector<float>(kFakeFloats));
  std::vector<std::vector<float>> optimizer(1, std::vector<float>(kFakeFloats));  // by version
  FakeTrainWork work;
  work.InitParameters(versions[0]);
  Outcome outcome;
  const double whole = job.ranks ? 1 : 10;
  double best_quality = 0;
  double reference = 0;
  uint32_t waited = 0;
  for (uint32_t e = 0; e < job.epochs; ++e) {
    double loss_sum = 0;
    for (uint64_t g = 0; g < groups; ++g) {
      const uint64_t delay = std::min<uint64_t>(g, job.staleness);
      const uint64_t version = e * groups + g - delay;
      std::vector<float> on = versions[version];
      if (job.compensation == StalenessCompensation::kPredict && version > 0 && delay > 0) {
        work.PredictParameters(version, delay, versions[version], optimizer[version], on);
      }
      std::vector<std::vector<float>> gradients;
      uint64_t seeds = 0;
      for (uint64_t b = g * job.group; b < std::min((g + 1) * job.group, job.batches); ++b) {
        const uint64_t size = std::min(spec.batch_size, spec.train_nodes - b * spec.batch_size);
        BatchReport report;
        gradients.emplace_back(kFakeFloats);
        FakeTrainWork::Gradient(FakeNodes(e, static_cast<uint32_t>(b), size), size, on,
                                gradients.back(), &report);
        seeds += size;
        loss_sum += report.sums.loss;
      }
      std::vector<GradientView> views;
      for (const std::vector<float>& gradient : gradients) views.push_back({0, false, gradient});
      std::vector<float> next(kFakeFloats);
      std::vector<float> next_optimizer(kFakeFloats);
      work.Apply({versions.size() - 1, seeds, views, versions.back(), optimizer.back(), next,
                  next_optimizer});
      optimizer.push_back(next_optimizer);
      versions.push_back(next);
    }
    outcome.loss_sums.push_back(loss_sum);
    const uint64_t digest = FakeTrainWork::Digest(versions.back());
    outcome.digests.push_back(digest);
    const bool due = job.every_epochs > 0 && (e + 1) % job.every_epochs == 0;
    if (!due && e + 1 < job.epochs) continue;
    const bool is_first = outcome.val_loss_sums.empty();
    outcome.val_loss_sums.push_back(FakeTrainWork::LossOf(digest));
    if (job.ranks) outcome.roc_aucs.push_back(FakeTrainWork::RocAucOf(digest));
    const auto correct =
        static_cast<double>(FakeTrainWork::CorrectOf(digest, EvalNodes::kValidation));
    const double quality = job.ranks ? outcome.roc_aucs.back() : correct;
    if (is_first || quality > best_quality) {
      best_quality = quality;
      outcome.best = versions.back();
      outcome.best_epoch = e;
    }
    const bool improves = is_first || quality - reference > whole * job.early_stop.min_delta;
    if (improves) reference = quality;
    waited = improves ? 0 : waited + 1;
    if (job.early_stop.patience > 0 && waited == job.early_stop.patience) break;
  }
  outcome.last = versions.back();
  const auto test_correct = [](const std::vector<float>& parameters) {
    return FakeTrainWork::CorrectOf(FakeTrainWork::Digest(parameters), EvalNodes::kTest);
  };
  outcome.test_correct_last = test_correct(outcome.last);
  outcome.test_correct_best = test_correct(outcome.best);
  return outcome;
}

// Like `job`, with a number of batches that makes it stop before its last epoch.
inline FakeJob StoppingEarly(FakeJob job, EarlyStop rule) {
  job.early_stop = rule;
  while (Expected(job).loss_sums.size() == job.epochs) ++job.batches;
  return job;
}

inline Outcome OutcomeOf(const Segment& segment) {
  Outcome outcome;
  outcome.last.resize(kFakeFloats);
  outcome.best.resize(kFakeFloats);
  const Result<uint64_t> version = segment.CopyLastParameters(outcome.last);
  GNND_CHECK(version.ok());
  const Result<uint32_t> best = segment.CopyBestParameters(outcome.best);
  GNND_CHECK(best.ok());
  outcome.best_epoch = *best;
  for (uint32_t e = 0; e < segment.EpochsToTrain(); ++e) {
    const EpochReport report = segment.ReportEpoch(e);
    outcome.loss_sums.push_back(report.sums.loss);
    outcome.digests.emplace_back();
    std::memcpy(&outcome.digests.back(), report.parameters_sha256.data(), sizeof(uint64_t));
    if (!report.evaluation) continue;
    outcome.val_loss_sums.push_back(report.evaluation->record.sums.loss);
    if (segment.config().kept_bytes == 0) continue;
    outcome.roc_aucs.push_back(report.evaluation->record.judgement.metrics[0]);
  }
  const auto test_correct = [&segment](uint64_t epoch) {
    const std::optional<EvalRecord> test = segment.ReportEpoch(static_cast<uint32_t>(epoch)).test;
    return test && test->sums.items == 10 ? test->sums.counts[kCorrect] : ~uint64_t{0};
  };
  outcome.test_correct_last = test_correct(segment.EpochsToTrain() - 1);
  outcome.test_correct_best = test_correct(*best);
  return outcome;
}

// Whether the epoch records show every batch of every epoch that was to be trained committed
// exactly once, and none of any other.
inline bool EveryBatchOnce(const Segment& segment) {
  const SegmentConfig& config = segment.config();
  for (uint32_t e = 0; e < config.epochs; ++e) {
    const EpochReport report = segment.ReportEpoch(e);
    if (e >= segment.EpochsToTrain()) {
      if (report.committed || report.batches != 0) return false;
      continue;
    }
    uint64_t on_devices = 0;
    for (const uint64_t batches : report.device_batches) on_devices += batches;
    if (!report.committed || report.batches != config.batches_per_epoch ||
        on_devices != report.batches || report.sums.items != config.train_nodes ||
        report.ledger_digest != ExpectedLedgerDigest(report.epoch, report.batches)) {
      return false;
    }
  }
  return true;
}

inline Segment MakeSegment(const FakeJob& job) {
  Result<UniqueFd> fd = Segment::Create(job.Spec());
  GNND_CHECK(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  GNND_CHECK(segment.ok());
  return std::move(*segment);
}

inline uint64_t CountIn(const Segment& segment, BatchState state) {
  return segment.Snapshot().states[static_cast<uint32_t>(state)];
}

// Waits until `condition` holds; false if it does not within `patience`. For states that announce
// themselves to nobody.
inline bool Eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

// While it lives, nobody looks again without being woken: a job that ends shows that no wake-up is
// missing, and that what a killed process failed to announce comes with the reclaim.
class NoDeadlines {
 public:
  NoDeadlines() { failpoint::SetWaitCapNs(uint64_t{3600} * kNsPerSecond); }
  ~NoDeadlines() { failpoint::SetWaitCapNs(0); }
};

// While it lives, whoever passes a named point may lose the processor there, for a while.
class ShakenSchedule {
 public:
  ShakenSchedule() { failpoint::AtEvery(&Shake); }
  ~ShakenSchedule() { failpoint::AtEvery(nullptr); }

 private:
  static void Shake() {
    static std::atomic<uint64_t> state{1};
    const uint64_t draw = Mix(state.fetch_add(0x9E3779B97F4A7C15ULL));
    if (draw % 4 == 0) std::this_thread::yield();
    if (draw % 16 == 1) std::this_thread::sleep_for(std::chrono::microseconds(draw / 16 % 100));
  }
};

// Executors as threads of this process, each with a mapping of its own.
class ThreadCrew {
 public:
  explicit ThreadCrew(Segment& segment) : segment_(segment) {
    ids_.reserve(segment.config().max_executors);  // read while others start
  }
  ~ThreadCrew() {
    segment_.Abort(Code::kAborted, "the test is over");
    Join();
  }

  void AddSampler(uint32_t device, std::function<void(uint32_t, uint32_t)> before = {}) {
    Start(Role::kSampler, device,
          [=, this, depth = depth, sees = sees](Segment& mine, ExecutorId id) {
            FakeSampleWork work(mine, &watch_, device);
            work.work_depth = depth;
            work.before = before;
            work.sees = sees;
            return RunSamplerLoop(mine, id, work);
          });
  }

  uint32_t depth = 1;                           // of Samplers that are added from now on
  std::function<void(const SampleTask&)> sees;  // likewise: each batch that one starts
  bool prefetch = false;                        // of Trainers, likewise

  void AddTrainer(Role role, uint32_t device, std::function<void(FakeTrainWork&)> prepare = {}) {
    Start(role, device, [=, this, ahead = prefetch](Segment& mine, ExecutorId id) {
      FakeTrainWork work(&scratch_, &watch_, device);
      if (prepare) prepare(work);
      Result<LoopEnd> end = RunTrainerLoop(mine, id, work, ahead);
      torn_.fetch_add(work.torn);
      predictions_.fetch_add(work.predictions);
      return end;
    });
  }

  // With work of the test's own, which outlives the crew's loops.
  void AddTrainerOf(Role role, uint32_t device, TrainWork& work) {
    Start(role, device, [&work, ahead = prefetch](Segment& mine, ExecutorId id) {
      return RunTrainerLoop(mine, id, work, ahead);
    });
  }
  FakeScratch& scratch() { return scratch_; }

  // Waits until all loops have ended. False, and the job is aborted, if a loop failed or if there
  // was no progress for `patience`, which is a deadlock.
  bool Finish(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    uint64_t seen = Progress();
    while (running_ > 0) {
      if (ended_.wait_for(lock, patience) == std::cv_status::timeout) {
        const uint64_t now = Progress();
        if (now == seen) {
          segment_.Abort(Code::kInternal, "no progress");
          lock.unlock();
          Join();
          return false;
        }
        seen = now;
      }
    }
    lock.unlock();
    Join();
    return segment_.AbortStatus().ok();
  }

  bool AllEnded(LoopEnd end) const {
    return std::all_of(ends_.begin(), ends_.end(), [end](const auto& it) {
      return it->has_value() && (*it)->ok() && ***it == end;
    });
  }
  // The first error a loop ended with, other than being aborted.
  Status FirstError() const {
    for (const auto& end : ends_) {
      if (end->has_value() && !(*end)->ok() && (*end)->status().code() != Code::kAborted) {
        return (*end)->status();
      }
    }
    return Status::Ok();
  }
  int collisions() const { return watch_.collisions.load(); }
  int torn() const { return torn_.load(); }
  int predictions() const { return predictions_.load(); }
  ExecutorId id(size_t index) const { return ids_[index]; }
  // Wall time of a loop that has ended.
  uint64_t loop_ns(size_t index) const { return *loop_ns_[index]; }

 private:
  uint64_t Progress() const {
    const SegmentSnapshot now = segment_.Snapshot();
    uint64_t sum = now.version;
    for (const ExecutorSnapshot& executor : now.executors) {
      sum += executor.counters[static_cast<uint32_t>(Counter::kBatchesSampled)] +
             executor.counters[static_cast<uint32_t>(Counter::kBatchesTrained)] +
             executor.counters[static_cast<uint32_t>(Counter::kEvalChunks)];
    }
    return sum;
  }

  void Start(Role role, uint32_t device,
             std::function<Result<LoopEnd>(Segment&, ExecutorId)> loop) {
    const Result<ExecutorId> id = segment_.RegisterExecutor(role, device);
    GNND_CHECK(id.ok());
    ids_.push_back(*id);
    ends_.push_back(std::make_unique<std::optional<Result<LoopEnd>>>());
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    auto* end = ends_.back().get();
    loop_ns_.push_back(std::make_unique<uint64_t>(0));
    auto* loop_ns = loop_ns_.back().get();
    const auto access = role == Role::kSampler ? Access::kModelReadOnly : Access::kSlotsReadOnly;
    threads_.emplace_back([this, id = *id, access, end, loop_ns, loop = std::move(loop)] {
#ifdef __SANITIZE_THREAD__
      // ThreadSanitizer knows memory by its address: one mapping for all, or it sees no race.
      static_cast<void>(access);
      const uint64_t start_ns = MonotonicNs();
      Result<LoopEnd> result = loop(segment_, id);
#else
      Result<Segment> mine = Segment::Attach(segment_.fd(), access);
      GNND_CHECK(mine.ok());
      const uint64_t start_ns = MonotonicNs();
      Result<LoopEnd> result = loop(*mine, id);
#endif
      *loop_ns = MonotonicNs() - start_ns;
      if (!result.ok()) segment_.Abort(result.status().code(), result.status().message());
      const std::lock_guard lock(mutex_);
      end->emplace(std::move(result));
      --running_;
      ended_.notify_all();
    });
  }

  void Join() {
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  Segment& segment_;
  FakeScratch scratch_;
  DeviceWatch watch_;
  std::atomic<int> torn_{0};
  std::atomic<int> predictions_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;
  std::vector<ExecutorId> ids_;
  std::vector<std::unique_ptr<std::optional<Result<LoopEnd>>>> ends_;
  std::vector<std::unique_ptr<uint64_t>> loop_ns_;
  std::vector<std::thread> threads_;
};

}  // namespace gnnd::test
