#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"
#include "core/history/job_history.h"

// Cached feature rows in a history's memory, so that one budget serves both (FreshGNN's buffer):
// mapped within reach of a flat FeatureStore, and filled.

namespace gnnd {

// A stretch of a file, starting at a page, that holds the history that Trainers share.
struct HistoryFile {
  int fd = -1;  // -1: the history is private to one Trainer
  uint64_t offset = 0;
};

class HistoryCache {
 public:
  HistoryCache() = default;

  // Fills in the rows of the first ranks of `order` that there is room for, together with the other
  // Trainers if the history is shared. A private history should lie near the table (AddressesNear).
  // Errors are those of Mapping::Stretch and JobHistory::FillFeatures; kInvalidArgument if the
  // table or the order contradict the history's config.
  static Result<HistoryCache> Create(const HistoryConfig& config, const HistoryFile& file,
                                     const RowTable& features, std::span<const uint32_t> order,
                                     JobHistory* history);

  // Address of rank 0, a whole number of rows away from the table. Ranks below
  // JobHistory::features() may be read.
  const std::byte* rows() const { return rows_; }

 private:
  const std::byte* rows_ = nullptr;
  Mapping seen_;
};

}  // namespace gnnd
