#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/dataset/row_table.h"
#include "core/dataset/topology_view.h"
#include "train/model.h"
#include "train/workspace.h"

// One layer of exact evaluation, in chunks of rows.

namespace gnnd {

// Borrowed; must outlive the evaluator.
struct EvalInput {
  RowTable features;                    // [num_nodes, in_dim]
  std::span<const int32_t> labels;      // [num_nodes]
  std::span<const float> edge_weights;  // [num_edges] or empty: of means over neighbours
  TopologyView topology;
  std::span<const int64_t> val_nodes;
  std::span<const int64_t> test_nodes;
  uint64_t memory_bytes = 0;
};

// Whether layers transform every input row before anything is aggregated (attention, PinSAGE), and
// the columns of what that gives.
bool TransformsInput(const ModelSpec& spec);
uint32_t TransformedColumns(const ModelSpec& spec, uint32_t layer);

inline Status EvaluationAborted() { return Status(Code::kAborted, "evaluation was told to stop"); }

// What a layer computes and from what.
struct LayerTask {
  uint32_t layer = 0;
  LayerParameters parameters;
  RowTable in;                        // layer 0: features by node id; else rows of `sources`
  std::span<const uint32_t> sources;  // ids of all rows that are read; layer 0 needs them only
                                      // where rows are transformed
  std::span<const uint32_t> nodes;    // ids of the rows to compute
};

struct EvalChunk {
  std::span<const uint32_t> nodes;
  const float* kept = nullptr;  // the rows' aggregates where they are known
  float* keep_to = nullptr;     // where to leave them for the next evaluation
  float* out = nullptr;         // [nodes.size(), out]
};

// What computes a layer.
class LayerRunner {
 public:
  virtual ~LayerRunner() = default;

  // Makes `task` the layer that Run computes, transforming input rows first where the model does.
  virtual Status Begin(const LayerTask& task, const std::function<bool()>& alive) = 0;

  // The end of a chunk of task.nodes from `begin` that takes some 10 ms.
  virtual uint64_t ChunkEnd(uint64_t begin) const = 0;

  virtual void Run(const EvalChunk& chunk) = 0;
};

// Our own models' layers. Borrows the model.
class EvalLayer final : public LayerRunner {
 public:
  EvalLayer(const EvalInput& input, const Model& model) : input_(input), model_(model) {}

  Status Begin(const LayerTask& task, const std::function<bool()>& alive) override;
  uint64_t ChunkEnd(uint64_t begin) const override;
  void Run(const EvalChunk& chunk) override;

 private:
  // The chunk's full neighbourhoods as a block whose sources are rows of the layer's input, or of
  // the transformed rows.
  struct Neighbourhoods {
    uint32_t rows = 0;
    uint32_t* indptr = nullptr;
    uint32_t* index = nullptr;
    uint32_t* self = nullptr;
  };

  Neighbourhoods NeighbourhoodsOf(std::span<const uint32_t> nodes);
  // Row of a node in the layer's input.
  uint32_t InputRow(uint32_t node) const { return task_.layer == 0 ? node : row_of_[node]; }
  at::Tensor OwnInput(std::span<const uint32_t> nodes);
  void Transform(uint64_t begin, uint64_t end);
  void Weigh(std::span<const uint32_t> nodes, const Neighbourhoods& block, float* weight,
             float* scale) const;
  void Aggregate(std::span<const uint32_t> nodes, float* out);
  template <typename Element>
  void Gather(std::span<const uint32_t> nodes, const Element* x, float* out);
  void RunConvolution(const EvalChunk& chunk, at::Tensor* out);
  void RunAttention(const EvalChunk& chunk, at::Tensor* out);

  EvalInput input_;
  const Model& model_;
  LayerTask task_;
  std::vector<float> node_norm_;  // GCN: 1 / sqrt(degree + 1)
  std::vector<uint32_t> row_of_;  // row of a node among the sources
  at::Tensor table_;              // the transformed rows of the sources
  at::Tensor source_scores_;      // GAT: [heads, sources]
  at::Tensor own_scores_;         // GAT: the same as destinations
  Workspace transformed_;
  Workspace chunk_;
};

}  // namespace gnnd
