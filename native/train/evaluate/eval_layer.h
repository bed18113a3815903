#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "core/graph/row_table.h"
#include "core/graph/topology_view.h"
#include "train/evaluate/eval_input.h"
#include "train/evaluate/eval_plan.h"
#include "train/input/train_options.h"
#include "train/layers/layer.h"
#include "train/ops/attention.h"
#include "train/ops/workspace.h"

// Computes one layer of exact evaluation for some rows, with their full neighbourhoods.

namespace gnnd {

// The input of a layer.
struct LayerTask {
  uint32_t layer = 0;
  bool transforms_first = false;
  const EvalGraph* graph = nullptr;
  LayerParameters parameters;
  RowTable in;                   // rows by node id
  float* transformed = nullptr;  // [num_nodes, TransformedColumns]: rows by node id
  float* scores = nullptr;       // [2][heads][num_nodes], if the layer has scores
  // For the layer nearest the features, or null: earlier sums by node id, and which of them exist.
  // All Trainers share them; a Trainer that finds a row missing computes the same bits.
  float* kept = nullptr;
  uint8_t* is_kept = nullptr;
};

// Computes a layer. For use by one thread; uses the team's threads.
class LayerRunner {
 public:
  virtual ~LayerRunner() = default;

  // End of a block that starts at nodes[begin] and takes some 10 ms. The division into blocks
  // changes the last bits, because matrix products round by their height.
  virtual uint64_t BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                            uint64_t begin) const = 0;

  // Writes the transformed rows (and scores) of a block; only if the task transforms first.
  virtual void Transform(const LayerTask& task, std::span<const uint32_t> nodes) = 0;

  // Writes the layer's rows of a block to `out`, [nodes.size(), out].
  virtual void Run(const LayerTask& task, std::span<const uint32_t> nodes, float* out) = 0;

  virtual uint64_t reserved_bytes() const = 0;
};

// Our own models' layers, on the operators of `input`. Borrows options and model; a task's
// parameters lie where those operators compute.
class EvalLayer final : public LayerRunner, private ExactRows {
 public:
  EvalLayer(const TrainOptions& options, const Model& model, std::unique_ptr<EvalInput> input)
      : options_(options), model_(model), input_(std::move(input)) {}

  uint64_t BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                    uint64_t begin) const override;
  void Transform(const LayerTask& task, std::span<const uint32_t> nodes) override;
  void Run(const LayerTask& task, std::span<const uint32_t> nodes, float* out) override;
  uint64_t reserved_bytes() const override {
    return input_->reserved_bytes() + host_.reserved_bytes() + node_norm_.size() * sizeof(float);
  }

 private:
  const ModelSpec& spec() const override { return model_.spec; }
  uint32_t layer() const override { return task_->layer; }
  const LayerParameters& parameters() const override { return task_->parameters; }
  bool transforms_first() const override { return task_->transforms_first; }
  Workspace* memory() override { return input_->memory(); }
  at::Tensor Empty(uint64_t columns) override;
  at::Tensor Input() override { return input_->Rows(task_->in, nodes_); }
  at::Tensor Gathered() override;
  void GatherTransformed(const at::Tensor& out) override;
  void Attend(const at::Tensor& destination, const at::Tensor& out) override;
  void PutScores(Side side, const at::Tensor& scores) override;

  void Begin(const LayerTask& task, std::span<const uint32_t> nodes);
  at::Tensor View(float* rows, uint64_t count, uint64_t columns) const;
  RowTable Transformed() const;
  std::span<const float> EdgeWeights(const EvalPart& part);
  std::span<const float> Norms(std::span<const uint32_t> nodes);
  template <typename Element>
  void SumPart(const EvalPart& part, const Element* x, float* out);
  void Sum(const RowTable& table, float* out);
  at::Tensor SeenByHost(const at::Tensor& matrix);
  AttentionInput AttentionOf(const EvalPart& part, const at::Tensor& destination);
  const float* ScoresOf(Side side, std::span<const uint32_t> nodes, Workspace* memory);
  void AttendPart(const EvalPart& part, const at::Tensor& destination, float* out);
  // The place where an aside part's operators write the result for `place`; Join moves it there.
  float* PlaceOf(const EvalPart& part, uint64_t count, float* place);
  void Join(const EvalPart& part, const float* from, uint64_t count, float* place);

  const TrainOptions& options_;
  const Model& model_;
  std::unique_ptr<EvalInput> input_;
  const LayerTask* task_ = nullptr;    // task of the present block
  std::span<const uint32_t> nodes_;    // nodes of the present block
  std::vector<float> node_norm_;       // GCN: 1 / sqrt(degree + 1)
  const EvalGraph* normed_ = nullptr;  // the graph whose degrees these are
  Workspace host_;                     // lists of a block that the host makes
};

}  // namespace gnnd
