#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/feature/feature_store.h"
#include "core/sample/relabel.h"
#include "train/device/device_extraction.h"
#include "train/device/device_side.h"
#include "train/evaluate/eval_input.h"
#include "train/input/train_options.h"

namespace gnnd {

// Exact evaluation on a device with memory of its own. The tables stay in the host's memory, which
// all Trainers share; the rows that a part of a block reads are copied to the device, each once,
// into at most `part_bytes` of its memory. The division into parts decides no bit: sums are per
// row, and products are those of whole blocks. The host sums a row whose neighbours alone exceed a
// part. Throws DeviceError.
class DeviceInput final : public EvalInput {
 public:
  // Allocates the memory of parts, and of a block in `block`, at once, so that a Trainer's trial
  // shows how much is left. kDeviceMemory if evaluations would take more than a quarter of the
  // device's budget, or do not fit. Borrows all arguments.
  static Result<std::unique_ptr<DeviceInput>> Create(const TrainOptions& options,
                                                     const FeatureStore& store,
                                                     const DeviceSide& side, Workspace* block);

  void ForParts(const EvalRows& rows, uint64_t heads, const Compute& compute) override;
  at::Tensor Rows(const RowTable& table, std::span<const uint32_t> nodes) override;
  const float* Given(std::span<const float> values, Workspace* memory) override;
  float* PlaceOf(float*, uint64_t count) override { return block_->Get<float>(count); }
  void Bring(const float* from, uint64_t count, float* host) override;
  const float* Seen(const float* from, uint64_t count, Workspace* host) override;
  void Join(const float* host, uint64_t count, float* to) override;
  Workspace* memory() override { return block_; }
  uint64_t reserved_bytes() const override;

 private:
  // Bytes of a part in the device's memory.
  struct Costs {
    uint64_t source = 0;
    uint64_t edge = 0;
    uint64_t row = 0;
  };

  DeviceInput(const TrainOptions& options, const FeatureStore& store, const DeviceSide& side,
              uint64_t part_bytes, Workspace* block);
  bool IsFeatures(const RowTable& table) const;
  Costs CostsOf(const RowTable& table, uint64_t heads) const;
  // Copies rows of the table in its own type into `memory`, which is on the device.
  RowTable Brought(const RowTable& table, std::span<const uint32_t> nodes, Workspace* memory);
  template <typename T>
  T* Copied(std::span<const T> values, Workspace* memory);
  void RunPart(const EvalRows& rows, uint64_t first, uint64_t edges, const Compute& compute);
  void RunAside(const EvalRows& row, uint64_t first, uint64_t heads, const Compute& compute);

  const TrainOptions& options_;
  const FeatureStore& store_;
  const uint64_t part_bytes_;
  const bool needs_self_;  // whether a row counts among its own neighbours
  Workspace* block_;
  TrainStream& stream_;
  DeviceReader reader_;
  Workspace part_;  // on the device
  HostInput aside_;
  HashRelabel relabel_;
  std::vector<uint32_t> sources_;
  std::vector<uint32_t> index_;
  std::vector<uint32_t> indptr_;
  std::vector<uint32_t> self_;
  std::vector<std::byte> rows_;
};

}  // namespace gnnd
