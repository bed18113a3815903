#include "core/sample/gcn_weights.h"

#include <algorithm>

#include "core/draw/gcn.h"

namespace gnnd {

void GcnWeights::AddNodes(const TopologyView& topology, std::span<const uint32_t> nodes,
                          const RowSkips& skips) {
  constexpr uint32_t kAhead = 24;
  const uint64_t* indptr = topology.indptr.data();
  const auto count = static_cast<uint32_t>(nodes.size());
  for (uint32_t i = known_; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(indptr + nodes[i + kAhead]);
    const auto degree = static_cast<double>(indptr[nodes[i] + 1] - indptr[nodes[i]]);
    degree_[i] = degree;
    inv_[i] = GcnInverse(degree);
  }
  for (uint32_t i = known_; i < std::min(count, skips.num_rows()); ++i) {
    degree_[i] -= static_cast<double>(skips.count(i));
    inv_[i] = GcnInverse(degree_[i]);
  }
  known_ = count;
  touched_ = std::max<uint64_t>(touched_, count);
}

void GcnWeights::Fill(std::span<const uint32_t> indptr, uint32_t first_row, bool unequal,
                      const uint32_t* src, float* weight, float* self_weight) const {
  const double* const inv = inv_.data();
  for (size_t row = first_row; row + 1 < indptr.size(); ++row) {
    self_weight[row] = GcnSelfWeight(degree_[row]);
    const uint32_t begin = indptr[row];
    const uint32_t end = indptr[row + 1];
    if (begin == end) continue;
    if (unequal) {
      for (uint32_t e = begin; e < end; ++e) {
        weight[e] = GcnWeight(inv[src[e]], inv[row] * static_cast<double>(weight[e]));
      }
      continue;
    }
    const double factor = GcnRowFactor(inv[row], degree_[row], end - begin);
    for (uint32_t e = begin; e < end; ++e) weight[e] = GcnWeight(inv[src[e]], factor);
  }
}

}  // namespace gnnd
