#include "core/kernels/spmm.h"
#include "cuda/elements.cuh"
#include "cuda/operators.h"

// Sums of gathered rows. One lane adds a column of a row, edge after edge, as core/kernels does:
// the definition fixes the order, so the time of a long row grows with its length.

namespace gnnd::cuda {
namespace {

constexpr uint32_t kHeld = 4;        // columns per lane
constexpr uint32_t kEdgesAhead = 4;  // edges whose elements are loaded before the first is added

// Loads columns first + k * width of a row, as far as they are below `columns`.
template <typename T, typename Element>
GNND_DEVICE void LoadColumns(const Element* row, uint32_t first, uint32_t width, uint32_t columns,
                             T (&values)[kHeld]) {
  GNND_UNROLL
  for (uint32_t k = 0; k < kHeld; ++k) {
    const uint32_t column = first + k * width;
    values[k] = column < columns ? LoadConstAs(row + column) : T{0};
  }
}

// Adds 0 as the twin does when it makes vectors, which turns -0 into 0.
template <typename T>
GNND_DEVICE T Factor(T value) {
  return T{0} + value;
}

template <typename T>
GNND_DEVICE void AddColumns(bool weighted, T weight, const T (&term)[kHeld], T (&sum)[kHeld]) {
  GNND_UNROLL
  for (uint32_t k = 0; k < kHeld; ++k) {
    sum[k] = sum[k] + (weighted ? weight * term[k] : term[k]);
  }
}

template <typename T, typename Element, typename Out>
GNND_DEVICE void SumEdges(const Spmm<T, Element, Out>& op, uint64_t row, uint32_t first,
                          uint32_t width, T (&sum)[kHeld]) {
  const bool weighted = op.weight != nullptr;
  const uint32_t end = op.indptr[row + 1];
  uint32_t e = op.indptr[row];
  for (; end - e >= kEdgesAhead; e += kEdgesAhead) {
    T terms[kEdgesAhead][kHeld];
    GNND_UNROLL
    for (uint32_t k = 0; k < kEdgesAhead; ++k) {
      LoadColumns(op.x + op.index[e + k] * op.x_stride, first, width, op.columns, terms[k]);
    }
    GNND_UNROLL
    for (uint32_t k = 0; k < kEdgesAhead; ++k) {
      AddColumns(weighted, weighted ? Factor(op.weight[e + k]) : T{0}, terms[k], sum);
    }
  }
  for (; e < end; ++e) {
    T term[kHeld];
    LoadColumns(op.x + op.index[e] * op.x_stride, first, width, op.columns, term);
    AddColumns(weighted, weighted ? Factor(op.weight[e]) : T{0}, term, sum);
  }
}

// A group of `width` lanes per stretch of kHeld * width columns of a row.
template <typename T, typename Element, typename Out>
GNND_KERNEL SpmmStretches(Spmm<T, Element, Out> op, uint32_t begin, uint32_t end, uint32_t width) {
  const uint32_t stretches = (op.columns + kHeld * width - 1) / (kHeld * width);
  const uint64_t tasks = uint64_t{end - begin} * stretches;
  for (uint64_t task = GridThread() / width; task < tasks; task += GridThreads() / width) {
    const uint64_t row = begin + task / stretches;
    const uint32_t first = static_cast<uint32_t>(task % stretches) * kHeld * width + Lane() % width;
    T sum[kHeld] = {};
    if (op.self != nullptr && row < op.self_rows) {
      const uint64_t self_row = op.self_index == nullptr ? row : op.self_index[row];
      LoadColumns(op.self + self_row * op.self_stride, first, width, op.columns, sum);
      if (op.self_weight != nullptr) {
        GNND_UNROLL
        for (uint32_t k = 0; k < kHeld; ++k) sum[k] = Factor(op.self_weight[row]) * sum[k];
      }
    }
    SumEdges(op, row, first, width, sum);
    GNND_UNROLL
    for (uint32_t k = 0; k < kHeld; ++k) {
      const uint32_t column = first + k * width;
      if (column >= op.columns) continue;
      const T value = op.scale == nullptr ? sum[k] : Factor(op.scale[row]) * sum[k];
      StoreAs(op.out + row * op.out_stride + column, value);
    }
  }
}

template <typename T, typename Element, typename Out>
void Run(const Queue& queue, const Spmm<T, Element, Out>& op, uint32_t begin, uint32_t end) {
  const uint32_t width = op.columns <= 8 * kHeld ? 8 : op.columns <= 16 * kHeld ? 16 : kWarpLanes;
  const uint64_t stretches = (op.columns + kHeld * width - 1) / (kHeld * width);
  LaunchFor(queue, (end - begin) * stretches * width, SpmmStretches<T, Element, Out>, op, begin,
            end, width);
}

}  // namespace

void RunSpmm(const Queue& queue, const SpmmFloat& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunSpmm(const Queue& queue, const SpmmHalf& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunSpmm(const Queue& queue, const SpmmDouble& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunSpmm(const Queue& queue, const SpmmBfloat16& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunSpmm(const Queue& queue, const SpmmFloatToBfloat16& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunSpmm(const Queue& queue, const SpmmHalfToBfloat16& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}

}  // namespace gnnd::cuda
