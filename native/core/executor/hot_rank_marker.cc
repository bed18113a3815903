#include "core/executor/hot_rank_marker.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/batch/record.h"

namespace gnnd {

HotRankMarker::HotRankMarker(std::unique_ptr<SampleWork> work, std::vector<TypeRanks> types)
    : work_(std::move(work)), types_(std::move(types)) {
  for (const TypeRanks& type : types_) GNND_CHECK(type.ranks_at != 0);
}

HotRankMarker::HotRankMarker(std::unique_ptr<SampleWork> work, RankTable ranks, uint64_t ranks_at)
    : work_(std::move(work)) {
  GNND_CHECK(ranks_at != 0);
  types_.push_back({std::move(ranks), ranks_at});
}

Status HotRankMarker::Finish(const SampleTask& task, SampleReport* report) {
  GNND_TRY(work_->Finish(task, report));
  const uint64_t start_ns = MonotonicNs();
  const std::span<std::byte> slot = task.slot;
  RecordTables tables = OwnTables(slot);
  const gnnd::Sample sample = OwnSample(slot);
  GNND_CHECK(types_.size() == sample.num_node_types());
  for (uint32_t t = 0; t < types_.size(); ++t) {
    const auto& [ranks, ranks_at] = types_[t];
    ranks.Mark(sample.nodes(t), reinterpret_cast<uint32_t*>(slot.data() + ranks_at));
    tables.nodes[t].ranks_at = ranks_at;
  }
  WriteTables(&tables, slot);
  report->payload_bytes = tables.header.payload_bytes;
  report->extent_bytes = tables.header.extent_bytes;
  report->mark_ns = MonotonicNs() - start_ns;
  return Status::Ok();
}

}  // namespace gnnd
