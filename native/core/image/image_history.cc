#include "core/image/image_history.h"

#include <utility>

namespace gnnd {
namespace {

JobHistory HistoryOf(const Segment& segment) {
  return JobHistory(segment.config().history, segment.config().group, segment.history());
}

}  // namespace

Result<std::optional<JobHistory>> HistoryAt(const Segment& segment, uint64_t version) {
  if (segment.history() == nullptr) return std::optional<JobHistory>();
  JobHistory history = HistoryOf(segment);
  GNND_TRY(history.BringTo(version, segment.shape().BatchesBefore(version)));
  return std::optional<JobHistory>(std::move(history));
}

bool RestoreHistory(const Segment& segment, std::span<const std::byte> saved, uint64_t version) {
  if (segment.history() == nullptr) return saved.empty();
  return HistoryOf(segment).Restore(saved, version);
}

}  // namespace gnnd
