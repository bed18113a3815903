#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/mapping.h"
#include "core/base/status.h"
#include "core/graph/row_table.h"
#include "core/history/job_history.h"

// Cached feature rows in the memory of a history, one budget for both (FreshGNN's buffer): seen
// from where a flat FeatureStore reaches them, and filled in.

namespace gnnd {

// Memory of a history that Trainers share: a stretch of a file, from a page on.
struct HistoryFile {
  int fd = -1;  // -1: the history is a Trainer's own
  uint64_t offset = 0;
};

class HistoryCache {
 public:
  HistoryCache() = default;

  // Fills in, with others where it is shared, the rows of the first ranks of `order` for which
  // there is room. A history of a Trainer's own should lie near the table (AddressesNear). Errors
  // are those of Mapping::Stretch and JobHistory::FillFeatures; kInvalidArgument where the table or
  // the order are not those of the history's config.
  static Result<HistoryCache> Create(const HistoryConfig& config, const HistoryFile& file,
                                     const RowTable& features, std::span<const uint32_t> order,
                                     JobHistory* history);

  // Of rank 0: a whole number of rows away from the table. Below JobHistory::features() it and
  // those behind it may be read.
  const std::byte* rows() const { return rows_; }

 private:
  const std::byte* rows_ = nullptr;
  Mapping seen_;
};

}  // namespace gnnd
