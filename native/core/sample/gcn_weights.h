#pragma once

#include <cstdint>
#include <span>

#include "core/base/huge_array.h"
#include "core/graph/topology_view.h"
#include "core/sample/row_skips.h"

namespace gnnd {

// Computes the weights of a graph convolution (core/draw/gcn.h) for a batch's nodes.
class GcnWeights {
 public:
  // With max_nodes = 0 the object must not be used.
  explicit GcnWeights(uint32_t max_nodes) : inv_(max_nodes), degree_(max_nodes) {}

  // Starts a batch.
  void Begin() { known_ = 0; }

  // Reads the degrees of nodes not known yet; `nodes` are the batch's nodes so far. Neighbours that
  // rows do without do not count.
  void AddNodes(const TopologyView& topology, std::span<const uint32_t> nodes,
                const RowSkips& skips = {});

  // Computes the weights of rows first_row .. of a block: indptr[num_dst + 1] and src[num_edges]
  // in, weight[num_edges] and self_weight[num_dst] out. All its nodes must be known. If neighbours
  // were drawn with `unequal` probabilities, weight holds 1 / q of each edge on entry.
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
