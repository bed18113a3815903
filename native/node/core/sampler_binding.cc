#include <memory>
#include <utility>

#include "core/executor/hot_rank_marker.h"
#include "core/executor/sampler_loop.h"
#include "core/feature/hot_order.h"
#include "core/graph/topology.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"

// A Sampler's life.

namespace gnnd::node {
namespace {

Result<LoopEnd> RunSampler(const ExecutorOptions& options) {
  Result<Dataset> dataset = Dataset::Open(options.dataset.folder, options.dataset.counts);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  Result<RecordLayout> layout =
      RecordLayout::Of(LimitsOf(options.dataset.counts, options.sampling));
  if (!layout.ok()) return layout.status();
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kModelReadOnly);
  if (!segment.ok()) return segment.status();

  Result<std::unique_ptr<SampleWork>> made = SampleWorkOf(
      *dataset, std::move(*topology), options.sampling, options.random_seed.value, *layout);
  if (!made.ok()) return made.status();
  std::unique_ptr<SampleWork> work = std::move(*made);
  if (options.cache.rows > 0) {
    const Result<HotOrder> hot = HotOrder::Open(options.cache.order_path, dataset->num_nodes());
    if (!hot.ok()) return hot.status();
    work = std::make_unique<HotRankMarker>(
        std::move(work), RankTable(hot->ranks(), options.cache.rows), layout->ranks_at());
  }
  return RunSamplerLoop(*segment, options.executor, *work);
}

Task<LoopEnd> SamplerRun(const ExecutorOptions& options) {
  return {[options] { return RunSampler(options); }};
}

}  // namespace

void DefineSampler(Subject& subject) {
  subject.Struct<CacheOptions>().Struct<ExecutorOptions>().Enum<LoopEnd>().Function(
      "samplerRun", SamplerRun, {"options"});
}

}  // namespace gnnd::node
