#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/status.h"
#include "core/history/job_history.h"
#include "core/ledger/segment.h"

// The history that Trainers share, as a part of an image (image.h).

namespace gnnd {

// The shared history at a committed version; none if Trainers share none. REQUIRES: the segment's
// mutex is held, so that nobody brings it to a later version.
Result<std::optional<JobHistory>> HistoryAt(const Segment& segment, uint64_t version);

// Restores the bytes that JobHistory::Save wrote at `version`; false, changing nothing, when they
// cannot be this job's. True if Trainers share no history. REQUIRES: nobody works on the segment
// yet.
bool RestoreHistory(const Segment& segment, std::span<const std::byte> saved, uint64_t version);

}  // namespace gnnd
