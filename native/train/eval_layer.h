#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/executor/eval_scratch.h"
#include "core/graph/row_table.h"
#include "core/graph/topology_view.h"
#include "train/model.h"
#include "train/train_options.h"
#include "train/workspace.h"

// One layer of exact evaluation on some rows, with their full neighbourhoods.

namespace gnnd {

// What a layer computes from.
struct LayerTask {
  uint32_t layer = 0;
  bool transforms_first = false;
  LayerParameters parameters;
  RowTable in;                   // rows by node id
  float* transformed = nullptr;  // [num_nodes, TransformedColumns]: rows by node id
  float* scores = nullptr;       // GAT: [2][heads][num_nodes]
  // Of the layer nearest the features, or null: what was aggregated before, by node id, and what
  // of it is there. All Trainers share it; who finds a row missing computes the same bits.
  float* kept = nullptr;
  uint8_t* is_kept = nullptr;
};

// What computes a layer. One thread's; uses the team's threads.
class LayerRunner {
 public:
  virtual ~LayerRunner() = default;

  // The end of a block of nodes[begin ..] that takes some 10 ms. How rows fall into blocks shows in
  // the last bits: matrix products round by their height.
  virtual uint64_t BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                            uint64_t begin) const = 0;

  // Writes the transformed rows (and scores) of a block. Only where the task transforms first.
  virtual void Transform(const LayerTask& task, std::span<const uint32_t> nodes) = 0;

  // Writes the layer's rows of a block to `out`, [nodes.size(), out].
  virtual void Run(const LayerTask& task, std::span<const uint32_t> nodes, float* out) = 0;

  virtual uint64_t reserved_bytes() const = 0;
};

// Our own models' layers. Borrows both.
class EvalLayer final : public LayerRunner {
 public:
  EvalLayer(const TrainOptions& options, const Model& model) : options_(options), model_(model) {}

  uint64_t BlockEnd(const LayerTask& task, std::span<const uint32_t> nodes,
                    uint64_t begin) const override;
  void Transform(const LayerTask& task, std::span<const uint32_t> nodes) override;
  void Run(const LayerTask& task, std::span<const uint32_t> nodes, float* out) override;
  uint64_t reserved_bytes() const override {
    return block_.reserved_bytes() + node_norm_.size() * sizeof(float);
  }

 private:
  // The full neighbourhoods of a block's rows; sources are node ids.
  struct Neighbourhoods {
    uint32_t rows = 0;
    const uint32_t* indptr = nullptr;
    const uint32_t* index = nullptr;
    const uint32_t* self = nullptr;
  };

  Neighbourhoods NeighbourhoodsOf(std::span<const uint32_t> nodes);
  at::Tensor OwnInput(const LayerTask& task, std::span<const uint32_t> nodes);
  void Weigh(std::span<const uint32_t> nodes, const Neighbourhoods& block, float* weight,
             float* scale);
  template <typename Element>
  void Gather(std::span<const uint32_t> nodes, const Element* x, uint32_t columns, float* out);
  const float* Aggregated(const LayerTask& task, std::span<const uint32_t> nodes);
  void RunConvolution(const LayerTask& task, std::span<const uint32_t> nodes, at::Tensor* out);
  void RunAttention(const LayerTask& task, std::span<const uint32_t> nodes, at::Tensor* out);

  const TrainOptions& options_;
  const Model& model_;
  std::vector<float> node_norm_;  // GCN: 1 / sqrt(degree + 1)
  Workspace block_;
};

// Whether ids are consecutive, so that their rows lie together.
inline bool Consecutive(std::span<const uint32_t> nodes) {
  return nodes.back() - nodes.front() + 1 == nodes.size();
}

// Copies row r of `rows` to row nodes[r] of `to`, on the caller's OpenMP threads.
void ScatterRows(const float* rows, std::span<const uint32_t> nodes, uint64_t columns, float* to);

}  // namespace gnnd
