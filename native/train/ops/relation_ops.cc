#include "train/ops/relation_ops.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <numbers>
#include <optional>
#include <vector>

#include "core/kernels/exp.h"
#include "core/kernels/spmm.h"
#include "core/kernels/transpose.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainOfRows = 64;

void SaveWorkspace(AutogradContext* context, Workspace* workspace) {
  context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
}

Workspace* SavedWorkspace(AutogradContext* context) {
  return reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
}

at::Tensor Like(const at::Tensor& rows, Workspace* workspace) {
  return EmptyIn(workspace, rows, rows.size(0), rows.size(1));
}

uint32_t HeightOf(const at::Tensor& rows) { return static_cast<uint32_t>(rows.size(0)); }
uint64_t WidthOf(const at::Tensor& rows) { return static_cast<uint64_t>(rows.size(1)); }

template <typename T>
T Normal(T x) {
  const T scaled = x * static_cast<T>(1 / std::numbers::sqrt2);
  if constexpr (std::same_as<T, float>) {
    return 0.5F * (1.0F + ErrorFunction(scaled));
  } else {
    return 0.5 * (1.0 + std::erf(scaled));
  }
}

// The derivative of x * Normal(x).
template <typename T>
T GeluSlope(T x) {
  const T density = ExpOfNonPositive(T{-0.5} * x * x) *
                    static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return Normal(x) + x * density;
}

// Calls body(row, columns, number of the first element) of each row.
template <typename Body>
void ForRows(const at::Tensor& rows, const Body& body) {
  const uint64_t columns = WidthOf(rows);
  ParallelRows(HeightOf(rows), kGrainOfRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) body(r, columns, r * columns);
  });
}

// A product of groups of matrices, and its gradients.
template <typename T>
class Composition {
 public:
  Composition(const at::Tensor& left, const at::Tensor& right, const at::Tensor& scale,
              int64_t groups)
      : left_(left.const_data_ptr<T>()),
        right_(right.const_data_ptr<T>()),
        scale_(scale.defined() ? scale.const_data_ptr<T>() : nullptr),
        groups_(static_cast<uint32_t>(groups)),
        rows_(HeightOf(left) / groups_),
        inner_(HeightOf(right) / groups_),
        columns_(static_cast<uint32_t>(right.size(1))) {}

  void Run(T* out) const {
    ParallelRows(groups_, 1, [&](uint32_t begin, uint32_t end) {
      for (uint32_t g = begin; g < end; ++g) {
        for (uint32_t r = g * rows_; r < (g + 1) * rows_; ++r) RunRow(g, r, out + At(r));
      }
    });
  }

  // scale[g] * left^T grad.
  void RightGradient(const T* grad, T* out) const {
    ParallelRows(groups_, 1, [&](uint32_t begin, uint32_t end) {
      std::fill(out + At(begin * inner_), out + At(end * inner_), T{0});
      for (uint32_t g = begin; g < end; ++g) {
        for (uint32_t r = g * rows_; r < (g + 1) * rows_; ++r) {
          for (uint32_t i = 0; i < inner_; ++i) {
            AddTo(out + At(g * inner_ + i), ScaleOf(g) * LeftAt(r, i), grad + At(r));
          }
        }
      }
    });
  }

  // grad right^T, without the scale where `unscaled`.
  void LeftGradient(const T* grad, bool unscaled, T* out) const {
    ParallelRows(groups_ * rows_, 16, [&](uint32_t begin, uint32_t end) {
      for (uint32_t r = begin; r < end; ++r) {
        const uint32_t g = r / rows_;
        for (uint32_t i = 0; i < inner_; ++i) {
          const T sum = DotOfRows(grad + At(r), right_ + At(g * inner_ + i), columns_);
          out[uint64_t{r} * inner_ + i] = unscaled ? sum : ScaleOf(g) * sum;
        }
      }
    });
  }

  // The sum of `unscaled` * left over each group.
  void ScaleGradient(const T* unscaled, T* out) const {
    const uint32_t size = rows_ * inner_;
    for (uint32_t g = 0; g < groups_; ++g) {
      const uint64_t at = uint64_t{g} * size;
      out[g] = DotOfRows(unscaled + at, left_ + at, size);
    }
  }

 private:
  uint64_t At(uint32_t row) const { return uint64_t{row} * columns_; }
  T ScaleOf(uint32_t group) const { return scale_ == nullptr ? T{1} : scale_[group]; }
  T LeftAt(uint32_t row, uint32_t i) const { return left_[uint64_t{row} * inner_ + i]; }

  void AddTo(T* __restrict to, T factor, const T* __restrict from) const {
    for (uint32_t c = 0; c < columns_; ++c) to[c] += factor * from[c];
  }

  void RunRow(uint32_t group, uint32_t row, T* out) const {
    std::fill(out, out + columns_, T{0});
    for (uint32_t i = 0; i < inner_; ++i) {
      AddTo(out, ScaleOf(group) * LeftAt(row, i), right_ + At(group * inner_ + i));
    }
  }

  const T* left_;
  const T* right_;
  const T* scale_;
  uint32_t groups_;
  uint32_t rows_;   // of a group's result
  uint32_t inner_;  // terms of a sum
  uint32_t columns_;
};

class ComposeFunction : public torch::autograd::Function<ComposeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& left,
                            const at::Tensor& right, const std::optional<at::Tensor>& scale,
                            int64_t groups, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["groups"] = groups;
    variable_list saved = {left, right};
    if (scale.has_value()) saved.push_back(*scale);
    context->save_for_backward(saved);
    const at::Tensor out = EmptyIn(workspace, left, left.size(0), right.size(1));
    InTypeOf(left, [&]<typename T>(T) {
      Composition<T>(left, right, scale.value_or(at::Tensor()), groups).Run(out.data_ptr<T>());
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor scale = saved.size() > 2 ? saved[2] : at::Tensor();
    const int64_t groups = context->saved_data["groups"].toInt();
    const at::Tensor grad = grads[0].contiguous();
    variable_list result(5);
    result[0] = Like(saved[0], workspace);
    result[1] = Like(saved[1], workspace);
    InTypeOf(grad, [&]<typename T>(T) {
      const Composition<T> product(saved[0], saved[1], scale, groups);
      const T* from = grad.const_data_ptr<T>();
      product.RightGradient(from, result[1].data_ptr<T>());
      product.LeftGradient(from, /*unscaled=*/false, result[0].data_ptr<T>());
      if (!scale.defined()) return;
      const at::Tensor unscaled = Like(saved[0], workspace);
      product.LeftGradient(from, /*unscaled=*/true, unscaled.data_ptr<T>());
      result[2] = EmptyIn(workspace, grad, 0, groups);
      product.ScaleGradient(unscaled.const_data_ptr<T>(), result[2].data_ptr<T>());
    });
    return result;
  }
};

class GeluFunction : public torch::autograd::Function<GeluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({x});
    const at::Tensor out = Like(x, workspace);
    InTypeOf(x, [&]<typename T>(T) {
      const T* from = x.const_data_ptr<T>();
      T* to = out.data_ptr<T>();
      ForRows(x, [&](uint32_t, uint64_t columns, uint64_t at) {
        for (uint64_t i = at; i < at + columns; ++i) to[i] = from[i] * Normal(from[i]);
      });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor grad_in = Like(x, SavedWorkspace(context));
    InTypeOf(x, [&]<typename T>(T) {
      const T* from = x.const_data_ptr<T>();
      const T* slope = grad.const_data_ptr<T>();
      T* to = grad_in.data_ptr<T>();
      ForRows(x, [&](uint32_t, uint64_t columns, uint64_t at) {
        for (uint64_t i = at; i < at + columns; ++i) to[i] = slope[i] * GeluSlope(from[i]);
      });
    });
    return {grad_in, at::Tensor()};
  }
};

class GateFunction : public torch::autograd::Function<GateFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows, const at::Tensor& own,
                            const at::Tensor& skip, Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->save_for_backward({rows, own, skip});
    const at::Tensor out = Like(rows, workspace);
    InTypeOf(rows, [&]<typename T>(T) {
      const T share = ShareOf<T>(skip);
      const T* left = rows.const_data_ptr<T>();
      const T* right = own.const_data_ptr<T>();
      T* to = out.data_ptr<T>();
      ForRows(rows, [&](uint32_t, uint64_t columns, uint64_t at) {
        for (uint64_t i = at; i < at + columns; ++i) {
          to[i] = share * left[i] + (T{1} - share) * right[i];
        }
      });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    Workspace* workspace = SavedWorkspace(context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grads[0].contiguous();
    const at::Tensor of_rows = Like(grad, workspace);
    const at::Tensor of_own = Like(grad, workspace);
    const at::Tensor of_skip = EmptyIn(workspace, grad, 0, 1);
    InTypeOf(grad, [&]<typename T>(T) {
      const T share = ShareOf<T>(saved[2]);
      const T* left = saved[0].const_data_ptr<T>();
      const T* right = saved[1].const_data_ptr<T>();
      const T* from = grad.const_data_ptr<T>();
      T* to_rows = of_rows.data_ptr<T>();
      T* to_own = of_own.data_ptr<T>();
      std::vector<T> sums(HeightOf(grad));
      ForRows(grad, [&](uint32_t row, uint64_t columns, uint64_t at) {
        T lanes[8] = {};
        ForLanes(static_cast<uint32_t>(columns), [&](uint32_t c, uint32_t lane) {
          const uint64_t i = at + c;
          to_rows[i] = share * from[i];
          to_own[i] = (T{1} - share) * from[i];
          lanes[lane] += from[i] * (left[i] - right[i]);
        });
        sums[row] = Total(lanes);
      });
      T total{0};
      for (const T sum : sums) total += sum;
      *of_skip.data_ptr<T>() = share * (T{1} - share) * total;
    });
    return {of_rows, of_own, of_skip, at::Tensor()};
  }

 private:
  template <typename T>
  static T ShareOf(const at::Tensor& skip) {
    const T x = *skip.const_data_ptr<T>();
    const T power = ExpOfNonPositive(x < 0 ? x : -x);
    return x < 0 ? power / (T{1} + power) : T{1} / (T{1} + power);
  }
};

// Copies rows of equal width.
void CopyRows(const at::Tensor& from, void* to) {
  const auto bytes = WidthOf(from) * from.element_size();
  const auto* source = static_cast<const std::byte*>(from.const_data_ptr());
  ParallelRows(HeightOf(from), kGrainOfRows, [&](uint32_t begin, uint32_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin * bytes, source + begin * bytes,
                (end - begin) * bytes);
  });
}

class StackFunction : public torch::autograd::Function<StackFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList parts, Workspace* workspace) {
    std::vector<int64_t> heights;
    int64_t total = 0;
    for (const at::Tensor& part : parts) {
      heights.push_back(part.size(0));
      total += part.size(0);
    }
    context->saved_data["heights"] = heights;
    const at::Tensor out = EmptyIn(workspace, parts[0], total, parts[0].size(1));
    auto* to = static_cast<std::byte*>(out.data_ptr());
    for (const at::Tensor& part : parts) {
      CopyRows(part.contiguous(), to);
      to += static_cast<size_t>(part.numel()) * part.element_size();
    }
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor grad = grads[0].contiguous();
    variable_list result;
    int64_t at = 0;
    for (const int64_t height : context->saved_data["heights"].toIntVector()) {
      result.push_back(grad.narrow(0, at, height));
      at += height;
    }
    result.emplace_back();
    return result;
  }
};

// One block between forward and backward; its arrays lie in the workspace.
template <typename T>
class MeanOperand final : public torch::CustomClassHolder {
 public:
  MeanOperand(const BlockView& block, Workspace* workspace)
      : block_(block), workspace_(workspace), scale_(workspace->Get<T>(block.num_dst)) {
    rows().mean_scales({block.indptr.data(), nullptr, block.num_dst, scale_, nullptr}, workspace);
  }

  at::Tensor Means(const at::Tensor& x) const {
    const at::Tensor out = EmptyIn(workspace_, x, block_.num_dst, x.size(1));
    Spmm<T> op = SumInto(x, out);
    op.indptr = block_.indptr.data();
    op.index = block_.src.data();
    op.scale = scale_;
    rows().sum_edges(op, block_.num_dst, workspace_);
    return out;
  }

  // The gradient of the sources, to which `rest` is added unless undefined.
  at::Tensor Gradient(const at::Tensor& grad, const at::Tensor& rest) const {
    auto* const indptr = workspace_->Get<uint32_t>(uint64_t{block_.num_src} + 1);
    auto* const dst = workspace_->Get<uint32_t>(block_.src.size());
    T* const weight = workspace_->Get<T>(block_.src.size());
    const TransposeInput<T> input{block_.indptr, block_.src, block_.num_src, scale_,
                                  /*weight_per_destination=*/true};
    rows().transpose(input, workspace_, indptr, dst, weight);
    const at::Tensor out = EmptyIn(workspace_, grad, block_.num_src, grad.size(1));
    Spmm<T> op = SumInto(grad, out);
    op.indptr = indptr;
    op.index = dst;
    op.weight = weight;
    if (rest.defined()) {
      op.self = rest.const_data_ptr<T>();
      op.self_stride = op.x_stride;
      op.self_rows = block_.num_src;
    }
    rows().sum_edges(op, block_.num_src, workspace_);
    return out;
  }

 private:
  const RowOperators<T>& rows() const { return workspace_->operators().template rows<T>(); }

  static Spmm<T> SumInto(const at::Tensor& x, const at::Tensor& out) {
    Spmm<T> op;
    op.x = x.const_data_ptr<T>();
    op.x_stride = WidthOf(x);
    op.columns = static_cast<uint32_t>(x.size(1));
    op.out = out.data_ptr<T>();
    op.out_stride = WidthOf(x);
    return op;
  }

  BlockView block_;
  Workspace* workspace_;
  T* scale_;
};

template <typename T>
class MeanFunction : public torch::autograd::Function<MeanFunction<T>> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const c10::intrusive_ptr<MeanOperand<T>>& operand) {
    context->saved_data["operand"] = c10::IValue::make_capsule(operand);
    context->set_materialize_grads(false);
    T* const same = const_cast<T*>(x.const_data_ptr<T>());
    return {operand->Means(x), ViewOf(same, x.size(0), x.size(1), x.device())};
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto capsule = context->saved_data["operand"].toCapsule();
    const auto* operand = static_cast<MeanOperand<T>*>(capsule.get());
    const at::Tensor rest = grads[1].defined() ? grads[1].contiguous() : at::Tensor();
    if (!grads[0].defined()) return {rest, at::Tensor()};
    return {operand->Gradient(grads[0].contiguous(), rest), at::Tensor()};
  }
};

class FirstRowsFunction : public torch::autograd::Function<FirstRowsFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t count,
                            Workspace* workspace) {
    SaveWorkspace(context, workspace);
    context->saved_data["rows"] = x.size(0);
    return InTypeOf(x, [&]<typename T>(T) {
      return ViewOf(const_cast<T*>(x.const_data_ptr<T>()), count, x.size(1), x.device());
    });
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const at::Tensor grad = grads[0].contiguous();
    const int64_t rows = context->saved_data["rows"].toInt();
    const at::Tensor whole = EmptyIn(SavedWorkspace(context), grad, rows, grad.size(1));
    CopyRows(grad, whole.data_ptr());
    auto* rest = static_cast<std::byte*>(whole.data_ptr()) +
                 static_cast<size_t>(grad.numel()) * grad.element_size();
    std::memset(rest, 0, static_cast<size_t>(whole.numel() - grad.numel()) * grad.element_size());
    return {whole, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

// The quotient of polynomials that Eigen and XLA have for float32.
float ErrorFunction(float x) {
  const float within = std::clamp(x, -4.0F, 4.0F);
  const float square = within * within;
  float above = -2.72614225801306e-10F;
  above = above * square + 2.77068142495902e-08F;
  above = above * square + -2.10102402082508e-06F;
  above = above * square + -5.69250639462346e-05F;
  above = above * square + -7.34990630326855e-04F;
  above = above * square + -2.95459980854025e-03F;
  above = above * square + -1.60960333262415e-02F;
  float below = -1.45660718464996e-05F;
  below = below * square + -2.13374055278905e-04F;
  below = below * square + -1.68282697438203e-03F;
  below = below * square + -7.37332916720468e-03F;
  below = below * square + -1.42647390514189e-02F;
  return within * above / below;
}

at::Tensor ComposeWeights(const at::Tensor& left, const at::Tensor& right, const at::Tensor& scale,
                          int64_t groups, Workspace* workspace) {
  TORCH_CHECK(left.is_contiguous() && right.is_contiguous() && left.size(0) % groups == 0 &&
                  right.size(0) == groups * left.size(1),
              "matrices of a composition do not fit");
  return ComposeFunction::apply(left, right, IfDefined(scale), groups, workspace);
}

at::Tensor Gelu(const at::Tensor& x, Workspace* workspace) {
  return GeluFunction::apply(x, workspace);
}

at::Tensor Gate(const at::Tensor& rows, const at::Tensor& own, const at::Tensor& skip,
                Workspace* workspace) {
  TORCH_CHECK(rows.sizes() == own.sizes() && rows.is_contiguous() && own.is_contiguous(),
              "rows of a gate do not fit");
  return GateFunction::apply(rows, own, skip, workspace);
}

at::Tensor Stack(std::span<const at::Tensor> parts, Workspace* workspace) {
  if (parts.size() == 1) return parts[0];
  return StackFunction::apply(at::TensorList(parts.data(), parts.size()), workspace);
}

std::pair<at::Tensor, at::Tensor> MeanAndRows(const at::Tensor& x, const BlockView& block,
                                              Workspace* workspace) {
  TORCH_CHECK(x.is_contiguous() && x.size(0) == block.num_src && block.weight.empty(),
              "sources of a mean do not fit");
  const auto outputs = InTypeOf(x, [&]<typename T>(T) {
    return MeanFunction<T>::apply(x, c10::make_intrusive<MeanOperand<T>>(block, workspace));
  });
  return {outputs[0], outputs[1]};
}

at::Tensor FirstRows(const at::Tensor& x, int64_t count, Workspace* workspace) {
  TORCH_CHECK(x.is_contiguous() && count <= x.size(0), "there are not so many rows");
  return count == x.size(0) ? x : FirstRowsFunction::apply(x, count, workspace);
}

}  // namespace gnnd
