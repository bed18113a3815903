#include "core/executor/hot_rank_marker.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"

namespace gnnd {

HotRankMarker::HotRankMarker(std::unique_ptr<SampleWork> work, RankTable ranks, uint64_t ranks_at)
    : work_(std::move(work)), ranks_(std::move(ranks)), ranks_at_(ranks_at) {
  GNND_CHECK(ranks_at_ != 0);
}

Status HotRankMarker::Finish(const SampleTask& task, SampleReport* report) {
  GNND_TRY(work_->Finish(task, report));
  const uint64_t start_ns = MonotonicNs();
  const std::span<std::byte> slot = task.slot;
  RecordTables tables = OwnTables(slot);
  ranks_.Mark(OwnSample(slot).nodes(), reinterpret_cast<uint32_t*>(slot.data() + ranks_at_));
  tables.nodes[0].ranks_at = ranks_at_;
  WriteTables(&tables, slot);
  report->payload_bytes = tables.header.payload_bytes;
  report->extent_bytes = tables.header.extent_bytes;
  report->mark_ns = MonotonicNs() - start_ns;
  return Status::Ok();
}

}  // namespace gnnd
