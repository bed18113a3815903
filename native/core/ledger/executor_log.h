#pragma once

#include <cstdint>

#include "core/device/use.h"
#include "core/ledger/segment.h"

// Writes an executor's row: phase, signs of life, counters, durations. The executor's loop is the
// one writer, the daemon reads. Numbers are independent, so stores are relaxed, except that of the
// phase: a reader that sees the executor run also sees a sign of life.

namespace gnnd {

class ExecutorLog {
 public:
  ExecutorLog(Segment& segment, ExecutorId id) : row_(segment.executor(id.row)) {}

  Role role() const { return static_cast<Role>(row_.role.load(std::memory_order_relaxed)); }
  uint32_t device() const { return row_.device.load(std::memory_order_relaxed); }
  Command command() const {
    return static_cast<Command>(row_.command.load(std::memory_order_acquire));
  }

  // Whether the row belongs to this incarnation, which the daemon has not reaped yet.
  bool Owns(uint32_t incarnation) const;

  void SetPid(int32_t pid) { row_.pid.store(pid, std::memory_order_relaxed); }
  // Never overwrites kReaped, which is final.
  void SetPhase(Phase phase);
  void Heartbeat();
  // Records the executor's present work. `activity` is a Stage or an Activity; `epoch` and `batch`
  // are those of the batch key.
  void Progress(uint32_t activity, uint32_t epoch, uint32_t batch);

  void Add(Counter counter, uint64_t amount);
  // Raises a counter that holds a value instead of a sum, unless it is larger already.
  void Raise(Counter counter, uint64_t value);
  void RaiseDeviceUse(const DeviceUse& use);
  void AddStage(Stage stage, uint64_t ns);
  // One operation on the queue that was blocked for `ns`.
  void AddWait(WaitSide side, uint64_t ns);

 private:
  ExecutorRow& row_;
};

}  // namespace gnnd
