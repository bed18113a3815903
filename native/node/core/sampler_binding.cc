#include <memory>
#include <utility>

#include "core/cache/hot_order.h"
#include "core/dataset/topology.h"
#include "core/run/marked_sample_work.h"
#include "core/run/sampler_loop.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"
#include "node/executor_options.h"

// A Sampler's life: mirrors `samplerRun` of contract.ts.

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

  Result<std::unique_ptr<SampleWork>> made =
      SampleWorkOf(*dataset, std::move(*topology), options.sampling, options.random_seed, *layout);
  if (!made.ok()) return made.status();
  std::unique_ptr<SampleWork> work = std::move(*made);
  if (options.cache.rows > 0) {
    const Result<HotOrder> hot = HotOrder::Open(options.cache.order_path, dataset->num_nodes());
    if (!hot.ok()) return hot.status();
    work = std::make_unique<MarkedSampleWork>(
        std::move(work), RankTable(hot->ranks(), options.cache.rows), layout->ranks_at());
  }
  return RunSamplerLoop(*segment, options.executor, *work);
}

// samplerRun(options): Promise<'COMPLETE' | 'STOPPED'>
Napi::Value SamplerRun(const Napi::CallbackInfo& info) {
  const ExecutorOptions options = ExecutorOptionsOf(Fields(info[0], "options"));
  return RunOnThread<LoopEnd>(info.Env(), [options] { return RunSampler(options); }, LoopEndOf);
}

}  // namespace

void DefineSampler(Napi::Env env, Napi::Object exports) {
  exports.Set("samplerRun", Napi::Function::New(env, SamplerRun));
}

}  // namespace gnnd::node
