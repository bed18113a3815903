#include "core/executor/executor.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/executor/switch_profit.h"
#include "core/ledger/news.h"

namespace gnnd {
namespace {

// Longest sleep without a look: by then, changes that a killed process did not announce are seen.
constexpr uint64_t kMaxWaitNs = kNsPerSecond;

uint32_t ActivityOf(WaitSide side) {
  return static_cast<uint32_t>(Activity::kWaitEnqueue) + static_cast<uint32_t>(side);
}

}  // namespace

Executor::Executor(Segment& segment, ExecutorId id)
    : segment_(segment),
      id_(id),
      log_(segment, id),
      batches_(segment, id),
      evaluations_(segment, id),
      turn_(segment, log_.device()) {}

Status Executor::Enter() {
  if (!log_.Owns(id_.incarnation)) {
    return Status(Code::kInternal, "executor row " + std::to_string(id_.row) +
                                       " is not that of incarnation " +
                                       std::to_string(id_.incarnation) + ", or it was reaped");
  }
  log_.SetPid(getpid());
  // Comes before the phase: an executor that runs without a sign of life is killed as stalled.
  log_.Progress(static_cast<uint32_t>(Activity::kIdle), 0, 0);
  log_.SetPhase(Phase::kRunning);
  return Status::Ok();
}

Result<LoopEnd> Executor::Leave(Result<LoopEnd> end) {
  EndWait();
  log_.Progress(static_cast<uint32_t>(Activity::kIdle), 0, 0);
  log_.SetPhase(end.ok() ? Phase::kFinished : Phase::kFailed);
  return end;
}

Command Executor::command() const {
  const auto all = static_cast<Command>(segment_.header().command.load(std::memory_order_acquire));
  return std::max(all, log_.command());
}

void Executor::Wait(EventWord& event, uint32_t seen, WaitSide side, uint32_t news) {
  if (blocked_since_ns_ != 0 && blocked_side_ != side) EndWait();
  if (blocked_since_ns_ == 0) blocked_since_ns_ = MonotonicNs();
  blocked_side_ = side;
  log_.Progress(ActivityOf(side), 0, 0);
  event.Wait(seen, GNND_WAIT_CAP_NS(kMaxWaitNs), news | kNewsRare);
  log_.Heartbeat();
}

void Executor::WaitPaused(EventWord& event, uint32_t seen, uint32_t news) {
  EndWait();
  log_.Progress(static_cast<uint32_t>(Activity::kPaused), 0, 0);
  event.Wait(seen, GNND_WAIT_CAP_NS(kMaxWaitNs), news | kNewsRare);
  log_.Heartbeat();
}

void Executor::EndWait() {
  if (blocked_since_ns_ == 0) return;
  log_.AddWait(blocked_side_, MonotonicNs() - blocked_since_ns_);
  blocked_since_ns_ = 0;
}

void Executor::Progress(Stage stage, uint64_t batch) {
  log_.Progress(static_cast<uint32_t>(stage), segment_.EpochNumber(shape().EpochOfBatch(batch)),
                static_cast<uint32_t>(shape().IndexOfBatch(batch)));
}

bool StandbyMayTake(const Segment& segment, uint64_t depth) {
  const SegmentHeader& header = segment.header();
  if (header.standby_armed.load(std::memory_order_acquire) == 0) return false;
  const auto policy =
      static_cast<StandbyPolicy>(header.standby_policy.load(std::memory_order_relaxed));
  if (policy != StandbyPolicy::kAuto) return policy == StandbyPolicy::kAlways;
  return SwitchIsProfitable(depth, header.t_t_ns.load(std::memory_order_relaxed),
                            header.n_t.load(std::memory_order_relaxed),
                            header.t_t_prime_ns.load(std::memory_order_relaxed));
}

uint64_t DecisiveDepth(const Segment& segment) {
  const SegmentHeader& header = segment.header();
  const auto policy =
      static_cast<StandbyPolicy>(header.standby_policy.load(std::memory_order_relaxed));
  const uint64_t n_t = header.n_t.load(std::memory_order_relaxed);
  if (policy != StandbyPolicy::kAuto || n_t == 0) return 1;
  const uint64_t t_t = header.t_t_ns.load(std::memory_order_relaxed);
  const uint64_t slots = segment.shape().num_slots;
  if (t_t == 0) return slots;
  const Uint128 tie =
      static_cast<Uint128>(header.t_t_prime_ns.load(std::memory_order_relaxed)) * n_t / t_t;
  return tie < slots ? static_cast<uint64_t>(tie) + 1 : slots;
}

bool StandbyMayEvaluate(const Segment& segment) {
  const SegmentHeader& header = segment.header();
  if (header.standby_armed.load(std::memory_order_acquire) == 0) return false;
  const auto policy = header.standby_policy.load(std::memory_order_relaxed);
  return static_cast<StandbyPolicy>(policy) != StandbyPolicy::kOff;
}

}  // namespace gnnd
