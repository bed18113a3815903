#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/huge_array.h"
#include "core/sample/sampler.h"
#include "train/evaluate/chunk_evaluator.h"
#include "train/evaluate/eval_outcome.h"
#include "train/input/block_input.h"
#include "train/layers/block_model.h"

namespace gnnd {

// Computes the rows that some layers, ascending, give for a sample's seeds, in the layers' order:
// [num_seeds, columns] in the host's memory until the next call.
class SampleForward {
 public:
  virtual ~SampleForward() = default;
  virtual std::vector<at::Tensor> Rows(const Sample& sample, std::span<const at::Tensor> constants,
                                       std::span<const uint32_t> layers) = 0;
  virtual uint64_t work_bytes() const = 0;  // of the host's memory
};

// Evaluation on keyed samples: the nodes form chunks of kEvalChunkSeeds, each a batch with a key
// that no training batch has (kEvaluationEpoch), the same in every run. No dropout, no update.
class SampledEvaluator final : public ChunkEvaluator {
 public:
  // Follows the options' eval_sampler. Borrows all arguments. kInvalidArgument when no record has
  // room for the sampler's draws.
  static Result<std::unique_ptr<SampledEvaluator>> Create(const BlockInput& input,
                                                          BlockModel* model, EvalOutcome* outcome);

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override;
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> constants, const Alive& alive,
                  EvalResult* result) override;
  uint64_t work_bytes() const override {
    return forward_->work_bytes() + sampler_.workspace_bytes();
  }

  // The first chunk is computed once, with any device parameters, so that a Trainer holds from the
  // start about the memory that evaluations take.
  Status UseDevice(DeviceSide& side, Workspace* memory) override;
  void UseHost() override;

 private:
  SampledEvaluator(const BlockInput& input, BlockModel* model, EvalOutcome* outcome,
                   const RecordLayout& layout);
  // Draws the sample of these seeds; it is valid until the next call.
  Result<Sample> Drawn(const BatchKey& key, std::span<const uint32_t> seeds);

  const BlockInput& input_;
  BlockModel& model_;
  EvalOutcome& outcome_;
  Sampler sampler_;
  HugeArray<std::byte> slot_;
  std::unique_ptr<SampleForward> forward_;
};

}  // namespace gnnd
