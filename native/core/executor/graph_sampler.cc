#include "core/executor/graph_sampler.h"

#include <utility>

#include "core/base/cpu.h"
#include "core/item/item_range.h"
#include "core/sample/typed.h"

namespace gnnd {
namespace {

bool HasOneOfEach(const GraphView& graph) {
  return graph.num_nodes.size() == 1 && graph.relations.size() == 1;
}

// The graph, with what the options add where it is of one type and relation.
GraphView ViewOf(const Topology& topology, const GraphSampler::Options& options) {
  GraphView graph = topology.graph();
  if (HasOneOfEach(graph)) {
    graph.relations[0].rows.edge_weight = options.edge_weights;
    graph.relations[0].rows.favoured = options.favoured;
  }
  return graph;
}

}  // namespace

Result<std::unique_ptr<SampleWork>> GraphSampler::Create(Topology topology, Options options,
                                                         const RecordLayout& layout) {
  SamplerOptions& sampler = options.sampler;
  const LinkOptions& links = options.links;
  const GraphView& graph = topology.graph();
  if (!HasOneOfEach(graph)) GNND_TRY(CheckTyped(sampler, links, graph.relations.size()));
  if (links.on() && links.exclude == LinkExclusion::kBatchAfter && !CanSkipAfter(sampler)) {
    return Status(Code::kInvalidArgument,
                  "links.exclude: BATCH_AFTER is not for draws with locality");
  }
  if (sampler.algorithm == Algorithm::kPlugin) {
    sampler.plugin =
        GNND_VALUE(SamplerPlugin::Load(sampler.source, ViewOf(topology, options).relations[0].rows,
                                       sampler.fanouts, sampler.weights == EdgeWeights::kGiven));
  }
  return std::unique_ptr<SampleWork>(
      new GraphSampler(std::move(topology), std::move(options), layout));
}

GraphSampler::GraphSampler(Topology topology, Options options, const RecordLayout& layout)
    : topology_(std::move(topology)),
      options_(std::move(options)),
      sampler_(ViewOf(topology_, options_), options_.sampler, layout, DetectInstructionSet()) {
  if (options_.links.on()) {
    links_.emplace(options_.links, options_.train_links, options_.batch_size, topology_.view(),
                   LinkSeeds::Order{options_.shuffled, options_.rows_ascend});
  } else {
    seeds_.reserve(options_.batch_size);
  }
}

Status GraphSampler::Start(const SampleTask& task) {
  const BatchKey key{options_.random_seed, task.epoch, task.batch};
  if (links_) {
    GNND_TRY(links_->Make(key));
    return sampler_.Sample(key, links_->seeds(), task.slot, task.scale, links_->batch());
  }
  const std::vector<uint32_t>& nodes = options_.train_nodes;
  if (options_.shuffled) {
    SeedsOf(key, nodes, options_.batch_size, &seeds_);
  } else {
    const ItemRange range =
        ItemRange::OfBatch(key.batch, options_.batch_size, static_cast<uint32_t>(nodes.size()));
    seeds_.assign(nodes.begin() + range.begin, nodes.begin() + range.end);
  }
  return sampler_.Sample(key, seeds_, task.slot, task.scale);
}

Status GraphSampler::Finish(const SampleTask& task, SampleReport* report) {
  const RecordHeader& header = OwnHeader(task.slot);
  const gnnd::Sample sample = OwnSample(task.slot);
  report->payload_bytes = header.payload_bytes;
  report->extent_bytes = header.extent_bytes;
  report->nodes = 0;
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) report->nodes += sample.nodes(t).size();
  report->seeds = sample.num_seeds();
  report->edges = sample.num_edges();
  return Status::Ok();
}

}  // namespace gnnd
