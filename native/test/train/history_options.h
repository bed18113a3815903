#pragma once

#include <cstdint>

#include "core/prepare/job_memory.h"
#include "train/input/train_options.h"
#include "train/layers/history.h"

namespace gnnd::test {

// Options that keep these levels, each as long as `t_stale` says.
inline TrainOptions WithHistory(TrainOptions options, uint32_t levels, double p_grad,
                                uint64_t t_stale) {
  HistoryUse& use = options.history;
  use.levels = levels;
  use.p_grad = p_grad;
  use.config.bytes = 1 << 20;
  use.config.t_stale = t_stale;
  use.config.levels = static_cast<uint32_t>(__builtin_popcount(levels));
  use.config.row_bytes = HistoryRowBytes(options.model, options.precision);
  use.config.num_nodes = static_cast<uint32_t>(options.targets.labels.size());
  return options;
}

}  // namespace gnnd::test
