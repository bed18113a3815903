#pragma once

#include <memory>

#include "train/evaluate/chunk_evaluator.h"
#include "train/evaluate/exact_layers.h"
#include "train/layers/block_model.h"
#include "train/work/work_parts.h"

namespace gnnd {

// Makes evaluations on the processor. Pointers and references are borrowed here and below.
std::unique_ptr<Evaluation> HostEvaluation(ComputeSide* side, BlockModel* model,
                                           std::unique_ptr<ChunkEvaluator> evaluator);

// Makes evaluations on a device, and takes its memory for them at once. If it has no room, now or
// later, the processor computes the same bits, so that no job fails for want of room.
Result<std::unique_ptr<Evaluation>> DeviceEvaluation(DeviceSide* device, ComputeSide* side,
                                                     BlockModel* model,
                                                     std::unique_ptr<ChunkEvaluator> evaluator);

// Computes nodes' logits by exact layers on the processor.
std::unique_ptr<NodeLogits> ExactLogits(const BlockInput& input, BlockModel* model,
                                        std::shared_ptr<ExactLayers> layers);

}  // namespace gnnd
