#include "core/executor/device_sample_work.h"

#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/batch/record.h"
#include "core/feature/hot_order.h"

namespace gnnd {
Result<std::unique_ptr<SampleWork>> DeviceSampleWork::Create(const Device& device,
                                                             const Topology& topology,
                                                             const GraphSampler::Options& options,
                                                             const RecordLayout& layout,
                                                             const HotRanks& hot) {
  GNND_CHECK(!options.links.on());
  TopologyView view = topology.view();
  view.edge_weight = options.edge_weights;
  std::vector<uint32_t> marked(hot.ranks.begin(), hot.ranks.end());
  for (uint32_t& rank : marked) {
    if (rank >= hot.largest_cache) rank = kNoRank;
  }
  std::unique_ptr<DeviceSampler> sampler = GNND_VALUE(DeviceSampler::Create(
      device, view, options.sampler, layout,
      {options.random_seed, options.train_nodes, options.batch_size, kDepth, false, marked}));
  return std::unique_ptr<SampleWork>(new DeviceSampleWork(device, std::move(sampler)));
}

Status DeviceSampleWork::Start(const SampleTask& task) {
  return sampler_->Start(task.epoch, task.batch, task.slot);
}

Status DeviceSampleWork::Finish(const SampleTask& task, SampleReport* report) {
  gnnd_device_sample_report made{};
  GNND_TRY(sampler_->Finish(&made));
  const RecordHeader& header = OwnHeader(task.slot);
  const gnnd::Sample sample = OwnSample(task.slot);
  report->payload_bytes = header.payload_bytes;
  report->extent_bytes = header.extent_bytes;
  report->nodes = sample.nodes().size();
  report->seeds = sample.num_seeds();
  report->edges = sample.num_edges();
  report->mark_ns = made.mark_ns;
  report->copy_ns = made.copy_ns;
  report->device_ns = made.sample_ns;
  report->device_mark_ns = made.mark_ns;
  report->device_copy_ns = made.copy_ns;
  if (IsUseDue(finished_++)) report->device = GNND_VALUE(device_.Use());
  return Status::Ok();
}

}  // namespace gnnd
