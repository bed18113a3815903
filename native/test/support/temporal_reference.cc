#include "test/support/temporal_reference.h"

#include <algorithm>
#include <utility>

#include "core/draw/philox.h"

namespace gnnd {
namespace {

// A row of a tree that is drawn: the edges that its seed sees, in the order of time.
struct SeenRow {
  BatchKey key;
  uint32_t hop;
  uint32_t relation;
  uint32_t tree;
  uint32_t node;
  std::vector<uint32_t> neighbours;

  // Word k of the row's stream, which has the tree's key.
  uint32_t Word(uint32_t k) const {
    const PhiloxKey relation_key = RelationKey(KeyOf(key.random_seed), relation);
    const PhiloxWords tree_key = Philox(relation_key, {{tree, 0, 0, 242U << 24}});
    const PhiloxCounter counter =
        CounterOf(Purpose::kSample, key.epoch, key.batch, hop, node, k / 4);
    return Philox({tree_key.word[0], tree_key.word[1]}, counter).word[k % 4];
  }

  // Draw j, below `bound`.
  uint64_t Draw(uint32_t j, uint64_t bound) const {
    if (neighbours.size() < 1'048'576) return (Word(j) * bound) >> 32;
    const uint64_t low = Word(2 * j);
    const uint64_t high = Word(2 * j + 1);
    // The bound has fewer than 32 bits.
    return (high * bound + ((low * bound) >> 32)) >> 32;
  }
};

bool Sees(int64_t seed_time, int64_t time, const TimeOptions& options) {
  const bool before = options.compare == TimeCompare::kBefore;
  if (before ? time >= seed_time : time > seed_time) return false;
  if (options.window == 0) return true;
  // Not negative, and at most 2^64 - 1.
  const uint64_t age = static_cast<uint64_t>(seed_time) - static_cast<uint64_t>(time);
  return before ? age <= options.window : age < options.window;
}

std::vector<uint32_t> SeenOf(const TimedEdges& edges, const TimeOptions& options, uint32_t relation,
                             uint32_t node, int64_t seed_time) {
  const test::Graph& rows = edges.graph.relations[relation].rows;
  const std::vector<int64_t>& times = edges.times[relation];
  std::vector<std::pair<int64_t, uint32_t>> seen;
  for (uint64_t e = rows.indptr[node]; e < rows.indptr[node + 1]; ++e) {
    if (times.empty()) {
      seen.emplace_back(0, rows.indices[e]);
    } else if (Sees(seed_time, times[e], options)) {
      seen.emplace_back(times[e], rows.indices[e]);
    }
  }
  if (!times.empty()) std::sort(seen.begin(), seen.end());
  std::vector<uint32_t> neighbours;
  for (const auto& [time, neighbour] : seen) neighbours.push_back(neighbour);
  return neighbours;
}

std::vector<uint32_t> Taken(const SeenRow& row, int32_t fanout, bool replace, TimePick pick) {
  const std::vector<uint32_t>& all = row.neighbours;
  const auto f = static_cast<size_t>(fanout);
  std::vector<uint32_t> taken;
  if (replace && fanout != kFullNeighbourhood) {
    for (uint32_t j = 0; j < f && !all.empty(); ++j) taken.push_back(all[row.Draw(j, all.size())]);
    return taken;
  }
  if (fanout == kFullNeighbourhood || all.size() <= f) return all;
  if (pick == TimePick::kRecent) return {all.end() - fanout, all.end()};
  std::vector<uint64_t> picks;
  for (uint32_t j = 0; j < f; ++j) {
    const uint64_t largest = all.size() - f + j;
    const uint64_t t = row.Draw(j, largest + 1);
    const bool again = std::find(picks.begin(), picks.end(), t) != picks.end();
    picks.push_back(again ? largest : t);
    taken.push_back(all[picks.back()]);
  }
  return taken;
}

// The nodes of one type, with their trees.
struct TreeNodes {
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> trees;

  uint32_t Add(uint32_t tree, uint32_t node) {
    nodes.push_back(node);
    trees.push_back(tree);
    return static_cast<uint32_t>(nodes.size() - 1);
  }
  uint32_t FindOrAdd(uint32_t tree, uint32_t node) {
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      if (trees[i] == tree && nodes[i] == node) return i;
    }
    return Add(tree, node);
  }
};

}  // namespace

TypedReferenceSample TemporalReference(const TimedEdges& edges, const SamplerOptions& options,
                                       const TimeOptions& times, const BatchKey& key,
                                       std::span<const TimedSeed> seeds) {
  const auto& relations = edges.graph.relations;
  std::vector<TreeNodes> found(edges.graph.num_nodes.size());
  std::vector<bool> reached(found.size());
  for (uint32_t tree = 0; tree < seeds.size(); ++tree) {
    found[seeds[tree].type].Add(tree, seeds[tree].node);
    reached[seeds[tree].type] = true;
  }
  TypedReferenceSample sample;
  std::vector<ReferenceBlock> blocks(relations.size(), ReferenceBlock{{0}, {}, {}, {}});
  for (uint32_t hop = 0; hop < options.fanouts.size(); ++hop) {
    const std::vector<bool> expanded = reached;
    std::vector<size_t> num_dst;
    for (const TreeNodes& of_type : found) num_dst.push_back(of_type.nodes.size());
    for (uint32_t r = 0; r < relations.size(); ++r) {
      const auto& [src_type, dst_type, rows] = relations[r];
      if (!expanded[dst_type]) continue;
      reached[src_type] = reached[src_type] || !rows.indices.empty();
      ReferenceBlock& block = blocks[r];
      if (options.expansion == Expansion::kAll) block = {{0}, {}, {}, {}};
      for (size_t v = block.indptr.size() - 1; v < num_dst[dst_type]; ++v) {
        const uint32_t tree = found[dst_type].trees[v];
        const uint32_t node = found[dst_type].nodes[v];
        const SeenRow row{key, hop, r, tree, node, SeenOf(edges, times, r, node, seeds[tree].time)};
        for (const uint32_t neighbour :
             Taken(row, options.fanouts[hop], options.replace, times.pick)) {
          block.src.push_back(found[src_type].FindOrAdd(tree, neighbour));
        }
        block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
      }
      sample.blocks.push_back({hop, r, block});
    }
  }
  for (const TreeNodes& of_type : found) sample.nodes.push_back(of_type.nodes);
  return sample;
}

}  // namespace gnnd
