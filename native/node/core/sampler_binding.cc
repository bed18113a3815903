#include <memory>
#include <optional>
#include <utility>

#include "core/base/mapping.h"
#include "core/executor/device_sample_work.h"
#include "core/executor/hot_rank_marker.h"
#include "core/executor/reading_ahead.h"
#include "core/executor/sampler_loop.h"
#include "core/feature/favoured.h"
#include "core/feature/hot_order.h"
#include "core/graph/topology.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"
#include "node/opened_device.h"

// The life of a Sampler.

namespace gnnd::node {
namespace {

// Whether all batches up to this one are committed; epoch and batch as in batch keys.
bool IsCommitted(const Segment& segment, uint32_t epoch, uint32_t batch) {
  const JobShape& shape = segment.shape();
  const uint64_t head = shape.CommittedBatches(segment.Version());
  if (head >= shape.TotalBatches()) return true;
  const uint32_t head_epoch = segment.EpochNumber(shape.EpochOfBatch(head));
  return epoch < head_epoch || (epoch == head_epoch && batch < shape.IndexOfBatch(head));
}

std::unique_ptr<SampleWork> WithReadingAhead(std::unique_ptr<SampleWork> work,
                                             const Dataset& dataset, const Segment& segment,
                                             const CacheOptions& cache) {
  ReadingAhead::Options ahead;
  ahead.features = dataset.features();
  ahead.cache_rows = cache.rows;
  ahead.window_bytes = cache.read_ahead_bytes;
  ahead.is_over = [&segment](uint32_t epoch, uint32_t batch) {
    return IsCommitted(segment, epoch, batch);
  };
  ahead.ask = [](std::span<const std::byte> bytes) { Advise(bytes, Advice::kWillNeed); };
  // A row is a page or two at a random place, so reading around it would be a waste.
  Advise(ahead.features.bytes(), Advice::kRandom);
  return std::make_unique<ReadingAhead>(std::move(work), std::move(ahead));
}

// Refuses what only a Sampler of one type does.
Status CheckTypedOptions(const ExecutorOptions& options) {
  const char* what = nullptr;
  if (!options.device.plugin.empty()) what = "sampling on a device";
  if (options.cache.rows > 0) what = "a cache of features";
  if (!options.cache.favoured_path.empty()) what = "sampling with locality";
  if (options.cache.read_ahead_bytes > 0) what = "reading features ahead";
  if (what == nullptr) return Status::Ok();
  return Status(Code::kInvalidArgument, std::string(what) + " is not for graphs of several types");
}

// Of a job over several types.
Result<LoopEnd> RunTypedSampler(const ExecutorOptions& options) {
  GNND_TRY(CheckTypedOptions(options));
  const DatasetLocation& location = options.dataset;
  TypedDataset dataset =
      GNND_VALUE(TypedDataset::Open(location.folder, location.schema, location.type_rows));
  Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
  const RecordLayout layout = GNND_VALUE(TypedLayoutOf(location.schema, options.sampling));
  Segment segment =
      GNND_VALUE(Segment::Attach(options.segment_fd, Access::kModelReadOnly, nullptr));
  GraphSampler::Options sampler =
      GraphSamplerOptionsOf(dataset.train(), options.sampling, options.random_seed.value);
  GNND_TRY(UseSeeds(options.seeds, dataset.num_nodes(0), &sampler));
  const std::unique_ptr<SampleWork> work =
      GNND_VALUE(GraphSampler::Create(std::move(topology), std::move(sampler), layout));
  return RunSamplerLoop(segment, options.executor, *work);
}

Result<LoopEnd> RunSampler(const ExecutorOptions& options) {
  if (!options.dataset.schema.types.empty()) return RunTypedSampler(options);
  Dataset dataset = GNND_VALUE(
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path));
  Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
  RecordLayout layout =
      GNND_VALUE(RecordLayout::Of(LimitsOf(options.dataset.counts, options.sampling)));
  const OpenedDevice opened = GNND_VALUE(OpenedDevice::Open(options.device));
  Segment segment =
      GNND_VALUE(Segment::Attach(options.segment_fd, Access::kModelReadOnly, opened.registrar()));

  std::optional<HotOrder> hot;
  if (options.cache.rows > 0) {
    hot = GNND_VALUE(HotOrder::Open(options.cache.order_path, dataset.num_nodes()));
  }
  FavouredMap favoured;
  if (!options.cache.favoured_path.empty()) {
    favoured = GNND_VALUE(FavouredMap::Open(options.cache.favoured_path, dataset.num_nodes()));
  }
  const LinkOptions& of_links = options.sampling.links;
  const bool has_file = of_links.on() && !options.seeds.path.empty();
  const TrainingLinks links =
      GNND_VALUE(has_file ? TrainingLinks::At(options.seeds.path, of_links)
                          : TrainingLinks::Open(options.dataset.folder, of_links));
  GraphSampler::Options sampler =
      GraphSamplerOptionsOf(dataset, links, options.sampling, options.random_seed.value);
  // Of a user's graph nobody knows.
  sampler.rows_ascend = !has_file;
  GNND_TRY(UseSeeds(options.seeds, dataset.num_nodes(), &sampler));
  std::unique_ptr<SampleWork> work;
  // Devices know no pairs: the host's cores make batches of links, with the same bits.
  if (opened.device != nullptr && !options.sampling.links.on()) {
    DeviceSampleWork::HotRanks ranks;
    if (hot) ranks = {hot->ranks(), options.cache.rows};
    work = GNND_VALUE(
        DeviceSampleWork::Create(*opened.device, topology, std::move(sampler), layout, ranks));
  } else {
    sampler.favoured = favoured.hops();
    work = GNND_VALUE(GraphSampler::Create(std::move(topology), std::move(sampler), layout));
    if (hot) {
      work = std::make_unique<HotRankMarker>(
          std::move(work), RankTable(hot->ranks(), options.cache.rows), layout.nodes().ranks_at);
    }
  }
  if (options.cache.read_ahead_bytes > 0) {
    work = WithReadingAhead(std::move(work), dataset, segment, options.cache);
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
      .Enum<LocalitySchedule>()
      .Struct<LocalityOptions>()
      .Struct<PluginSource>()
      .Enum<LinkExclusion>()
      .Enum<NegativeMethod>()
      .Enum<KnownLinks>()
      .Struct<LinkOptions>()
      .Struct<SamplingOptions>()
      .Struct<RowPlacement::Place>()
      .Struct<RowPlacement::Line>()
      .Struct<RowPlacement>()
      .Struct<CacheOptions>()
      .Struct<DeviceOptions>()
      .Struct<SeedOptions>()
      .Struct<ExecutorOptions>()
      .Enum<LoopEnd>()
      .Function("samplerRun", SamplerRun, {"options"});
}

}  // namespace gnnd::node
