#include "core/sample/sampler.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/sample/labor_hop.h"
#include "core/sample/plugin_hop.h"
#include "core/sample/weighted_hop.h"
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

std::variant<DenseRelabel, HashRelabel> MakeTable(uint32_t num_nodes, uint32_t max_nodes,
                                                  uint64_t max_dense_bytes) {
  if (uint64_t{num_nodes} * sizeof(uint32_t) <= max_dense_bytes) return DenseRelabel(num_nodes);
  return HashRelabel(max_nodes);
}

uint32_t* WordsAt(std::byte* slot, uint64_t at) { return reinterpret_cast<uint32_t*>(slot + at); }
float* FloatsAt(std::byte* slot, uint64_t at) { return reinterpret_cast<float*>(slot + at); }

// Gives rows that draw nothing their place.
void FillEmptyRows(HopTask* task) {
  std::fill(task->indptr + task->first_row + 1, task->indptr + task->num_dst + 1, task->num_edges);
}

// Gives every neighbour of a row the same share of the mean: all were drawn alike, or all taken.
void FillEqualShares(HopTask* task) {
  for (uint32_t row = task->first_row; row < task->num_dst; ++row) {
    const uint32_t begin = task->indptr[row];
    const uint32_t end = task->indptr[row + 1];
    std::fill(task->weight + begin, task->weight + end, static_cast<float>(1.0 / (end - begin)));
  }
}

Status BadSeeds(const std::string& what) {
  return Status(Code::kInvalidArgument, "seeds: " + what);
}

}  // namespace

Sampler::Sampler(GraphView graph, SamplerOptions options, const RecordLayout& layout,
                 InstructionSet instruction_set, PrefetchLevel prefetch)
    : graph_(std::move(graph)),
      options_(std::move(options)),
      layout_(layout),
      pick_loops_(LoopsFor<PickLoops>(instruction_set)),
      labor_loops_(LoopsFor<LaborLoops>(instruction_set)),
      walk_loops_(LoopsFor<WalkLoops>(instruction_set)),
      buffers_(MaxFiniteFanout(layout), prefetch),
      walk_buffers_(options_.algorithm == Algorithm::kWalk, options_.walk),
      gcn_weights_(options_.weights == EdgeWeights::kGcn ? layout.nodes().max_nodes : 0),
      drawn_(graph_.relations.size()) {
  Check();
  for (uint32_t t = 0; t < graph_.num_nodes.size(); ++t) {
    found_.push_back({MakeTable(graph_.num_nodes[t], layout.nodes(t).max_nodes,
                                options_.max_dense_table_bytes)});
  }
}

void Sampler::Check() const {
  GNND_CHECK(layout_.num_hops() == options_.fanouts.size());
  GNND_CHECK(layout_.num_node_types() == graph_.num_nodes.size());
  GNND_CHECK((options_.algorithm == Algorithm::kLabor) ==
             (options_.weights == EdgeWeights::kInverse));
  GNND_CHECK((options_.algorithm == Algorithm::kWalk) ==
             (options_.weights == EdgeWeights::kVisits));
  GNND_CHECK((options_.algorithm == Algorithm::kPlugin) == (options_.plugin != nullptr));
  GNND_CHECK(options_.algorithm == Algorithm::kPlugin || options_.weights != EdgeWeights::kGiven);
  GNND_CHECK(options_.locality.on() || options_.weights != EdgeWeights::kShares);
  GNND_CHECK(!options_.locality.on() ||
             (options_.algorithm == Algorithm::kUniform && !options_.replace &&
              options_.weights != EdgeWeights::kNone));
  const bool is_homogeneous = graph_.relations.size() == 1 && graph_.num_nodes.size() == 1;
  GNND_CHECK(is_homogeneous ||
             (options_.weights != EdgeWeights::kGcn && options_.algorithm != Algorithm::kPlugin &&
              !options_.locality.on()));
  const WalkOptions& walk = walk_buffers_.options;
  GNND_CHECK(walk.walks >= 1 && walk.walks <= kMaxWalks);
  GNND_CHECK(walk.length >= 1 && walk.length <= kMaxWalkLength);
  GNND_CHECK(walk.restart_prob >= 0 && walk.restart_prob < 1);
  GNND_CHECK(options_.algorithm != Algorithm::kLabor || options_.labor.dependency_window >= 1);
  for (const RelationView& relation : graph_.relations) {
    GNND_CHECK(relation.rows.num_nodes() == graph_.num_nodes[relation.dst_type]);
    GNND_CHECK(options_.algorithm != Algorithm::kWeighted ||
               relation.rows.alias.size() == relation.rows.num_edges());
    GNND_CHECK(options_.algorithm != Algorithm::kWalk || relation.src_type == relation.dst_type);
  }
  const BlockLayout& first = layout_.block(0);
  GNND_CHECK((first.weight_at != 0) == (options_.weights != EdgeWeights::kNone));
  GNND_CHECK((first.self_weight_at != 0) == (options_.weights == EdgeWeights::kGcn));
}

Status Sampler::Sample(const BatchKey& key, std::span<const uint32_t> seeds,
                       std::span<std::byte> slot, uint32_t scale, const LinkBatch& links,
                       uint32_t seed_type) {
  GNND_CHECK(scale == kScaleOne ||
             (options_.locality.on() && scale > kScaleOne && scale <= kScaleMost &&
              graph_.relations[0].rows.favoured.size() == graph_.num_nodes[0]));
  GNND_CHECK(!links.skips.after || CanSkipAfter(options_));
  GNND_CHECK(links.pairs.empty() || graph_.relations.size() == 1);
  scale_ = scale;
  GNND_CHECK(slot.size() >= layout_.slot_bytes());
  GNND_CHECK(reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) == 0);
  const uint32_t max_seeds = layout_.nodes(seed_type).max_seeds;
  if (seeds.empty() || seeds.size() > max_seeds) {
    return BadSeeds(std::to_string(seeds.size()) + " given, 1 to " + std::to_string(max_seeds) +
                    " expected");
  }
  tables_.Begin(SampleKind::kBlocks, key);
  tables_.header.shares_rows = layout_.shares_rows() ? 1 : 0;

  // A slot that is being written must not look like the record it held before.
  std::memset(slot.data(), 0, sizeof tables_.header.magic);
  for (uint32_t t = 0; t < found_.size(); ++t) {
    Found& found = found_[t];
    std::visit([&](auto& table) { table.Begin(layout_.nodes(t).max_nodes); }, found.table);
    found.nodes = WordsAt(slot.data(), layout_.nodes(t).nodes_at);
    found.count = 0;
  }
  Status status = InsertSeeds(seeds, seed_type);
  gcn_weights_.Begin();
  if (status.ok()) status = SampleBlocks(key, slot.data(), links.skips);
  for (Found& found : found_) {
    std::visit([&found](auto& table) { table.End(found.count); }, found.table);
  }
  if (!status.ok()) return status;

  for (uint32_t t = 0; t < found_.size(); ++t) {
    const auto num_seeds = static_cast<uint32_t>(t == seed_type ? seeds.size() : 0);
    tables_.nodes.push_back(
        {kRecordIdBytes, found_[t].count, num_seeds, 0, layout_.nodes(t).nodes_at, 0});
  }
  tables_.header.pairs = WritePairs(links.pairs, layout_.pairs(), slot);
  WriteTables(&tables_, slot);
  return Status::Ok();
}

Status Sampler::SampleBlocks(const BatchKey& key, std::byte* slot, const RowSkips& skips) {
  std::fill(drawn_.begin(), drawn_.end(), Drawn{});
  for (uint32_t b = 0; b < layout_.num_blocks(); ++b) {
    const BlockLayout& place = layout_.block(b);
    if (b == 0 || place.hop != layout_.block(b - 1).hop) {
      for (Found& found : found_) found.at_hop = found.count;
    }
    GNND_TRY(SampleBlock(place, key, slot, skips));
  }
  return Status::Ok();
}

Status Sampler::InsertSeeds(std::span<const uint32_t> seeds, uint32_t seed_type) {
  constexpr size_t kChunk = ExpandBuffers::kChunkIds;
  uint32_t local_ids[kChunk];
  Found& found = found_[seed_type];
  for (size_t begin = 0; begin < seeds.size(); begin += kChunk) {
    const auto chunk = seeds.subspan(begin, std::min(kChunk, seeds.size() - begin));
    for (const uint32_t seed : chunk) {
      if (seed >= graph_.num_nodes[seed_type]) {
        return BadSeeds(std::to_string(seed) + " is not a node");
      }
    }
    found.count = std::visit(
        [&](auto& table) {
          for (const uint32_t seed : chunk) table.Ask(buffers_.level, seed);
          return table.InsertAll(chunk.data(), static_cast<uint32_t>(chunk.size()), found.nodes,
                                 found.count, local_ids);
        },
        found.table);
    if (found.count != begin + chunk.size()) return BadSeeds("a node stands twice");
  }
  return Status::Ok();
}

Status Sampler::SampleBlock(const BlockLayout& place, const BatchKey& key, std::byte* slot,
                            const RowSkips& skips) {
  Drawn& drawn = drawn_[place.relation];
  Found& sources = found_[place.src_type];
  const Found& destinations = found_[place.dst_type];
  if (!layout_.shares_rows()) drawn = {};
  HopTask task{};
  task.first_row = drawn.num_dst;
  task.num_dst = destinations.at_hop;
  task.dst = destinations.nodes;
  task.nodes = sources.nodes;
  task.count = sources.count;
  task.indptr = WordsAt(slot, place.indptr_at);
  task.src = WordsAt(slot, place.src_at);
  task.weight = place.weight_at == 0 ? nullptr : FloatsAt(slot, place.weight_at);
  task.num_edges = drawn.num_edges;
  task.skips = skips;
  if (drawn.num_dst == 0) task.indptr[0] = 0;
  const Status status =
      std::visit([&](auto& table) { return Expand(&table, place, key, &task); }, sources.table);
  sources.count = task.count;
  GNND_TRY(status);
  drawn = {task.num_dst, task.num_edges};
  if (options_.weights == EdgeWeights::kGcn) {
    const TopologyView& rows = graph_.relations[place.relation].rows;
    gcn_weights_.AddNodes(rows, {task.nodes, task.count}, task.skips);
    gcn_weights_.Fill({task.indptr, size_t{task.num_dst} + 1}, task.first_row, Favours(place),
                      task.src, task.weight, FloatsAt(slot, place.self_weight_at));
  }
  tables_.blocks.push_back({place.hop, place.relation, place.dst_type, place.src_type, task.num_dst,
                            task.count, task.num_edges, kRecordIdBytes, place.indptr_at,
                            place.src_at, place.weight_at, place.self_weight_at});
  return Status::Ok();
}

template <typename TableType>
void Sampler::ExpandUniformly(TableType* table, const BlockLayout& place, const BatchKey& key,
                              HopTask* task) {
  const TopologyView& rows = graph_.relations[place.relation].rows;
  const auto fanout = static_cast<uint32_t>(place.fanout);
  if (Favours(place)) {
    task->stream = DrawStreamOf(key, place.hop, Purpose::kLocality, place.relation);
    const bool shares = options_.weights == EdgeWeights::kShares;
    LocalityHop<TableType>(rows, table, &buffers_, &locality_buffers_,
                           {place.hop, fanout, scale_, shares}, task)
        .Run();
    return;
  }
  task->stream = DrawStreamOf(key, place.hop, Purpose::kSample, place.relation);
  SampledHop<TableType>(rows, table, &buffers_, pick_loops_, fanout, options_.replace, task).Run();
  if (options_.weights == EdgeWeights::kShares) FillEqualShares(task);
}

template <typename TableType>
Status Sampler::Expand(TableType* table, const BlockLayout& place, const BatchKey& key,
                       HopTask* task) {
  const TopologyView& rows = graph_.relations[place.relation].rows;
  const auto fanout = static_cast<uint32_t>(place.fanout);
  if (fanout == 0) {
    FillEmptyRows(task);
    return Status::Ok();
  }
  if (place.fanout == kFullNeighbourhood) {
    const bool by_weight = options_.algorithm == Algorithm::kWeighted;
    const uint32_t first_edge = task->num_edges;
    ExpandFullRows(rows, table, &buffers_, by_weight ? rows.alias.data() : nullptr, task);
    if (options_.weights == EdgeWeights::kInverse || options_.weights == EdgeWeights::kGiven) {
      std::fill(task->weight + first_edge, task->weight + task->num_edges, 1.0F);
    }
    if (options_.weights == EdgeWeights::kShares) FillEqualShares(task);
    return Status::Ok();
  }
  switch (options_.algorithm) {
    case Algorithm::kUniform:
      ExpandUniformly(table, place, key, task);
      return Status::Ok();
    case Algorithm::kWeighted:
      task->stream = DrawStreamOf(key, place.hop, Purpose::kWeighted, place.relation);
      WeightedHop<TableType>(rows, table, &buffers_, &weighted_picker_, pick_loops_, fanout,
                             options_.replace, task)
          .Run();
      return Status::Ok();
    case Algorithm::kLabor: {
      const uint32_t window = options_.labor.dependency_window;
      LaborHop<TableType>(rows, table, &buffers_, labor_loops_,
                          LaborKeysOf(key, place.hop, window, place.relation), fanout, task)
          .Run();
      return Status::Ok();
    }
    case Algorithm::kWalk:
      task->stream = DrawStreamOf(key, place.hop, Purpose::kWalk, place.relation);
      WalkHop<TableType>(rows, table, &buffers_, &walk_buffers_, walk_loops_, fanout, task).Run();
      return Status::Ok();
    case Algorithm::kPlugin:
      task->stream = DrawStreamOf(key, place.hop, Purpose::kPlugin);
      return PluginHop<TableType>(rows, table, &buffers_, options_.plugin.get(), place.hop, fanout,
                                  task)
          .Run();
  }
  return Status(Code::kInternal, "unknown sampling algorithm");
}

uint64_t Sampler::workspace_bytes() const {
  uint64_t tables = 0;
  for (const Found& found : found_) {
    tables += std::visit([](const auto& any) { return any.bytes(); }, found.table);
  }
  return tables + buffers_.bytes() + weighted_picker_.bytes() + walk_buffers_.bytes() +
         locality_buffers_.bytes() + gcn_weights_.bytes();
}

}  // namespace gnnd
