#pragma once

#include <cstdint>
#include <span>

namespace gnnd {

// Transposes a block by counting sort: lists, for every source row, the destinations that read it,
// in ascending order, and the weights of those edges. `weight_of_edge` is [num_edges], or [num_dst]
// when `weight_per_destination` (every edge of a destination weighs the same).
template <typename T>
struct TransposeInput {
  std::span<const uint32_t> indptr;  // [num_dst + 1]
  std::span<const uint32_t> src;     // [num_edges]
  uint32_t num_src = 0;
  const T* weight = nullptr;
  bool weight_per_destination = false;
};

// Outputs: indptr [num_src + 1], dst and weight [num_edges].
template <typename T>
void TransposeBlock(const TransposeInput<T>& in, uint32_t* indptr, uint32_t* dst, T* weight) {
  const auto num_dst = static_cast<uint32_t>(in.indptr.size() - 1);
  for (uint32_t s = 0; s <= in.num_src; ++s) indptr[s] = 0;
  // Counts are shifted by two places during the sort: indptr[s + 1] is row s's insertion point, and
  // finally row s's end, which is row s + 1's start.
  for (const uint32_t s : in.src) {
    if (s + 2 <= in.num_src) ++indptr[s + 2];
  }
  for (uint32_t s = 2; s <= in.num_src; ++s) indptr[s] += indptr[s - 1];
  for (uint32_t d = 0; d < num_dst; ++d) {
    for (uint32_t e = in.indptr[d]; e < in.indptr[d + 1]; ++e) {
      const uint32_t place = indptr[in.src[e] + 1]++;
      dst[place] = d;
      weight[place] = in.weight[in.weight_per_destination ? d : e];
    }
  }
}

}  // namespace gnnd
