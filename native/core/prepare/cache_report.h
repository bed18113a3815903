#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/prepare/rank_nodes.h"

// Measures what every cache policy would be worth to a job: figures 10 and 11 of GNNLab for any
// dataset, computed from the footprints of the job's own epochs.

namespace gnnd {

struct CacheReportRequest {
  uint32_t epochs = 10;  // measured, from 0
  // Each K of PRESC and COMBINED gets its own rows in the report, in this order.
  std::vector<uint32_t> presample_epochs = {1};
  std::vector<double> alphas = {0.1};
  uint64_t random_seed = 0;
  uint64_t row_bytes = 0;
  Reach reach;
  // Folder that receives nodes.npy (the input nodes of every batch in a row, uint32) and
  // offsets.npy (the start of each batch, int64 [batches + 1]), first for the pre-sampling epochs
  // of the largest K, then for the measured ones. Empty: no dump.
  std::string dump_folder;
};

struct CacheCell {
  double alpha = 0;
  uint64_t cache_rows = 0;
  double hit_rate = 0;     // share of the measured epochs' input rows
  double bytes_moved = 0;  // per epoch, for rows outside the cache
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
  double similarity = 0;   // mean similarity of adjacent measured epochs; 1 if there is only one
  uint64_t epoch_ns = 0;   // sampling one measured epoch, median
  std::vector<PolicyReport> policies;  // without policies that need an estimate if there is none
};

Result<CacheReport> ReportCache(const CacheReportRequest& request, const TopologyView& topology,
                                std::span<const uint32_t> train_nodes, Presampler* presampler);

}  // namespace gnnd
