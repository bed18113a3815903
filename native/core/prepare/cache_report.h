#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/prepare/rank_nodes.h"

// What every cache policy would be worth to a job: the figures 10 and 11 of GNNLab for any dataset,
// computed from the footprints of its own epochs.

namespace gnnd {

struct CacheReportRequest {
  uint32_t epochs = 10;  // measured, from 0
  // K of PRESC and COMBINED; each its own rows of the report, in this order.
  std::vector<uint32_t> presample_epochs = {1};
  std::vector<double> alphas = {0.1};
  uint64_t random_seed = 0;
  uint64_t row_bytes = 0;
  Reach reach;
  // Folder that receives nodes.npy, the input nodes of every batch in a row, uint32, and
  // offsets.npy, where each batch starts, int64 [batches + 1]: the largest K pre-sampling epochs,
  // then the measured ones. Empty: no dump.
  std::string dump_folder;
};

struct CacheCell {
  double alpha = 0;
  uint64_t cache_rows = 0;
  double hit_rate = 0;     // of the measured epochs' input rows
  double bytes_moved = 0;  // per epoch, past the cache
};

struct PolicyReport {
  CachePolicy policy = CachePolicy::kOptimal;
  uint32_t presample_epochs = 0;  // 0 for policies that sample nothing in advance
  uint64_t rank_ns = 0;           // pre-sampling and estimate; 0 for kOptimal
  std::vector<CacheCell> cells;   // one per alpha, in the request's order
};

struct CacheReport {
  uint32_t batches_per_epoch = 0;
  double input_rows = 0;   // per epoch
  double input_bytes = 0;  // per epoch
  double similarity = 0;   // of adjacent measured epochs, mean; 1 where there is only one
  uint64_t epoch_ns = 0;   // sampling one measured epoch, median
  std::vector<PolicyReport> policies;  // without those that need an estimate where there is none
};

Result<CacheReport> ReportCache(const CacheReportRequest& request, const TopologyView& topology,
                                std::span<const uint32_t> train_nodes, Presampler* presampler);

}  // namespace gnnd
