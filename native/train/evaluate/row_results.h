#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/layers/row_model.h"
#include "train/tasks/node_targets.h"

// Results of a Trainer of a model over rows, from logits and running values.

namespace gnnd {

// Writes the distances of running values to a batch's, times its rows (core/kernels/optimizer.h).
void WriteRunning(const ParameterManifest& manifest, const std::vector<RunningValue>& running,
                  std::span<const float> parameters, uint64_t rows, std::span<float> gradient);

// Counts results from logits [rows, classes], whose targets are `rows`; `first` is the number of
// evaluated rows before them. kNumericDivergence when the loss is not finite.
Status CountRows(const EvalTask& task, std::span<const float> logits,
                 std::span<const uint32_t> rows, uint64_t first, const NodeTargets& targets,
                 EvalResult* result);

}  // namespace gnnd
