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

// Extraction: from the nodes in a sample to the rows that the model begins with.

namespace gnnd {

// The input of one batch on the device that computes it, kept until its gradient is computed.
struct ExtractBuffer {
  explicit ExtractBuffer(const TrainDevice& device = CpuDevice()) : memory(device) {}

  Workspace memory;  // memory of `input`
  Sample sample;     // the record's, or a copy on the device
  BottomInput input;
  TargetRows seeds;                  // targets of the seeds, where nodes are learnt
  const uint32_t* labels = nullptr;  // seeds.labels if the loss is computed
  BatchKey key{};
  uint64_t device_ns = 0;  // device time of the extraction, by events
};

// The first step of every extraction: checks the sample. kShmCorrupted if it does not fit the model
// or the graph.
Status BeginExtraction(const TrainOptions& options, const Sample& sample, ExtractBuffer* buffer);

// Whether the bottom layer is aggregated straight from raw rows, so that `input` holds the sums.
// The same on every device, because it decides bits of bfloat16.
bool FusesBottom(const TrainOptions& options, const Sample& sample);

// Reads the nodes' rows in the table's own type, packed, on the calling thread's team.
void ReadRows(const FeatureStore& store, std::span<const uint32_t> nodes,
              std::span<const uint32_t> ranks, uint64_t row_bytes, std::byte* out);

// The second step: reads the feature rows of `sample` (the same one, or its pruned form) from
// `store`, in the options' precision; if the bottom layer would only aggregate the rows once,
// aggregates them straight from the store. Runs on the calling thread's OpenMP team. Throws torch's
// exceptions.
Status ExtractRows(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                   ExtractBuffer* buffer);

}  // namespace gnnd
