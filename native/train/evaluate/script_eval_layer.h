#pragma once

#include <cstdint>
#include <span>

#include "core/sample/relabel.h"
#include "train/evaluate/eval_layer.h"
#include "train/layers/script_model.h"
#include "train/ops/workspace.h"

namespace gnnd {

// A layer of exact evaluation by a user's model, which gets each block of rows with all their
// neighbours. Borrows both arguments; the caller has given the script its parameters.
class ScriptEvalLayer final : public LayerRunner {
 public:
  ScriptEvalLayer(const TrainOptions& options, ScriptModel* script);

  uint64_t BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                    uint64_t begin) const override;
  void Transform(const LayerTask&, std::span<const uint32_t>) override {}
  void Run(const LayerTask& task, std::span<const uint32_t> nodes, float* out) override;
  uint64_t reserved_bytes() const override { return block_.reserved_bytes(); }

 private:
  const TrainOptions& options_;
  ScriptModel* script_;
  DenseRelabel relabel_;
  Workspace block_;
};

}  // namespace gnnd
