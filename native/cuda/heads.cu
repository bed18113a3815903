#include "cuda/groups.cuh"
#include "cuda/operators.h"

// Products of attention between one number per row and head and one vector per head, as in
// train/ops/cpu_attention.cc.

namespace gnnd::cuda {
namespace {

// Eight lanes per row and head.
GNND_KERNEL Scores(HeadsTask task) {
  const uint64_t tasks = uint64_t{task.num_rows} * task.heads;
  for (uint64_t i = GridThread() / kParts; i < tasks; i += GridThreads() / kParts) {
    const uint64_t row = i / task.heads;
    const uint64_t head = i % task.heads;
    const float* const values = task.rows + i * task.columns;
    const float* const vector = task.vectors + head * task.columns;
    const float score = SumInParts(task.columns, [&](uint32_t c) { return values[c] * vector[c]; });
    if (Part() == 0) task.scores[head * task.num_rows + row] = score;
  }
}

GNND_KERNEL AddOuterProducts(HeadsTask task) {
  const uint64_t width = uint64_t{task.heads} * task.columns;
  for (uint64_t i = GridThread(); i < task.num_rows * width; i += GridThreads()) {
    const uint64_t column = i % width;
    const float factor = task.scores[column / task.columns * task.num_rows + i / width];
    task.rows[i] += factor * task.vectors[column];
  }
}

// Elements of the sum over rows.
struct ScoredElements {
  HeadsTask task;
  uint64_t width;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const {
    const float factor = task.scores[column / task.columns * task.num_rows + row];
    return factor * task.rows[row * width + column];
  }
};

// One thread per row and head.
GNND_KERNEL SumScoresOfRows(ScoreSumsTask task) {
  const uint64_t stride = task.num_dst + task.num_edges;
  const uint64_t sums = uint64_t{task.heads} * task.rows;
  for (uint64_t i = GridThread(); i < sums; i += GridThreads()) {
    const uint64_t row = i % task.rows;
    const float* const own = task.grad_score + i / task.rows * stride;
    const float* const edges = own + task.num_dst;
    float sum = row < task.num_dst ? own[row] : 0.0F;
    for (uint64_t k = task.indptr[row]; k < task.indptr[row + 1]; ++k) {
      sum += edges[task.edge == nullptr ? k : task.edge[k]];
    }
    task.out[i] = sum;
  }
}

}  // namespace

void ScoresOfHeads(const Queue& queue, const HeadsTask& task) {
  LaunchFor(queue, uint64_t{task.num_rows} * task.heads * kParts, Scores, task);
}

void AddOuter(const Queue& queue, const HeadsTask& task) {
  LaunchFor(queue, uint64_t{task.num_rows} * task.heads * task.columns, AddOuterProducts, task);
}

void VectorsOfHeads(const Queue& queue, const HeadsTask& task, float* partial) {
  const uint64_t width = uint64_t{task.heads} * task.columns;
  SumRowsInGroups(queue, ScoredElements{task, width}, task.num_rows, width, partial, task.vectors);
}

void SumScores(const Queue& queue, const ScoreSumsTask& task) {
  LaunchFor(queue, uint64_t{task.heads} * task.rows, SumScoresOfRows, task);
}

}  // namespace gnnd::cuda
