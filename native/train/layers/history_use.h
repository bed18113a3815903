#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"
#include "core/feature/history_cache.h"
#include "core/history/job_history.h"
#include "core/model/model_spec.h"

namespace gnnd {

// A Trainer's part in history; config.bytes 0: it keeps none.
struct HistoryUse {
  HistoryConfig config;
  std::byte* shared = nullptr;  // memory of a JobHistory; null: one of its own
  HistoryFile file;             // where that memory is mapped from; read where features lie in it
  uint32_t group = 1;           // batches of a step that share it
  uint32_t levels = 0;          // bit l: rows that layer l gives are kept; 1 is the lowest
  double p_grad = 0;            // share of a level's rows that is kept, by rising gradient
};

// What cannot be kept; kInvalidArgument. `num_nodes` are the graph's.
Status CheckHistory(const HistoryUse& use, const ModelSpec& spec, Precision precision,
                    uint64_t num_nodes);

}  // namespace gnnd
