#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "train/device/device_rows.h"
#include "train/input/row_batch.h"
#include "train/layers/row_model.h"

namespace gnnd {

// Brings batches of rows to the place that computes with them. The thread that extracts brings the
// batches below kExtractBuffers, and the thread that computes brings kEvaluated.
class RowBatches {
 public:
  static constexpr uint32_t kEvaluated = DeviceRows::kEvaluated;

  virtual ~RowBatches() = default;

  RowBuffer& buffer(uint32_t number) { return buffers_[number]; }

  // Brings the rows of a buffer that was begun, or of the buffer kEvaluated.
  virtual Status Bring(uint32_t number, const NextRuns& next) = 0;
  virtual Status BringEvaluated() = 0;

  // The input of ForwardRows, after Bring.
  virtual RowBatch BatchOf(uint32_t number, bool training) const = 0;
  virtual const uint32_t* LabelsOf(uint32_t number) const = 0;

  // Reports how a batch's rows came.
  virtual Status Tell(uint32_t number, ExtractReport* report) = 0;

 protected:
  RowBatches(const RowInput& input, const TrainDevice& memory)
      : reader_(input), buffers_{RowBuffer(memory), RowBuffer(memory), RowBuffer(memory)} {}

  Status Read(uint32_t number, const NextRuns& next) {
    return reader_.Read(&buffers_[number], next);
  }
  Status ReadEvaluated();
  void TellTraffic(uint32_t number, Tier tier, ExtractReport* report) const;

  RowBatchReader reader_;
  RowBuffer buffers_[kEvaluated + 1];
};

// Batches in the host's memory. Borrows the input.
std::unique_ptr<RowBatches> HostRowBatches(const RowInput& input);
// Batches on a device, which holds rows itself or is sent those of each batch. Borrows both.
std::unique_ptr<RowBatches> DeviceRowBatches(const RowInput& input, DeviceRows* device);

}  // namespace gnnd
