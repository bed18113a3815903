#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/feature/feature_store.h"
#include "train/model.h"
#include "train/train_options.h"
#include "train/workspace.h"

// Extraction: from the nodes that a sample names to the rows that the model begins with.

namespace gnnd {

// What was read of one batch, until its gradient is computed.
struct ExtractBuffer {
  Workspace memory;  // that `input` views
  BottomInput input;
  std::vector<uint32_t> seed_labels;
  BatchKey key{};
};

// Reads the sample's feature rows from `store`, in the options' precision, and its seeds' labels;
// where the bottom layer would only aggregate the rows once, aggregates them straight from the
// store. On the calling thread's OpenMP team. kShmCorrupted for a sample that does not fit the
// model or the graph; kDatasetCorrupt for a seed without a label. Throws what torch throws.
Status ExtractBatch(const TrainOptions& options, const FeatureStore& store, const Sample& sample,
                    ExtractBuffer* buffer);

}  // namespace gnnd
