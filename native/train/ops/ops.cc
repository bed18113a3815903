#include "train/ops/ops.h"

#include <ATen/ops/from_blob.h>
#include <torch/csrc/autograd/custom_function.h>

#include <concepts>
#include <optional>

#include "core/base/check.h"
#include "core/graph/features.h"
#include "core/kernels/spmm.h"
#include "train/ops/operators.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename T>
constexpr at::ScalarType kScalarType = at::kFloat;
template <>
constexpr at::ScalarType kScalarType<double> = at::kDouble;
template <>
constexpr at::ScalarType kScalarType<Bfloat16> = at::kBFloat16;

template <typename T>
at::Tensor ViewAs(T* data, int64_t rows, int64_t columns, at::Device where) {
  const auto options = at::TensorOptions().dtype(kScalarType<T>).device(where);
  if (rows == 0) return at::from_blob(data, {columns}, options);
  return at::from_blob(data, {rows, columns}, options);
}

// The elements of rows of T.
template <typename T>
T* DataOf(const at::Tensor& rows) {
  TORCH_CHECK(rows.scalar_type() == kScalarType<T>, "rows have another element type");
  return static_cast<T*>(rows.data_ptr());
}

at::Tensor EmptyAs(at::ScalarType type, Workspace* workspace, int64_t rows, int64_t columns) {
  const auto count = static_cast<uint64_t>((rows == 0 ? 1 : rows) * columns);
  const at::Device where = workspace->device().where;
  if (type == at::kDouble) return ViewAs(workspace->Get<double>(count), rows, columns, where);
  if (type == at::kBFloat16) return ViewAs(workspace->Get<Bfloat16>(count), rows, columns, where);
  return ViewAs(workspace->Get<float>(count), rows, columns, where);
}

}  // namespace

at::Tensor ViewOf(float* data, int64_t rows, int64_t columns, at::Device where) {
  return ViewAs(data, rows, columns, where);
}

at::Tensor ViewOf(double* data, int64_t rows, int64_t columns, at::Device where) {
  return ViewAs(data, rows, columns, where);
}

at::Tensor ViewOf(Bfloat16* data, int64_t rows, int64_t columns, at::Device where) {
  return ViewAs(data, rows, columns, where);
}

std::vector<at::Tensor> ViewsOf(const ParameterManifest& manifest, std::span<const float> floats,
                                at::Device where) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(manifest.tensors.size());
  for (const ParameterTensor& tensor : manifest.tensors) {
    // Torch has no view of constant memory; nobody writes to a parameter through these views.
    float* data = const_cast<float*>(floats.data()) + tensor.offset;
    tensors.push_back(tensor.is_bias ? ViewOf(data, 0, tensor.rows, where)
                                     : ViewOf(data, tensor.rows, tensor.cols, where));
  }
  return tensors;
}

at::Tensor EmptyIn(Workspace* workspace, const at::Tensor& like, int64_t rows, int64_t columns) {
  return EmptyAs(like.scalar_type(), workspace, rows, columns);
}

template <typename T>
at::Tensor GatheredRows(const RowTable& table, std::span<const uint32_t> rows,
                        Workspace* workspace) {
  constexpr uint32_t kGrainOfCopies = 256;
  const uint64_t columns = table.dim();
  const std::span<T> copies(workspace->Get<T>(rows.size() * columns), rows.size() * columns);
  ParallelRows(static_cast<uint32_t>(rows.size()), kGrainOfCopies,
               [&](uint32_t begin, uint32_t end) {
                 GatherRows(table, rows.subspan(begin, end - begin),
                            copies.subspan(begin * columns, (end - begin) * columns));
               });
  return ViewOf(copies.data(), static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns));
}

template <typename T>
BlockOperand<T>::BlockOperand(const BlockView& block, Reduction reduction, Workspace* workspace)
    : block_(block), reduction_(reduction), workspace_(workspace) {
  const RowOperators<T>& rows = workspace->operators().rows<T>();
  if (reduction == Reduction::kWeightedSum) {
    GNND_CHECK(block.weight.size() == block.src.size());
    edge_weight_ = rows.weights(block.weight, workspace);
    if (block.self_weight.empty()) return;
    GNND_CHECK(block.self_weight.size() == block.num_dst);
    self_weight_ = rows.weights(block.self_weight, workspace);
    return;
  }
  if (!block.weight.empty()) edge_weight_ = rows.weights(block.weight, workspace);
  if (reduction == Reduction::kSum && edge_weight_ != nullptr) return;
  scale_ = workspace->Get<Sum>(block.num_dst);
  if (reduction == Reduction::kSum) {
    ViewAs(scale_, 0, block.num_dst, workspace->device().where).fill_(1);
    return;
  }
  rows.mean_scales(Scales(), workspace);
}

template <typename T>
MeanScales<SumOf<T>> BlockOperand<T>::Scales() const {
  return {block_.indptr.data(), edge_weight_, block_.num_dst, scale_, nullptr};
}

template <typename T>
at::Tensor BlockOperand<T>::Aggregate(const at::Tensor& x) const {
  const int64_t columns = x.size(1);
  T* out =
      workspace_->Get<T>(static_cast<uint64_t>(block_.num_dst) * static_cast<uint64_t>(columns));
  Gather(DataOf<T>(x), static_cast<uint64_t>(columns), block_.src.data(), nullptr, out);
  return ViewAs(out, block_.num_dst, columns, workspace_->device().where);
}

template <typename T>
void BlockOperand<T>::AggregateFromTable(const RowTable& table, const uint32_t* index,
                                         const uint32_t* self_index, T* out) const
  requires(!std::same_as<T, double>)
{
  table.Visited(
      [&](auto elements) { Gather(elements.data(), table.dim(), index, self_index, out); });
}

template <typename T>
template <typename Element>
void BlockOperand<T>::Gather(const Element* x, uint64_t columns, const uint32_t* index,
                             const uint32_t* self_index, T* out) const {
  Spmm<Sum, Element, T> op;
  op.x = x;
  op.x_stride = columns;
  op.columns = static_cast<uint32_t>(columns);
  op.indptr = block_.indptr.data();
  op.index = index;
  op.weight = edge_weight_;
  if (self_weight_ != nullptr) {
    op.self = x;
    op.self_stride = columns;
    op.self_index = self_index;
    op.self_weight = self_weight_;
    op.self_rows = block_.num_dst;
  }
  op.scale = scale_;
  op.out = out;
  op.out_stride = columns;
  const RowOperators<T>& rows = workspace_->operators().rows<T>();
  if constexpr (std::same_as<Element, T>) {
    rows.sum_edges(op, block_.num_dst, workspace_);
  } else if constexpr (std::same_as<Element, Half>) {
    rows.sum_halves(op, block_.num_dst, workspace_);
  } else {
    rows.sum_floats(op, block_.num_dst, workspace_);
  }
}

template <typename T>
at::Tensor BlockOperand<T>::AggregateTransposed(const at::Tensor& grad,
                                                const at::Tensor& grad_self) {
  if (transposed_indptr_ == nullptr) Transpose();
  const int64_t columns = grad.size(1);
  Spmm<Sum, T, T> op;
  op.x = DataOf<T>(grad);
  op.x_stride = static_cast<uint64_t>(columns);
  op.columns = static_cast<uint32_t>(columns);
  op.indptr = transposed_indptr_;
  op.index = transposed_dst_;
  op.weight = transposed_weight_;
  op.self_rows = block_.num_dst;
  op.self_stride = op.x_stride;
  if (self_weight_ != nullptr) {
    GNND_CHECK(!grad_self.defined());  // the weights already include the self term
    op.self = op.x;
    op.self_weight = self_weight_;
  } else if (grad_self.defined()) {
    op.self = DataOf<T>(grad_self);
  }
  op.out = workspace_->Get<T>(static_cast<uint64_t>(block_.num_src) * op.x_stride);
  op.out_stride = op.x_stride;
  workspace_->operators().rows<T>().sum_edges(op, block_.num_src, workspace_);
  return ViewAs(op.out, block_.num_src, columns, workspace_->device().where);
}

template <typename T>
void BlockOperand<T>::Transpose() {
  transposed_indptr_ = workspace_->Get<uint32_t>(uint64_t{block_.num_src} + 1);
  transposed_dst_ = workspace_->Get<uint32_t>(block_.src.size());
  transposed_weight_ = workspace_->Get<Sum>(block_.src.size());
  TransposeInput<Sum> input;
  input.indptr = block_.indptr;
  input.src = block_.src;
  input.num_src = block_.num_src;
  input.weight_per_destination = edge_weight_ == nullptr;
  input.weight = input.weight_per_destination ? scale_ : edge_weight_;
  if (reduction_ == Reduction::kMean && edge_weight_ != nullptr) input.weight = ScaledWeights();
  workspace_->operators().rows<T>().transpose(input, workspace_, transposed_indptr_,
                                              transposed_dst_, transposed_weight_);
}

template <typename T>
const typename BlockOperand<T>::Sum* BlockOperand<T>::ScaledWeights() const {
  MeanScales<Sum> op = Scales();
  op.scaled = workspace_->Get<Sum>(block_.src.size());
  workspace_->operators().rows<T>().scale_weights(op, workspace_);
  return op.scaled;
}

template class BlockOperand<float>;
template class BlockOperand<double>;
template class BlockOperand<Bfloat16>;

template at::Tensor GatheredRows<float>(const RowTable&, std::span<const uint32_t>, Workspace*);
template at::Tensor GatheredRows<Bfloat16>(const RowTable&, std::span<const uint32_t>, Workspace*);

namespace {

// Converts between float32 and bfloat16.
at::Tensor Converted(const at::Tensor& rows, at::ScalarType type, Workspace* workspace) {
  at::Tensor out = EmptyAs(type, workspace, rows.size(0), rows.size(1));
  const auto count = static_cast<uint32_t>(rows.size(0));
  const auto columns = static_cast<uint64_t>(rows.size(1));
  const Operators& operators = workspace->operators();
  if (type == at::kBFloat16) {
    operators.narrow(DataOf<float>(rows), count, columns, workspace, DataOf<Bfloat16>(out));
  } else {
    operators.widen(DataOf<Bfloat16>(rows), count, columns, workspace, DataOf<float>(out));
  }
  return out;
}

template <typename T>
class AggregateFunction : public torch::autograd::Function<AggregateFunction<T>> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const c10::intrusive_ptr<BlockOperand<T>>& operand, bool with_self) {
    context->saved_data["operand"] = c10::IValue::make_capsule(operand);
    context->set_materialize_grads(false);
    variable_list outputs = {operand->Aggregate(x)};
    if (with_self) {
      outputs.push_back(ViewAs(DataOf<T>(x), operand->block().num_dst, x.size(1), x.device()));
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto capsule = context->saved_data["operand"].toCapsule();
    auto* operand = static_cast<BlockOperand<T>*>(capsule.get());
    const at::Tensor grad_self = grads.size() > 1 ? grads[1] : at::Tensor();
    const at::Tensor grad = operand->AggregateTransposed(grads[0].contiguous(), grad_self);
    return {grad, at::Tensor(), at::Tensor()};
  }
};

// Saves the workspace from forward to backward, as a number.
void SaveWorkspace(AutogradContext* context, Workspace* workspace) {
  context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

bool IsNarrow(const at::Tensor& rows) { return rows.scalar_type() == at::kBFloat16; }

// The product of rows and weight, in the rows' type.
at::Tensor Product(const at::Tensor& rows, const at::Tensor& weight, Workspace* workspace) {
  const at::Tensor out = EmptyIn(workspace, rows, rows.size(0), weight.size(1));
  workspace->operators().affine({rows, weight.t(), {}, {}, {}, {}, out}, workspace);
  return out;
}

// The type of a parameter's gradient.
at::ScalarType SumTypeOf(const at::Tensor& rows) {
  return IsNarrow(rows) ? at::kFloat : rows.scalar_type();
}

// grad^T x, a parameter's gradient.
at::Tensor TransposedProduct(const at::Tensor& grad, const at::Tensor& x, Workspace* workspace) {
  const at::Tensor out = EmptyAs(SumTypeOf(x), workspace, grad.size(1), x.size(1));
  workspace->operators().transposed_product(grad, x, out, workspace);
  return out;
}

// Sums over rows.
at::Tensor SumOfRows(const at::Tensor& rows, Workspace* workspace) {
  const at::Tensor out = EmptyAs(SumTypeOf(rows), workspace, 0, rows.size(1));
  InRowTypeOf(rows, [&]<typename T>(T) {
    workspace->operators().rows<T>().sum_rows(DataOf<T>(rows), static_cast<uint32_t>(rows.size(0)),
                                              static_cast<uint64_t>(rows.size(1)), workspace,
                                              DataOf<SumOf<T>>(out));
  });
  return out;
}

class ConvertFunction : public torch::autograd::Function<ConvertFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, at::ScalarType type,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["type"] = static_cast<int64_t>(rows.scalar_type());
    return Converted(rows.contiguous(), type, workspace);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    const at::Tensor grad = Converted(grads[0].contiguous(), type, SavedWorkspace(context));
    return {grad, at::Tensor(), at::Tensor()};
  }
};

at::Tensor ValueOr(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? *tensor : at::Tensor();
}

class AffineFunction : public torch::autograd::Function<AffineFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& x_self,
                            const std::optional<at::Tensor>& weight_self,
                            const std::optional<at::Tensor>& bias,
                            const std::optional<at::Tensor>& addend, bool wide,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    variable_list operands = {x, weight};
    if (x_self.has_value()) operands.insert(operands.end(), {*x_self, *weight_self});
    context->save_for_backward(operands);
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["addend"] = addend.has_value();
    const at::ScalarType type = IsNarrow(x) && wide ? at::kFloat : x.scalar_type();
    const at::Tensor out = EmptyAs(type, workspace, x.size(0), weight.size(0));
    workspace->operators().affine(
        {x, weight, ValueOr(x_self), ValueOr(weight_self), ValueOr(addend), ValueOr(bias), out},
        workspace);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    Workspace* workspace = SavedWorkspace(context);
    const at::Tensor grad = grads[0].contiguous();
    variable_list result(8);
    if (context->saved_data["bias"].toBool()) result[4] = SumOfRows(grad, workspace);
    if (context->saved_data["addend"].toBool()) result[5] = grad;
    const at::ScalarType type = saved[0].scalar_type();
    const at::Tensor factor = grad.scalar_type() == type ? grad : Converted(grad, type, workspace);
    for (size_t operand = 0; operand < saved.size(); operand += 2) {
      const at::Tensor& x = saved[operand];
      result[operand + 1] = TransposedProduct(factor, x, workspace);
      if (x.requires_grad()) result[operand] = Product(factor, saved[operand + 1], workspace);
    }
    return result;
  }
};

template <typename T>
void RunReluDropout(const at::Tensor& z, const DropoutSite& site, Workspace* workspace) {
  auto op = DropoutOf<T>(site, z);
  op.relu = true;
  workspace->operators().rows<T>().dropout(op, static_cast<uint32_t>(z.size(0)), workspace);
}

template <typename T>
void RunReluDropoutBackward(const at::Tensor& out, const at::Tensor& grad, float p,
                            const at::Tensor& grad_in, Workspace* workspace) {
  using Scale = SumOf<T>;
  DropoutGradient<T> op;
  op.out = DataOf<T>(out);
  op.grad = DataOf<T>(grad);
  op.rows = static_cast<uint32_t>(out.size(0));
  op.columns = static_cast<uint64_t>(out.size(1));
  op.scale = Scale{1} / (Scale{1} - static_cast<Scale>(p));
  op.grad_in = DataOf<T>(grad_in);
  workspace->operators().rows<T>().dropout_gradient(op, workspace);
}

class ReluDropoutFunction : public torch::autograd::Function<ReluDropoutFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor z, const DropoutSite& site,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["p"] = static_cast<double>(site.p);
    InRowTypeOf(z, [&]<typename T>(T) { RunReluDropout<T>(z, site, workspace); });
    context->mark_dirty({z});
    context->save_for_backward({z});
    return z;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor out = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    const auto p = static_cast<float>(context->saved_data["p"].toDouble());
    Workspace* workspace = SavedWorkspace(context);
    const at::Tensor grad_in = EmptyIn(workspace, out, out.size(0), out.size(1));
    InRowTypeOf(
        out, [&]<typename T>(T) { RunReluDropoutBackward<T>(out, grad, p, grad_in, workspace); });
    return {grad_in, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> Aggregate(const at::Tensor& x, const BlockView& block,
                                            Reduction reduction, bool with_self,
                                            Workspace* workspace) {
  TORCH_CHECK(x.is_contiguous() && x.size(0) == block.num_src, "aggregation input has wrong shape");
  const auto outputs = InRowTypeOf(x, [&]<typename T>(T) {
    const auto operand = c10::make_intrusive<BlockOperand<T>>(block, reduction, workspace);
    return AggregateFunction<T>::apply(x, operand, with_self);
  });
  return {outputs[0], with_self ? outputs[1] : at::Tensor()};
}

at::Tensor Affine(const AffineInput& input, Workspace* workspace) {
  return AffineFunction::apply(input.x, input.weight, IfDefined(input.x_self),
                               IfDefined(input.weight_self), IfDefined(input.bias),
                               IfDefined(input.addend), input.wide, workspace);
}

at::Tensor AsRowsOf(at::ScalarType type, const at::Tensor& rows, Workspace* workspace) {
  if (rows.scalar_type() == type) return rows;
  return ConvertFunction::apply(rows, type, workspace);
}

at::Tensor ReluDropout(const at::Tensor& z, const DropoutSite& site, Workspace* workspace) {
  return ReluDropoutFunction::apply(z, site, workspace);
}

}  // namespace gnnd
