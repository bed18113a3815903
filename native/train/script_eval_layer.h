#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/sample/relabel.h"
#include "train/eval_layer.h"
#include "train/script_model.h"
#include "train/workspace.h"

namespace gnnd {

// A layer of exact evaluation by a user's model: each chunk of rows with all their neighbours is
// one block for it. `script` is borrowed; who evaluates has given it the parameters.
class ScriptEvalLayer final : public LayerRunner {
 public:
  ScriptEvalLayer(const EvalInput& input, ScriptModel* script);

  Status Begin(const LayerTask& task, const std::function<bool()>& alive) override;
  uint64_t ChunkEnd(uint64_t begin) const override;
  void Run(const EvalChunk& chunk) override;

 private:
  EvalInput input_;
  ScriptModel* script_;
  LayerTask task_;
  std::vector<uint32_t> row_of_;  // row of a node in the layer's input
  DenseRelabel relabel_;
  Workspace chunk_;
};

}  // namespace gnnd
