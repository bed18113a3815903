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

// A device's operators, one function each: it puts launches on the queue's stream and returns.
// Pointers are device memory. No operator allocates, waits, or reads device results; buffer sizes
// follow from sizes alone. Each operator gives the bits of its twin in core, whatever the grid,
// unless its comment states a tolerance.
//
// A sample is made by BeginSample, then hop by hop by a strategy and, if the record has weights
// that are not the strategy's own, WeighGcn or WeighAllOne. Then state->error says whether there is
// one, and state->hops its sizes.

namespace gnnd::cuda {

// Words of workspace for scans over up to n elements: SampleBuffers::tiles needs them for the
// larger of a hop's rows and edges, and for the seeds.
uint32_t TileWords(uint64_t n);

// Writes the seeds first .. first + count of an epoch (core/item/item_range.h): positions of the
// keyed permutation of the train nodes.
void SeedsOfBatch(const Queue& queue, const BatchKey& key, const uint32_t* train_nodes,
                  uint32_t num_train_nodes, uint32_t first, uint32_t count, uint32_t* seeds);

// Starts a sample with these seeds; reads graph, table and buffers of `first`. A seed that occurs
// twice or is no node sets state->error. buffers.ids has room for the seeds.
void BeginSample(const Queue& queue, const HopTask& first, const uint32_t* seeds,
                 uint32_t num_seeds);

// Uniform draws with or without replacement (core/draw/floyd.h). A fanout above 32 needs max_edges
// words in buffers.work.
void SampleUniform(const Queue& queue, const HopTask& task, const DrawStream& stream,
                   uint32_t fanout, bool replace);
// Takes whole rows; by weight, their entries of weight above 0.
void SampleFull(const Queue& queue, const HopTask& task);
void SampleFullByWeight(const Queue& queue, const HopTask& task);
// LABOR (core/draw/labor.h). Writes its weights if the task has room for them.
void SampleLabor(const Queue& queue, const HopTask& task, const LaborKeys& keys, uint32_t fanout);

// Draws by edge weight (core/draw/alias.h). Needs buffers.work; max_degree is the graph's.
void SampleWeighted(const Queue& queue, const HopTask& task, const DrawStream& stream,
                    uint32_t fanout, bool replace, uint64_t max_degree);

struct WalkShape {
  uint32_t walks;
  uint32_t length;
  uint32_t end_below;  // RestartThreshold
};
// Takes the nodes that random walks visit most (core/draw/walk.h), with their numbers of visits.
// Needs buffers.work.
void SampleWalk(const Queue& queue, const HopTask& task, const DrawStream& stream, uint32_t fanout,
                const WalkShape& walk);

// Sizes that decide the workspace of strategies.
struct WorkShape {
  uint32_t max_rows = 0;     // largest number of a hop's rows
  uint32_t max_edges = 0;    // largest number of a hop's edges
  uint32_t max_fanout = 0;   // the largest finite one
  uint64_t max_degree = 0;   // the graph's largest degree
  uint32_t walk_visits = 0;  // walks * length; 0 = no walks
  bool weighted = false;
};
// Words of buffers.work: the largest need of any strategy.
uint64_t WorkWords(const WorkShape& shape);
uint64_t WeightedWords(const WorkShape& shape);
uint64_t WalkWords(const WorkShape& shape);

// Sets the weights of the hop's edges to 1.
void WeighAllOne(const Queue& queue, const HopTask& task);
// Weights and self weights of a graph convolution (core/draw/gcn.h). Needs buffers.inverses.
void WeighGcn(const Queue& queue, const HopTask& task);

// Looks up the hot ranks of nodes first .. first + count, at the same places of `out`; 0xFFFFFFFF
// from largest_cache on (core/feature/hot_order.h).
void MarkHotRanks(const Queue& queue, const uint32_t* ranks, uint32_t largest_cache,
                  const uint32_t* nodes, uint32_t first, uint32_t count, uint32_t* out);

// The places of a batch's rows (device_kernels.h); ScatterRows adds the rows that no tier has.
struct RowSource {
  const uint32_t* nodes = nullptr;      // the batch's nodes
  const uint32_t* ranks = nullptr;      // null: no node has a rank
  const uint32_t* positions = nullptr;  // rows to copy, others are left alone; null: all
  gnnd_device_row_tiers tiers{};
};

// Copies rows first .. first + count of a batch unchanged to the same places of `out`, which begins
// with row 0. Rows that the source lacks stay as they are. Also loads a cache: `nodes` is then the
// order of hotness, and `out` the cache. Lengths and addresses are multiples of 2, better of 16;
// out_stride is in bytes, 0 = row_bytes.
void CopyRows(const Queue& queue, const RowSource& source, uint64_t first, uint64_t count,
              uint64_t row_bytes, void* out, uint64_t out_stride = 0);

enum class RowType : uint32_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
// Copies rows from row 0 on and converts them: float32 or float16 to float32 or bfloat16.
void ConvertRows(const Queue& queue, const RowSource& source, uint64_t count, uint32_t dim,
                 RowType from, RowType to, void* out);

// Sets out[places[i]] = rows[i].
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
// ascending order, and their destinations.
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
// Sets out[k] = from[index[k]]: weights of the transpose's edges by transposed_edge, or by
// transposed_dst if all edges of a destination weigh the same.
void TakeByIndex(const Queue& queue, const float* from, const uint32_t* index, uint64_t count,
                 float* out);

// Runs rows [begin, end) of dropout (core/kernels/dropout.h), in place.
void RunDropout(const Queue& queue, const DropoutRows<float>& op, uint32_t begin, uint32_t end);
void RunDropout(const Queue& queue, const DropoutRows<double>& op, uint32_t begin, uint32_t end);
void RunDropout(const Queue& queue, const DropoutBfloat16& op, uint32_t begin, uint32_t end);

// Means over edges (train/ops/operators.h): scale[d] = 1 / the sum of a destination's weights, or 0
// if that is not above 0; scaled[e] = scale[d] * weight[e] unless `scaled` is null.
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

// Sets out[c] = the sum over rows: groups of 64 first, then their sums in order. `partial` has
// SumFloats.
uint64_t SumFloats(uint64_t rows, uint64_t columns);
void SumRows(const Queue& queue, const float* rows, uint32_t count, uint64_t columns,
             float* partial, float* out);
void SumRows(const Queue& queue, const Bfloat16* rows, uint32_t count, uint64_t columns,
             float* partial, float* out);

// Sets grad_in = grad * scale where `out` is not 0, else 0.
void DropoutGradient(const Queue& queue, const float* out, const float* grad, uint64_t count,
                     float scale, float* grad_in);
void DropoutGradient(const Queue& queue, const double* out, const double* grad, uint64_t count,
                     double scale, double* grad_in);
void DropoutGradient(const Queue& queue, const Bfloat16* out, const Bfloat16* grad, uint64_t count,
                     float scale, Bfloat16* grad_in);

// Activations after hidden layers (train/ops/after_layer.h).
enum class Activated : uint32_t { kRelu = 1, kElu = 2, kLeakyRelu = 3 };
void Activate(const Queue& queue, Activated activation, float* values, uint64_t count);
// Multiplies grad by the activation's derivative, given its output as out * inverse_scale.
void ActivationGradient(const Queue& queue, Activated activation, const float* out,
                        float inverse_scale, uint64_t count, float* grad);
// Normalises packed rows; with `grad`, computes gradients.
struct NormTask {
  const float* x = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  const float* scale = nullptr;  // layer normalisation, as the next
  const float* shift = nullptr;
  const float* grad = nullptr;
  float* out = nullptr;
  float* grad_scale = nullptr;  // [2, columns]: for scale and shift
};
void NormalizeL2(const Queue& queue, const NormTask& task);
// Backward needs LayerNormFloats floats of workspace.
uint64_t LayerNormFloats(uint32_t rows, uint32_t columns);
void LayerNorm(const Queue& queue, const NormTask& task, float* work);

// Runs rows [begin, end) of a pass of attention (core/kernels/attention.h). kBackward leaves
// grad_attention alone: AttentionVector computes it afterwards, over all destinations. `partial`
// has AttentionVectorFloats; sums are over groups of 64 rows, then over the groups in order.
void RunAttention(const Queue& queue, const AttentionRows<float>& op, AttentionPass pass,
                  uint32_t begin, uint32_t end);
uint64_t AttentionVectorFloats(uint32_t num_dst, uint64_t width);
void AttentionVector(const Queue& queue, const AttentionRows<float>& op, float* partial);
void DropAttention(const Queue& queue, const AttentionRows<float>& op, const DropoutKey& key,
                   const uint32_t* nodes, uint64_t threshold, uint32_t begin, uint32_t end,
                   float* weight);

// One number per row and head, and one vector per head; an operation writes one of the three.
struct HeadsTask {
  float* rows = nullptr;     // [num_rows, heads * columns]
  float* vectors = nullptr;  // [heads, columns]
  float* scores = nullptr;   // [heads][num_rows]
  uint32_t num_rows = 0;
  uint32_t heads = 0;
  uint32_t columns = 0;
};
// Sets scores[h][r] = vectors[h] . rows[r][h].
void ScoresOfHeads(const Queue& queue, const HeadsTask& task);
// Adds scores[h][r] * vectors[h] to rows[r][h].
void AddOuter(const Queue& queue, const HeadsTask& task);
// Sets vectors[h] = sum over r of scores[h][r] * rows[r][h]; `partial` as in SumRows of all heads.
void VectorsOfHeads(const Queue& queue, const HeadsTask& task, float* partial);

// Sets out[h][r] = the sum of grad_score over the row's edges and, for a destination, its own slot.
struct ScoreSumsTask {
  const float* grad_score = nullptr;  // [heads][num_dst + num_edges]
  uint32_t rows = 0;
  uint32_t num_dst = 0;
  uint64_t num_edges = 0;
  uint32_t heads = 0;
  const uint32_t* indptr = nullptr;  // [rows + 1]
  const uint32_t* edge = nullptr;    // [num_edges]; null = edges in their order
  float* out = nullptr;              // [heads][rows]
};
void SumScores(const Queue& queue, const ScoreSumsTask& task);

// Operators of models over rows (train/ops/row_ops.h).
struct BatchNormTask {
  const float* x = nullptr;  // [rows, columns]
  uint32_t rows = 0;
  uint64_t columns = 0;
  const float* scale = nullptr;  // [columns]
  const float* shift = nullptr;  // [columns]
  float* moments = nullptr;      // [2, columns]: mean, variance
  float* inverse = nullptr;      // [columns]: 1 / the standard deviation
  const float* grad = nullptr;   // null: forward; else backward
  float* out = nullptr;          // like x; in backward the gradient of x
  float* grad_scale = nullptr;   // [2, columns]: for scale and shift
};
// Forward writes `inverse` and, unless they are given, `moments`; backward reads both. Needs
// BatchNormFloats floats of workspace, except with given moments.
uint64_t BatchNormFloats(uint32_t rows, uint64_t columns);
void BatchNorm(const Queue& queue, const BatchNormTask& task, bool by_given, float* work);

struct PReluTask {
  const float* x = nullptr;  // [rows, columns]
  uint32_t rows = 0;
  uint64_t columns = 0;
  const float* slope = nullptr;  // [1]
  const float* grad = nullptr;   // null: forward; else backward
  float* out = nullptr;          // like x; in backward the gradient of x
  float* grad_slope = nullptr;   // [1]
};
// Backward needs SumFloats(rows, 1) floats of workspace.
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
  const float* grad = nullptr;  // null: forward; else backward
  float* grad_query = nullptr;
  float* grad_key = nullptr;
  float* grad_value = nullptr;
  float* along = nullptr;  // workspace of backward; like probability

  GNND_HD uint64_t width() const { return uint64_t{heads} * head_width; }
  GNND_HD uint64_t scores() const { return uint64_t{heads} * queries * tokens; }
};
void TokenAttention(const Queue& queue, const TokensTask& task);
// Draws the masks: 0 where a word of the row's node is below the threshold, else `scale`.
void TokenMasks(const Queue& queue, const TokensTask& task, const DropoutKey& key,
                const uint32_t* nodes, uint64_t threshold, float scale);

// Cross-entropy of rows (core/kernels/loss.h). The host computes a row's loss, LossOf(exp_sums[r],
// margins[r]), because logarithms of float64 have other bits on a device. The gradient has the
// processor's bits.
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

// Sets best[r] = the column of the largest element of row r, the first of equals.
void ArgMax(const Queue& queue, const float* logits, uint64_t stride, uint32_t columns,
            uint32_t begin, uint32_t end, uint32_t* best);

}  // namespace gnnd::cuda
