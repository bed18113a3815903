#include <algorithm>
#include <bit>
#include <span>
#include <type_traits>

#include "core/kernels/loss.h"
#include "core/vec/convert.h"
#include "train/ops/device.h"
#include "train/ops/grouped_sum.h"
#include "train/ops/operators.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;
// Floats of the parameter vector, and seeds, below which another thread does not pay off.
constexpr uint32_t kGrainFloats = 16384;
constexpr uint32_t kGrainSeeds = 64;

template <typename T, typename Element>
void SumEdges(const Spmm<SumOf<T>, Element, T>& op, uint32_t rows, Workspace*) {
  ParallelSums(rows, kGrainRows, [&op](uint32_t begin, uint32_t end) { RunSpmm(op, begin, end); });
}

template <typename Sum>
void WriteMeanScales(const MeanScales<Sum>& op, Workspace*) {
  ParallelRows(op.num_dst, kGrainRows, [&op](uint32_t begin, uint32_t end) {
    for (uint32_t d = begin; d < end; ++d) {
      Sum sum = op.weight == nullptr ? static_cast<Sum>(op.indptr[d + 1] - op.indptr[d]) : Sum{0};
      for (uint32_t e = op.indptr[d]; op.weight != nullptr && e < op.indptr[d + 1]; ++e) {
        sum += op.weight[e];
      }
      op.scale[d] = sum > Sum{0} ? Sum{1} / sum : Sum{0};
    }
  });
}

template <typename Sum>
void ScaleWeights(const MeanScales<Sum>& op, Workspace*) {
  for (uint32_t d = 0; d < op.num_dst; ++d) {
    for (uint32_t e = op.indptr[d]; e < op.indptr[d + 1]; ++e) {
      op.scaled[e] = op.scale[d] * op.weight[e];
    }
  }
}

template <typename Sum>
void Transpose(const TransposeInput<Sum>& in, Workspace*, uint32_t* indptr, uint32_t* dst,
               Sum* weight) {
  TransposeBlock(in, indptr, dst, weight);
}

template <typename Sum>
const Sum* WeightsAs(std::span<const float> weights, [[maybe_unused]] Workspace* workspace) {
  if constexpr (std::same_as<Sum, float>) {
    return weights.data();
  } else {
    Sum* copy = workspace->Get<Sum>(weights.size());
    std::copy(weights.begin(), weights.end(), copy);
    return copy;
  }
}

template <typename T>
void Drop(const DropoutRows<T, SumOf<T>>& op, uint32_t rows, Workspace*) {
  ParallelRows(rows, kGrainRows,
               [&op](uint32_t begin, uint32_t end) { RunDropout(op, begin, end); });
}

// Selects by bits, ignoring the sign, so that the loop vectorises; a branch would be mispredicted
// at every other element.
template <typename T>
void SelectScaled(const T* __restrict out, const T* __restrict grad, uint64_t count, T scale,
                  T* __restrict grad_in) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (uint64_t i = 0; i < count; ++i) {
    const Bits survived = Bits{0} - static_cast<Bits>((std::bit_cast<Bits>(out[i]) << 1) != 0);
    grad_in[i] = std::bit_cast<T>(std::bit_cast<Bits>(scale * grad[i]) & survived);
  }
}

void SelectScaled(const Bfloat16* __restrict out, const Bfloat16* __restrict grad, uint64_t count,
                  float scale, Bfloat16* __restrict grad_in) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto survived =
        static_cast<uint16_t>(-static_cast<uint16_t>((static_cast<uint16_t>(out[i]) << 1) != 0));
    const auto scaled = static_cast<uint16_t>(ToBfloat16(scale * ToFloat(grad[i])));
    grad_in[i] = static_cast<Bfloat16>(scaled & survived);
  }
}

template <typename T>
void DropGradient(const DropoutGradient<T>& op, Workspace*) {
  ParallelRows(op.rows, kGrainRows, [&op](uint32_t begin, uint32_t end) {
    const uint64_t at = begin * op.columns;
    SelectScaled(op.out + at, op.grad + at, (end - begin) * op.columns, op.scale, op.grad_in + at);
  });
}

float AsSum(Bfloat16 value) { return ToFloat(value); }
template <typename T>
T AsSum(T value) {
  return value;
}

template <typename T>
void SumRows(const T* rows, uint32_t count, uint64_t columns, Workspace* workspace, SumOf<T>* out) {
  SumInGroups(count, columns, workspace, out, [=](uint32_t begin, uint32_t end, SumOf<T>* sums) {
    for (uint64_t r = begin; r < end; ++r) {
      const T* __restrict row = rows + r * columns;
      SumOf<T>* __restrict to = sums;
      for (uint64_t c = 0; c < columns; ++c) to[c] += AsSum(row[c]);
    }
  });
}

template <typename From, typename To>
void ConvertRows(const From* from, uint32_t rows, uint64_t columns, Workspace*, To* to) {
  ParallelRows(rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    const uint64_t at = begin * columns;
    Convert(from + at, (end - begin) * columns, to + at);
  });
}

void MultiplyTransposed(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& out,
                        Workspace*) {
  TransposedProductInto(grad, x, out);
}

void LossesOfTargets(const LossRows& op, std::span<double> losses) {
  ParallelRows(op.rows, kGrainSeeds, [&](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      const uint64_t at = r * op.classes;
      const std::span<const float> row(op.logits + at, op.classes);
      losses[r] = op.task == Task::kMultiLabel
                      ? MultiLabelLoss(row, op.targets + at, op.weights, op.grad + at)
                      : SquaredErrorLoss(row, op.targets + at, op.grad + at);
    }
  });
}

void Weigh(const LossRows& op, uint32_t begin, uint32_t end, std::span<double> losses) {
  for (uint64_t r = begin; r < end; ++r) {
    const float weight = op.weights[op.labels[r]];
    losses[r] *= static_cast<double>(weight);
    float* const grad = op.grad + r * op.classes;
    for (uint64_t c = 0; c < op.classes; ++c) grad[c] *= weight;
  }
}

LossSums Losses(const LossRows& op, Workspace* workspace) {
  const std::span<double> losses(workspace->Get<double>(op.rows), op.rows);
  LossSums sums;
  if (op.task != Task::kClassification) {
    LossesOfTargets(op, losses);
    for (const double loss : losses) sums.loss += loss;
    return sums;
  }
  const std::span<uint8_t> correct(workspace->Get<uint8_t>(op.rows), op.rows);
  const CrossEntropyRows rows{op.logits, op.labels,     op.classes,
                              op.grad,   losses.data(), correct.data()};
  const LossLoops& loops = BestLoops<LossLoops>();
  ParallelRows(op.rows, kGrainSeeds, [&](uint32_t begin, uint32_t end) {
    loops.cross_entropy(rows, begin, end);
    if (op.weights != nullptr) Weigh(op, begin, end, losses);
  });
  for (uint32_t i = 0; i < op.rows; ++i) {
    sums.loss += losses[i];
    sums.correct += correct[i];
  }
  return sums;
}

void Update(const ParameterManifest& manifest, const OptimizerOptions& options,
            const OptimizerStep& step) {
  const OptimizerUpdate update(manifest, options, step);
  ParallelRows(static_cast<uint32_t>(manifest.num_floats), kGrainFloats,
               [&update](uint32_t begin, uint32_t end) { update.Run(begin, end); });
}

template <typename T>
RowOperators<T> CpuRows() {
  using Sum = SumOf<T>;
  RowOperators<T> rows{};
  rows.sum_edges = &SumEdges<T, T>;
  if constexpr (!std::same_as<T, double>) {
    rows.sum_floats = &SumEdges<T, float>;
    rows.sum_halves = &SumEdges<T, Half>;
  }
  rows.mean_scales = &WriteMeanScales<Sum>;
  rows.scale_weights = &ScaleWeights<Sum>;
  rows.transpose = &Transpose<Sum>;
  rows.weights = &WeightsAs<Sum>;
  rows.dropout = &Drop<T>;
  rows.dropout_gradient = &DropGradient<T>;
  rows.sum_rows = &SumRows<T>;
  return rows;
}

}  // namespace

const Operators& CpuOperators() {
  static const Operators operators = [] {
    Operators made{};
    made.of_float = CpuRows<float>();
    made.of_double = CpuRows<double>();
    made.of_bfloat16 = CpuRows<Bfloat16>();
    made.attention_of_float = CpuAttention<float>();
    made.attention_of_double = CpuAttention<double>();
    made.finish_of_float = CpuFinish<float>();
    made.finish_of_double = CpuFinish<double>();
    made.row_models_of_float = CpuRowModels<float>();
    made.row_models_of_double = CpuRowModels<double>();
    made.narrow = &ConvertRows<float, Bfloat16>;
    made.widen = &ConvertRows<Bfloat16, float>;
    made.affine = &RunAffine;
    made.transposed_product = &MultiplyTransposed;
    made.loss = &Losses;
    made.update = &Update;
    return made;
  }();
  return operators;
}

const TrainDevice& CpuDevice() {
  static const TrainDevice device{.operators = &CpuOperators()};
  return device;
}

}  // namespace gnnd
