#include <algorithm>
#include <cstring>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/ledger/batches.h"
#include "core/ledger/row_shares.h"
#include "core/ledger/segment.h"
#include "core/ledger/turn.h"

// The daemon's control of a segment: executors, reclaiming, commands, copies of parameters.

namespace gnnd {
namespace {

constexpr int kCopyTries = 10;

// Moves an entry on if the dead executor owns it in `from`; true if it did.
bool ReclaimEntry(const Segment& segment, LedgerTrace::Word kind, uint64_t index, uint32_t owner,
                  BatchState from, BatchState to) {
  std::atomic<uint64_t>& word = kind == LedgerTrace::Word::kBatch
                                    ? segment.ledger(index)
                                    : segment.eval_word(static_cast<uint32_t>(index));
  uint64_t old = word.load(std::memory_order_acquire);
  const LedgerWord entry = LedgerWord::Unpack(old);
  if (entry.state != from || entry.owner != owner) return false;
  // Nobody but its owner and the daemon changes an owned entry, so this cannot fail.
  return segment.trace().Exchange(kind, index, 0, word, old, entry.Reclaimed(to).Pack());
}

}  // namespace

Status Segment::BeginTrained(std::span<const float> given) {
  const uint64_t last = shape_.TotalGroups();
  if (last != 1 || given.size() != parameter_floats()) {
    return Status(Code::kInvalidArgument, "only a segment of one step takes its last parameters");
  }
  std::copy(given.begin(), given.end(), parameters(last).begin());
  // Release: pairs with EnsureParameters and Version.
  header_->parameters_ready.store(1, std::memory_order_release);
  header_->version.value.store(last, std::memory_order_release);
  trace_.Note(LedgerTrace::Kind::kSet, 0,
              {static_cast<uint64_t>(LedgerTrace::Word::kVersion), 0, last});
  return Status::Ok();
}

Status Segment::RecordScales(std::span<const LocalityScale> scales) {
  if (scales.size() > shape_.epochs || config().locality.adapts == 0 ||
      header_->next_row.load(std::memory_order_acquire) != 0) {
    return Status(Code::kInvalidArgument, "the segment takes no scales of so many epochs");
  }
  for (size_t e = 0; e < scales.size(); ++e) {
    if (!config().locality.MayFollow(scales[e])) {
      return Status(Code::kInvalidArgument, "epoch " + std::to_string(e) + ": scale " +
                                                std::to_string(scales[e].scale) + "/16 after " +
                                                std::to_string(scales[e].before) + "/16");
    }
    epoch(e).next_scale = scales[e];
  }
  return Status::Ok();
}

Result<ExecutorId> Segment::RegisterExecutor(Role role, uint32_t device_index) {
  if (device_index >= config().num_devices) {
    return Status(Code::kInvalidArgument, "device " + std::to_string(device_index) + " of " +
                                              std::to_string(config().num_devices));
  }
  const uint32_t row = header_->next_row.load(std::memory_order_relaxed);
  if (row >= config().max_executors) {
    return Status(Code::kInvalidArgument,
                  "no executor row left; " + std::to_string(row) + " starts used them up");
  }
  const uint32_t incarnation = header_->next_incarnation.load(std::memory_order_relaxed) + 1;
  if (incarnation > kMaxIncarnation) {
    return Status(Code::kInvalidArgument, "no incarnation left");
  }
  ExecutorRow& entry = executor(row);
  entry.role.store(static_cast<uint32_t>(role), std::memory_order_relaxed);
  entry.device.store(device_index, std::memory_order_relaxed);
  entry.registered_ns.store(MonotonicNs(), std::memory_order_relaxed);
  // Release: pairs with the acquire in Snapshot and Reclaim; the incarnation completes the row.
  entry.incarnation.store(incarnation, std::memory_order_release);
  header_->next_incarnation.store(incarnation, std::memory_order_relaxed);
  header_->next_row.store(row + 1, std::memory_order_release);
  trace_.Note(LedgerTrace::Kind::kRegistered, incarnation,
              {static_cast<uint64_t>(role), device_index});
  return ExecutorId{row, incarnation};
}

Result<ReclaimReport> Segment::Reclaim(uint32_t incarnation) {
  const uint32_t rows = header_->next_row.load(std::memory_order_acquire);
  uint32_t row = 0;
  while (row < rows && executor(row).incarnation.load(std::memory_order_acquire) != incarnation) {
    ++row;
  }
  if (row == rows || incarnation == 0) {
    return Status(Code::kInvalidArgument,
                  "no executor has incarnation " + std::to_string(incarnation));
  }
  ExecutorRow& dead = executor(row);
  const auto phase = static_cast<Phase>(dead.phase.load(std::memory_order_acquire));
  ReclaimReport report;
  if (phase == Phase::kReaped) return report;
  trace_.Note(LedgerTrace::Kind::kReclaims, incarnation);
  const uint32_t owner = OwnerOf(*this, ExecutorId{row, incarnation});
  for (uint64_t index = 0; index < shape_.batches_per_epoch; ++index) {
    const auto back = [&](BatchState from, BatchState to) {
      return ReclaimEntry(*this, LedgerTrace::Word::kBatch, index, owner, from, to) ? 1U : 0U;
    };
    report.claimed += back(BatchState::kClaimed, BatchState::kPending);
    report.taken += back(BatchState::kTaken, BatchState::kReady);
  }
  for (uint32_t chunk = 0; chunk < config().eval_chunks; ++chunk) {
    if (ReclaimEntry(*this, LedgerTrace::Word::kChunk, chunk, owner, BatchState::kTaken,
                     BatchState::kPending)) {
      ++report.evaluations;
    }
  }
  const auto role = static_cast<Role>(dead.role.load(std::memory_order_relaxed));
  if (role == Role::kStandby && !GNND_BROKEN("turn-repair")) {
    Turn turn(*this, dead.device.load(std::memory_order_relaxed));
    if (turn.StandbyHolds() && !turn.SamplerGone()) ++report.turns;
    turn.StandbyLeaves();
  }
  RowShares(*this).Withdraw(dead.device.load(std::memory_order_relaxed), incarnation);
  dead.phase.store(static_cast<uint32_t>(Phase::kReaped), std::memory_order_release);
  trace_.Note(LedgerTrace::Kind::kReclaimed, incarnation);
  // After the entries: pairs with the acquire in Batches::FirstPending.
  header_->reclaims.value.fetch_add(report.claimed + report.taken + report.evaluations,
                                    std::memory_order_release);
  WakeAll();
  return report;
}

void Segment::MarkSamplerGone(uint32_t device_index) { Turn(*this, device_index).SamplerLeaves(); }

void Segment::SetCommand(Command command) {
  header_->command.store(static_cast<uint32_t>(command), std::memory_order_release);
  WakeAll();
}

void Segment::SetExecutorCommand(uint32_t row, Command command) {
  executor(row).command.store(static_cast<uint32_t>(command), std::memory_order_release);
  WakeAll();
}

void Segment::SetStandby(StandbyPolicy policy, bool armed) {
  header_->standby_policy.store(static_cast<uint32_t>(policy), std::memory_order_relaxed);
  header_->standby_armed.store(armed ? 1 : 0, std::memory_order_release);
  WakeAll();
}

void Segment::SetEstimates(const StandbyEstimates& estimates) {
  // The four need no order: each is an estimate on its own, and bits do not depend on them.
  header_->t_s_ns.store(estimates.t_s_ns, std::memory_order_relaxed);
  header_->t_t_ns.store(estimates.t_t_ns, std::memory_order_relaxed);
  header_->t_t_prime_ns.store(estimates.t_t_prime_ns, std::memory_order_relaxed);
  header_->n_t.store(estimates.n_t, std::memory_order_relaxed);
  WakeAll();
}

void Segment::Abort(Code code, const std::string& message) {
  uint32_t none = 0;
  if (!header_->abort_code.compare_exchange_strong(none, 1, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed)) {
    return;
  }
  const size_t length = std::min<size_t>(message.size(), kAbortMessageBytes - 1);
  std::memcpy(header_->abort_message, message.data(), length);
  // Release: pairs with AbortStatus.
  header_->abort_code.store(2 + static_cast<uint32_t>(code), std::memory_order_release);
  WakeAll();
}

Result<uint64_t> Segment::CopyLastParameters(std::span<float> out) const {
  if (out.size() != parameter_floats()) {
    return Status(Code::kInvalidArgument, "parameters have another size");
  }
  if (header_->parameters_ready.load(std::memory_order_acquire) == 0) {
    return Status(Code::kNotFound, "no parameters yet");
  }
  for (int i = 0; i < kCopyTries; ++i) {
    const uint64_t version = Version();
    std::memcpy(out.data(), parameters(version).data(), out.size_bytes());
    // The buffer is written again only by the step after version + S is committed. The fence keeps
    // the copy before the second look.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (Version() <= version + shape_.staleness) return version;
  }
  return Status(Code::kAborted, "commits overtook the copy");
}

Result<uint32_t> Segment::CopyBestParameters(std::span<float> out) const {
  if (out.size() != parameter_floats()) {
    return Status(Code::kInvalidArgument, "parameters have another size");
  }
  for (int i = 0; i < kCopyTries; ++i) {
    const std::optional<uint64_t> evaluated = LastEvaluated();
    if (!evaluated) return Status(Code::kNotFound, "no evaluation yet");
    const uint32_t best_epoch = epoch(*evaluated).best_epoch;
    const std::span<float> held = best(epoch(*evaluated).best_buffer);
    GNND_FAILPOINT("best.before_copy");
    std::memcpy(out.data(), held.data(), out.size_bytes());
    std::atomic_thread_fence(std::memory_order_acquire);
    // While this epoch is still the best one, nobody has begun to write its buffer: a better epoch
    // writes the other buffer first. The buffer's number alone would not do, because two better
    // epochs later it is the best again.
    if (epoch(*LastEvaluated()).best_epoch == best_epoch) return EpochNumber(best_epoch);
  }
  return Status(Code::kAborted, "evaluations overtook the copy");
}

}  // namespace gnnd
