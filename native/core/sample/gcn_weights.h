#pragma once

#include <cstdint>
#include <span>

#include "core/base/huge_array.h"
#include "core/graph/topology_view.h"

namespace gnnd {

// What the weights of a graph convolution (core/draw/gcn.h) need to know of a batch's nodes.
class GcnWeights {
 public:
  // max_nodes 0 makes an object that is never used.
  explicit GcnWeights(uint32_t max_nodes) : inv_(max_nodes), degree_(max_nodes) {}

  // Starts a batch.
  void Begin() { known_ = 0; }

  // Reads the degrees of nodes not known yet; `nodes` are the batch's nodes so far.
  void AddNodes(const TopologyView& topology, std::span<const uint32_t> nodes);

  // Writes the weights of rows first_row .. of a block: indptr[num_dst + 1] and src[num_edges] in,
  // weight[num_edges] and self_weight[num_dst] out. All its nodes must be known. Where neighbours
  // were drawn with `unequal` probabilities, weight is 1 / q of each edge before.
  void Fill(std::span<const uint32_t> indptr, uint32_t first_row, bool unequal, const uint32_t* src,
            float* weight, float* self_weight) const;

  // Memory touched so far.
  uint64_t bytes() const { return touched_ * 2 * sizeof(double); }

 private:
  HugeArray<double> inv_;     // by local id
  HugeArray<double> degree_;  // by local id
  uint32_t known_ = 0;
  uint64_t touched_ = 0;
};

}  // namespace gnnd
