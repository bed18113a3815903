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
  Dataset dataset = GNND_VALUE(Dataset::Open(options.dataset.folder, options.dataset.counts));
  Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd));
  RecordLayout layout =
      GNND_VALUE(RecordLayout::Of(LimitsOf(options.dataset.counts, options.sampling)));
  Segment segment = GNND_VALUE(Segment::Attach(options.segment_fd, Access::kModelReadOnly));

  std::unique_ptr<SampleWork> work = GNND_VALUE(SampleWorkOf(
      dataset, std::move(topology), options.sampling, options.random_seed.value, layout));
  if (options.cache.rows > 0) {
    const HotOrder hot = GNND_VALUE(HotOrder::Open(options.cache.order_path, dataset.num_nodes()));
    work = std::make_unique<HotRankMarker>(
        std::move(work), RankTable(hot.ranks(), options.cache.rows), layout.ranks_at());
  }
  return RunSamplerLoop(segment, options.executor, *work);
}

Task<LoopEnd> SamplerRun(const ExecutorOptions& options) {
  return {[options] { return RunSampler(options); }};
}

}  // namespace

void DefineSampler(Subject& subject) {
  subject.Enum<Algorithm>()
      .Enum<Expansion>()
      .Enum<EdgeWeights>()
      .Struct<WalkOptions>()
      .Struct<LaborOptions>()
      .Struct<PluginSource>()
      .Struct<SamplingOptions>()
      .Struct<CacheOptions>()
      .Struct<ExecutorOptions>()
      .Enum<LoopEnd>()
      .Function("samplerRun", SamplerRun, {"options"});
}

}  // namespace gnnd::node
