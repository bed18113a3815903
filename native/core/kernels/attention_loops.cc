#include <cmath>
#include <cstdint>

#include "core/base/prefetch.h"
#include "core/kernels/attention.h"
#include "core/kernels/exp.h"
#include "core/vec/vec.h"

// Sums over a head's columns are in eight parts, whose order is frozen.

namespace gnnd::GNND_SET {
namespace {

template <typename T>
inline T LeakyScore(T x) {
  return x > T{0} ? x : static_cast<T>(kAttentionSlope) * x;
}

template <typename T>
inline void ExpInPlace(T* values, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) values[i] = ExpOfNonPositive(values[i]);
}

template <typename T>
inline T Dot(const T* a, const T* b, uint32_t count) {
  Eight<T> sum = {};
  uint32_t c = 0;
  for (; c + 8 <= count; c += 8) sum += LoadEight(a + c) * LoadEight(b + c);
  T rest = 0;
  for (; c < count; ++c) rest += a[c] * b[c];
  return SumOfEight<T>(sum) + rest;
}

// sum over c of attention[c] * leaky(a[c] + b[c])
template <typename T>
inline T ScoreOfSum(const T* attention, const T* a, const T* b, uint32_t count) {
  Eight<T> sum = {};
  uint32_t c = 0;
  for (; c + 8 <= count; c += 8) {
    const Eight<T> x = LoadEight(a + c) + LoadEight(b + c);
    const Eight<T> low = static_cast<T>(kAttentionSlope) * x;
    sum += LoadEight(attention + c) * (x > T{0} ? x : low);
  }
  T rest = 0;
  for (; c < count; ++c) rest += attention[c] * LeakyScore(a[c] + b[c]);
  return SumOfEight<T>(sum) + rest;
}

// Backward of ScoreOfSum: adds grad * attention * leaky' to `grad_sum` and, unless that is null,
// grad * leaky to `grad_attention`.
template <typename T>
inline void AddScoreGradient(T grad, const T* attention, const T* a, const T* b, uint32_t count,
                             T* grad_sum, T* grad_attention) {
  const T low_grad = static_cast<T>(kAttentionSlope) * grad;
  uint32_t c = 0;
  for (; c + 8 <= count; c += 8) {
    const Eight<T> x = LoadEight(a + c) + LoadEight(b + c);
    const Eight<T> slope = x > T{0} ? Eight<T>{} + grad : Eight<T>{} + low_grad;
    AddEight(grad_sum + c, slope * LoadEight(attention + c));
    if (grad_attention != nullptr) AddEight(grad_attention + c, slope * x);
  }
  for (; c < count; ++c) {
    const T x = a[c] + b[c];
    const T slope = x > T{0} ? grad : low_grad;
    grad_sum[c] += slope * attention[c];
    if (grad_attention != nullptr) grad_attention[c] += slope * x;
  }
}

// to += factor * from
template <typename T>
inline void AddScaled(T factor, const T* from, uint32_t count, T* to) {
  uint32_t c = 0;
  for (; c + 8 <= count; c += 8) AddEight(to + c, factor * LoadEight(from + c));
  for (; c < count; ++c) to[c] += factor * from[c];
}

constexpr uint64_t kPrefetchRows = 5;

template <typename T>
GNND_PREFETCHES void PrefetchRow(const T* row, uint64_t columns) {
  const auto* bytes = reinterpret_cast<const char*>(row);
  for (uint64_t at = 0; at < columns * sizeof(T); at += 64) __builtin_prefetch(bytes + at);
}

// Calls visit(slot, row of source) for destination r itself, if it attends to itself, and then for
// its edges. Slots are places within one head's numbers. `rows` is the array to prefetch, or null.
template <typename T, typename Visit>
GNND_VEC void ForEachSource(const AttentionRows<T>& op, uint32_t r, const T* rows,
                            const Visit& visit) {
  const uint64_t stride = op.row_stride();
  if (op.key == nullptr) visit(uint64_t{r}, op.self_index == nullptr ? r : op.self_index[r]);
  for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) {
    if (rows != nullptr && e + kPrefetchRows < op.num_edges) {
      PrefetchRow(rows + op.index[e + kPrefetchRows] * stride, op.width());
    }
    visit(op.num_dst + e, op.index[e]);
  }
}

// Writes the scores of destination r into alpha.
template <typename T>
inline void ScoreRow(const AttentionRows<T>& op, uint32_t r) {
  const uint64_t stride = op.stride();
  if (op.source_score != nullptr) {
    for (uint32_t h = 0; h < op.heads; ++h) {
      const T* source = op.source_score + h * op.num_src;
      const T own = op.destination_score[uint64_t{h} * op.num_dst + r];
      T* to = op.alpha + h * stride;
      ForEachSource<T>(op, r, nullptr,
                       [&](uint64_t slot, uint32_t s) { to[slot] = LeakyScore(source[s] + own); });
    }
    return;
  }
  const uint64_t rows = op.row_stride();
  const T* own = op.destination + r * op.width();
  if (op.key != nullptr) {
    ForEachSource(op, r, op.key, [&](uint64_t slot, uint32_t s) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t at = uint64_t{h} * op.columns;
        op.alpha[h * stride + slot] =
            op.score_scale * Dot(op.key + s * rows + at, own + at, op.columns);
      }
    });
    return;
  }
  ForEachSource(op, r, op.source, [&](uint64_t slot, uint32_t s) {
    for (uint32_t h = 0; h < op.heads; ++h) {
      const uint64_t at = uint64_t{h} * op.columns;
      op.alpha[h * stride + slot] =
          ScoreOfSum(op.attention + at, op.source + s * rows + at, own + at, op.columns);
    }
  });
}

// Subtracts the largest score of each destination; edges that do not count get a value far below.
template <typename T>
inline void CentreRow(const AttentionRows<T>& op, uint32_t r, T* head) {
  constexpr T kNone = static_cast<T>(-HUGE_VAL);
  T* edges = head + op.num_dst;
  if (op.key != nullptr) {
    T most = kNone;
    for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) {
      most = edges[e] > most ? edges[e] : most;
    }
    head[r] = kNone;
    for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) edges[e] -= most;
    return;
  }
  const uint32_t self = op.self_index == nullptr ? r : op.self_index[r];
  T largest = head[r];
  for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) {
    if (op.index[e] != self) largest = edges[e] > largest ? edges[e] : largest;
  }
  head[r] -= largest;
  for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) {
    edges[e] = op.index[e] == self ? kNone : edges[e] - largest;
  }
}

template <typename T>
inline void ForwardRows(const AttentionRows<T>& op, uint32_t begin, uint32_t end) {
  const uint64_t first = op.indptr[begin];
  const uint64_t count = op.indptr[end] - first;
  for (uint32_t r = begin; r < end; ++r) ScoreRow(op, r);
  for (uint32_t h = 0; h < op.heads; ++h) {
    T* head = op.alpha + h * op.stride();
    T* edges = head + op.num_dst;
    for (uint32_t r = begin; r < end; ++r) CentreRow(op, r, head);
    ExpInPlace(head + begin, end - begin);
    ExpInPlace(edges + first, count);
    for (uint32_t r = begin; r < end; ++r) {
      T sum = head[r];
      for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) sum += edges[e];
      const T inverse = sum == T{0} ? T{0} : T{1} / sum;  // 0: it attends to nothing
      head[r] *= inverse;
      for (uint64_t e = op.indptr[r]; e < op.indptr[r + 1]; ++e) edges[e] *= inverse;
    }
  }
}

// Turns the gradients of alpha, which grad_score holds, into gradients of the scores.
template <typename T>
inline void SoftmaxGradientRow(const AttentionRows<T>& op, uint32_t r, uint32_t h) {
  const T* alpha = op.alpha + h * op.stride();
  const T* weight = op.weight + h * op.stride();
  T* grad = op.grad_score + h * op.stride();
  T mean = 0;
  ForEachSource<T>(op, r, nullptr, [&](uint64_t slot, uint32_t) {
    grad[slot] = weight[slot] == T{0} ? T{0} : op.weight_scale * grad[slot];
    mean += alpha[slot] * grad[slot];
  });
  if (op.source_score == nullptr) {
    ForEachSource<T>(op, r, nullptr, [&](uint64_t slot, uint32_t) {
      grad[slot] = alpha[slot] * (grad[slot] - mean);
    });
    return;
  }
  const T* source = op.source_score + h * op.num_src;
  const T own = op.destination_score[uint64_t{h} * op.num_dst + r];
  ForEachSource<T>(op, r, nullptr, [&](uint64_t slot, uint32_t s) {
    const T slope = source[s] + own > T{0} ? T{1} : static_cast<T>(kAttentionSlope);
    grad[slot] = slope * (alpha[slot] * (grad[slot] - mean));
  });
}

template <typename T>
inline void BackwardRows(const AttentionRows<T>& op, uint32_t begin, uint32_t end) {
  const uint64_t width = op.width();
  const uint64_t rows = op.row_stride();
  const uint64_t stride = op.stride();
  for (uint32_t r = begin; r < end; ++r) {
    const T* grad_out = op.grad_out + r * width;
    ForEachSource(op, r, op.source, [&](uint64_t slot, uint32_t s) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t at = uint64_t{h} * op.columns;
        op.grad_score[h * stride + slot] =
            Dot(grad_out + at, op.source + s * rows + at, op.columns);
      }
    });
    for (uint32_t h = 0; h < op.heads; ++h) SoftmaxGradientRow(op, r, h);
    if (op.source_score != nullptr) continue;
    T* grad_own = op.grad_destination + r * width;
    for (uint64_t c = 0; c < width; ++c) grad_own[c] = T{0};
    const T* own = op.destination + r * width;
    ForEachSource<T>(op, r, nullptr, [&](uint64_t slot, uint32_t s) {
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t at = uint64_t{h} * op.columns;
        if (op.key != nullptr) {
          AddScaled(op.score_scale * op.grad_score[h * stride + slot], op.key + s * rows + at,
                    op.columns, grad_own + at);
          continue;
        }
        AddScoreGradient(op.grad_score[h * stride + slot], op.attention + at,
                         op.source + s * rows + at, own + at, op.columns, grad_own + at,
                         op.grad_attention + at);
      }
    });
  }
}

template <typename T>
inline void BackwardKeyRows(const AttentionRows<T>& op, uint32_t begin, uint32_t end) {
  const uint64_t width = op.width();
  for (uint32_t u = begin; u < end; ++u) {
    T* grad = op.grad_key + u * width;
    for (uint64_t c = 0; c < width; ++c) grad[c] = T{0};
    for (uint64_t k = op.transposed_indptr[u]; k < op.transposed_indptr[u + 1]; ++k) {
      const uint64_t slot = op.num_dst + op.transposed_edge[k];
      const T* query = op.destination + op.transposed_dst[k] * width;
      for (uint32_t h = 0; h < op.heads; ++h) {
        const uint64_t at = uint64_t{h} * op.columns;
        AddScaled(op.score_scale * op.grad_score[h * op.stride() + slot], query + at, op.columns,
                  grad + at);
      }
    }
  }
}

// REQUIRES: destinations are their own first rows (self_index is null).
template <typename T>
inline void BackwardSourceRows(const AttentionRows<T>& op, uint32_t begin, uint32_t end) {
  const uint64_t width = op.width();
  const uint64_t stride = op.stride();
  const auto add = [&](uint32_t u, uint64_t slot, uint32_t v) {
    for (uint32_t h = 0; h < op.heads; ++h) {
      const uint64_t at = uint64_t{h} * op.columns;
      AddScoreGradient<T>(op.grad_score[h * stride + slot], op.attention + at,
                          op.source + u * width + at, op.destination + v * width + at, op.columns,
                          op.grad_source + u * width + at, nullptr);
    }
  };
  for (uint32_t u = begin; u < end; ++u) {
    if (u < op.num_dst) add(u, u, u);
    for (uint64_t k = op.transposed_indptr[u]; k < op.transposed_indptr[u + 1]; ++k) {
      add(u, op.num_dst + op.transposed_edge[k], op.transposed_dst[k]);
    }
  }
}

template <typename T>
inline void RunPass(const AttentionRows<T>& op, AttentionPass pass, uint32_t begin, uint32_t end) {
  switch (pass) {
    case AttentionPass::kForward:
      return ForwardRows(op, begin, end);
    case AttentionPass::kBackward:
      return BackwardRows(op, begin, end);
    case AttentionPass::kBackwardSrc:
      return op.key == nullptr ? BackwardSourceRows(op, begin, end)
                               : BackwardKeyRows(op, begin, end);
  }
}

}  // namespace

const AttentionLoops kAttentionLoops = {RunPass<float>, RunPass<double>};

}  // namespace gnnd::GNND_SET
