#include "core/executor/sampler_loop.h"

#include <fcntl.h>
#include <linux/falloc.h>

#include <optional>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/executor/executor.h"
#include "core/ledger/news.h"

namespace gnnd {
namespace {

// A slot is trimmed when a record in it was this many times the mean: rare by construction.
constexpr uint64_t kTrimFactor = 4;

class SamplerLoop {
 public:
  SamplerLoop(Segment& segment, ExecutorId id, SampleWork& work)
      : self_(segment, id), segment_(segment), work_(work) {}

  Result<LoopEnd> Run() {
    GNND_TRY(self_.Enter());
    self_.turn().SamplerEnters();
    const Result<LoopEnd> end = Loop();
    // After an error the daemon decides whether a Sampler comes back; a good end is final.
    if (end.ok()) self_.turn().SamplerLeaves();
    segment_.WakeSamplers();  // one of which may owe its sleep to us
    return self_.Leave(end);
  }

 private:
  Result<LoopEnd> Loop() {
    EventWord& event = segment_.queue().sampler_event.word;
    while (true) {
      const uint32_t seen = event.Load();
      GNND_TRY(segment_.AbortStatus());
      if (segment_.TrainingDone()) return LoopEnd::kComplete;
      const Command command = self_.command();
      if (command >= Command::kDrain) return LoopEnd::kStopped;
      if (command == Command::kPause) {
        self_.WaitPaused(event, seen, kNewsRare);
        continue;
      }
      if (!self_.turn().SamplerHolds() && !GNND_BROKEN("turn-holder-changes")) {
        self_.Wait(event, seen, WaitSide::kTurn, kNewsRare);
        continue;
      }
      const std::optional<uint64_t> batch = self_.batches().Claim();
      if (batch) {
        self_.EndWait();
        GNND_TRY(Make(*batch));
        continue;
      }
      if (HandOverIfUseful()) continue;
      const uint32_t lend = self_.turn().StandbyPresent() ? kNewsLend : 0;
      self_.Wait(event, seen, WaitSide::kEnqueue, kNewsBatch | lend);
    }
  }

  Status Make(uint64_t batch) {
#ifdef GNND_FAILPOINTS
    if (GNND_BROKEN("room-before-claim")) GNND_TRY(WaitForRoom(batch));
#endif
    const JobShape& shape = segment_.shape();
    const uint64_t slot = shape.SlotOf(batch);
    const uint64_t index = shape.IndexOfBatch(batch);
    TrimIfGrown(slot);
    self_.Progress(Stage::kSample, batch);
    const uint64_t start_ns = MonotonicNs();
    SampleReport report;
    GNND_TRY(work_.Sample(segment_.EpochNumber(shape.EpochOfBatch(batch)),
                          static_cast<uint32_t>(index), segment_.slot(slot), &report));
    if (report.extent_bytes > segment_.config().slot_bytes) {
      return Status(Code::kInternal, "a record is larger than its slot");
    }
    const uint64_t sampled_ns = MonotonicNs();
    GNND_FAILPOINT("sample.after");
    GNND_TRY(self_.batches().Publish(batch, report.payload_bytes));
    GNND_FAILPOINT("publish.after");
    Count(report, sampled_ns - start_ns, MonotonicNs() - sampled_ns);
    return Status::Ok();
  }

  void Count(const SampleReport& report, uint64_t sample_ns, uint64_t publish_ns) {
    ExecutorLog& log = self_.log();
    log.Add(Counter::kBatchesSampled, 1);
    log.Add(Counter::kNodes, report.nodes);
    log.Add(Counter::kEdges, report.edges);
    log.Add(Counter::kQueueBytes, report.payload_bytes);
    log.AddStage(Stage::kSample, sample_ns - report.mark_ns);
    if (report.mark_ns > 0) log.AddStage(Stage::kMark, report.mark_ns);
    log.AddStage(Stage::kCopy, publish_ns);
  }

  // Gives the pages of a slot back if an unusually large record lay in it; others stay warm. The
  // slot is ours and its last record dead, so nobody reads it.
  void TrimIfGrown(uint64_t slot) {
    QueueHeader& queue = segment_.queue();
    SlotEntry& entry = segment_.slot_entry(slot);
    const uint64_t records = queue.published.value.load(std::memory_order_relaxed);
    if (records == 0) return;
    const uint64_t usual = queue.published_bytes.value.load(std::memory_order_relaxed) / records;
    if (entry.peak_bytes.load(std::memory_order_relaxed) / kTrimFactor <= usual) return;
    // A kernel that cannot punch holes leaves the slot warm, which is no error.
    static_cast<void>(fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(segment_.slot_offset(slot)),
                                static_cast<off_t>(segment_.config().slot_bytes)));
    entry.peak_bytes.store(0, std::memory_order_relaxed);
    self_.log().Add(Counter::kSlotsTrimmed, 1);
  }

  // There is nothing to sample now: lend the device to its standby Trainer if that would use it.
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
};

}  // namespace

Result<LoopEnd> RunSamplerLoop(Segment& segment, ExecutorId executor, SampleWork& work) {
  return SamplerLoop(segment, executor, work).Run();
}

}  // namespace gnnd
