#include <algorithm>
#include <utility>

#include "core/base/prefetch.h"
#include "core/kernels/spmm.h"
#include "core/vec/vec.h"

// Up to kHeldVectors vectors hold a stretch of columns of one row; wider rows take several passes.
// The last vector loads and stores its first lanes only, so nothing is padded.

namespace gnnd::GNND_SET {
namespace {

constexpr uint64_t kLineBytes = 64;
// Prefetch distance in cache lines, converted to the number of edges whose rows fill them. Measured
// with rows of 64 to 1,024 bytes: more lines evict rows from the first cache before their use,
// fewer arrive too late in the second (docs/decisions/0034).
constexpr uint64_t kLinesAhead[] = {48, 192};
constexpr uint64_t kFewestAhead = 6;
constexpr uint64_t kMostAhead = 64;

struct Ahead {
  PrefetchLevel level;
  uint32_t edges;
  bool straddles;  // rows do not start on lines, so a row may touch one line more
};

Ahead AheadOf(uint64_t row_bytes, uint64_t stride_bytes) {
  const PrefetchLevel level = BestPrefetchLevel();
  const uint64_t row_lines = (row_bytes + kLineBytes - 1) / kLineBytes;
  const uint64_t edges = kLinesAhead[static_cast<uint32_t>(level)] / row_lines;
  return {level, static_cast<uint32_t>(std::clamp(edges, kFewestAhead, kMostAhead)),
          stride_bytes % kLineBytes != 0};
}

template <typename T>
constexpr uint32_t kHeld = kHeldVectors;
template <>
constexpr uint32_t kHeld<double> = 1;

template <typename T, uint32_t kVectors, typename Element>
GNND_VEC void LoadAll(const Element* from, const Tail& tail, Lanes16<T> (&all)[kVectors]) {
#pragma GCC unroll 16
  for (uint32_t k = 0; k + 1 < kVectors; ++k) all[k] = Load(from + k * kLanes);
  all[kVectors - 1] = Load(from + (kVectors - 1) * kLanes, tail);
}

template <typename T, uint32_t kVectors>
GNND_VEC void ScaleAll(T factor, Lanes16<T> (&all)[kVectors]) {
  const Lanes16<T> wide = Broadcast(factor);
#pragma GCC unroll 16
  for (uint32_t k = 0; k < kVectors; ++k) all[k] = wide * all[k];
}

template <uint32_t kVectors, typename Element>
GNND_PREFETCHES void PrefetchRow(const Ahead& ahead, const Element* row, uint32_t last) {
  constexpr uint32_t kLine = kLineBytes / sizeof(Element);
#pragma GCC unroll 16
  for (uint32_t at = 0; at < kVectors * kLanes; at += kLine) Prefetch(ahead.level, row + at);
  if (ahead.straddles) Prefetch(ahead.level, row + last);
}

// Columns [column, column + kVectors * kLanes) of rows [begin, end); `tail` masks the last vector.
template <typename T, typename Element, typename Out, uint32_t kVectors, bool kWeighted>
void RunColumns(const Spmm<T, Element, Out>& op, uint32_t column, const Tail& tail, uint32_t begin,
                uint32_t end) {
  const Element* const x = op.x + column;
  const uint32_t last = (kVectors - 1) * kLanes + tail.count - 1;
  const Ahead ahead = AheadOf((last + 1) * sizeof(Element), op.x_stride * sizeof(Element));
  const uint32_t last_edge = op.indptr[end];
  for (uint32_t row = begin; row < end; ++row) {
    Lanes16<T> sum[kVectors] = {};
    if (op.self != nullptr && row < op.self_rows) {
      const uint64_t self_row = op.self_index == nullptr ? row : op.self_index[row];
      LoadAll(op.self + self_row * op.self_stride + column, tail, sum);
      if (op.self_weight != nullptr) ScaleAll(op.self_weight[row], sum);
    }
    for (uint32_t e = op.indptr[row]; e < op.indptr[row + 1]; ++e) {
      if (e + ahead.edges < last_edge) {
        PrefetchRow<kVectors>(ahead, x + op.index[e + ahead.edges] * op.x_stride, last);
      }
      Lanes16<T> term[kVectors];
      LoadAll(x + op.index[e] * op.x_stride, tail, term);
      if constexpr (kWeighted) ScaleAll(op.weight[e], term);
#pragma GCC unroll 16
      for (uint32_t k = 0; k < kVectors; ++k) sum[k] = sum[k] + term[k];
    }
    if (op.scale != nullptr) ScaleAll(op.scale[row], sum);
    Out* const out = op.out + row * op.out_stride + column;
#pragma GCC unroll 16
    for (uint32_t k = 0; k + 1 < kVectors; ++k) Store(out + k * kLanes, sum[k]);
    Store(out + (kVectors - 1) * kLanes, sum[kVectors - 1], tail);
  }
}

template <typename T, typename Element, typename Out>
using ColumnsFunction = void (*)(const Spmm<T, Element, Out>&, uint32_t, const Tail&, uint32_t,
                                 uint32_t);

template <typename T, typename Element, typename Out, bool kWeighted, uint32_t... kIndex>
ColumnsFunction<T, Element, Out> ColumnsFor(uint32_t vectors,
                                            std::integer_sequence<uint32_t, kIndex...>) {
  static constexpr ColumnsFunction<T, Element, Out> kTable[] = {
      RunColumns<T, Element, Out, kIndex + 1, kWeighted>...};
  return kTable[vectors - 1];
}

template <typename T, typename Element, typename Out>
void RunRows(const Spmm<T, Element, Out>& op, uint32_t begin, uint32_t end) {
  using Indices = std::make_integer_sequence<uint32_t, kHeld<T>>;
  for (uint32_t column = 0; column < op.columns;) {
    const uint32_t left = op.columns - column;
    const uint32_t needed = (left + kLanes - 1) / kLanes;
    const uint32_t vectors = needed < kHeld<T> ? needed : kHeld<T>;
    const uint32_t in_last = left - (vectors - 1) * kLanes;
    const Tail tail = TailOf(in_last < kLanes ? in_last : kLanes);
    const auto columns = op.weight == nullptr
                             ? ColumnsFor<T, Element, Out, false>(vectors, Indices())
                             : ColumnsFor<T, Element, Out, true>(vectors, Indices());
    columns(op, column, tail, begin, end);
    column += vectors * kLanes;
  }
}

}  // namespace

const SpmmLoops kSpmmLoops = {RunRows<float, float, float>,    RunRows<float, Half, float>,
                              RunRows<double, double, double>, RunRows<float, Bfloat16, Bfloat16>,
                              RunRows<float, float, Bfloat16>, RunRows<float, Half, Bfloat16>};

}  // namespace gnnd::GNND_SET
