#include "train/ops/attention.h"

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "core/base/check.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sets the heads, and the inputs of scores that are not sums of two numbers.
template <typename T>
void SetHeads(const AttentionInput& input, AttentionRows<T>* op) {
  op->heads = input.num_heads();
  op->columns = static_cast<uint32_t>(input.source.size(1)) / op->heads;
  op->source_stride = static_cast<uint64_t>(input.source.stride(0));
  if (!input.destination.defined()) return;
  op->destination = input.destination.const_data_ptr<T>();
  if (input.key.defined()) {
    op->key = input.key.const_data_ptr<T>();
    op->score_scale = static_cast<T>(1.0 / std::sqrt(static_cast<double>(op->columns)));
  } else {
    op->attention = input.attention.const_data_ptr<T>();
  }
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
    op_.source = input.source.const_data_ptr<T>();
    SetHeads(input, &op_);
  }

  at::Tensor Forward(const AttentionInput& input, const AttentionDropout& dropout) {
    if (!input.destination.defined()) {
      const at::Tensor own = input.source.narrow(0, 0, block_.num_dst);
      op_.source_score =
          AttentionScores(input.source, input.attention, workspace_).const_data_ptr<T>();
      op_.destination_score =
          AttentionScores(own, input.attention_destination, workspace_).const_data_ptr<T>();
    }
    op_.alpha = workspace_->Get<T>(op_.heads * op_.stride());
    operators().pass(op_, AttentionPass::kForward, block_.num_dst, workspace_);
    op_.weight = dropout.p == 0.0F ? op_.alpha : Drop(dropout);
    at::Tensor out = EmptyIn(workspace_, input.source, block_.num_dst, input.source.size(1));
    operators().aggregate(op_, workspace_, out.data_ptr<T>());
    return out;
  }

  // The gradients of source, attention, attention_destination, destination.
  variable_list Backward(const variable_list& saved, const at::Tensor& grad_out) {
    const at::Tensor& source = saved[0];
    op_.grad_out = grad_out.const_data_ptr<T>();
    op_.grad_score = workspace_->Get<T>(op_.heads * op_.stride());
    Transpose();
    at::Tensor grad_source = EmptyIn(workspace_, source, source.size(0), source.size(1));
    op_.grad_source = grad_source.data_ptr<T>();
    operators().aggregate_transposed(op_, workspace_);
    if (op_.key != nullptr) return BackwardOfProducts(source, grad_source);
    if (op_.source_score == nullptr) return BackwardOfSums(source, grad_source);
    operators().pass(op_, AttentionPass::kBackward, block_.num_dst, workspace_);
    const at::Tensor source_scores =
        ScoreGradients(source, block_.num_src, op_.transposed_indptr, op_.transposed_edge);
    const at::Tensor own_scores = ScoreGradients(source, block_.num_dst, op_.indptr, nullptr);
    operators().add_outer(OfHeads(source_scores, saved[1]), workspace_, op_.grad_source);
    operators().add_outer(OfHeads(own_scores, saved[2]), workspace_, op_.grad_source);
    return {grad_source, VectorGradients(source_scores, source),
            VectorGradients(own_scores, source), at::Tensor()};
  }

 private:
  const AttentionOperators<T>& operators() const { return workspace_->operators().attention<T>(); }

  // The coefficients after dropout, which sets dropped ones to 0.
  T* Drop(const AttentionDropout& dropout) {
    op_.weight_scale = T{1} / (T{1} - static_cast<T>(dropout.p));
    T* weight = workspace_->Get<T>(op_.heads * op_.stride());
    operators().drop(op_, dropout.key, dropout.nodes, DropoutThreshold(dropout.p), workspace_,
                     weight);
    return weight;
  }

  void Transpose() {
    auto* indptr = workspace_->Get<uint32_t>(uint64_t{block_.num_src} + 1);
    auto* dst = workspace_->Get<uint32_t>(op_.num_edges);
    auto* edge = workspace_->Get<uint32_t>(op_.num_edges);
    operators().transpose(op_, workspace_, indptr, dst, edge);
    op_.transposed_indptr = indptr;
    op_.transposed_dst = dst;
    op_.transposed_edge = edge;
  }

  // The gradients of source, key, destination.
  variable_list BackwardOfProducts(const at::Tensor& source, const at::Tensor& grad_source) {
    at::Tensor grad_destination = EmptyIn(workspace_, source, block_.num_dst, source.size(1));
    op_.grad_destination = grad_destination.data_ptr<T>();
    at::Tensor grad_key = EmptyIn(workspace_, source, source.size(0), source.size(1));
    op_.grad_key = grad_key.data_ptr<T>();
    operators().pass(op_, AttentionPass::kBackward, block_.num_dst, workspace_);
    operators().pass(op_, AttentionPass::kBackwardSrc, block_.num_src, workspace_);
    return {grad_source, grad_key, grad_destination};
  }

  // GATv2: the rest of grad_source, and the gradients of the vector and the destinations.
  variable_list BackwardOfSums(const at::Tensor& source, const at::Tensor& grad_source) {
    at::Tensor grad_destination = EmptyIn(workspace_, source, block_.num_dst, source.size(1));
    op_.grad_destination = grad_destination.data_ptr<T>();
    at::Tensor grad_attention = EmptyIn(workspace_, source, op_.heads, op_.columns);
    op_.grad_attention = grad_attention.data_ptr<T>();
    operators().backward_of_sums(op_, workspace_);
    operators().pass(op_, AttentionPass::kBackwardSrc, block_.num_src, workspace_);
    return {grad_source, grad_attention, at::Tensor(), grad_destination};
  }

  // The gradients of scores, [heads, rows].
  at::Tensor ScoreGradients(const at::Tensor& like, uint32_t rows, const uint32_t* indptr,
                            const uint32_t* edge) {
    at::Tensor sums = EmptyIn(workspace_, like, op_.heads, rows);
    operators().score_gradients(op_, rows, indptr, edge, workspace_, sums.data_ptr<T>());
    return sums;
  }

  HeadRows<T> OfHeads(const at::Tensor& scores, const at::Tensor& vectors) const {
    HeadRows<T> op;
    op.scores = scores.const_data_ptr<T>();
    if (vectors.defined()) op.vectors = vectors.const_data_ptr<T>();
    op.num_rows = static_cast<uint32_t>(scores.size(1));
    op.heads = op_.heads;
    op.columns = op_.columns;
    return op;
  }

  // The gradients of vectors, [heads, columns], over as many of the rows as have scores.
  at::Tensor VectorGradients(const at::Tensor& scores, const at::Tensor& rows) {
    HeadRows<T> op = OfHeads(scores, at::Tensor());
    op.rows = rows.const_data_ptr<T>();
    at::Tensor total = EmptyIn(workspace_, rows, op_.heads, op_.columns);
    operators().vector_gradients(op, workspace_, total.data_ptr<T>());
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

template <typename T>
class DotFunctionOf : public torch::autograd::Function<DotFunctionOf<T>> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& source,
                            const at::Tensor& key, const at::Tensor& destination, int64_t heads,
                            const BlockView& block, const AttentionDropout& dropout,
                            Workspace* workspace) {
    const AttentionInput input{source, {}, {}, destination, key, heads};
    const auto operand = c10::make_intrusive<AttentionOperand<T>>(input, block, workspace);
    context->saved_data["operand"] = c10::IValue::make_capsule(operand);
    context->save_for_backward({source, key, destination});
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
    HeadRows<T> op;
    op.rows = rows.const_data_ptr<T>();
    op.vectors = attention.const_data_ptr<T>();
    op.num_rows = static_cast<uint32_t>(rows.size(0));
    op.heads = static_cast<uint32_t>(attention.size(0));
    op.columns = static_cast<uint32_t>(attention.size(1));
    workspace->operators().attention<T>().scores(op, workspace, scores.data_ptr<T>());
  });
  return scores;
}

at::Tensor Attend(const AttentionInput& input, const BlockView& block,
                  const AttentionDropout& dropout, Workspace* workspace) {
  TORCH_CHECK(input.source.is_contiguous() && input.source.size(0) == block.num_src,
              "attention input has wrong shape");
  return InTypeOf(input.source, [&]<typename T>(T) {
    if (input.key.defined()) {
      return DotFunctionOf<T>::apply(input.source, input.key, input.destination, input.heads, block,
                                     dropout, workspace);
    }
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
  op.num_edges = table.num_edges;
  op.num_src = static_cast<uint64_t>(input.source.size(0));
  op.source = input.source.const_data_ptr<float>();
  SetHeads(input, &op);
  op.source_score = table.source_score;
  op.destination_score = table.destination_score;
  op.alpha = workspace->Get<float>(op.heads * op.stride());
  op.weight = op.alpha;
  const AttentionOperators<float>& operators = workspace->operators().attention<float>();
  operators.pass(op, AttentionPass::kForward, op.num_dst, workspace);
  operators.aggregate(op, workspace, out);
}

}  // namespace gnnd
