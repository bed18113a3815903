#include "core/kernels/exp.h"
#include "cuda/groups.cuh"
#include "cuda/operators.h"

// Normalisation and activations, as in train/ops/cpu_finish.cc. Eight lanes work on a row.

namespace gnnd::cuda {
namespace {

GNND_KERNEL ActivateRelu(float* values, uint64_t count) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    values[i] = values[i] < 0.0F ? 0.0F : values[i];
  }
}

GNND_KERNEL ActivateElu(float* values, uint64_t count) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const float x = values[i];
    const float low = ExpOfNonPositive(x > 0.0F ? 0.0F : x) - 1.0F;
    values[i] = x > 0.0F ? x : low;
  }
}

GNND_KERNEL ActivateLeaky(float* values, uint64_t count, float slope) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const float x = values[i];
    values[i] = x > 0.0F ? x : slope * x;
  }
}

GNND_KERNEL MultiplyDerivatives(const float* out, uint64_t count, bool elu, float slope,
                                float inverse_scale, float* grad) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const float low = elu ? inverse_scale * out[i] + 1.0F : slope;
    grad[i] *= out[i] > 0.0F ? 1.0F : low;
  }
}

constexpr float kLeakySlope = 0.01F;
constexpr float kLayerNormEpsilon = 1e-5F;
constexpr float kL2Epsilon = 1e-12F;

GNND_KERNEL NormalizeRows(NormTask task) {
  for (uint64_t r = GridThread() / kParts; r < task.rows; r += GridThreads() / kParts) {
    const uint64_t at = r * task.columns;
    const float* const x = task.x + at;
    const float norm = std::sqrt(SumInParts(task.columns, [&](uint32_t c) { return x[c] * x[c]; }));
    const bool is_constant = norm < kL2Epsilon;
    const float divisor = is_constant ? kL2Epsilon : norm;
    if (task.grad == nullptr) {
      for (uint32_t c = Part(); c < task.columns; c += kParts) task.out[at + c] = x[c] / divisor;
      continue;
    }
    const float* const grad = task.grad + at;
    const float dot = SumInParts(task.columns, [&](uint32_t c) { return x[c] * grad[c]; });
    const float along = is_constant ? 0.0F : dot / (divisor * divisor);
    for (uint32_t c = Part(); c < task.columns; c += kParts) {
      task.out[at + c] = (grad[c] - along * x[c]) / divisor;
    }
  }
}

// A row's elements minus their mean, divided by their standard deviation.
struct Standardized {
  float mean;
  float inverse;

  GNND_DEVICE float Of(float value) const { return (value - mean) * inverse; }
};

GNND_DEVICE Standardized StandardizedOf(const float* row, uint32_t columns) {
  const auto count = static_cast<float>(columns);
  const float mean = SumInParts(columns, [&](uint32_t c) { return row[c]; }) / count;
  const float squares = SumInParts(columns, [&](uint32_t c) {
    const float distance = row[c] - mean;
    return distance * distance;
  });
  return {mean, 1.0F / std::sqrt(squares / count + kLayerNormEpsilon)};
}

GNND_KERNEL LayerNormRows(NormTask task) {
  for (uint64_t r = GridThread() / kParts; r < task.rows; r += GridThreads() / kParts) {
    const uint64_t at = r * task.columns;
    const Standardized standardized = StandardizedOf(task.x + at, task.columns);
    for (uint32_t c = Part(); c < task.columns; c += kParts) {
      task.out[at + c] = standardized.Of(task.x[at + c]) * task.scale[c] + task.shift[c];
    }
  }
}

// Gradients of rows; each row's mean and deviation are kept in `moments`.
GNND_KERNEL LayerNormGradients(NormTask task, Standardized* moments) {
  const auto count = static_cast<float>(task.columns);
  for (uint64_t r = GridThread() / kParts; r < task.rows; r += GridThreads() / kParts) {
    const uint64_t at = r * task.columns;
    const float* const x = task.x + at;
    const float* const grad = task.grad + at;
    const Standardized standardized = StandardizedOf(x, task.columns);
    const float mean =
        SumInParts(task.columns, [&](uint32_t c) { return grad[c] * task.scale[c]; }) / count;
    const float slope = SumInParts(task.columns,
                                   [&](uint32_t c) {
                                     const float scaled = grad[c] * task.scale[c];
                                     return scaled * standardized.Of(x[c]);
                                   }) /
                        count;
    for (uint32_t c = Part(); c < task.columns; c += kParts) {
      const float value = standardized.Of(x[c]);
      task.out[at + c] = standardized.inverse * (grad[c] * task.scale[c] - mean - value * slope);
    }
    if (Part() == 0) moments[r] = standardized;
  }
}

// Elements of the sum over rows: first for the scale's gradient, then for the shift's.
struct ScaleGradients {
  NormTask task;
  const Standardized* moments;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const {
    const bool is_shift = column >= task.columns;
    const uint64_t at = row * task.columns + (is_shift ? column - task.columns : column);
    return is_shift ? task.grad[at] : task.grad[at] * moments[row].Of(task.x[at]);
  }
};

}  // namespace

void Activate(const Queue& queue, Activated activation, float* values, uint64_t count) {
  switch (activation) {
    case Activated::kRelu:
      return LaunchFor(queue, count, ActivateRelu, values, count);
    case Activated::kElu:
      return LaunchFor(queue, count, ActivateElu, values, count);
    case Activated::kLeakyRelu:
      return LaunchFor(queue, count, ActivateLeaky, values, count, kLeakySlope);
  }
}

void ActivationGradient(const Queue& queue, Activated activation, const float* out,
                        float inverse_scale, uint64_t count, float* grad) {
  const float slope = activation == Activated::kRelu ? 0.0F : kLeakySlope;
  LaunchFor(queue, count, MultiplyDerivatives, out, count, activation == Activated::kElu, slope,
            inverse_scale, grad);
}

void NormalizeL2(const Queue& queue, const NormTask& task) {
  LaunchFor(queue, uint64_t{task.rows} * kParts, NormalizeRows, task);
}

uint64_t LayerNormFloats(uint32_t rows, uint32_t columns) {
  return GroupsOf(rows) * 2 * columns + uint64_t{rows} * 2;
}

void LayerNorm(const Queue& queue, const NormTask& task, float* work) {
  const uint64_t lanes = uint64_t{task.rows} * kParts;
  if (task.grad == nullptr) return LaunchFor(queue, lanes, LayerNormRows, task);
  auto* const moments = reinterpret_cast<Standardized*>(work);
  LaunchFor(queue, lanes, LayerNormGradients, task, moments);
  SumRowsInGroups(queue, ScaleGradients{task, moments}, task.rows, 2 * uint64_t{task.columns},
                  work + uint64_t{task.rows} * 2, task.grad_scale);
}

}  // namespace gnnd::cuda
