#include "core/executor/sampler_loop.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/executor/executor.h"
#include "core/ledger/news.h"

namespace gnnd {
namespace {

// A slot is trimmed after a record of this many times the mean size, which is rare.
constexpr uint64_t kTrimFactor = 4;

class SamplerLoop {
 public:
  SamplerLoop(Segment& segment, ExecutorId id, SampleWork& work)
      : self_(segment, id), segment_(segment), work_(work), depth_(work.depth()) {
    in_hand_.reserve(depth_);
  }

  Result<LoopEnd> Run() {
    GNND_TRY(self_.Enter());
    self_.turn().SamplerEnters();
    const Result<LoopEnd> end = Loop();
    if (!in_hand_.empty()) work_.Abandon();
    // After an error the daemon decides whether a Sampler comes back; a good end is final.
    if (end.ok()) self_.turn().SamplerLeaves();
    segment_.WakeSamplers();  // passes on a wake-up that one of them may need
    return self_.Leave(end);
  }

 private:
  // A claimed batch whose record is being made.
  struct Started {
    uint64_t batch;  // counted over the job
    SampleTask task;
    uint64_t start_ns;
  };

  Result<LoopEnd> Loop() {
    EventWord& event = segment_.queue().sampler_event.word;
    while (true) {
      const uint32_t seen = event.Load();
      GNND_TRY(segment_.AbortStatus());
      const Command command = self_.command();
      const bool ends = segment_.TrainingDone() || command >= Command::kDrain;
      const bool holds = self_.turn().SamplerHolds() || GNND_BROKEN("turn-holder-changes");
      if (!ends && command != Command::kPause && holds && in_hand_.size() < depth_) {
        const std::optional<uint64_t> batch = self_.batches().Claim();
        if (batch) GNND_TRY(Start(*batch));
        if (batch && in_hand_.size() < depth_) continue;
      }
      // A Sampler that ends, sleeps or lends its device has no batch in hand: with one in hand, it
      // never waits for another claim.
      if (!in_hand_.empty() && (in_hand_.size() == depth_ || !GNND_BROKEN("waits-empty-handed"))) {
        GNND_TRY(Finish());
        continue;
      }
      if (ends) return segment_.TrainingDone() ? LoopEnd::kComplete : LoopEnd::kStopped;
      if (command == Command::kPause) {
        self_.WaitPaused(event, seen, kNewsRare);
      } else if (!holds) {
        self_.Wait(event, seen, WaitSide::kTurn, kNewsRare);
      } else if (!HandOverIfUseful()) {
        const uint32_t lend = self_.turn().StandbyPresent() ? kNewsLend : 0;
        self_.Wait(event, seen, WaitSide::kEnqueue, kNewsBatch | lend);
      }
    }
  }

  Status Start(uint64_t batch) {
    self_.EndWait();
#ifdef GNND_FAILPOINTS
    if (GNND_BROKEN("room-before-claim")) GNND_TRY(WaitForRoom(batch));
#endif
    const JobShape& shape = segment_.shape();
    const uint64_t slot = shape.SlotOf(batch);
    TrimIfGrown(slot);
    self_.Progress(Stage::kSample, batch);
    const SampleTask task{segment_.EpochNumber(shape.EpochOfBatch(batch)),
                          static_cast<uint32_t>(shape.IndexOfBatch(batch)), segment_.slot(slot),
                          segment_.ScaleOf(shape.EpochOfBatch(batch))};
    const uint64_t start_ns = MonotonicNs();
    GNND_TRY(work_.Start(task));
    in_hand_.push_back({batch, task, start_ns});
    GNND_FAILPOINT("start.after");
    return Status::Ok();
  }

  // Completes and publishes the oldest started batch.
  Status Finish() {
    const Started first = in_hand_.front();
    if (depth_ > 1) self_.Progress(Stage::kSample, first.batch);
    SampleReport report;
    GNND_TRY(work_.Finish(first.task, &report));
    in_hand_.erase(in_hand_.begin());
    if (report.extent_bytes > segment_.config().slot_bytes) {
      return Status(Code::kInternal, "a record is larger than its slot");
    }
    const uint64_t finished_ns = MonotonicNs();
    // Time that two batches shared counts for the first.
    const uint64_t batch_ns = finished_ns - std::max(first.start_ns, finished_ns_);
    finished_ns_ = finished_ns;
    GNND_FAILPOINT("sample.after");
    GNND_TRY(self_.batches().Publish(first.batch, report.payload_bytes, report.extent_bytes));
    GNND_FAILPOINT("publish.after");
    Count(report, batch_ns, MonotonicNs() - finished_ns);
    return Status::Ok();
  }

  void Count(const SampleReport& report, uint64_t batch_ns, uint64_t publish_ns) {
    ExecutorLog& log = self_.log();
    log.Add(Counter::kBatchesSampled, 1);
    log.Add(Counter::kNodes, report.nodes);
    log.Add(Counter::kEdges, report.edges);
    log.Add(Counter::kQueueBytes, report.payload_bytes);
    log.Add(Counter::kDeviceNs, report.device_ns);
    log.Add(Counter::kDeviceMarkNs, report.device_mark_ns);
    log.Add(Counter::kDeviceCopyNs, report.device_copy_ns);
    log.RaiseDeviceUse(report.device);
    log.AddStage(Stage::kSample, batch_ns - std::min(batch_ns, report.mark_ns + report.copy_ns));
    if (report.mark_ns > 0) log.AddStage(Stage::kMark, report.mark_ns);
    log.AddStage(Stage::kCopy, report.copy_ns + publish_ns);
  }

  // Frees the pages of a slot that held an unusually large record; other slots stay warm. The slot
  // is ours and its last record dead, so nobody reads it. Registered pages stay, because a device
  // would go on writing to the old pages.
  void TrimIfGrown(uint64_t slot) {
    QueueHeader& queue = segment_.queue();
    SlotEntry& entry = segment_.slot_entry(slot);
    const uint64_t records = queue.published.value.load(std::memory_order_relaxed);
    if (records == 0) return;
    const uint64_t usual = queue.published_bytes.value.load(std::memory_order_relaxed) / records;
    if (entry.peak_bytes.load(std::memory_order_relaxed) / kTrimFactor <= usual) return;
    const SegmentConfig& config = segment_.config();
    const uint64_t kept = GNND_BROKEN("trim-beyond-prefix") ? 0 : config.registered_bytes;
    if (kept == config.slot_bytes) return;
    // A kernel that cannot punch holes leaves the slot warm, which is no error.
    static_cast<void>(fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(segment_.slot_offset(slot) + kept),
                                static_cast<off_t>(config.slot_bytes - kept)));
    entry.peak_bytes.store(0, std::memory_order_relaxed);
    self_.log().Add(Counter::kSlotsTrimmed, 1);
  }

  // If there is nothing to sample, lends the device to its standby Trainer if that would use it.
  bool HandOverIfUseful() {
    if (!self_.turn().SamplerHolds() || !self_.turn().StandbyPresent()) return false;
    const bool evaluates = segment_.OpenRun().has_value() && StandbyMayEvaluate(segment_);
    if (!evaluates && !StandbyMayTake(segment_, self_.batches().Depth(DecisiveDepth(segment_)))) {
      return false;
    }
    GNND_FAILPOINT("turn.before_handover");
    const bool handed = self_.turn().SamplerHandsOver();
    if (handed) self_.log().Add(Counter::kTurnSwitches, 1);
    GNND_FAILPOINT("turn.after_handover");
    return handed;
  }

#ifdef GNND_FAILPOINTS
  // The broken rule: waiting for room with a claim in hand.
  Status WaitForRoom(uint64_t batch) {
    EventWord& event = segment_.queue().sampler_event.word;
    while (true) {
      const uint32_t seen = event.Load();
      GNND_TRY(segment_.AbortStatus());
      if (self_.batches().RoomFor(batch)) return Status::Ok();
      self_.Wait(event, seen, WaitSide::kEnqueue, kAllNews);
    }
  }
#endif

  Executor self_;
  Segment& segment_;
  SampleWork& work_;
  const uint32_t depth_;
  std::vector<Started> in_hand_;  // in the order of their starts
  uint64_t finished_ns_ = 0;      // when the last batch was finished
};

}  // namespace

Result<LoopEnd> RunSamplerLoop(Segment& segment, ExecutorId executor, SampleWork& work) {
  return SamplerLoop(segment, executor, work).Run();
}

}  // namespace gnnd
