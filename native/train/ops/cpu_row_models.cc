#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/draw/philox.h"
#include "core/kernels/exp.h"
#include "train/ops/grouped_sum.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

// Operators of models over rows, on the processor.

namespace gnnd {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;
constexpr uint32_t kGrainRows = 64;

// ---- batch normalisation ----------------------------------------------------------------------

template <typename T>
void NormalizeColumns(const BatchNormRows<T>& op, T* out) {
  const T* const x = op.x;
  const T* const mean = op.moments;
  const T* const inverse = op.inverse;
  const T* const scale = op.scale;
  const T* const shift = op.shift;
  const uint64_t columns = op.columns;
  ParallelRows(op.rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t at = r * columns + c;
        out[at] = (x[at] - mean[c]) * inverse[c] * scale[c] + shift[c];
      }
    }
  });
}

template <typename T>
void InvertDeviations(const BatchNormRows<T>& op) {
  const T* const variance = op.moments + op.columns;
  for (uint64_t c = 0; c < op.columns; ++c) {
    op.inverse[c] = T{1} / std::sqrt(variance[c] + static_cast<T>(kBatchNormEpsilon));
  }
}

template <typename T>
void WriteMoments(const BatchNormRows<T>& op, Workspace* workspace) {
  const T count = static_cast<T>(op.rows);
  const uint64_t columns = op.columns;
  const T* const x = op.x;
  T* const moments = op.moments;
  SumInGroups(op.rows, columns, workspace, moments, [=](uint32_t begin, uint32_t end, T* sums) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
    }
  });
  for (uint64_t c = 0; c < columns; ++c) moments[c] /= count;
  T* const variance = moments + columns;
  SumInGroups(op.rows, columns, workspace, variance, [=](uint32_t begin, uint32_t end, T* sums) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const T distance = x[r * columns + c] - moments[c];
        sums[c] += distance * distance;
      }
    }
  });
  for (uint64_t c = 0; c < columns; ++c) variance[c] /= count;
}

template <typename T>
void BatchNormRowsBy(const BatchNormRows<T>& op, Workspace*, T* out) {
  InvertDeviations(op);
  NormalizeColumns(op, out);
}

template <typename T>
void BatchNorm(const BatchNormRows<T>& op, Workspace* workspace, T* out) {
  WriteMoments(op, workspace);
  BatchNormRowsBy(op, workspace, out);
}

template <typename T>
void BatchNormGradient(const BatchNormRows<T>& op, Workspace* workspace, T* grad_in, T* sums) {
  const uint64_t columns = op.columns;
  const T* const values = op.x;
  const T* const from = op.grad;
  const T* const mean = op.moments;
  const T* const inverse = op.inverse;
  const T* const scale = op.scale;
  SumInGroups(op.rows, 2 * columns, workspace, sums, [=](uint32_t begin, uint32_t end, T* partial) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t at = r * columns + c;
        partial[c] += from[at] * ((values[at] - mean[c]) * inverse[c]);
        partial[columns + c] += from[at];
      }
    }
  });
  const T count = static_cast<T>(op.rows);
  ParallelRows(op.rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      for (uint64_t c = 0; c < columns; ++c) {
        const uint64_t at = r * columns + c;
        const T unit = (values[at] - mean[c]) * inverse[c];
        const T along = (sums[columns + c] + unit * sums[c]) / count;
        grad_in[at] = scale[c] * inverse[c] * (from[at] - along);
      }
    }
  });
}

// ---- PReLU ------------------------------------------------------------------------------------

template <typename T>
void PRelu(const PReluRows<T>& op, Workspace*, T* out) {
  const T* const from = op.x;
  const T below = *op.slope;
  const uint64_t columns = op.columns;
  ParallelRows(op.rows, kGrainRows, [=](uint32_t begin, uint32_t end) {
    for (uint64_t i = begin * columns; i < end * columns; ++i) {
      out[i] = from[i] > T{0} ? from[i] : below * from[i];
    }
  });
}

template <typename T>
void PReluGradient(const PReluRows<T>& op, Workspace* workspace, T* grad_in, T* grad_slope) {
  const T* const from = op.x;
  const T* const given = op.grad;
  const T below = *op.slope;
  const uint64_t columns = op.columns;
  SumInGroups(op.rows, 1, workspace, grad_slope, [=](uint32_t begin, uint32_t end, T* sum) {
    for (uint64_t i = begin * columns; i < end * columns; ++i) {
      const bool positive = from[i] > T{0};
      grad_in[i] = positive ? given[i] : below * given[i];
      if (!positive) *sum += given[i] * from[i];
    }
  });
}

// ---- attention --------------------------------------------------------------------------------

template <typename T>
void DrawMask(const TokenDropout& dropout, uint32_t node, uint64_t count, T* mask) {
  const DrawStream stream = DropoutStream(dropout.key, Purpose::kAttentionDropout);
  const uint64_t threshold = DropoutThreshold(dropout.p);
  const T scale = T{1} / (T{1} - static_cast<T>(dropout.p));
  PhiloxWords words{};
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) words = LongRowWords(stream, node, i / 4);
    mask[i] = words.word[i % 4] >= threshold ? scale : T{0};
  }
}

// Attention of one row.
template <typename T>
void AttendRow(const TokenRows<T>& shape, const T* query, const T* key, const T* value,
               const T* mask, T* probability, T* out) {
  const T scale = T{1} / std::sqrt(static_cast<T>(shape.head_width));
  std::fill_n(out, shape.queries * shape.width(), T{0});
  for (uint32_t head = 0; head < shape.heads; ++head) {
    const uint64_t column = uint64_t{head} * shape.head_width;
    for (uint32_t q = 0; q < shape.queries; ++q) {
      const uint64_t at = (uint64_t{head} * shape.queries + q) * shape.tokens;
      T* const p = probability + at;
      T most = -std::numeric_limits<T>::infinity();
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        p[t] = scale * DotOfRows(query + q * shape.width() + column,
                                 key + t * shape.width() + column, shape.head_width);
        most = std::max(most, p[t]);
      }
      T sum = 0;
      for (uint32_t t = 0; t < shape.tokens; ++t) sum += p[t] = ExpOfNonPositive(p[t] - most);
      T* const to = out + q * shape.width() + column;
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        p[t] /= sum;
        const T factor = mask == nullptr ? p[t] : p[t] * mask[at + t];
        const T* const from = value + t * shape.width() + column;
        for (uint32_t c = 0; c < shape.head_width; ++c) to[c] += factor * from[c];
      }
    }
  }
}

template <typename T>
struct RowGradients {
  T* query;
  T* key;
  T* value;
};

template <typename T>
void AttendRowBackward(const TokenRows<T>& shape, const T* query, const T* key, const T* value,
                       const T* mask, const T* probability, const T* grad, T* along,
                       const RowGradients<T>& to) {
  const T scale = T{1} / std::sqrt(static_cast<T>(shape.head_width));
  std::fill_n(to.query, shape.queries * shape.width(), T{0});
  std::fill_n(to.key, shape.tokens * shape.width(), T{0});
  std::fill_n(to.value, shape.tokens * shape.width(), T{0});
  for (uint32_t head = 0; head < shape.heads; ++head) {
    const uint64_t column = uint64_t{head} * shape.head_width;
    for (uint32_t q = 0; q < shape.queries; ++q) {
      const uint64_t at = (uint64_t{head} * shape.queries + q) * shape.tokens;
      const uint64_t here = q * shape.width() + column;
      T mean = 0;
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        const uint64_t there = t * shape.width() + column;
        const T kept = mask == nullptr ? T{1} : mask[at + t];
        along[t] = kept * DotOfRows(grad + here, value + there, shape.head_width);
        mean += along[t] * probability[at + t];
        const T factor = kept * probability[at + t];
        for (uint32_t c = 0; c < shape.head_width; ++c) {
          to.value[there + c] += factor * grad[here + c];
        }
      }
      for (uint32_t t = 0; t < shape.tokens; ++t) {
        const uint64_t there = t * shape.width() + column;
        const T slope = scale * probability[at + t] * (along[t] - mean);
        for (uint32_t c = 0; c < shape.head_width; ++c) {
          to.query[here + c] += slope * key[there + c];
          to.key[there + c] += slope * query[here + c];
        }
      }
    }
  }
}

template <typename T>
void Attend(const TokenRows<T>& op, const TokenDropout& dropout, Workspace*) {
  const uint64_t queries = op.queries * op.width();
  const uint64_t tokens = op.tokens * op.width();
  ParallelRows(op.rows, 1, [&](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      T* const own = op.mask == nullptr ? nullptr : op.mask + r * op.scores();
      if (own != nullptr) DrawMask(dropout, dropout.nodes[r], op.scores(), own);
      AttendRow(op, op.query + r * queries, op.key + r * tokens, op.value + r * tokens, own,
                op.probability + r * op.scores(), op.out + r * queries);
    }
  });
}

template <typename T>
void AttendGradient(const TokenRows<T>& op, Workspace*) {
  ParallelRows(op.rows, 1, [&](uint32_t begin, uint32_t end) {
    std::vector<T> along(op.tokens);
    for (uint64_t r = begin; r < end; ++r) {
      const uint64_t queries = r * op.queries * op.width();
      const uint64_t tokens = r * op.tokens * op.width();
      AttendRowBackward<T>(op, op.query + queries, op.key + tokens, op.value + tokens,
                           op.mask == nullptr ? nullptr : op.mask + r * op.scores(),
                           op.probability + r * op.scores(), op.grad + queries, along.data(),
                           {op.grad_query + queries, op.grad_key + tokens, op.grad_value + tokens});
    }
  });
}

}  // namespace

template <typename T>
RowModelOperators<T> CpuRowModels() {
  RowModelOperators<T> made{};
  made.batch_norm = &BatchNorm<T>;
  made.batch_norm_by = &BatchNormRowsBy<T>;
  made.batch_norm_gradient = &BatchNormGradient<T>;
  made.prelu = &PRelu<T>;
  made.prelu_gradient = &PReluGradient<T>;
  made.attend = &Attend<T>;
  made.attend_gradient = &AttendGradient<T>;
  return made;
}

template RowModelOperators<float> CpuRowModels<float>();
template RowModelOperators<double> CpuRowModels<double>();

}  // namespace gnnd
