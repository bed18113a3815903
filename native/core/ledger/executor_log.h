#pragma once

#include <cstdint>

#include "core/device/use.h"
#include "core/ledger/segment.h"

// What one executor writes into its row: phase, signs of life, counters, durations. One writer (the
// executor's loop), the daemon reads. Every number stands alone, so stores are relaxed; that of the
// phase alone is not: who is seen to run has given a sign of life.

namespace gnnd {

class ExecutorLog {
 public:
  ExecutorLog(Segment& segment, ExecutorId id) : row_(segment.executor(id.row)) {}

  Role role() const { return static_cast<Role>(row_.role.load(std::memory_order_relaxed)); }
  uint32_t device() const { return row_.device.load(std::memory_order_relaxed); }
  Command command() const {
    return static_cast<Command>(row_.command.load(std::memory_order_acquire));
  }

  // Whether the row is this incarnation's and still alive to the daemon's knowledge.
  bool Owns(uint32_t incarnation) const;

  void SetPid(int32_t pid) { row_.pid.store(pid, std::memory_order_relaxed); }
  // Never overwrites kReaped, which is the daemon's last word.
  void SetPhase(Phase phase);
  void Heartbeat();
  // Says what the executor does from now on. `activity` is a Stage or an Activity; `epoch` and
  // `batch` are those of the batch key.
  void Progress(uint32_t activity, uint32_t epoch, uint32_t batch);

  void Add(Counter counter, uint64_t amount);
  // For counters that hold a value instead of a sum: sets it, unless it is larger already.
  void Raise(Counter counter, uint64_t value);
  void RaiseDeviceUse(const DeviceUse& use);
  void AddStage(Stage stage, uint64_t ns);
  // One operation on the queue that was blocked for `ns`.
  void AddWait(WaitSide side, uint64_t ns);

 private:
  ExecutorRow& row_;
};

}  // namespace gnnd
