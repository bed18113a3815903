#include "train/gather_sum.h"

namespace gnnd {
namespace {

template <typename T>
T Value(T element) {
  return element;
}

float Value(Half element) { return ToFloat(element); }

template <typename T, typename Element>
void StartRow(const GatherSum<T, Element>& op, uint32_t row, T* out) {
  if (op.self == nullptr || row >= op.self_rows) {
    for (uint32_t c = 0; c < op.columns; ++c) out[c] = T{0};
    return;
  }
  const uint64_t self_row = op.self_index == nullptr ? row : op.self_index[row];
  const Element* self = op.self + self_row * op.self_stride;
  if (op.self_weight == nullptr) {
    for (uint32_t c = 0; c < op.columns; ++c) out[c] = Value(self[c]);
  } else {
    const T weight = op.self_weight[row];
    for (uint32_t c = 0; c < op.columns; ++c) out[c] = weight * Value(self[c]);
  }
}

template <typename T, typename Element>
void GatherSumPortable(const GatherSum<T, Element>& op, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    T* __restrict out = op.out + row * op.out_stride;
    StartRow(op, row, out);
    for (uint32_t e = op.indptr[row]; e < op.indptr[row + 1]; ++e) {
      const Element* __restrict x = op.x + op.index[e] * op.x_stride;
      if (op.weight == nullptr) {
        for (uint32_t c = 0; c < op.columns; ++c) out[c] += Value(x[c]);
      } else {
        const T weight = op.weight[e];
        for (uint32_t c = 0; c < op.columns; ++c) out[c] += weight * Value(x[c]);
      }
    }
    if (op.scale != nullptr) {
      for (uint32_t c = 0; c < op.columns; ++c) out[c] *= op.scale[row];
    }
  }
}

}  // namespace

template <typename Element>
GatherSumRows<Element> GatherSumVariant([[maybe_unused]] InstructionSet set) {
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx512) return GatherSumAvx512;
  if (set == InstructionSet::kAvx2) return GatherSumAvx2;
#endif
  return GatherSumPortable<float, Element>;
}

template GatherSumRows<float> GatherSumVariant<float>(InstructionSet set);
template GatherSumRows<Half> GatherSumVariant<Half>(InstructionSet set);

void RunGatherSum(const GatherSum<float>& op, uint32_t begin, uint32_t end) {
  static const auto variant = GatherSumVariant<float>(DetectInstructionSet());
  variant(op, begin, end);
}

void RunGatherSum(const GatherSum<float, Half>& op, uint32_t begin, uint32_t end) {
  static const auto variant = GatherSumVariant<Half>(DetectInstructionSet());
  variant(op, begin, end);
}

void RunGatherSum(const GatherSum<double>& op, uint32_t begin, uint32_t end) {
  GatherSumPortable(op, begin, end);
}

}  // namespace gnnd
