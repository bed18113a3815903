#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ledger/early_stop.h"

// The sums of a task over a batch, an epoch, a chunk of an evaluation or a whole one. The ledger
// adds them and knows no meaning: the task (native/train/tasks) says what each number counts.
// Integers are exact, and floating-point sums are added in the order of batches or of chunks, so
// that they have the same bits whoever computed which part.

namespace gnnd {

struct TaskSums {
  uint64_t items;      // things learnt from, or evaluated; a step's gradient is divided by it
  uint64_t counts[3];  // the task's
  double loss;         // summed over the items
  double totals[3];    // the task's

  void Add(const TaskSums& more) {
    items += more.items;
    loss += more.loss;
    for (size_t i = 0; i < 3; ++i) {
      counts[i] += more.counts[i];
      totals[i] += more.totals[i];
    }
  }
};
static_assert(sizeof(TaskSums) == 64);

// A task's judgement of a whole evaluation: the quality that decides which parameters are the
// best, and its metrics, which the ledger keeps and reports.
struct Judgement {
  static constexpr size_t kMetricSlots = 16;

  Quality quality;
  double metrics[kMetricSlots];
};

}  // namespace gnnd
