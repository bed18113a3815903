#pragma once

#include <ATen/core/Tensor.h>

#include "core/batch/record.h"
#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "train/ops/workspace.h"

// Graph attention over a block as a differentiable operator.

namespace gnnd {

// Keyed dropout of attention coefficients (core/draw/dropout.h).
struct AttentionDropout {
  DropoutKey key;                   // key.layer is the model's layer
  const uint32_t* nodes = nullptr;  // global ids of the destinations
  float p = 0;
};

// The input of attention. GAT scores an edge by a source part and a destination part, GATv2 by one
// vector on the sum of both transformed rows; with keys, the score is the product of the source's
// key and the destination's query (core/kernels/attention.h).
struct AttentionInput {
  at::Tensor source;                 // [num_src, heads * columns]
  at::Tensor attention;              // [heads, columns]
  at::Tensor attention_destination;  // GAT: [heads, columns]
  at::Tensor destination;            // GATv2: [num_dst, heads * columns]; with keys the queries
  at::Tensor key = {};               // [num_src, heads * columns], with the row stride of `source`
  int64_t heads = 0;                 // used with keys

  uint32_t num_heads() const {
    return static_cast<uint32_t>(key.defined() ? heads : attention.size(0));
  }
};

// Returns [num_dst, heads * columns]: every head's sum of alpha * source. Tensors are contiguous,
// of one element type; backward's data lie in `workspace`.
at::Tensor Attend(const AttentionInput& input, const BlockView& block,
                  const AttentionDropout& dropout, Workspace* workspace);

// Destinations whose sources are rows of a table; `self` holds their own rows in it.
struct AttentionTable {
  const uint32_t* indptr = nullptr;  // [num_dst + 1]
  const uint32_t* index = nullptr;   // [indptr[num_dst]]
  const uint32_t* self = nullptr;    // [num_dst]
  uint32_t num_dst = 0;
  uint64_t num_edges = 0;
  const float* source_score = nullptr;       // GAT: [heads][num_src]
  const float* destination_score = nullptr;  // GAT: [heads][num_dst]
};

// Attend without gradients or dropout, written to `out` ([num_dst, heads * columns]).
void AttendTable(const AttentionInput& input, const AttentionTable& table, Workspace* workspace,
                 float* out);

// GAT's part of the scores of rows [n, heads * columns], as [heads, n].
at::Tensor AttentionScores(const at::Tensor& rows, const at::Tensor& attention,
                           Workspace* workspace);

}  // namespace gnnd
