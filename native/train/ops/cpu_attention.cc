#include <numeric>

#include "train/ops/grouped_sum.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

// Attention on the processor. Products with attention vectors are loops of our own: libraries are
// slow for matrices with as few columns as there are heads, and their sums depend on the number of
// threads.

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;

template <typename T>
void Scores(const HeadRows<T>& op, Workspace*, T* out) {
  ParallelRows(op.num_rows, kGrainRows, [&op, out](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        out[uint64_t{h} * op.num_rows + r] =
            DotOfRows(op.rows + (uint64_t{r} * op.heads + h) * op.columns,
                      op.vectors + uint64_t{h} * op.columns, op.columns);
      }
    }
  });
}

template <typename T>
void Pass(const AttentionRows<T>& op, AttentionPass pass, uint32_t rows, Workspace*) {
  ParallelRows(rows, kGrainRows,
               [&op, pass](uint32_t begin, uint32_t end) { RunAttention(op, pass, begin, end); });
}

template <typename T>
void Drop(const AttentionRows<T>& op, const DropoutKey& key, const uint32_t* nodes,
          uint64_t threshold, Workspace*, T* weight) {
  ParallelRows(op.num_dst, kGrainRows, [&](uint32_t begin, uint32_t end) {
    DropAttention(op, key, nodes, threshold, begin, end, weight);
  });
}

// Sums rows weighted by op.weight (laid out like alpha), one head after the other. `sum` says which
// rows are summed, where the sums go, and which rows are a row's own; edges_of(weights of a head's
// edges) puts the weights in the order of `sum`.
template <typename T, typename EdgesOf>
void SumHeads(const AttentionRows<T>& op, uint32_t rows, Spmm<T> sum, const EdgesOf& edges_of) {
  sum.columns = op.columns;
  sum.self_stride = sum.x_stride;
  sum.out_stride = op.width();
  sum.self_rows = op.num_dst;
  for (uint32_t h = 0; h < op.heads; ++h) {
    if (op.key == nullptr) sum.self = sum.x;
    sum.self_weight = op.weight + h * op.stride();
    sum.weight = edges_of(sum.self_weight + op.num_dst);
    ParallelRows(rows, kGrainRows,
                 [&sum](uint32_t begin, uint32_t end) { RunSpmm(sum, begin, end); });
    sum.x += op.columns;
    sum.out += op.columns;
  }
}

template <typename T>
void Aggregate(const AttentionRows<T>& op, Workspace*, T* out) {
  Spmm<T> sum;
  sum.x = op.source;
  sum.x_stride = op.row_stride();
  sum.indptr = op.indptr;
  sum.index = op.index;
  sum.self_index = op.self_index;
  sum.out = out;
  SumHeads(op, op.num_dst, sum, [](const T* edges) { return edges; });
}

template <typename T>
void Transpose(const AttentionRows<T>& op, Workspace* workspace, uint32_t* indptr, uint32_t* dst,
               uint32_t* edge) {
  auto* numbers = workspace->Get<uint32_t>(op.num_edges);
  std::iota(numbers, numbers + op.num_edges, 0U);
  TransposeInput<uint32_t> input;
  input.indptr = {op.indptr, uint64_t{op.num_dst} + 1};
  input.src = {op.index, op.num_edges};
  input.num_src = static_cast<uint32_t>(op.num_src);
  input.weight = numbers;
  TransposeBlock(input, indptr, dst, edge);
}

template <typename T>
void AggregateTransposed(const AttentionRows<T>& op, Workspace* workspace) {
  T* transposed = workspace->Get<T>(op.num_edges);
  Spmm<T> sum;
  sum.x = op.grad_out;
  sum.x_stride = op.width();
  sum.indptr = op.transposed_indptr;
  sum.index = op.transposed_dst;
  sum.out = op.grad_source;
  SumHeads(op, static_cast<uint32_t>(op.num_src), sum, [&](const T* edges) {
    for (uint64_t k = 0; k < op.num_edges; ++k) transposed[k] = edges[op.transposed_edge[k]];
    return transposed;
  });
}

template <typename T>
void BackwardOfSums(const AttentionRows<T>& op, Workspace* workspace) {
  SumInGroups(op.num_dst, uint64_t{op.heads} * op.columns, workspace, op.grad_attention,
              [&](uint32_t begin, uint32_t end, T* sums) {
                AttentionRows<T> mine = op;
                mine.grad_attention = sums;
                RunAttention(mine, AttentionPass::kBackward, begin, end);
              });
}

template <typename T>
void ScoreGradients(const AttentionRows<T>& op, uint32_t rows, const uint32_t* indptr,
                    const uint32_t* edge, Workspace*, T* out) {
  ParallelRows(rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t h = 0; h < op.heads; ++h) {
      const T* own = op.grad_score + h * op.stride();
      const T* edges = own + op.num_dst;
      for (uint32_t r = begin; r < end; ++r) {
        T sum = r < op.num_dst ? own[r] : T{0};
        for (uint64_t k = indptr[r]; k < indptr[r + 1]; ++k) {
          sum += edges[edge == nullptr ? k : edge[k]];
        }
        out[uint64_t{h} * rows + r] = sum;
      }
    }
  });
}

template <typename T>
void AddOuter(const HeadRows<T>& op, Workspace*, T* to) {
  ParallelRows(op.num_rows, kGrainRows, [&op, to](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        T* __restrict row = to + (uint64_t{r} * op.heads + h) * op.columns;
        const T* __restrict vector = op.vectors + uint64_t{h} * op.columns;
        const T factor = op.scores[uint64_t{h} * op.num_rows + r];
        for (uint32_t c = 0; c < op.columns; ++c) row[c] += factor * vector[c];
      }
    }
  });
}

template <typename T>
void VectorGradients(const HeadRows<T>& op, Workspace* workspace, T* out) {
  const uint64_t width = uint64_t{op.heads} * op.columns;
  SumInGroups(op.num_rows, width, workspace, out, [&](uint32_t begin, uint32_t end, T* sums) {
    for (uint32_t r = begin; r < end; ++r) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t at = uint64_t{h} * op.columns;
        const T* __restrict row = op.rows + r * width + at;
        T* __restrict sum = sums + at;
        const T factor = op.scores[uint64_t{h} * op.num_rows + r];
        for (uint32_t c = 0; c < op.columns; ++c) sum[c] += factor * row[c];
      }
    }
  });
}

}  // namespace

template <typename T>
AttentionOperators<T> CpuAttention() {
  AttentionOperators<T> operators;
  operators.scores = &Scores<T>;
  operators.pass = &Pass<T>;
  operators.drop = &Drop<T>;
  operators.aggregate = &Aggregate<T>;
  operators.transpose = &Transpose<T>;
  operators.aggregate_transposed = &AggregateTransposed<T>;
  operators.backward_of_sums = &BackwardOfSums<T>;
  operators.score_gradients = &ScoreGradients<T>;
  operators.add_outer = &AddOuter<T>;
  operators.vector_gradients = &VectorGradients<T>;
  return operators;
}
template AttentionOperators<float> CpuAttention();
template AttentionOperators<double> CpuAttention();

}  // namespace gnnd
