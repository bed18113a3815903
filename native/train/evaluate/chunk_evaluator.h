#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "core/executor/train_work.h"
#include "train/device/device_side.h"
#include "train/ops/workspace.h"

namespace gnnd {

// A way to evaluate the nodes of an outcome in chunks (core/ledger/evaluation.h). One thread's.
class ChunkEvaluator {
 public:
  virtual ~ChunkEvaluator() = default;

  // As in TrainWork. `constants` are BlockModel::Constants, in memory from which it computes.
  virtual Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) = 0;
  virtual Status RunChunk(const EvalTask& task, std::span<const at::Tensor> constants,
                          const Alive& alive, EvalResult* result) = 0;
  virtual void End() {}
  // The file of rows that chunks leave for later ones; < 0 if they leave none.
  virtual int scratch_fd() const { return -1; }
  // Private host memory of plans and blocks.
  virtual uint64_t work_bytes() const = 0;

  // From now on chunks are computed on a device, in its `memory`, or again on the host. All device
  // memory that this takes is taken at once. Borrows both arguments; throws DeviceError.
  virtual Status UseDevice(DeviceSide& side, Workspace* memory) = 0;
  virtual void UseHost() = 0;
};

}  // namespace gnnd
