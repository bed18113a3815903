#include "train/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "core/base/check.h"
#include "core/draw/philox.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "train/grouped_sum.h"
#include "train/ops.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainRows = 64;

// The products with attention vectors are loops of our own: matrices with as few columns as there
// are heads are slow in libraries, and their sums there depend on the number of threads.

// scores[h][r] = attention[h] . rows[r][h]
template <typename T>
void ScoreRows(const T* rows, const T* attention, const at::Tensor& shape, uint32_t num_rows,
               T* scores) {
  const auto heads = static_cast<uint32_t>(shape.size(0));
  const auto columns = static_cast<uint32_t>(shape.size(1));
  ParallelRows(num_rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      for (uint32_t h = 0; h < heads; ++h) {
        scores[uint64_t{h} * num_rows + r] = DotOfRows(rows + (uint64_t{r} * heads + h) * columns,
                                                       attention + uint64_t{h} * columns, columns);
      }
    }
  });
}

// Sums of rows weighted by `weight`, which is laid out like alpha, one head after the other. `sum`
// says of which rows, where they go, and which of them are a row's own; edges_of(weights of a
// head's edges) puts those in the order of `sum`.
template <typename T, typename EdgesOf>
void SumHeads(const AttentionRows<T>& op, const T* weight, uint32_t rows, Spmm<T> sum,
              const EdgesOf& edges_of) {
  sum.columns = op.columns;
  sum.x_stride = sum.self_stride = sum.out_stride = uint64_t{op.heads} * op.columns;
  sum.self_rows = op.num_dst;
  for (uint32_t h = 0; h < op.heads; ++h) {
    sum.self = sum.x;
    sum.self_weight = weight + h * op.stride();
    sum.weight = edges_of(sum.self_weight + op.num_dst);
    ParallelRows(rows, kGrainRows,
                 [&sum](uint32_t begin, uint32_t end) { RunSpmm(sum, begin, end); });
    sum.x += op.columns;
    sum.out += op.columns;
  }
}

// out = alpha-weighted sums of source rows.
template <typename T>
void AggregateHeads(const AttentionRows<T>& op, const T* weight, T* out) {
  Spmm<T> sum;
  sum.x = op.source;
  sum.indptr = op.indptr;
  sum.index = op.index;
  sum.self_index = op.self_index;
  sum.out = out;
  SumHeads(op, weight, op.num_dst, sum, [](const T* edges) { return edges; });
}

template <typename T>
void RunPassParallel(const AttentionRows<T>& op, AttentionPass pass, uint32_t rows) {
  ParallelRows(rows, kGrainRows,
               [&op, pass](uint32_t begin, uint32_t end) { RunAttention(op, pass, begin, end); });
}

// One attention between forward and backward. Borrows the record; all else is in the workspace.
template <typename T>
class AttentionOperand final : public torch::CustomClassHolder {
 public:
  AttentionOperand(const AttentionInput& input, const BlockView& block, Workspace* workspace)
      : block_(block), workspace_(workspace) {
    op_.indptr = block.indptr.data();
    op_.index = block.src.data();
    op_.num_dst = block.num_dst;
    op_.num_src = block.num_src;
    op_.num_edges = block.src.size();
    op_.heads = static_cast<uint32_t>(input.attention.size(0));
    op_.columns = static_cast<uint32_t>(input.attention.size(1));
    op_.source = input.source.const_data_ptr<T>();
  }

  at::Tensor Forward(const AttentionInput& input, const AttentionDropout& dropout) {
    if (input.destination.defined()) {
      op_.destination = input.destination.const_data_ptr<T>();
      op_.attention = input.attention.const_data_ptr<T>();
    } else {
      const at::Tensor own = input.source.narrow(0, 0, block_.num_dst);
      op_.source_score =
          AttentionScores(input.source, input.attention, workspace_).const_data_ptr<T>();
      op_.destination_score =
          AttentionScores(own, input.attention_destination, workspace_).const_data_ptr<T>();
    }
    op_.alpha = workspace_->Get<T>(op_.heads * op_.stride());
    RunPassParallel(op_, AttentionPass::kForward, block_.num_dst);
    op_.weight = dropout.p == 0.0F ? op_.alpha : Drop(dropout);
    at::Tensor out = EmptyIn(workspace_, input.source, block_.num_dst, input.source.size(1));
    AggregateHeads(op_, op_.weight, out.data_ptr<T>());
    return out;
  }

  // Gradients in source, attention, attention_destination, destination.
  variable_list Backward(const variable_list& saved, const at::Tensor& grad_out) {
    const at::Tensor& source = saved[0];
    op_.grad_out = grad_out.const_data_ptr<T>();
    op_.grad_score = workspace_->Get<T>(op_.heads * op_.stride());
    Transpose();
    at::Tensor grad_source = EmptyIn(workspace_, source, source.size(0), source.size(1));
    op_.grad_source = grad_source.data_ptr<T>();
    AggregateTransposed();
    if (op_.source_score == nullptr) return BackwardOfSums(source, grad_source);
    RunPassParallel(op_, AttentionPass::kBackward, block_.num_dst);
    const at::Tensor source_scores =
        ScoreGradients(source, block_.num_src, op_.transposed_indptr, op_.transposed_edge);
    const at::Tensor own_scores = ScoreGradients(source, block_.num_dst, op_.indptr, nullptr);
    const at::Tensor own = source.narrow(0, 0, block_.num_dst);
    AddOuter(source_scores, saved[1], op_.grad_source);
    AddOuter(own_scores, saved[2], op_.grad_source);
    return {grad_source, AttentionGradient(source_scores, source),
            AttentionGradient(own_scores, own), at::Tensor()};
  }

 private:
  // The coefficients after dropout; where p drops one it becomes 0.
  T* Drop(const AttentionDropout& dropout) {
    op_.weight_scale = T{1} / (T{1} - static_cast<T>(dropout.p));
    T* weight = workspace_->Get<T>(op_.heads * op_.stride());
    const uint64_t threshold = DropoutThreshold(dropout.p);
    ParallelRows(block_.num_dst, kGrainRows, [&](uint32_t begin, uint32_t end) {
      DropAttention(op_, dropout.key, dropout.nodes, threshold, begin, end, weight);
    });
    return weight;
  }

  void Transpose() {
    auto* indptr = workspace_->Get<uint32_t>(uint64_t{block_.num_src} + 1);
    auto* dst = workspace_->Get<uint32_t>(op_.num_edges);
    auto* edge = workspace_->Get<uint32_t>(op_.num_edges);
    auto* numbers = workspace_->Get<uint32_t>(op_.num_edges);
    std::iota(numbers, numbers + op_.num_edges, 0U);
    TransposeInput<uint32_t> input;
    input.indptr = block_.indptr;
    input.src = block_.src;
    input.num_src = block_.num_src;
    input.weight = numbers;
    TransposeBlock(input, indptr, dst, edge);
    op_.transposed_indptr = indptr;
    op_.transposed_dst = dst;
    op_.transposed_edge = edge;
  }

  // grad_source = the weights' transpose times grad_out.
  void AggregateTransposed() {
    T* transposed = workspace_->Get<T>(op_.num_edges);
    Spmm<T> sum;
    sum.x = op_.grad_out;
    sum.indptr = op_.transposed_indptr;
    sum.index = op_.transposed_dst;
    sum.out = op_.grad_source;
    SumHeads(op_, op_.weight, block_.num_src, sum, [&](const T* edges) {
      for (uint64_t k = 0; k < op_.num_edges; ++k) transposed[k] = edges[op_.transposed_edge[k]];
      return transposed;
    });
  }

  // GATv2: the rest of grad_source, and the gradients in the vector and the destinations.
  variable_list BackwardOfSums(const at::Tensor& source, const at::Tensor& grad_source) {
    const uint64_t width = uint64_t{op_.heads} * op_.columns;
    at::Tensor grad_destination = EmptyIn(workspace_, source, block_.num_dst, source.size(1));
    op_.grad_destination = grad_destination.data_ptr<T>();
    at::Tensor grad_attention = EmptyIn(workspace_, source, op_.heads, op_.columns);
    SumInGroups(block_.num_dst, width, workspace_, grad_attention.data_ptr<T>(),
                [&](uint32_t begin, uint32_t end, T* sums) {
                  AttentionRows<T> mine = op_;
                  mine.grad_attention = sums;
                  RunAttention(mine, AttentionPass::kBackward, begin, end);
                });
    RunPassParallel(op_, AttentionPass::kBackwardSrc, block_.num_src);
    return {grad_source, grad_attention, at::Tensor(), grad_destination};
  }

  // [heads, rows]: sums of the score gradients over the edges of each row, which `edge` names where
  // they are not numbered as they stand, and over a destination's own.
  at::Tensor ScoreGradients(const at::Tensor& like, uint32_t rows, const uint32_t* indptr,
                            const uint32_t* edge) {
    at::Tensor sums = EmptyIn(workspace_, like, op_.heads, rows);
    T* to = sums.data_ptr<T>();
    ParallelRows(rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
      for (uint32_t h = 0; h < op_.heads; ++h) {
        const T* own = op_.grad_score + h * op_.stride();
        const T* edges = own + op_.num_dst;
        for (uint32_t r = begin; r < end; ++r) {
          T sum = r < op_.num_dst ? own[r] : T{0};
          for (uint64_t k = indptr[r]; k < indptr[r + 1]; ++k) {
            sum += edges[edge == nullptr ? k : edge[k]];
          }
          to[uint64_t{h} * rows + r] = sum;
        }
      }
    });
    return sums;
  }

  // to[r][h] += scores[h][r] * attention[h] for the rows that `scores` has.
  void AddOuter(const at::Tensor& scores, const at::Tensor& attention, T* to) const {
    const T* score = scores.const_data_ptr<T>();
    const T* vectors = attention.const_data_ptr<T>();
    const auto rows = static_cast<uint32_t>(scores.size(1));
    ParallelRows(rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
      for (uint32_t r = begin; r < end; ++r) {
        for (uint32_t h = 0; h < op_.heads; ++h) {
          T* __restrict row = to + (uint64_t{r} * op_.heads + h) * op_.columns;
          const T* __restrict vector = vectors + uint64_t{h} * op_.columns;
          const T factor = score[uint64_t{h} * rows + r];
          for (uint32_t c = 0; c < op_.columns; ++c) row[c] += factor * vector[c];
        }
      }
    });
  }

  // [heads, columns]: sum over r of scores[h][r] * rows[r][h], within groups and then over them.
  at::Tensor AttentionGradient(const at::Tensor& scores, const at::Tensor& rows) {
    const T* score = scores.const_data_ptr<T>();
    const T* values = rows.const_data_ptr<T>();
    const auto count = static_cast<uint32_t>(scores.size(1));
    const uint64_t width = uint64_t{op_.heads} * op_.columns;
    at::Tensor total = EmptyIn(workspace_, rows, op_.heads, op_.columns);
    SumInGroups(count, width, workspace_, total.data_ptr<T>(),
                [&](uint32_t begin, uint32_t end, T* sums) {
                  for (uint32_t r = begin; r < end; ++r) {
                    for (uint32_t h = 0; h < op_.heads; ++h) {
                      const uint64_t at = uint64_t{h} * op_.columns;
                      const T* __restrict row = values + r * width + at;
                      T* __restrict sum = sums + at;
                      const T factor = score[uint64_t{h} * count + r];
                      for (uint32_t c = 0; c < op_.columns; ++c) sum[c] += factor * row[c];
                    }
                  }
                });
    return total;
  }

  BlockView block_;
  Workspace* workspace_;
  AttentionRows<T> op_;
};

template <typename T>
class AttentionFunctionOf : public torch::autograd::Function<AttentionFunctionOf<T>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& source,
                            const at::Tensor& attention,
                            const std::optional<at::Tensor>& attention_destination,
                            const std::optional<at::Tensor>& destination, const BlockView& block,
                            const AttentionDropout& dropout, Workspace* workspace) {
    AttentionInput input{source, attention, attention_destination.value_or(at::Tensor()),
                         destination.value_or(at::Tensor())};
    const auto operand = c10::make_intrusive<AttentionOperand<T>>(input, block, workspace);
    context->saved_data["operand"] = c10::IValue::make_capsule(operand);
    context->save_for_backward({source, attention, input.attention_destination, input.destination});
    return operand->Forward(input, dropout);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto capsule = context->saved_data["operand"].toCapsule();
    auto* operand = static_cast<AttentionOperand<T>*>(capsule.get());
    variable_list result = operand->Backward(context->get_saved_variables(), grads[0].contiguous());
    result.resize(7);
    return result;
  }
};

}  // namespace

at::Tensor AttentionScores(const at::Tensor& rows, const at::Tensor& attention,
                           Workspace* workspace) {
  at::Tensor scores = EmptyIn(workspace, rows, attention.size(0), rows.size(0));
  InTypeOf(rows, [&]<typename T>(T) {
    ScoreRows(rows.const_data_ptr<T>(), attention.const_data_ptr<T>(), attention,
              static_cast<uint32_t>(rows.size(0)), scores.data_ptr<T>());
  });
  return scores;
}

at::Tensor Attend(const AttentionInput& input, const BlockView& block,
                  const AttentionDropout& dropout, Workspace* workspace) {
  TORCH_CHECK(input.source.is_contiguous() && input.source.size(0) == block.num_src,
              "attention input has wrong shape");
  return InTypeOf(input.source, [&]<typename T>(T) {
    return AttentionFunctionOf<T>::apply(input.source, input.attention,
                                         IfDefined(input.attention_destination),
                                         IfDefined(input.destination), block, dropout, workspace);
  });
}

void AttendTable(const AttentionInput& input, const AttentionTable& table, Workspace* workspace,
                 float* out) {
  AttentionRows<float> op;
  op.indptr = table.indptr;
  op.index = table.index;
  op.self_index = table.self;
  op.num_dst = table.num_dst;
  op.num_edges = table.indptr[table.num_dst];
  op.num_src = static_cast<uint64_t>(input.source.size(0));
  op.heads = static_cast<uint32_t>(input.attention.size(0));
  op.columns = static_cast<uint32_t>(input.attention.size(1));
  op.source = input.source.const_data_ptr<float>();
  op.source_score = table.source_score;
  op.destination_score = table.destination_score;
  if (input.destination.defined()) {
    op.destination = input.destination.const_data_ptr<float>();
    op.attention = input.attention.const_data_ptr<float>();
  }
  op.alpha = workspace->Get<float>(op.heads * op.stride());
  RunPassParallel(op, AttentionPass::kForward, op.num_dst);
  AggregateHeads(op, op.alpha, out);
}

}  // namespace gnnd
