#include <memory>
#include <utility>

#include "core/dataset/topology.h"
#include "core/run/graph_sample_work.h"
#include "core/run/sampler_loop.h"
#include "node/core/bindings.h"
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
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kReadWrite);
  if (!segment.ok()) return segment.status();

  GraphSampleWork::Options work_options;
  work_options.random_seed = options.random_seed;
  work_options.batch_size = options.sampling.batch_size;
  for (const int64_t node : dataset->train()) {
    work_options.train_nodes.push_back(static_cast<uint32_t>(node));
  }
  work_options.sampler = options.sampling.sampler;
  GraphSampleWork work(std::move(*topology), std::move(work_options), *layout);
  return RunSamplerLoop(*segment, options.executor, work);
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
