#include "core/sample/temporal_sampler.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/sample/seen_rows.h"
#include "core/sample/temporal_hop.h"
#include "core/sample/write_pairs.h"

namespace gnnd {
namespace {

uint32_t MaxFiniteFanout(const RecordLayout& layout) {
  int32_t largest = 0;
  for (uint32_t b = 0; b < layout.num_blocks(); ++b) {
    largest = std::max(largest, layout.block(b).fanout);
  }
  return static_cast<uint32_t>(largest);
}

Status BadSeeds(const std::string& what) {
  return Status(Code::kInvalidArgument, "seeds: " + what);
}

}  // namespace

SampleLimits TreeLimitsOf(const GraphView& graph, std::span<const uint32_t> max_seeds,
                          const SamplerOptions& options) {
  GNND_CHECK(max_seeds.size() == graph.num_nodes.size());
  uint64_t trees = 0;
  for (const uint32_t seeds : max_seeds) trees += seeds;
  // Each tree has a node at most once, and in a hop each edge.
  constexpr uint64_t kMostNodes = std::numeric_limits<uint32_t>::max() - 1;
  constexpr uint64_t kMostEdges = std::numeric_limits<uint64_t>::max();
  SampleLimits limits;
  for (size_t t = 0; t < max_seeds.size(); ++t) {
    const uint64_t nodes = std::min(kMostNodes, graph.num_nodes[t] * trees);
    limits.types.push_back({static_cast<uint32_t>(nodes), max_seeds[t]});
  }
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const RelationView& relation = graph.relations[r];
    uint64_t edges = 0;
    if (__builtin_mul_overflow(relation.rows.num_edges(), trees, &edges)) edges = kMostEdges;
    limits.relations.push_back(
        {relation.src_type, relation.dst_type, edges,
         options.relation_fanouts.empty() ? options.fanouts : options.relation_fanouts[r]});
  }
  if (options.replace) limits.rows = RowBound::kRepeats;
  limits.expansion = options.expansion;
  return limits;
}

TemporalSampler::TemporalSampler(TimedGraph graph, SamplerOptions options, TimeOptions times,
                                 const RecordLayout& layout, InstructionSet instruction_set,
                                 PrefetchLevel prefetch)
    : timed_(std::move(graph)),
      options_(std::move(options)),
      times_(times),
      layout_(layout),
      pick_loops_(LoopsFor<PickLoops>(instruction_set)),
      buffers_(MaxFiniteFanout(layout), prefetch),
      found_(timed_.graph.num_nodes.size()),
      drawn_(timed_.graph.relations.size()) {
  Check();
}

void TemporalSampler::Check() const {
  GNND_CHECK(layout_.num_hops() == options_.fanouts.size());
  GNND_CHECK(layout_.num_node_types() == found_.size());
  GNND_CHECK(options_.algorithm == Algorithm::kUniform && !options_.locality.on());
  GNND_CHECK(options_.weights == EdgeWeights::kNone && layout_.block(0).weight_at == 0);
  GNND_CHECK(times_.pick == TimePick::kUniform || !options_.replace);
  GNND_CHECK(timed_.times.size() == drawn_.size());
  for (size_t r = 0; r < drawn_.size(); ++r) {
    const RelationView& relation = timed_.graph.relations[r];
    GNND_CHECK(relation.rows.num_nodes() == timed_.graph.num_nodes[relation.dst_type]);
    GNND_CHECK(timed_.times[r].empty() || timed_.times[r].size() == relation.rows.num_edges());
  }
}

Status TemporalSampler::CheckSeeds(std::span<const TimedSeeds> seeds) const {
  uint64_t total = 0;
  uint32_t next_type = 0;
  for (const TimedSeeds& list : seeds) {
    GNND_CHECK(list.type >= next_type && list.type < found_.size());
    GNND_CHECK(list.times.size() == list.nodes.size());
    next_type = list.type + 1;
    const uint32_t most = layout_.nodes(list.type).max_seeds;
    if (list.nodes.size() > most) {
      return BadSeeds(std::to_string(list.nodes.size()) + " given, at most " +
                      std::to_string(most) + " expected");
    }
    for (const uint32_t seed : list.nodes) {
      if (seed >= timed_.graph.num_nodes[list.type]) {
        return BadSeeds(std::to_string(seed) + " is not a node");
      }
    }
    total += list.nodes.size();
  }
  return total > 0 ? Status::Ok() : BadSeeds("none given");
}

// Begins the lists of nodes with the seeds, each in its tree.
void TemporalSampler::Begin(std::span<const TimedSeeds> seeds, std::byte* slot) {
  for (uint32_t t = 0; t < found_.size(); ++t) {
    const NodesLayout& place = layout_.nodes(t);
    Found& found = found_[t];
    found.table.Begin(place.max_nodes);
    found.nodes = reinterpret_cast<uint32_t*>(slot + place.nodes_at);
    found.count = 0;
    found.num_seeds = 0;
  }
  seen_.clear();
  for (const TimedSeeds& list : seeds) {
    Found& found = found_[list.type];
    const auto size = static_cast<uint32_t>(list.nodes.size());
    found.table.Reserve(found.nodes, 0, size);
    for (uint32_t i = 0; i < size; ++i) {
      const auto tree = static_cast<uint32_t>(seen_.size());
      found.table.Insert(tree, list.nodes[i], found.nodes, &found.count);
      seen_.push_back(SeenAt(list.times[i], times_));
    }
    found.num_seeds = size;
  }
  std::fill(drawn_.begin(), drawn_.end(), Drawn{});
}

Status TemporalSampler::Sample(const BatchKey& key, std::span<const TimedSeeds> seeds,
                               std::span<std::byte> slot, const PairsView& pairs) {
  GNND_CHECK(slot.size() >= layout_.slot_bytes());
  GNND_CHECK(reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) == 0);
  GNND_TRY(CheckSeeds(seeds));
  tables_.Begin(SampleKind::kBlocks, key);
  tables_.header.shares_rows = layout_.shares_rows() ? 1 : 0;
  // A slot that is being written must not look like the record it held before.
  std::memset(slot.data(), 0, sizeof tables_.header.magic);
  Begin(seeds, slot.data());
  for (uint32_t b = 0; b < layout_.num_blocks(); ++b) {
    const BlockLayout& place = layout_.block(b);
    if (b == 0 || place.hop != layout_.block(b - 1).hop) {
      for (Found& found : found_) found.at_hop = found.count;
    }
    SampleBlock(place, key, slot.data());
  }
  for (uint32_t t = 0; t < found_.size(); ++t) {
    found_[t].table.End(found_[t].count);
    tables_.nodes.push_back(
        {kRecordIdBytes, found_[t].count, found_[t].num_seeds, 0, layout_.nodes(t).nodes_at, 0});
  }
  tables_.header.pairs = WritePairs(pairs, layout_.pairs(), slot);
  WriteTables(&tables_, slot);
  return Status::Ok();
}

void TemporalSampler::SampleBlock(const BlockLayout& place, const BatchKey& key, std::byte* slot) {
  Drawn& drawn = drawn_[place.relation];
  Found& sources = found_[place.src_type];
  const Found& destinations = found_[place.dst_type];
  if (!layout_.shares_rows()) drawn = {};
  HopTask task{};
  task.stream = DrawStreamOf(key, place.hop, Purpose::kSample, place.relation);
  task.first_row = drawn.num_dst;
  task.num_dst = destinations.at_hop;
  task.dst = destinations.nodes;
  task.nodes = sources.nodes;
  task.count = sources.count;
  task.indptr = reinterpret_cast<uint32_t*>(slot + place.indptr_at);
  task.src = reinterpret_cast<uint32_t*>(slot + place.src_at);
  task.num_edges = drawn.num_edges;
  if (drawn.num_dst == 0) task.indptr[0] = 0;
  Expand(place, &task);
  sources.count = task.count;
  drawn = {task.num_dst, task.num_edges};
  tables_.blocks.push_back({place.hop, place.relation, place.dst_type, place.src_type, task.num_dst,
                            task.count, task.num_edges, kRecordIdBytes, place.indptr_at,
                            place.src_at, 0, 0});
}

void TemporalSampler::Expand(const BlockLayout& place, HopTask* task) {
  const TopologyView& rows = timed_.graph.relations[place.relation].rows;
  const TreeRelabel& destinations = found_[place.dst_type].table;
  const SeenRows seen(rows, timed_.times[place.relation], destinations, seen_);
  TreeTable table(&found_[place.src_type].table, &destinations, *task);
  if (place.fanout == kFullNeighbourhood) {
    ExpandSeenRows(rows, seen, &table, &buffers_, task);
    return;
  }
  const TemporalHop::Draw draw{static_cast<uint32_t>(place.fanout), options_.replace, times_.pick};
  TemporalHop(rows, seen, &table, &buffers_, pick_loops_, draw, task).Run();
}

uint64_t TemporalSampler::workspace_bytes() const {
  uint64_t bytes = buffers_.bytes() + seen_.capacity() * sizeof(TimeRange);
  for (const Found& found : found_) bytes += found.table.bytes();
  return bytes;
}

}  // namespace gnnd
