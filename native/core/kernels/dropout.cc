#include "core/kernels/dropout.h"

namespace gnnd {
namespace {

// This form vectorises, and keeps a NaN, which is not below 0.
template <typename T>
void ReluRow(T* row, uint32_t columns) {
  for (uint32_t c = 0; c < columns; ++c) row[c] = row[c] < T{0} ? T{0} : row[c];
}

// Zeroes negative numbers but no NaN: the sign bit is set and the other bits are at most infinity.
void ReluRow(Bfloat16* row, uint32_t columns) {
  for (uint32_t c = 0; c < columns; ++c) {
    const auto bits = static_cast<uint16_t>(row[c]);
    row[c] = bits > 0x8000 && bits <= 0xFF80 ? Bfloat16{0} : row[c];
  }
}

// The plain definition, for float64: only tests' models use it, so speed does not matter.
void DropoutOneByOne(const DropoutRows<double>& op, uint32_t begin, uint32_t end) {
  const DrawStream stream = DropoutStream(op.key, Purpose::kDropout);
  for (uint32_t r = begin; r < end; ++r) {
    double* row = op.rows + r * op.stride;
    PhiloxWords words{};
    for (uint32_t c = 0; c < op.columns; ++c) {
      if (c % 4 == 0) words = RowWords(stream, op.nodes[r], c / 4);
      const bool survives = words.word[c % 4] >= op.threshold && !(op.relu && row[c] <= 0.0);
      row[c] = survives ? op.scale * row[c] : 0.0;
    }
  }
}

template <typename T, typename Scale>
bool NeedsNoDraws(const DropoutRows<T, Scale>& op, uint32_t begin, uint32_t end) {
  if (op.threshold != 0) return false;
  for (uint32_t r = begin; op.relu && r < end; ++r) ReluRow(op.rows + r * op.stride, op.columns);
  return true;  // nothing is dropped, so there is nothing to scale up for
}

}  // namespace

void RunDropout(const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  if (!NeedsNoDraws(op, begin, end)) BestLoops<DropoutLoops>().run(op, begin, end);
}

void RunDropout(const DropoutBfloat16& op, uint32_t begin, uint32_t end) {
  if (!NeedsNoDraws(op, begin, end)) BestLoops<DropoutLoops>().run_bfloat16(op, begin, end);
}

void RunDropout(const DropoutRows<double>& op, uint32_t begin, uint32_t end) {
  if (!NeedsNoDraws(op, begin, end)) DropoutOneByOne(op, begin, end);
}

}  // namespace gnnd
