#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/feature/feature_store.h"
#include "train/input/train_options.h"
#include "train/layers/model.h"
#include "train/ops/workspace.h"

// Extraction: from the nodes that a sample names to the rows that the model begins with.

namespace gnnd {

// What was read of one batch, until its gradient is computed, on the device that computes it.
struct ExtractBuffer {
  explicit ExtractBuffer(const TrainDevice& device = CpuDevice()) : memory(device) {}

  Workspace memory;  // that `input` views
  Sample sample;     // the record's, or a copy on the device
  BottomInput input;
  TargetRows seeds;                  // their targets
  const uint32_t* labels = nullptr;  // seeds.labels where the loss is computed
  BatchKey key{};
  uint64_t device_ns = 0;  // that a device took for it, by its events
};

// What every extraction begins with: checks the sample and reads its seeds' labels. kShmCorrupted
// for a sample that does not fit the model or the graph; kDatasetCorrupt for a seed without a
// label.
Status BeginExtraction(const TrainOptions& options, const Sample& sample, ExtractBuffer* buffer);

// Whether the bottom layer is aggregated straight from raw rows, and `input` has what it makes of
// them. On every device alike: it decides bits of bfloat16.
bool FusesBottom(const TrainOptions& options, const Sample& sample);

// The nodes' rows in the table's own type, beside each other, on the calling thread's team.
void ReadRows(const FeatureStore& store, std::span<const uint32_t> nodes,
              std::span<const uint32_t> ranks, uint64_t row_bytes, std::byte* out);

// Of what BeginExtraction has begun: reads the feature rows of `sample`, which is the same or what
// history leaves of it, from `store`, in the options' precision; where the bottom layer would only
// aggregate the rows once, aggregates them straight from the store. On the calling thread's OpenMP
// team. Throws what torch throws.
Status ExtractRows(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                   ExtractBuffer* buffer);

}  // namespace gnnd
