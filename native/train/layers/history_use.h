#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "core/feature/history_cache.h"
#include "core/history/job_history.h"
#include "core/model/model_spec.h"

namespace gnnd {

// A Trainer's use of history; config.bytes 0: none.
struct HistoryUse {
  HistoryConfig config;
  std::byte* shared = nullptr;  // memory of a JobHistory; null: one of its own
  HistoryFile file;             // source of that memory's mapping, read if features lie in it
  uint32_t group = 1;           // number of batches in a step, which share it
  uint32_t levels = 0;          // bit l: rows of layer l's output are kept; 1 is the lowest
  double p_grad = 0;  // share of a level's rows that is kept: those with the smallest gradients
};

// kInvalidArgument for a history that cannot be kept. `num_nodes` is the graph's.
Status CheckHistory(const HistoryUse& use, const ModelSpec& spec, Precision precision,
                    uint64_t num_nodes);

}  // namespace gnnd
