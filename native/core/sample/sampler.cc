#include "core/sample/sampler.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/sample/labor_hop.h"
#include "core/sample/plugin_hop.h"
#include "core/sample/weighted_hop.h"

namespace gnnd {
namespace {

uint32_t MaxFiniteFanout(const std::vector<int32_t>& fanouts) {
  return static_cast<uint32_t>(std::max(0, *std::max_element(fanouts.begin(), fanouts.end())));
}

std::variant<DenseRelabel, HashRelabel> MakeTable(uint32_t num_nodes, uint32_t max_nodes,
                                                  uint64_t max_dense_bytes) {
  if (uint64_t{num_nodes} * sizeof(uint32_t) <= max_dense_bytes) return DenseRelabel(num_nodes);
  return HashRelabel(max_nodes);
}

uint32_t* WordsAt(std::byte* slot, uint64_t at) { return reinterpret_cast<uint32_t*>(slot + at); }
float* FloatsAt(std::byte* slot, uint64_t at) { return reinterpret_cast<float*>(slot + at); }

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

Sampler::Sampler(TopologyView topology, SamplerOptions options, const RecordLayout& layout,
                 InstructionSet instruction_set, PrefetchLevel prefetch)
    : topology_(topology),
      options_(std::move(options)),
      layout_(layout),
      pick_loops_(LoopsFor<PickLoops>(instruction_set)),
      labor_loops_(LoopsFor<LaborLoops>(instruction_set)),
      walk_loops_(LoopsFor<WalkLoops>(instruction_set)),
      buffers_(MaxFiniteFanout(options_.fanouts), prefetch),
      walk_buffers_(options_.algorithm == Algorithm::kWalk, options_.walk),
      gcn_weights_(options_.weights == EdgeWeights::kGcn ? layout.max_nodes() : 0),
      table_(MakeTable(topology.num_nodes(), layout.max_nodes(), options_.max_dense_table_bytes)) {
  GNND_CHECK(layout.num_hops() == options_.fanouts.size());
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
  const WalkOptions& walk = walk_buffers_.options;
  GNND_CHECK(walk.walks >= 1 && walk.walks <= kMaxWalks);
  GNND_CHECK(walk.length >= 1 && walk.length <= kMaxWalkLength);
  GNND_CHECK(walk.restart_prob >= 0 && walk.restart_prob < 1);
  GNND_CHECK(options_.algorithm != Algorithm::kLabor || options_.labor.dependency_window >= 1);
  GNND_CHECK(options_.algorithm != Algorithm::kWeighted ||
             topology.alias.size() == topology.num_edges());
  GNND_CHECK((layout.hop(0).weight_at != 0) == (options_.weights != EdgeWeights::kNone));
  GNND_CHECK((layout.hop(0).self_weight_at != 0) == (options_.weights == EdgeWeights::kGcn));
}

Status Sampler::Sample(const BatchKey& key, std::span<const uint32_t> seeds,
                       std::span<std::byte> slot, uint32_t scale, const LinkBatch& links) {
  GNND_CHECK(scale == kScaleOne ||
             (options_.locality.on() && scale > kScaleOne && scale <= kScaleMost &&
              topology_.favoured.size() == topology_.num_nodes()));
  GNND_CHECK(!links.skips.after || CanSkipAfter(options_));
  scale_ = scale;
  GNND_CHECK(slot.size() >= layout_.slot_bytes());
  GNND_CHECK(reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) == 0);
  if (seeds.empty() || seeds.size() > layout_.max_seeds()) {
    return BadSeeds(std::to_string(seeds.size()) + " given, 1 to " +
                    std::to_string(layout_.max_seeds()) + " expected");
  }
  return std::visit([&](auto& table) { return SampleWith(&table, key, seeds, slot, links); },
                    table_);
}

template <typename TableType>
Status Sampler::SampleWith(TableType* table, const BatchKey& key, std::span<const uint32_t> seeds,
                           std::span<std::byte> slot, const LinkBatch& links) {
  RecordHeader header = RecordHeaderOf(SampleKind::kBlocks, key);
  header.num_node_types = 1;
  header.num_blocks = layout_.num_hops();

  // A slot that is being written must not look like the record it held before.
  std::memset(slot.data(), 0, sizeof header.magic);
  table->Begin(layout_.max_nodes());
  HopTask task{};
  task.skips = links.skips;
  task.nodes = WordsAt(slot.data(), layout_.nodes_at());
  Status status = InsertSeeds(table, seeds, task.nodes, &task.count);
  gcn_weights_.Begin();
  for (uint32_t hop = 0; hop < header.num_blocks && status.ok(); ++hop) {
    status = SampleHop(table, key, hop, slot.data(), &task, &header.blocks[hop]);
  }
  table->End(task.count);
  if (!status.ok()) return status;

  header.nodes[0].id_bytes = kRecordIdBytes;
  header.nodes[0].num_nodes = task.count;
  header.nodes[0].num_seeds = static_cast<uint32_t>(seeds.size());
  header.nodes[0].nodes_at = layout_.nodes_at();
  header.pairs = WritePairs(links.pairs, slot);
  WriteHeader(&header, slot);
  return Status::Ok();
}

PairEntry Sampler::WritePairs(const PairsView& pairs, std::span<std::byte> slot) const {
  PairEntry entry{};
  if (pairs.empty()) return entry;
  const PairLayout& place = layout_.pairs();
  const auto write = [&slot](uint64_t at, std::span<const uint32_t> words) {
    GNND_CHECK(at != 0);
    std::copy(words.begin(), words.end(), WordsAt(slot.data(), at));
    return at;
  };
  entry.num_pairs = pairs.size();
  entry.per_pair = pairs.per_pair;
  entry.in_batch = pairs.in_batch ? 1 : 0;
  entry.ends_at = write(place.ends_at, pairs.source);
  write(place.ends_at + pairs.source.size_bytes(), pairs.destination);
  entry.items_at = write(place.items_at, pairs.items);
  if (!pairs.in_batch && !pairs.negatives.empty()) {
    entry.negatives_at = write(place.negatives_at, pairs.negatives);
  }
  entry.num_masked = static_cast<uint32_t>(pairs.masked.size());
  if (!pairs.masked.empty()) entry.masked_at = write(place.masked_at, pairs.masked);
  return entry;
}

template <typename TableType>
Status Sampler::InsertSeeds(TableType* table, std::span<const uint32_t> seeds, uint32_t* nodes,
                            uint32_t* count) {
  constexpr size_t kChunk = ExpandBuffers::kChunkIds;
  uint32_t local_ids[kChunk];
  for (size_t begin = 0; begin < seeds.size(); begin += kChunk) {
    const auto chunk = seeds.subspan(begin, std::min(kChunk, seeds.size() - begin));
    for (const uint32_t seed : chunk) {
      if (seed >= topology_.num_nodes()) {
        return BadSeeds(std::to_string(seed) + " is not a node");
      }
      table->Ask(buffers_.level, seed);
    }
    *count = table->InsertAll(chunk.data(), static_cast<uint32_t>(chunk.size()), nodes, *count,
                              local_ids);
    if (*count != begin + chunk.size()) return BadSeeds("a node stands twice");
  }
  return Status::Ok();
}

template <typename TableType>
Status Sampler::SampleHop(TableType* table, const BatchKey& key, uint32_t hop, std::byte* slot,
                          HopTask* task, BlockEntry* block) {
  const HopLayout& place = layout_.hop(hop);
  const bool appends = hop > 0 && options_.expansion == Expansion::kNew;
  task->first_row = appends ? task->num_dst : 0;
  task->num_dst = task->count;
  task->indptr = WordsAt(slot, place.indptr_at);
  task->src = WordsAt(slot, place.src_at);
  task->weight = place.weight_at == 0 ? nullptr : FloatsAt(slot, place.weight_at);
  if (!appends) {
    task->num_edges = 0;
    task->indptr[0] = 0;
  }
  GNND_TRY(Expand(table, key, hop, task));
  if (options_.weights == EdgeWeights::kGcn) {
    gcn_weights_.AddNodes(topology_, {task->nodes, task->count}, task->skips);
    gcn_weights_.Fill({task->indptr, size_t{task->num_dst} + 1}, task->first_row, Favours(hop),
                      task->src, task->weight, FloatsAt(slot, place.self_weight_at));
  }

  block->hop = hop;
  block->id_bytes = kRecordIdBytes;
  block->num_dst = task->num_dst;
  block->num_edges = task->num_edges;
  block->num_src = task->count;
  block->indptr_at = place.indptr_at;
  block->src_at = place.src_at;
  block->weight_at = place.weight_at;
  block->self_weight_at = place.self_weight_at;
  return Status::Ok();
}

template <typename TableType>
void Sampler::ExpandUniformly(TableType* table, const BatchKey& key, uint32_t hop, HopTask* task) {
  const auto fanout = static_cast<uint32_t>(options_.fanouts[hop]);
  if (Favours(hop)) {
    task->stream = DrawStreamOf(key, hop, Purpose::kLocality);
    const bool shares = options_.weights == EdgeWeights::kShares;
    LocalityHop<TableType>(topology_, table, &buffers_, &locality_buffers_,
                           {hop, fanout, scale_, shares}, task)
        .Run();
    return;
  }
  task->stream = DrawStreamOf(key, hop);
  SampledHop<TableType>(topology_, table, &buffers_, pick_loops_, fanout, options_.replace, task)
      .Run();
  if (options_.weights == EdgeWeights::kShares) FillEqualShares(task);
}

template <typename TableType>
Status Sampler::Expand(TableType* table, const BatchKey& key, uint32_t hop, HopTask* task) {
  const auto fanout = static_cast<uint32_t>(options_.fanouts[hop]);
  if (options_.fanouts[hop] == kFullNeighbourhood) {
    const bool by_weight = options_.algorithm == Algorithm::kWeighted;
    const uint32_t first_edge = task->num_edges;
    ExpandFullRows(topology_, table, &buffers_, by_weight ? topology_.alias.data() : nullptr, task);
    if (options_.weights == EdgeWeights::kInverse || options_.weights == EdgeWeights::kGiven) {
      std::fill(task->weight + first_edge, task->weight + task->num_edges, 1.0F);
    }
    if (options_.weights == EdgeWeights::kShares) FillEqualShares(task);
    return Status::Ok();
  }
  switch (options_.algorithm) {
    case Algorithm::kUniform:
      ExpandUniformly(table, key, hop, task);
      return Status::Ok();
    case Algorithm::kWeighted:
      task->stream = DrawStreamOf(key, hop, Purpose::kWeighted);
      WeightedHop<TableType>(topology_, table, &buffers_, &weighted_picker_, pick_loops_, fanout,
                             options_.replace, task)
          .Run();
      return Status::Ok();
    case Algorithm::kLabor:
      LaborHop<TableType>(topology_, table, &buffers_, labor_loops_,
                          LaborKeysOf(key, hop, options_.labor.dependency_window), fanout, task)
          .Run();
      return Status::Ok();
    case Algorithm::kWalk:
      task->stream = DrawStreamOf(key, hop, Purpose::kWalk);
      WalkHop<TableType>(topology_, table, &buffers_, &walk_buffers_, walk_loops_, fanout, task)
          .Run();
      return Status::Ok();
    case Algorithm::kPlugin:
      task->stream = DrawStreamOf(key, hop, Purpose::kPlugin);
      return PluginHop<TableType>(topology_, table, &buffers_, options_.plugin.get(), hop, fanout,
                                  task)
          .Run();
  }
  return Status(Code::kInternal, "unknown sampling algorithm");
}

uint64_t Sampler::workspace_bytes() const {
  const uint64_t table = std::visit([](const auto& any) { return any.bytes(); }, table_);
  return table + buffers_.bytes() + weighted_picker_.bytes() + walk_buffers_.bytes() +
         locality_buffers_.bytes() + gcn_weights_.bytes();
}

}  // namespace gnnd
