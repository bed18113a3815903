#pragma once

#include <cstdint>

#include "core/draw/dropout.h"
#include "core/vec/dispatch.h"

// The kernels of graph attention (Velickovic et al., ICLR 2018; Brody et al., ICLR 2022) over a
// block's CSC. One number per edge and head is stored; tensors of edges x features never exist. In
// GAT and GATv2 every destination attends to itself once, and edges to itself in the block do not
// count (as with torch_geometric's add_self_loops). The transformer's attention (Shi et al., IJCAI
// 2021) takes edges as they are; without edges its sum is 0.

namespace gnnd {

// Slope of the leaky ReLU on scores.
inline constexpr double kAttentionSlope = 0.2;

// One attention on rows of T (float or double). For destination r with the edges e of
// indptr[r] .. indptr[r + 1] and s = self(r), per head h and with leaky = leaky ReLU:
//
//   GAT:    score(e) = leaky(source_score[h][index[e]] + destination_score[h][r])
//   GATv2:  score(e) = sum over c of attention[h][c] * leaky(source[index[e]][h][c] +
//                                                            destination[r][h][c])
//   alpha = softmax of score over the edges and s; alpha = 0 for edges whose index is s
//
//   dot:    score(e) = score_scale * sum over c of key[index[e]][h][c] * destination[r][h][c]
//   alpha = softmax of score over the edges; alpha = 0 for s
//
// Numbers per edge and head lie as [heads][num_dst + num_edges]: first those of the destinations'
// own rows, then the edges'. Sums run in a fixed order with one rounding per operation, so every
// variant and any split of the rows give the same bits.
template <typename T>
struct AttentionRows {
  const uint32_t* indptr = nullptr;      // [num_dst + 1]
  const uint32_t* index = nullptr;       // [num_edges], rows of source
  const uint32_t* self_index = nullptr;  // [num_dst], self(r); null = r itself
  uint32_t num_dst = 0;
  uint64_t num_edges = 0;
  uint64_t num_src = 0;
  uint32_t heads = 1;
  uint32_t columns = 0;  // columns of one head

  const T* source = nullptr;             // [num_src, heads * columns]
  uint64_t source_stride = 0;            // between rows of source and key; 0 = heads * columns
  const T* source_score = nullptr;       // GAT: [heads][num_src]; null = GATv2
  const T* destination_score = nullptr;  // GAT: [heads][num_dst]
  const T* destination = nullptr;        // GATv2, dot: [num_dst, heads * columns]
  const T* attention = nullptr;          // GATv2: [heads * columns]
  const T* key = nullptr;                // dot: [num_src, heads * columns]; null = the others
  T score_scale = T{1};                  // dot

  T* alpha = nullptr;  // [heads][num_dst + num_edges]

  // Backward. `weight` is the coefficient that aggregation used: alpha, or alpha after dropout (0
  // where dropped, else multiplied by weight_scale).
  const T* weight = nullptr;
  T weight_scale = T{1};
  const T* grad_out = nullptr;    // [num_dst, heads * columns]
  T* grad_score = nullptr;        // like alpha; GAT's before the leaky ReLU
  T* grad_destination = nullptr;  // GATv2, dot: [num_dst, heads * columns]
  T* grad_attention = nullptr;    // GATv2: [heads * columns], added to

  // Backward of GATv2's and dot's scores with respect to sources; rows of the transposed block.
  const uint32_t* transposed_indptr = nullptr;  // [num_src + 1]
  const uint32_t* transposed_dst = nullptr;     // [num_edges]
  const uint32_t* transposed_edge = nullptr;    // [num_edges], which edge it is
  T* grad_source = nullptr;                     // [num_src, heads * columns], added to
  T* grad_key = nullptr;                        // dot: [num_src, heads * columns], written

  constexpr uint64_t stride() const { return num_dst + num_edges; }
  constexpr uint64_t width() const { return uint64_t{heads} * columns; }
  constexpr uint64_t row_stride() const { return source_stride == 0 ? width() : source_stride; }
};

enum class AttentionPass : uint32_t {
  kForward,      // alpha of destinations [begin, end)
  kBackward,     // grad_score, grad_destination and for GATv2 grad_attention, of destinations
  kBackwardSrc,  // adds to rows [begin, end) of GATv2's grad_source; writes those of dot's grad_key
};

// Keyed dropout (core/draw/dropout.h) of the coefficients of destinations [begin, end), whose
// global ids are `nodes`: weight, laid out like alpha, is op.weight_scale * alpha where a word is
// not below the threshold, else 0.
template <typename T>
void DropAttention(const AttentionRows<T>& op, const DropoutKey& key, const uint32_t* nodes,
                   uint64_t threshold, uint32_t begin, uint32_t end, T* weight);

struct AttentionLoops {
  void (*of_float)(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                   uint32_t end);
  void (*of_double)(const AttentionRows<double>& op, AttentionPass pass, uint32_t begin,
                    uint32_t end);
};
GNND_DECLARE_LOOPS(AttentionLoops, kAttentionLoops);

// Runs one pass over rows [begin, end), with the best variant for this machine.
inline void RunAttention(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                         uint32_t end) {
  BestLoops<AttentionLoops>().of_float(op, pass, begin, end);
}
inline void RunAttention(const AttentionRows<double>& op, AttentionPass pass, uint32_t begin,
                         uint32_t end) {
  BestLoops<AttentionLoops>().of_double(op, pass, begin, end);
}

}  // namespace gnnd
