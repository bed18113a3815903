#pragma once

#include <memory>
#include <utility>

#include "core/executor/chunk_files.h"
#include "train/work/work_parts.h"

namespace gnnd {

// The evaluation of an inference: a chunk that is in the files' journal is not computed again.
class JournaledEvaluation final : public Evaluation {
 public:
  JournaledEvaluation(std::shared_ptr<ChunkFiles> files, std::unique_ptr<Evaluation> computed)
      : files_(std::move(files)), computed_(std::move(computed)) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override {
    const EvalShape shape = GNND_VALUE(computed_->Plan(nodes, alive));
    if (nodes == EvalNodes::kValidation) chunks_ = shape.chunks;
    return shape;
  }
  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    const ChunkFiles::Chunk chunk{task.phase * chunks_ + task.chunk, scratch_fd()};
    return files_->Once(task, chunk, result,
                        [&] { return computed_->RunChunk(task, parameters, alive, result); });
  }
  void End() override { computed_->End(); }
  int scratch_fd() const override { return computed_->scratch_fd(); }

 private:
  std::shared_ptr<ChunkFiles> files_;
  std::unique_ptr<Evaluation> computed_;
  uint32_t chunks_ = 0;  // of each phase
};

}  // namespace gnnd
