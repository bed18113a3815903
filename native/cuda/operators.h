#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "core/draw/batch_key.h"
#include "core/kernels/attention.h"
#include "core/kernels/dropout.h"
#include "core/kernels/spmm.h"
#include "core/kernels/update.h"
#include "cuda/queue.h"
#include "cuda/sample_views.h"
#include "include/gnnd/device_kernels.h"

// What a device can do, one function an operator: each puts launches on the queue's stream and
// returns. Pointers are the device's. Nothing allocates, waits, or reads what the device wrote;
// what is to be allocated is told by sizes alone. Each operator gives what its twin of core gives,
// bit for bit, whatever the grid; where that is not so its comment says by how much.
//
// A sample is made by BeginSample, then a hop after the other by a strategy and, where the record
// has weights of another kind than the strategy's, WeighGcn or WeighAllOne. Then state->error says
// whether there is one, state->hops how large it is.

namespace gnnd::cuda {

// Words that scans over up to n elements work in: SampleBuffers::tiles for the larger of rows and
// edges of a hop, and seeds.
uint32_t TileWords(uint64_t n);

// The seeds first .. first + count of an epoch (core/item/item_range.h): positions of the keyed
// permutation of the train nodes.
void SeedsOfBatch(const Queue& queue, const BatchKey& key, const uint32_t* train_nodes,
                  uint32_t num_train_nodes, uint32_t first, uint32_t count, uint32_t* seeds);

// Starts a sample with these seeds; of `first`, graph, table and buffers are read. Seeds that stand
// twice or are no nodes set state->error. buffers.ids has room for the seeds.
void BeginSample(const Queue& queue, const HopTask& first, const uint32_t* seeds,
                 uint32_t num_seeds);

// Uniform draws without replacement or with (core/draw/floyd.h). A fanout above 32 takes
// buffers.work: max_edges words.
void SampleUniform(const Queue& queue, const HopTask& task, const DrawStream& stream,
                   uint32_t fanout, bool replace);
// Whole rows; by weight, their entries of weight above 0.
void SampleFull(const Queue& queue, const HopTask& task);
void SampleFullByWeight(const Queue& queue, const HopTask& task);
// LABOR (core/draw/labor.h). Writes its weights where the task has room for them.
void SampleLabor(const Queue& queue, const HopTask& task, const LaborKeys& keys, uint32_t fanout);

// By edge weight (core/draw/alias.h). Takes buffers.work; max_degree is the graph's.
void SampleWeighted(const Queue& queue, const HopTask& task, const DrawStream& stream,
                    uint32_t fanout, bool replace, uint64_t max_degree);

struct WalkShape {
  uint32_t walks;
  uint32_t length;
  uint32_t end_below;  // RestartThreshold
};
// The most visited nodes of random walks (core/draw/walk.h), and how often they were. Takes
// buffers.work.
void SampleWalk(const Queue& queue, const HopTask& task, const DrawStream& stream, uint32_t fanout,
                const WalkShape& walk);

// What strategies need to work in, beside what every sample has.
struct WorkShape {
  uint32_t max_rows = 0;     // of a hop
  uint32_t max_edges = 0;    // of a hop
  uint32_t max_fanout = 0;   // the largest finite one
  uint64_t max_degree = 0;   // of the graph
  uint32_t walk_visits = 0;  // walks * length; 0 = no walks
  bool weighted = false;
};
// Words of buffers.work; the largest of what strategies need.
uint64_t WorkWords(const WorkShape& shape);
uint64_t WeightedWords(const WorkShape& shape);
uint64_t WalkWords(const WorkShape& shape);

// Weights 1 for the hop's edges.
void WeighAllOne(const Queue& queue, const HopTask& task);
// Weights of a graph convolution (core/draw/gcn.h), and self weights. Takes buffers.inverses.
void WeighGcn(const Queue& queue, const HopTask& task);

// Hot ranks of nodes first .. first + count, at the same places; 0xFFFFFFFF from largest_cache on
// (core/feature/hot_order.h).
void MarkHotRanks(const Queue& queue, const uint32_t* ranks, uint32_t largest_cache,
                  const uint32_t* nodes, uint32_t first, uint32_t count, uint32_t* out);

// Where a batch's rows lie (device_kernels.h); ScatterRows brings what no tier has.
struct RowSource {
  const uint32_t* nodes = nullptr;      // of the batch
  const uint32_t* ranks = nullptr;      // null: of no rank
  const uint32_t* positions = nullptr;  // of rows to copy, others are left alone; null: all
  gnnd_device_row_tiers tiers{};
};

// Rows first .. first + count of a batch, as they are, to the same places of `out`, which begins
// with row 0. What a source cannot give stays as it is. Also loads a cache: `nodes` is the order of
// hotness, and `out` the cache. Lengths and addresses are multiples of 2, better of 16; out_stride
// is in bytes, 0 = row_bytes.
void CopyRows(const Queue& queue, const RowSource& source, uint64_t first, uint64_t count,
              uint64_t row_bytes, void* out, uint64_t out_stride = 0);

enum class RowType : uint32_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
// The same from row 0, in another type: float32 or float16 to float32 or bfloat16.
void ConvertRows(const Queue& queue, const RowSource& source, uint64_t count, uint32_t dim,
                 RowType from, RowType to, void* out);

// out[places[i]] = rows[i].
void ScatterRows(const Queue& queue, const void* rows, const uint32_t* places, uint64_t count,
                 uint64_t row_bytes, void* out, uint64_t out_stride = 0);

// Rows [begin, end) of such an operation (core/kernels/spmm.h).
void RunSpmm(const Queue& queue, const SpmmFloat& op, uint32_t begin, uint32_t end);
void RunSpmm(const Queue& queue, const SpmmHalf& op, uint32_t begin, uint32_t end);
void RunSpmm(const Queue& queue, const SpmmDouble& op, uint32_t begin, uint32_t end);
void RunSpmm(const Queue& queue, const SpmmBfloat16& op, uint32_t begin, uint32_t end);
void RunSpmm(const Queue& queue, const SpmmFloatToBfloat16& op, uint32_t begin, uint32_t end);
void RunSpmm(const Queue& queue, const SpmmHalfToBfloat16& op, uint32_t begin, uint32_t end);

// The transpose of a block (core/kernels/transpose.h): for every source the edges that read it, in
// ascending order, and the destinations they belong to.
struct TransposeTask {
  const uint32_t* indptr = nullptr;  // [num_dst + 1]
  const uint32_t* src = nullptr;     // [num_edges]
  uint32_t num_dst = 0;
  uint32_t num_src = 0;
  uint32_t num_edges = 0;
  uint32_t* transposed_indptr = nullptr;  // [num_src + 1]
  uint32_t* transposed_dst = nullptr;     // [num_edges]
  uint32_t* transposed_edge = nullptr;    // [num_edges]
};
// `work` has TransposeWords(num_edges) words.
uint64_t TransposeWords(uint32_t num_edges);
void Transpose(const Queue& queue, const TransposeTask& task, uint32_t* work);
// out[k] = from[index[k]]: weights of the transpose's edges by transposed_edge, or by
// transposed_dst where all edges of a destination weigh the same.
void TakeByIndex(const Queue& queue, const float* from, const uint32_t* index, uint64_t count,
                 float* out);

// Rows [begin, end) of such an operation (core/kernels/dropout.h), in place.
void RunDropout(const Queue& queue, const DropoutRows<float>& op, uint32_t begin, uint32_t end);
void RunDropout(const Queue& queue, const DropoutRows<double>& op, uint32_t begin, uint32_t end);
void RunDropout(const Queue& queue, const DropoutBfloat16& op, uint32_t begin, uint32_t end);

// Means over edges (train/ops/operators.h): scale[d] = 1 / the sum of a destination's weights, 0
// where that is not above 0; scaled[e] = scale[d] * weight[e] where there is room for it.
struct MeanScalesTask {
  const uint32_t* indptr = nullptr;  // [num_dst + 1]
  const float* weight = nullptr;     // [num_edges]; null = 1
  uint32_t num_dst = 0;
  float* scale = nullptr;   // [num_dst]
  float* scaled = nullptr;  // [num_edges] or null
};
void MeanScales(const Queue& queue, const MeanScalesTask& task);

void Convert(const Queue& queue, const float* from, uint64_t count, Bfloat16* to);
void Convert(const Queue& queue, const Bfloat16* from, uint64_t count, float* to);
void Convert(const Queue& queue, const Half* from, uint64_t count, float* to);
void Convert(const Queue& queue, const Half* from, uint64_t count, Bfloat16* to);

// out[c] = the sum over rows: of groups of 64, then of these in their order. `partial` has
// SumFloats.
uint64_t SumFloats(uint64_t rows, uint64_t columns);
void SumRows(const Queue& queue, const float* rows, uint32_t count, uint64_t columns,
             float* partial, float* out);
void SumRows(const Queue& queue, const Bfloat16* rows, uint32_t count, uint64_t columns,
             float* partial, float* out);

// grad_in = grad * scale where `out` is not 0, else 0.
void DropoutGradient(const Queue& queue, const float* out, const float* grad, uint64_t count,
                     float scale, float* grad_in);
void DropoutGradient(const Queue& queue, const double* out, const double* grad, uint64_t count,
                     double scale, double* grad_in);
void DropoutGradient(const Queue& queue, const Bfloat16* out, const Bfloat16* grad, uint64_t count,
                     float scale, Bfloat16* grad_in);

// What follows hidden layers (train/ops/after_layer.h).
enum class Activated : uint32_t { kRelu = 1, kElu = 2, kLeakyRelu = 3 };
void Activate(const Queue& queue, Activated activation, float* values, uint64_t count);
// grad *= the derivative where the activation gave out * inverse_scale.
void ActivationGradient(const Queue& queue, Activated activation, const float* out,
                        float inverse_scale, uint64_t count, float* grad);
// Rows that lie together; with `grad`, their gradients.
struct NormTask {
  const float* x = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  const float* scale = nullptr;  // layer normalisation, as the next
  const float* shift = nullptr;
  const float* grad = nullptr;
  float* out = nullptr;
  float* grad_scale = nullptr;  // [2, columns]: of scale and shift
};
void NormalizeL2(const Queue& queue, const NormTask& task);
// Backward works in LayerNormFloats.
uint64_t LayerNormFloats(uint32_t rows, uint32_t columns);
void LayerNorm(const Queue& queue, const NormTask& task, float* work);

// Rows [begin, end) of a pass of attention (core/kernels/attention.h). kBackward leaves
// grad_attention alone: that is AttentionVector's, over all destinations, after it. `partial` has
// AttentionVectorFloats; sums are of groups of 64 rows, then of the groups in their order.
void RunAttention(const Queue& queue, const AttentionRows<float>& op, AttentionPass pass,
                  uint32_t begin, uint32_t end);
uint64_t AttentionVectorFloats(uint32_t num_dst, uint64_t width);
void AttentionVector(const Queue& queue, const AttentionRows<float>& op, float* partial);
void DropAttention(const Queue& queue, const AttentionRows<float>& op, const DropoutKey& key,
                   const uint32_t* nodes, uint64_t threshold, uint32_t begin, uint32_t end,
                   float* weight);

// A number a row and head, and a vector a head; an operation writes one of the three.
struct HeadsTask {
  float* rows = nullptr;     // [num_rows, heads * columns]
  float* vectors = nullptr;  // [heads, columns]
  float* scores = nullptr;   // [heads][num_rows]
  uint32_t num_rows = 0;
  uint32_t heads = 0;
  uint32_t columns = 0;
};
// scores[h][r] = vectors[h] . rows[r][h]
void ScoresOfHeads(const Queue& queue, const HeadsTask& task);
// rows[r][h] += scores[h][r] * vectors[h]
void AddOuter(const Queue& queue, const HeadsTask& task);
// vectors[h] = sum over r of scores[h][r] * rows[r][h]; `partial` has SumFloats of rows and width.
void VectorsOfHeads(const Queue& queue, const HeadsTask& task, float* partial);

// out[h][r] = the sum of grad_score over the row's edges and, of a destination, over its own.
struct ScoreSumsTask {
  const float* grad_score = nullptr;  // [heads][num_dst + num_edges]
  uint32_t rows = 0;
  uint32_t num_dst = 0;
  uint64_t num_edges = 0;
  uint32_t heads = 0;
  const uint32_t* indptr = nullptr;  // [rows + 1]
  const uint32_t* edge = nullptr;    // [num_edges]; null = as they stand
  float* out = nullptr;              // [heads][rows]
};
void SumScores(const Queue& queue, const ScoreSumsTask& task);

// What models over rows compute (train/ops/row_ops.h).
struct BatchNormTask {
  const float* x = nullptr;  // [rows, columns]
  uint32_t rows = 0;
  uint64_t columns = 0;
  const float* scale = nullptr;  // [columns]
  const float* shift = nullptr;  // [columns]
  float* moments = nullptr;      // [2, columns]: mean, variance
  float* inverse = nullptr;      // [columns]: 1 / the standard deviation
  const float* grad = nullptr;   // with it: gradients
  float* out = nullptr;          // like x; the gradient in x
  float* grad_scale = nullptr;   // [2, columns]: of scale and shift
};
// Forward writes moments, unless they are given, and inverse; backward reads both. Works in
// BatchNormFloats, but for given moments.
uint64_t BatchNormFloats(uint32_t rows, uint64_t columns);
void BatchNorm(const Queue& queue, const BatchNormTask& task, bool by_given, float* work);

struct PReluTask {
  const float* x = nullptr;  // [rows, columns]
  uint32_t rows = 0;
  uint64_t columns = 0;
  const float* slope = nullptr;  // [1]
  const float* grad = nullptr;   // with it: gradients
  float* out = nullptr;          // like x; the gradient in x
  float* grad_slope = nullptr;   // [1]
};
// Backward works in SumFloats of rows and 1.
void PRelu(const Queue& queue, const PReluTask& task, float* partial);

// Attention of each row's queries over its tokens. Probabilities and mask are
// [rows, heads, queries, tokens].
struct TokensTask {
  uint32_t rows = 0;
  uint32_t queries = 0;
  uint32_t tokens = 0;
  uint32_t heads = 0;
  uint32_t head_width = 0;
  const float* query = nullptr;  // [rows, queries, width]
  const float* key = nullptr;    // [rows, tokens, width]
  const float* value = nullptr;  // [rows, tokens, width]
  float* probability = nullptr;
  float* mask = nullptr;        // or null: no dropout
  float* out = nullptr;         // [rows, queries, width]
  const float* grad = nullptr;  // with it: gradients, which are written
  float* grad_query = nullptr;
  float* grad_key = nullptr;
  float* grad_value = nullptr;
  float* along = nullptr;  // backward works there; like probability

  GNND_HD uint64_t width() const { return uint64_t{heads} * head_width; }
  GNND_HD uint64_t scores() const { return uint64_t{heads} * queries * tokens; }
};
void TokenAttention(const Queue& queue, const TokensTask& task);
// mask = 0 where a word of the row's node is below the threshold, else `scale`.
void TokenMasks(const Queue& queue, const TokensTask& task, const DropoutKey& key,
                const uint32_t* nodes, uint64_t threshold, float scale);

// Cross-entropy of rows (core/kernels/loss.h). A row's loss is LossOf(exp_sums[r], margins[r]), for
// the host to compute: logarithms of float64 have other bits on a device. The gradient has the
// processor's.
struct LossRows {
  const float* logits = nullptr;  // rows of `stride` floats, of which `columns` >= 1 are classes
  uint64_t stride = 0;
  uint32_t columns = 0;
  const uint32_t* labels = nullptr;
  float* grad = nullptr;  // like logits, or null
  double* exp_sums = nullptr;
  float* margins = nullptr;
};
void CrossEntropy(const Queue& queue, const LossRows& op, uint32_t begin, uint32_t end);

// best[r] = the column of the largest element of row r, the first of equals.
void ArgMax(const Queue& queue, const float* logits, uint64_t stride, uint32_t columns,
            uint32_t begin, uint32_t end, uint32_t* best);

}  // namespace gnnd::cuda
