#include "core/run/marked_sample_work.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/sample/record.h"

namespace gnnd {

MarkedSampleWork::MarkedSampleWork(std::unique_ptr<SampleWork> work, RankTable ranks,
                                   uint64_t ranks_at)
    : work_(std::move(work)), ranks_(std::move(ranks)), ranks_at_(ranks_at) {
  GNND_CHECK(ranks_at_ != 0);
}

Status MarkedSampleWork::Sample(uint32_t epoch, uint32_t batch, std::span<std::byte> slot,
                                SampleReport* report) {
  GNND_TRY(work_->Sample(epoch, batch, slot, report));
  const uint64_t start_ns = MonotonicNs();
  auto* header = reinterpret_cast<RecordHeader*>(slot.data());
  const auto* nodes = reinterpret_cast<const uint32_t*>(slot.data() + header->nodes_at);
  ranks_.Mark({nodes, header->num_nodes}, reinterpret_cast<uint32_t*>(slot.data() + ranks_at_));
  const uint64_t bytes = header->num_nodes * sizeof(uint32_t);
  header->ranks_at = ranks_at_;
  header->payload_bytes += bytes;
  header->extent_bytes = ranks_at_ + bytes;
  report->payload_bytes = header->payload_bytes;
  report->extent_bytes = header->extent_bytes;
  report->mark_ns = MonotonicNs() - start_ns;
  return Status::Ok();
}

}  // namespace gnnd
