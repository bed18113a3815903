#include "core/draw/dropout.h"
#include "core/draw/philox.h"
#include "core/kernels/exp.h"
#include "cuda/groups.cuh"
#include "cuda/operators.h"

// Operators of models over rows of propagated features, as in train/ops/cpu_row_models.cc.

namespace gnnd::cuda {
namespace {

constexpr float kBatchNormEpsilon = 1e-5F;

// ---- batch normalisation ----------------------------------------------------------------------

struct Elements {
  const float* x;
  uint64_t columns;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const { return x[row * columns + column]; }
};

struct SquaredDistances {
  const float* x;
  const float* mean;
  uint64_t columns;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const {
    const float distance = x[row * columns + column] - mean[column];
    return distance * distance;
  }
};

// Elements of two sums: first for the scale's gradient, then for the shift's.
struct NormGradients {
  BatchNormTask task;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const {
    const bool is_shift = column >= task.columns;
    const uint64_t c = is_shift ? column - task.columns : column;
    const uint64_t at = row * task.columns + c;
    if (is_shift) return task.grad[at];
    return task.grad[at] * ((task.x[at] - task.moments[c]) * task.inverse[c]);
  }
};

GNND_KERNEL DivideAll(float* values, uint64_t count, float by) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) values[i] /= by;
}

GNND_KERNEL InvertDeviations(const float* variance, uint64_t columns, float* inverse) {
  for (uint64_t c = GridThread(); c < columns; c += GridThreads()) {
    inverse[c] = 1.0F / std::sqrt(variance[c] + kBatchNormEpsilon);
  }
}

GNND_KERNEL NormalizeColumns(BatchNormTask task) {
  const uint64_t count = task.rows * task.columns;
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const uint64_t c = i % task.columns;
    const float unit = (task.x[i] - task.moments[c]) * task.inverse[c];
    task.out[i] = unit * task.scale[c] + task.shift[c];
  }
}

GNND_KERNEL GradientsOfNormalized(BatchNormTask task) {
  const uint64_t count = task.rows * task.columns;
  const auto rows = static_cast<float>(task.rows);
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const uint64_t c = i % task.columns;
    const float unit = (task.x[i] - task.moments[c]) * task.inverse[c];
    const float along = (task.grad_scale[task.columns + c] + unit * task.grad_scale[c]) / rows;
    task.out[i] = task.scale[c] * task.inverse[c] * (task.grad[i] - along);
  }
}

// ---- PReLU ------------------------------------------------------------------------------------

GNND_KERNEL PReluAll(PReluTask task) {
  const uint64_t count = task.rows * task.columns;
  const float below = *task.slope;
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const float x = task.x[i];
    const float value = task.grad == nullptr ? x : task.grad[i];
    task.out[i] = x > 0.0F ? value : below * value;
  }
}

// One thread per group of rows adds their elements one after the other.
GNND_KERNEL SlopeOfGroups(PReluTask task, float* partial) {
  const uint64_t groups = GroupsOf(task.rows);
  for (uint64_t g = GridThread(); g < groups; g += GridThreads()) {
    const uint64_t rows = g * kGroupRows + kGroupRows;
    const uint64_t end = (rows < task.rows ? rows : task.rows) * task.columns;
    float sum = 0;
    for (uint64_t i = g * kGroupRows * task.columns; i < end; ++i) {
      if (!(task.x[i] > 0.0F)) sum += task.grad[i] * task.x[i];
    }
    partial[g] = sum;
  }
}

// ---- attention --------------------------------------------------------------------------------

// One thread per Philox block of a row's probabilities.
GNND_KERNEL DrawMasks(TokensTask task, DropoutKey key, const uint32_t* nodes, uint64_t threshold,
                      float scale) {
  const DrawStream stream = DropoutStream(key, Purpose::kAttentionDropout);
  const uint64_t scores = task.scores();
  const uint64_t row_blocks = (scores + 3) / 4;
  for (uint64_t i = GridThread(); i < task.rows * row_blocks; i += GridThreads()) {
    const uint64_t row = i / row_blocks;
    const uint64_t first = i % row_blocks * 4;
    const PhiloxWords words = LongRowWords(stream, nodes[row], i % row_blocks);
    float* const mask = task.mask + row * scores + first;
    GNND_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      if (first + k < scores) mask[k] = words.word[k] >= threshold ? scale : 0.0F;
    }
  }
}

// Eight lanes per row, head and query. Lane t % 8 writes the values of token t.
GNND_KERNEL AttendTokens(TokensTask task, float scale) {
  const uint64_t width = task.width();
  const uint64_t tasks = uint64_t{task.rows} * task.heads * task.queries;
  for (uint64_t i = GridThread() / kParts; i < tasks; i += GridThreads() / kParts) {
    const uint64_t row = i / (uint64_t{task.heads} * task.queries);
    const uint64_t column = i / task.queries % task.heads * task.head_width;
    const uint64_t here = (row * task.queries + i % task.queries) * width + column;
    const uint64_t tokens = row * task.tokens * width + column;
    float* const p = task.probability + i * task.tokens;
    for (uint32_t t = 0; t < task.tokens; ++t) {
      const float* const key = task.key + tokens + t * width;
      const float dot =
          SumInParts(task.head_width, [&](uint32_t c) { return task.query[here + c] * key[c]; });
      if (t % kParts == Part()) p[t] = scale * dot;
    }
    WarpSync(PartsMask());
    float most = p[0];
    for (uint32_t t = 1; t < task.tokens; ++t) most = most < p[t] ? p[t] : most;
    WarpSync(PartsMask());
    for (uint32_t t = Part(); t < task.tokens; t += kParts) {
      p[t] = ExpOfNonPositive(p[t] - most);
    }
    WarpSync(PartsMask());
    float sum = 0;
    for (uint32_t t = 0; t < task.tokens; ++t) sum += p[t];
    WarpSync(PartsMask());
    for (uint32_t t = Part(); t < task.tokens; t += kParts) p[t] /= sum;
    WarpSync(PartsMask());
    for (uint32_t c = Part(); c < task.head_width; c += kParts) {
      float total = 0;
      for (uint32_t t = 0; t < task.tokens; ++t) {
        const float factor = task.mask == nullptr ? p[t] : p[t] * task.mask[i * task.tokens + t];
        total += factor * task.value[tokens + t * width + c];
      }
      task.out[here + c] = total;
    }
  }
}

// For one row, head and query: writes each token's part of the probability's gradient to
// task.along, adds to the gradients of values, and returns the parts' mean by probability.
GNND_DEVICE float GradientsInValues(const TokensTask& task, uint64_t here, uint64_t tokens,
                                    uint64_t at) {
  const uint64_t width = task.width();
  float mean = 0;
  for (uint32_t t = 0; t < task.tokens; ++t) {
    const uint64_t there = tokens + t * width;
    const float kept = task.mask == nullptr ? 1.0F : task.mask[at + t];
    const float along = kept * SumInParts(task.head_width, [&](uint32_t c) {
                          return task.grad[here + c] * task.value[there + c];
                        });
    mean += along * task.probability[at + t];
    if (t % kParts == Part()) task.along[at + t] = along;
    const float factor = kept * task.probability[at + t];
    for (uint32_t c = Part(); c < task.head_width; c += kParts) {
      task.grad_value[there + c] += factor * task.grad[here + c];
    }
  }
  return mean;
}

// Eight lanes per row and head, whose queries add to its keys and values one after the other. Each
// lane has columns of its own.
GNND_KERNEL AttendTokensBackward(TokensTask task, float scale) {
  const uint64_t width = task.width();
  const uint64_t tasks = uint64_t{task.rows} * task.heads;
  for (uint64_t i = GridThread() / kParts; i < tasks; i += GridThreads() / kParts) {
    const uint64_t row = i / task.heads;
    const uint64_t column = i % task.heads * task.head_width;
    const uint64_t tokens = row * task.tokens * width + column;
    for (uint32_t c = Part(); c < task.head_width; c += kParts) {
      for (uint32_t t = 0; t < task.tokens; ++t) {
        task.grad_key[tokens + t * width + c] = 0;
        task.grad_value[tokens + t * width + c] = 0;
      }
    }
    for (uint32_t q = 0; q < task.queries; ++q) {
      const uint64_t here = (row * task.queries + q) * width + column;
      const uint64_t at = (i * task.queries + q) * task.tokens;
      const float mean = GradientsInValues(task, here, tokens, at);
      WarpSync(PartsMask());
      for (uint32_t c = Part(); c < task.head_width; c += kParts) {
        float total = 0;
        for (uint32_t t = 0; t < task.tokens; ++t) {
          const uint64_t there = tokens + t * width + c;
          const float slope = scale * task.probability[at + t] * (task.along[at + t] - mean);
          total += slope * task.key[there];
          task.grad_key[there] += slope * task.query[here + c];
        }
        task.grad_query[here + c] = total;
      }
    }
  }
}

float ScaleOfScores(const TokensTask& task) {
  return 1.0F / std::sqrt(static_cast<float>(task.head_width));
}

}  // namespace

uint64_t BatchNormFloats(uint32_t rows, uint64_t columns) { return GroupsOf(rows) * 2 * columns; }

void BatchNorm(const Queue& queue, const BatchNormTask& task, bool by_given, float* work) {
  const uint64_t columns = task.columns;
  const uint64_t count = task.rows * columns;
  if (task.grad != nullptr) {
    SumRowsInGroups(queue, NormGradients{task}, task.rows, 2 * columns, work, task.grad_scale);
    return LaunchFor(queue, count, GradientsOfNormalized, task);
  }
  float* const variance = task.moments + columns;
  if (!by_given) {
    const auto rows = static_cast<float>(task.rows);
    SumRowsInGroups(queue, Elements{task.x, columns}, task.rows, columns, work, task.moments);
    LaunchFor(queue, columns, DivideAll, task.moments, columns, rows);
    SumRowsInGroups(queue, SquaredDistances{task.x, task.moments, columns}, task.rows, columns,
                    work, variance);
    LaunchFor(queue, columns, DivideAll, variance, columns, rows);
  }
  LaunchFor(queue, columns, InvertDeviations, variance, columns, task.inverse);
  LaunchFor(queue, count, NormalizeColumns, task);
}

void PRelu(const Queue& queue, const PReluTask& task, float* partial) {
  LaunchFor(queue, task.rows * task.columns, PReluAll, task);
  if (task.grad == nullptr) return;
  const uint64_t groups = GroupsOf(task.rows);
  LaunchFor(queue, groups, SlopeOfGroups, task, partial);
  LaunchFor(queue, 1, SumGroups<float>, partial, groups, uint64_t{1}, task.grad_slope);
}

void TokenAttention(const Queue& queue, const TokensTask& task) {
  const float scale = ScaleOfScores(task);
  if (task.grad != nullptr) {
    const uint64_t lanes = uint64_t{task.rows} * task.heads * kParts;
    return LaunchFor(queue, lanes, AttendTokensBackward, task, scale);
  }
  const uint64_t lanes = uint64_t{task.rows} * task.heads * task.queries * kParts;
  LaunchFor(queue, lanes, AttendTokens, task, scale);
}

void TokenMasks(const Queue& queue, const TokensTask& task, const DropoutKey& key,
                const uint32_t* nodes, uint64_t threshold, float scale) {
  const uint64_t blocks = task.rows * ((task.scores() + 3) / 4);
  LaunchFor(queue, blocks, DrawMasks, task, key, nodes, threshold, scale);
}

}  // namespace gnnd::cuda
