#include "test/support/reference.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/batch/layout.h"
#include "core/draw/locality.h"
#include "core/draw/philox.h"

namespace gnnd {
namespace {

// One row that is drawn.
struct Row {
  const TopologyView& topology;
  const SamplerOptions& options;
  BatchKey key;
  uint32_t hop;
  uint32_t node;
  uint32_t scale;
  const ReferenceSkips& skips;
  uint32_t relation = 0;

  PhiloxKey philox_key() const { return RelationKey(KeyOf(key.random_seed), relation); }
  // Whether the row does without the neighbour at a position when it is drawn.
  bool lacks(uint64_t position) const {
    return !skips.after && skips.edges.contains({node, neighbour(position)});
  }
  uint64_t degree() const { return topology.degree(node); }
  uint32_t neighbour(uint64_t position) const {
    return topology.indices[topology.indptr[node] + position];
  }
};

// A neighbour of a row and the weight of the edge to it.
struct Neighbour {
  uint32_t node;
  float weight;
};

// Word k of a stream of the row.
uint32_t WordOf(const Row& row, Purpose purpose, uint32_t k) {
  const PhiloxCounter counter =
      CounterOf(purpose, row.key.epoch, row.key.batch, row.hop, row.node, k / 4);
  return Philox(row.philox_key(), counter).word[k % 4];
}

// High half of a 64 x 64-bit product, by halves.
uint64_t HighHalf(uint64_t a, uint64_t b) {
  const uint64_t a_lo = a & 0xFFFFFFFF;
  const uint64_t a_hi = a >> 32;
  const uint64_t b_lo = b & 0xFFFFFFFF;
  const uint64_t b_hi = b >> 32;
  const uint64_t middle = a_hi * b_lo + ((a_lo * b_lo) >> 32);
  const uint64_t carry = ((middle & 0xFFFFFFFF) + a_lo * b_hi) >> 32;
  return a_hi * b_hi + (middle >> 32) + carry;
}

// Words `at` and at + 1 as a draw in [0, bound).
uint64_t WideDraw(const Row& row, Purpose purpose, uint32_t at, uint64_t bound) {
  const uint64_t low = WordOf(row, purpose, at);
  const uint64_t high = WordOf(row, purpose, at + 1);
  return HighHalf(high << 32 | low, bound);
}

constexpr uint64_t kTwoWords = 1'048'576;

// Uniform draw j of a row: in [0, bound).
uint64_t UniformDraw(const Row& row, uint32_t j, uint64_t bound,
                     Purpose purpose = Purpose::kSample) {
  if (row.degree() >= kTwoWords) return WideDraw(row, purpose, 2 * j, bound);
  return (WordOf(row, purpose, j) * bound) >> 32;
}

std::vector<uint64_t> WholeRow(const Row& row) {
  std::vector<uint64_t> picks;
  for (uint64_t position = 0; position < row.degree(); ++position) picks.push_back(position);
  return picks;
}

// The positions that a row draws uniformly, in order (Floyd).
std::vector<uint64_t> PickUniform(const Row& row, uint32_t fanout) {
  std::vector<uint64_t> picks;
  const uint64_t degree = row.degree();
  if (row.options.replace) {
    for (uint32_t j = 0; j < fanout && degree > 0; ++j) {
      picks.push_back(UniformDraw(row, j, degree));
    }
    return picks;
  }
  if (degree <= fanout) return WholeRow(row);
  for (uint32_t j = 0; j < fanout; ++j) {
    const uint64_t largest = degree - fanout + j;
    const uint64_t t = UniformDraw(row, j, largest + 1);
    const bool taken = std::find(picks.begin(), picks.end(), t) != picks.end();
    picks.push_back(taken ? largest : t);
  }
  return picks;
}

// Draw j by the row's alias table: a position.
uint64_t AliasDraw(const Row& row, uint32_t j) {
  const auto table = row.topology.alias.subspan(row.topology.indptr[row.node], row.degree());
  uint64_t slot = 0;
  uint32_t word = 0;
  if (row.degree() < kTwoWords) {
    slot = (WordOf(row, Purpose::kWeighted, 2 * j) * row.degree()) >> 32;
    word = WordOf(row, Purpose::kWeighted, 2 * j + 1);
  } else {
    slot = WideDraw(row, Purpose::kWeighted, 4 * j, row.degree());
    word = WordOf(row, Purpose::kWeighted, 4 * j + 2);
  }
  return word < table[slot].threshold ? slot : table[slot].alias;
}

// The mass of each position in the table, in units of 2^-32 slots; 0 for a row without weight, and
// for neighbours that the row does without.
std::vector<uint64_t> MassOf(const Row& row) {
  const auto table = row.topology.alias.subspan(row.topology.indptr[row.node], row.degree());
  std::vector<uint64_t> mass(table.size(), 0);
  for (uint64_t slot = 0; slot < table.size(); ++slot) {
    if (table[slot].threshold == 0 && table[slot].alias == slot) continue;
    const uint64_t own = table[slot].alias == slot ? 4'294'967'296 : table[slot].threshold;
    mass[slot] += own;
    mass[table[slot].alias] += 4'294'967'296 - own;
  }
  for (uint64_t position = 0; position < mass.size(); ++position) {
    if (row.lacks(position)) mass[position] = 0;
  }
  return mass;
}

// The positions that a row draws by weight, in order.
std::vector<uint64_t> PickWeighted(const Row& row, uint32_t fanout) {
  std::vector<uint64_t> mass = MassOf(row);
  uint64_t left = 0;
  for (const uint64_t units : mass) left += units;
  std::vector<uint64_t> picks;
  if (left == 0) return picks;
  uint64_t there = 0;
  for (uint64_t position = 0; position < row.degree(); ++position) there += !row.lacks(position);
  if (row.options.replace && there == row.degree()) {
    for (uint32_t j = 0; j < fanout; ++j) picks.push_back(AliasDraw(row, j));
    return picks;
  }
  if (there <= fanout && !row.options.replace) {
    for (uint64_t position = 0; position < row.degree(); ++position) {
      if (mass[position] > 0) picks.push_back(position);
    }
    return picks;
  }
  const auto take = [&](uint64_t position) {
    picks.push_back(position);
    if (row.options.replace) return;
    left -= mass[position];
    mass[position] = 0;
  };
  const uint32_t draws = 5 * ((3 * fanout + 1) / 2);
  for (uint32_t j = 0; j < draws && picks.size() < fanout; ++j) {
    const uint64_t position = AliasDraw(row, j);
    if (mass[position] > 0) take(position);
  }
  for (uint32_t m = 0; picks.size() < fanout && left > 0; ++m) {
    uint64_t target = WideDraw(row, Purpose::kWeighted, 4 * 32768 + 2 * m, left);
    uint64_t position = 0;
    while (target >= mass[position]) target -= mass[position++];
    take(position);
  }
  return picks;
}

std::vector<Neighbour> NeighboursAt(const Row& row, const std::vector<uint64_t>& positions) {
  std::vector<Neighbour> neighbours;
  for (const uint64_t position : positions) neighbours.push_back({row.neighbour(position), 1});
  return neighbours;
}

// r_t of a node.
uint32_t LaborNumberOf(const Row& row, uint32_t node) {
  const auto words = [&row](uint32_t batch, uint32_t block) {
    return Philox(row.philox_key(),
                  CounterOf(Purpose::kLabor, row.key.epoch, batch, row.hop, 0, block));
  };
  uint32_t window = row.key.batch / row.options.labor.dependency_window;
  const uint64_t age = row.key.batch - window * row.options.labor.dependency_window;
  const uint32_t switch_at = (node ^ words(0, 1).word[0]) * 0x9E3779B1;
  if (switch_at < (age << 32) / row.options.labor.dependency_window) ++window;
  const PhiloxWords key = words(window, 0);
  uint32_t x = node ^ key.word[0];
  x ^= x >> 16;
  x *= 0x7FEB352D;
  x ^= x >> 15;
  x += key.word[1];
  x *= 0x846CA68B;
  x ^= x >> 16;
  x *= 0x9E3779B1;
  x ^= x >> 15;
  return x;
}

std::vector<Neighbour> TakeByLabor(const Row& row, uint64_t fanout) {
  std::vector<Neighbour> neighbours;
  const uint64_t degree = row.degree();
  for (uint64_t position = 0; position < degree; ++position) {
    const uint32_t node = row.neighbour(position);
    if (degree <= fanout) {
      neighbours.push_back({node, 1});
    } else if (LaborNumberOf(row, node) < (fanout << 32) / degree &&
               neighbours.size() < 4 * fanout + 64) {
      const double inverse = static_cast<double>(degree) / static_cast<double>(fanout);
      neighbours.push_back({node, static_cast<float>(inverse)});
    }
  }
  return neighbours;
}

std::vector<Neighbour> WalkFrom(const Row& row, uint32_t fanout) {
  const WalkOptions& walk = row.options.walk;
  std::vector<Neighbour> visited;  // in order of first visit
  for (uint32_t w = 0; w < walk.walks; ++w) {
    uint32_t at = row.node;
    for (uint32_t s = 0; s < walk.length && row.topology.degree(at) > 0; ++s) {
      const uint32_t word = 4 * (w * walk.length + s);
      const uint64_t position = WideDraw(row, Purpose::kWalk, word, row.topology.degree(at));
      at = row.topology.indices[row.topology.indptr[at] + position];
      const auto known = std::find_if(visited.begin(), visited.end(),
                                      [at](const Neighbour& other) { return other.node == at; });
      if (known == visited.end()) {
        visited.push_back({at, 1});
      } else {
        known->weight += 1;
      }
      if (WordOf(row, Purpose::kWalk, word + 2) < std::floor(walk.restart_prob * 4294967296.0)) {
        break;
      }
    }
  }
  std::stable_sort(visited.begin(), visited.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.weight > b.weight; });
  if (visited.size() > fanout) visited.resize(fanout);
  return visited;
}

// Floyd's picks of some of `among`, by the draws of the row from `first` on.
std::vector<uint64_t> PickAmong(const Row& row, const std::vector<uint64_t>& among, size_t count,
                                uint32_t first) {
  std::vector<uint64_t> picks;
  for (uint32_t j = 0; j < count; ++j) {
    const uint64_t largest = among.size() - count + j;
    const uint64_t t = among[UniformDraw(row, first + j, largest + 1, Purpose::kLocality)];
    const bool taken = std::find(picks.begin(), picks.end(), t) != picks.end();
    picks.push_back(taken ? among[largest] : t);
  }
  return picks;
}

// Some neighbours are favoured: 1 / q of each pick, or its share in the mean.
std::vector<Neighbour> TakeFavoured(const Row& row, uint32_t fanout) {
  const bool shares = row.options.weights == EdgeWeights::kShares;
  const double whole = shares ? static_cast<double>(row.degree()) : 1.0;
  std::vector<Neighbour> neighbours;
  if (row.degree() <= fanout) {
    for (const uint64_t position : WholeRow(row)) {
      neighbours.push_back({row.neighbour(position), static_cast<float>(1.0 / whole)});
    }
    return neighbours;
  }
  std::vector<uint64_t> favoured;
  std::vector<uint64_t> others;
  for (const uint64_t position : WholeRow(row)) {
    const bool is_favoured = (row.topology.favoured[row.neighbour(position)] >> row.hop & 1) != 0;
    (is_favoured ? favoured : others).push_back(position);
  }
  const LocalityRow rule{row.degree(), favoured.size(), fanout, row.scale};
  const uint32_t near = FavouredPicks(rule, WordOf(row, Purpose::kLocality, 0));
  for (const uint64_t position : PickAmong(row, favoured, near, 1)) {
    const auto weight = static_cast<float>(FavouredWeight(rule) / whole);
    neighbours.push_back({row.neighbour(position), weight});
  }
  for (const uint64_t position : PickAmong(row, others, fanout - near, 1 + near)) {
    const auto weight = static_cast<float>(OtherWeight(rule) / whole);
    neighbours.push_back({row.neighbour(position), weight});
  }
  return neighbours;
}

std::vector<Neighbour> NeighboursOf(const Row& row) {
  const int32_t fanout = row.options.fanouts[row.hop];
  const bool by_weight = row.options.algorithm == Algorithm::kWeighted;
  if (fanout == kFullNeighbourhood && by_weight) {
    std::vector<Neighbour> neighbours;
    const std::vector<uint64_t> mass = MassOf(row);
    for (uint64_t position = 0; position < mass.size(); ++position) {
      if (mass[position] > 0) neighbours.push_back({row.neighbour(position), 1});
    }
    return neighbours;
  }
  if (fanout == kFullNeighbourhood) return NeighboursAt(row, WholeRow(row));
  if (fanout == 0) return {};
  const auto f = static_cast<uint32_t>(fanout);
  if (row.options.algorithm == Algorithm::kWalk) return WalkFrom(row, f);
  if (row.options.algorithm == Algorithm::kLabor) return TakeByLabor(row, f);
  if (row.scale > kScaleOne) return TakeFavoured(row, f);
  return NeighboursAt(row, by_weight ? PickWeighted(row, f) : PickUniform(row, f));
}

// With `unequal` draws, weights hold 1 / q on entry.
void FillGcnWeights(const TopologyView& topology, const std::vector<uint32_t>& nodes, bool unequal,
                    ReferenceBlock* block) {
  const auto degree = [&](uint32_t local) {
    return static_cast<double>(topology.degree(nodes[local]));
  };
  const auto inv = [&](uint32_t local) { return 1.0 / std::sqrt(degree(local) + 1.0); };
  for (uint32_t v = 0; v + 1 < block->indptr.size(); ++v) {
    const uint32_t taken = block->indptr[v + 1] - block->indptr[v];
    for (uint32_t e = block->indptr[v]; e < block->indptr[v + 1]; ++e) {
      const double scale =
          unequal ? static_cast<double>(block->weight[e]) : degree(v) / static_cast<double>(taken);
      block->weight[e] = static_cast<float>(inv(block->src[e]) * (inv(v) * scale));
    }
    block->self_weight.push_back(static_cast<float>(1.0 / (degree(v) + 1.0)));
  }
}

// The graph without some edges.
class Rest {
 public:
  Rest(const TopologyView& topology, const ReferenceSkips& skips) : view_(topology) {
    if (skips.edges.empty()) return;
    for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
      for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
        if (!skips.edges.contains({v, topology.indices[e]}))
          indices_.push_back(topology.indices[e]);
      }
      indptr_.push_back(indices_.size());
    }
    view_.indptr = indptr_;
    view_.indices = indices_;
  }
  const TopologyView& view() const { return view_; }

 private:
  std::vector<uint64_t> indptr_{0};
  std::vector<uint32_t> indices_;
  TopologyView view_;
};

// Rows from `first` on, whose neighbours were drawn alike or are all taken.
void FillEqualShares(size_t first, ReferenceBlock* block) {
  for (size_t v = first; v + 1 < block->indptr.size(); ++v) {
    const uint32_t taken = block->indptr[v + 1] - block->indptr[v];
    for (uint32_t e = block->indptr[v]; e < block->indptr[v + 1]; ++e) {
      block->weight[e] = static_cast<float>(1.0 / taken);
    }
  }
}

}  // namespace

ReferenceSample SampleReference(const TopologyView& topology, const SamplerOptions& options,
                                const BatchKey& key, std::span<const uint32_t> seeds,
                                uint32_t scale, const ReferenceSkips& skips) {
  const Rest rest(topology, skips);
  // Draws by weight need the whole rows' tables.
  const bool whole = skips.after || options.algorithm == Algorithm::kWeighted;
  const TopologyView& drawn = whole ? topology : rest.view();
  ReferenceSample sample;
  std::unordered_map<uint32_t, uint32_t> local_ids;
  const auto local_id = [&](uint32_t node) {
    const auto [entry, is_new] =
        local_ids.try_emplace(node, static_cast<uint32_t>(sample.nodes.size()));
    if (is_new) sample.nodes.push_back(node);
    return entry->second;
  };
  for (const uint32_t seed : seeds) local_id(seed);

  ReferenceBlock block;
  for (uint32_t hop = 0; hop < options.fanouts.size(); ++hop) {
    if (hop == 0 || options.expansion == Expansion::kAll) block = ReferenceBlock{{0}, {}, {}, {}};
    const size_t num_dst = sample.nodes.size();
    const size_t first = block.indptr.size() - 1;
    for (size_t v = first; v < num_dst; ++v) {
      for (const auto& [node, weight] :
           NeighboursOf({drawn, options, key, hop, sample.nodes[v], scale, skips})) {
        if (skips.after && skips.edges.contains({sample.nodes[v], node})) continue;
        block.src.push_back(local_id(node));
        if (options.weights != EdgeWeights::kNone) block.weight.push_back(weight);
      }
      block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
    }
    const bool unequal = scale > kScaleOne && options.fanouts[hop] != kFullNeighbourhood;
    if (options.weights == EdgeWeights::kShares && !unequal) FillEqualShares(first, &block);
    sample.blocks.push_back(block);
    if (options.weights == EdgeWeights::kGcn) {
      // For whole rows 1 / q is 1.
      FillGcnWeights(rest.view(), sample.nodes, scale > kScaleOne, &sample.blocks.back());
    }
  }
  return sample;
}

TypedReferenceSample TypedReference(const GraphView& graph, const SamplerOptions& options,
                                    const BatchKey& key, std::span<const uint32_t> seeds,
                                    uint32_t seed_type) {
  const ReferenceSkips none;
  // The options as they are along each relation.
  std::vector<SamplerOptions> along(graph.relations.size(), options);
  for (size_t r = 0; r < options.relation_fanouts.size(); ++r) {
    along[r].fanouts = options.relation_fanouts[r];
  }
  TypedReferenceSample sample;
  sample.nodes.resize(graph.num_nodes.size());
  const auto local_id = [&sample](uint32_t type, uint32_t node) {
    std::vector<uint32_t>& nodes = sample.nodes[type];
    const auto known = std::find(nodes.begin(), nodes.end(), node);
    const auto at = static_cast<uint32_t>(known - nodes.begin());
    if (known == nodes.end()) nodes.push_back(node);
    return at;
  };
  for (const uint32_t seed : seeds) local_id(seed_type, seed);

  // The types of which a batch may have nodes, whether this one has or not.
  std::vector<bool> reached(graph.num_nodes.size());
  reached[seed_type] = true;
  std::vector<bool> found = reached;  // by the hop before
  std::vector<ReferenceBlock> blocks(graph.relations.size(), ReferenceBlock{{0}, {}, {}, {}});
  for (uint32_t hop = 0; hop < options.fanouts.size(); ++hop) {
    const std::vector<bool> expanded = reached;
    const std::vector<bool> drawn = options.expansion == Expansion::kNew ? found : reached;
    found.assign(found.size(), false);
    std::vector<size_t> num_dst;
    for (const auto& nodes : sample.nodes) num_dst.push_back(nodes.size());
    for (uint32_t r = 0; r < graph.relations.size(); ++r) {
      const auto& [src_type, dst_type, rows] = graph.relations[r];
      if (!expanded[dst_type]) continue;
      if (drawn[dst_type] && rows.num_edges() > 0 && along[r].fanouts[hop] != 0) {
        reached[src_type] = found[src_type] = true;
      }
      ReferenceBlock& block = blocks[r];
      if (options.expansion == Expansion::kAll) block = {{0}, {}, {}, {}};
      for (size_t v = block.indptr.size() - 1; v < num_dst[dst_type]; ++v) {
        const uint32_t row = sample.nodes[dst_type][v];
        for (const auto& [node, weight] :
             NeighboursOf({rows, along[r], key, hop, row, kScaleOne, none, r})) {
          block.src.push_back(local_id(src_type, node));
          if (options.weights != EdgeWeights::kNone) block.weight.push_back(weight);
        }
        block.indptr.push_back(static_cast<uint32_t>(block.src.size()));
      }
      sample.blocks.push_back({hop, r, block});
    }
  }
  return sample;
}

}  // namespace gnnd
