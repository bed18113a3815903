#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "train/work/torch_work.h"

// Predictions of many nodes, written to a pipe or socket while they are computed: neither side
// holds them all, and a slow reader slows the computing down.
//
// The stream is frames: uint32 kind, uint32 bytes of the payload (both little-endian), the payload.
// src/supervisor/prediction.ts is the reader.

namespace gnnd {

enum class FrameKind : uint32_t {
  kProgress = 1,  // payload: float64, the share that is done
  kFile = 2,      // a file begins; payload: uint64 size in bytes, then its name
  kData = 3,      // the next bytes of that file
};

struct PredictionRequest {
  std::span<const float> parameters;
  std::vector<uint32_t> nodes;  // ascending, each once
  bool all_nodes = false;       // `nodes` are those of the whole graph: nodes.npy would say nothing
  uint32_t classes = 0;
  Task task = Task::kClassification;
  int fd = -1;  // stays the caller's; blocking
};

// Writes, in this order, nodes.npy (int64 [n]) unless all_nodes, logits.npy (float32 [n, classes])
// and predictions.npy (of the task, train/tasks/task.h), with frames of progress between them.
// kInvalidArgument as TorchWork::Predict, or when the parameters are not as many as the model's;
// kAborted when the reader is gone; kIo when writing fails otherwise.
Status StreamPredictions(TorchWork* work, const PredictionRequest& request);

}  // namespace gnnd
