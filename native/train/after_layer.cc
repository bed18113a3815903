#include "train/after_layer.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "core/kernels/exp.h"
#include "train/grouped_sum.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr uint32_t kGrainRows = 64;
constexpr double kLeakySlope = 0.01;
constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kL2Epsilon = 1e-12;  // of torch.nn.functional.normalize

template <typename T>
void ActivateRange(Activation activation, T* __restrict values, uint64_t count) {
  switch (activation) {
    case Activation::kRelu:
      for (uint64_t i = 0; i < count; ++i) values[i] = values[i] < T{0} ? T{0} : values[i];
      return;
    case Activation::kElu:
      for (uint64_t i = 0; i < count; ++i) {
        const T x = values[i];
        const T low = ExpOfNonPositive(x > T{0} ? T{0} : x) - T{1};
        values[i] = x > T{0} ? x : low;
      }
      return;
    case Activation::kLeakyRelu:
      for (uint64_t i = 0; i < count; ++i) {
        const T x = values[i];
        values[i] = x > T{0} ? x : static_cast<T>(kLeakySlope) * x;
      }
      return;
  }
}

// Multiplies `grad` by the activation's derivative, which its output tells.
template <typename T>
void MultiplyDerivative(Activation activation, const T* __restrict out, uint64_t count,
                        T inverse_scale, T* __restrict grad) {
  const bool elu = activation == Activation::kElu;
  const T slope = activation == Activation::kRelu ? T{0} : static_cast<T>(kLeakySlope);
  for (uint64_t i = 0; i < count; ++i) {
    const T low = elu ? inverse_scale * out[i] + T{1} : slope;
    grad[i] *= out[i] > T{0} ? T{1} : low;
  }
}

template <typename Body>
void ParallelOver(const at::Tensor& rows, const Body& body) {
  ParallelRows(static_cast<uint32_t>(rows.size(0)), kGrainRows, body);
}

// How a hidden layer's rows change in place, between forward and backward.
struct ActivationSite final : torch::CustomClassHolder {
  DropoutSite dropout;
  Activation activation = Activation::kRelu;
  bool activate = true;  // else only dropout
  Workspace* workspace = nullptr;
};

template <typename T>
void RunActivation(const ActivationSite& site, const at::Tensor& z) {
  const auto dropout = DropoutOf<T>(site.dropout, z);
  ParallelOver(z, [&](uint32_t begin, uint32_t end) {
    if (site.activate) {
      ActivateRange(site.activation, dropout.rows + begin * dropout.stride,
                    (end - begin) * dropout.stride);
    }
    RunDropout(dropout, begin, end);
  });
}

// The mask is drawn again: a 0 in the output need not be a dropped element.
template <typename T>
void RunActivationBackward(const ActivationSite& site, const at::Tensor& out,
                           const at::Tensor& grad) {
  const auto dropout = DropoutOf<T>(site.dropout, grad);
  const T* values = out.const_data_ptr<T>();
  const T inverse = T{1} - static_cast<T>(site.dropout.p);
  ParallelOver(out, [&](uint32_t begin, uint32_t end) {
    RunDropout(dropout, begin, end);
    const uint64_t at = begin * dropout.stride;
    if (site.activate) {
      MultiplyDerivative(site.activation, values + at, (end - begin) * dropout.stride, inverse,
                         dropout.rows + at);
    }
  });
}

class ActivationFunction : public torch::autograd::Function<ActivationFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, at::Tensor z,
                            const c10::intrusive_ptr<ActivationSite>& site) {
    context->saved_data["site"] = c10::IValue::make_capsule(site);
    InTypeOf(z, [&]<typename T>(T) { RunActivation<T>(*site, z); });
    context->mark_dirty({z});
    context->save_for_backward({z});
    return z;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const auto capsule = context->saved_data["site"].toCapsule();
    const auto& site = *static_cast<ActivationSite*>(capsule.get());
    const at::Tensor out = context->get_saved_variables()[0];
    at::Tensor grad = EmptyIn(site.workspace, out, out.size(0), out.size(1));
    grad.copy_(grads[0]);
    InTypeOf(out, [&]<typename T>(T) { RunActivationBackward<T>(site, out, grad); });
    return {grad, at::Tensor()};
  }
};

// out = x / max(|x|, epsilon) by rows. Backward reads x: for rows shorter than epsilon the divisor
// is a constant.
template <typename T>
void NormalizeRows(const T* x, uint32_t columns, uint32_t begin, uint32_t end, T* out) {
  for (uint32_t r = begin; r < end; ++r) {
    const T* row = x + uint64_t{r} * columns;
    T* to = out + uint64_t{r} * columns;
    const T norm = std::sqrt(DotOfRows(row, row, columns));
    const T divisor = norm < static_cast<T>(kL2Epsilon) ? static_cast<T>(kL2Epsilon) : norm;
    for (uint32_t c = 0; c < columns; ++c) to[c] = row[c] / divisor;
  }
}

template <typename T>
void NormalizeRowsBackward(const T* x, const T* grad, uint32_t columns, uint32_t begin,
                           uint32_t end, T* grad_in) {
  for (uint32_t r = begin; r < end; ++r) {
    const uint64_t at = uint64_t{r} * columns;
    const T norm = std::sqrt(DotOfRows(x + at, x + at, columns));
    const bool constant = norm < static_cast<T>(kL2Epsilon);
    const T divisor = constant ? static_cast<T>(kL2Epsilon) : norm;
    const T along = constant ? T{0} : DotOfRows(x + at, grad + at, columns) / (divisor * divisor);
    for (uint32_t c = 0; c < columns; ++c) {
      grad_in[at + c] = (grad[at + c] - along * x[at + c]) / divisor;
    }
  }
}

// A row's elements less their mean, over their standard deviation.
template <typename T>
struct Standardized {
  T mean;
  T inverse;  // 1 / standard deviation

  T operator()(T value) const { return (value - mean) * inverse; }
};

template <typename T>
Standardized<T> StandardizedOf(const T* row, uint32_t columns) {
  T sum[8] = {};
  ForLanes(columns, [&](uint32_t c, uint32_t lane) { sum[lane] += row[c]; });
  const T mean = Total(sum) / static_cast<T>(columns);
  T squares[8] = {};
  ForLanes(columns, [&](uint32_t c, uint32_t lane) {
    const T distance = row[c] - mean;
    squares[lane] += distance * distance;
  });
  const T variance = Total(squares) / static_cast<T>(columns);
  return {mean, T{1} / std::sqrt(variance + static_cast<T>(kLayerNormEpsilon))};
}

// Layer normalisation of a row (Ba et al. 2016); `to` may be `row`.
template <typename T>
void LayerNormRow(const T* row, uint32_t columns, const T* scale, const T* shift, T* to) {
  const Standardized<T> standardized = StandardizedOf(row, columns);
  for (uint32_t c = 0; c < columns; ++c) to[c] = standardized(row[c]) * scale[c] + shift[c];
}

// Gradients in a row, and added to `grad_scale`, those in the scale and, `columns` further, the
// shift.
template <typename T>
void LayerNormRowBackward(const T* __restrict row, const T* __restrict grad, uint32_t columns,
                          const T* __restrict scale, T* __restrict grad_row,
                          T* __restrict grad_scale) {
  const Standardized<T> standardized = StandardizedOf(row, columns);
  T sum[8] = {};
  T along[8] = {};
  ForLanes(columns, [&](uint32_t c, uint32_t lane) {
    const T value = standardized(row[c]);
    const T scaled = grad[c] * scale[c];
    sum[lane] += scaled;
    along[lane] += scaled * value;
    grad_scale[c] += grad[c] * value;
    grad_scale[columns + c] += grad[c];
  });
  const T mean = Total(sum) / static_cast<T>(columns);
  const T slope = Total(along) / static_cast<T>(columns);
  for (uint32_t c = 0; c < columns; ++c) {
    const T value = standardized(row[c]);
    grad_row[c] = standardized.inverse * (grad[c] * scale[c] - mean - value * slope);
  }
}

class LayerNormFunction : public torch::autograd::Function<LayerNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale,
                            const at::Tensor& shift, Workspace* workspace) {
    context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
    context->save_for_backward({x, scale});
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    const auto columns = static_cast<uint32_t>(x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      const T* from = x.const_data_ptr<T>();
      const T* scales = scale.const_data_ptr<T>();
      const T* shifts = shift.const_data_ptr<T>();
      T* to = out.data_ptr<T>();
      ParallelOver(x, [=](uint32_t begin, uint32_t end) {
        for (uint64_t r = begin; r < end; ++r) {
          LayerNormRow(from + r * columns, columns, scales, shifts, to + r * columns);
        }
      });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto* workspace = reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const auto columns = static_cast<uint32_t>(x.size(1));
    at::Tensor sums = EmptyIn(workspace, x, 2, columns);
    InTypeOf(x, [&]<typename T>(T) {
      const T* rows = x.const_data_ptr<T>();
      const T* from = grad.const_data_ptr<T>();
      const T* scale = saved[1].const_data_ptr<T>();
      T* to = grad_in.data_ptr<T>();
      SumInGroups(static_cast<uint32_t>(x.size(0)), uint64_t{2} * columns, workspace,
                  sums.data_ptr<T>(), [=](uint32_t begin, uint32_t end, T* partial) {
                    for (uint64_t r = begin; r < end; ++r) {
                      const uint64_t at = r * columns;
                      LayerNormRowBackward(rows + at, from + at, columns, scale, to + at, partial);
                    }
                  });
    });
    return {grad_in, sums[0], sums[1], at::Tensor()};
  }
};

class NormalizeFunction : public torch::autograd::Function<NormalizeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Workspace* workspace) {
    context->saved_data["workspace"] = reinterpret_cast<int64_t>(workspace);
    context->save_for_backward({x});
    at::Tensor out = EmptyIn(workspace, x, x.size(0), x.size(1));
    const auto columns = static_cast<uint32_t>(x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      ParallelOver(x, [&](uint32_t begin, uint32_t end) {
        NormalizeRows(x.const_data_ptr<T>(), columns, begin, end, out.data_ptr<T>());
      });
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    auto* workspace = reinterpret_cast<Workspace*>(context->saved_data["workspace"].toInt());
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous();
    at::Tensor grad_in = EmptyIn(workspace, x, x.size(0), x.size(1));
    const auto columns = static_cast<uint32_t>(x.size(1));
    InTypeOf(x, [&]<typename T>(T) {
      ParallelOver(x, [&](uint32_t begin, uint32_t end) {
        NormalizeRowsBackward(x.const_data_ptr<T>(), grad.const_data_ptr<T>(), columns, begin, end,
                              grad_in.data_ptr<T>());
      });
    });
    return {grad_in, at::Tensor()};
  }
};

at::Tensor ActivateAndDrop(const at::Tensor& z, Activation activation, bool activate,
                           const DropoutSite& dropout, Workspace* workspace) {
  if (activate && activation == Activation::kRelu) return ReluDropout(z, dropout, workspace);
  auto site = c10::make_intrusive<ActivationSite>();
  site->dropout = dropout;
  site->activation = activation;
  site->activate = activate;
  site->workspace = workspace;
  return ActivationFunction::apply(z, site);
}

}  // namespace

at::Tensor FinishLayer(const ModelSpec& spec, const at::Tensor& given, const at::Tensor& scale,
                       const at::Tensor& shift, const DropoutSite& site, Workspace* workspace) {
  const Activation activation = spec.activation;
  const bool narrow = given.scalar_type() == at::kBFloat16;
  const bool plain =
      NormalizationOf(spec) == Normalization::kNone && activation == Activation::kRelu;
  const at::Tensor z = narrow && !plain ? AsRowsOf(at::kFloat, given, workspace) : given;
  switch (NormalizationOf(spec)) {
    case Normalization::kLayer:
      return ActivateAndDrop(LayerNormFunction::apply(z, scale, shift, workspace), activation, true,
                             site, workspace);
    case Normalization::kL2: {
      DropoutSite none = site;
      none.p = 0;
      const at::Tensor active = ActivateAndDrop(z, activation, true, none, workspace);
      const at::Tensor unit = NormalizeFunction::apply(active, workspace);
      if (site.p == 0.0F) return unit;
      return ActivateAndDrop(unit, activation, false, site, workspace);
    }
    case Normalization::kNone:
      break;
  }
  return ActivateAndDrop(z, activation, true, site, workspace);
}

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                     Workspace* workspace) {
  return LayerNormFunction::apply(x, scale, shift, workspace);
}

void FinishLayerInPlace(const ModelSpec& spec, float* values, uint32_t rows, uint32_t columns,
                        const float* scale, const float* shift) {
  const Normalization normalization = NormalizationOf(spec);
  ParallelRows(rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    if (normalization == Normalization::kLayer) {
      for (uint64_t r = begin; r < end; ++r) {
        LayerNormRow(values + r * columns, columns, scale, shift, values + r * columns);
      }
    }
    ActivateRange(spec.activation, values + uint64_t{begin} * columns,
                  uint64_t{end - begin} * columns);
    if (normalization == Normalization::kL2) NormalizeRows(values, columns, begin, end, values);
  });
}

}  // namespace gnnd
