#include <algorithm>
#include <cmath>

#include "core/kernels/exp.h"
#include "train/ops/after_layer.h"
#include "train/ops/grouped_sum.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

// Activations and normalisation after hidden layers, on the processor.

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;
constexpr double kLeakySlope = 0.01;
constexpr double kLayerNormEpsilon = 1e-5;
constexpr double kL2Epsilon = 1e-12;  // as in torch.nn.functional.normalize

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

// Multiplies `grad` by the activation's derivative, which follows from its output.
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

template <typename T>
void Activate(const ActivationRows<T>& op, Workspace*) {
  const DropoutRows<T>& dropout = op.dropout;
  ParallelRows(op.rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    if (op.activate) {
      ActivateRange(op.activation, dropout.rows + begin * dropout.stride,
                    (end - begin) * dropout.stride);
    }
    RunDropout(dropout, begin, end);
  });
}

template <typename T>
void ActivationGradient(const ActivationRows<T>& op, const T* out, Workspace*) {
  const DropoutRows<T>& dropout = op.dropout;
  ParallelRows(op.rows, kGrainRows, [&](uint32_t begin, uint32_t end) {
    RunDropout(dropout, begin, end);
    if (!op.activate) return;
    const uint64_t at = begin * dropout.stride;
    MultiplyDerivative(op.activation, out + at, (end - begin) * dropout.stride, op.inverse_scale,
                       dropout.rows + at);
  });
}

// Sets out = x / max(|x|, epsilon) by rows. Backward reads x: rows shorter than epsilon have a
// constant divisor.
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

// A row's elements minus their mean, divided by their standard deviation.
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

// The gradients of a row; adds those of the scale to `grad_scale` and, `columns` further, those of
// the shift.
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

template <typename T>
void LayerNormOf(const NormRows<T>& op, Workspace*, T* out) {
  ParallelRows(op.rows, kGrainRows, [&op, out](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      const uint64_t at = r * op.columns;
      LayerNormRow(op.x + at, op.columns, op.scale, op.shift, out + at);
    }
  });
}

template <typename T>
void LayerNormGradient(const NormRows<T>& op, Workspace* workspace, T* grad_in, T* grad_scale) {
  SumInGroups(op.rows, uint64_t{2} * op.columns, workspace, grad_scale,
              [&op, grad_in](uint32_t begin, uint32_t end, T* partial) {
                for (uint64_t r = begin; r < end; ++r) {
                  const uint64_t at = r * op.columns;
                  LayerNormRowBackward(op.x + at, op.grad + at, op.columns, op.scale, grad_in + at,
                                       partial);
                }
              });
}

template <typename T>
void Normalize(const NormRows<T>& op, Workspace*, T* out) {
  ParallelRows(op.rows, kGrainRows, [&op, out](uint32_t begin, uint32_t end) {
    NormalizeRows(op.x, op.columns, begin, end, out);
  });
}

template <typename T>
void NormalizeGradient(const NormRows<T>& op, Workspace*, T* grad_in) {
  ParallelRows(op.rows, kGrainRows, [&op, grad_in](uint32_t begin, uint32_t end) {
    NormalizeRowsBackward(op.x, op.grad, op.columns, begin, end, grad_in);
  });
}

}  // namespace

template <typename T>
FinishOperators<T> CpuFinish() {
  FinishOperators<T> operators;
  operators.activate = &Activate<T>;
  operators.activation_gradient = &ActivationGradient<T>;
  operators.layer_norm = &LayerNormOf<T>;
  operators.layer_norm_gradient = &LayerNormGradient<T>;
  operators.normalize = &Normalize<T>;
  operators.normalize_gradient = &NormalizeGradient<T>;
  return operators;
}
template FinishOperators<float> CpuFinish();
template FinishOperators<double> CpuFinish();

}  // namespace gnnd
