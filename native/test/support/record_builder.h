#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/batch/record.h"
#include "core/graph/topology_view.h"

// Small graphs and records for tests of what consumes records. It shares no code with the sampler:
// plain containers, its own random picks, GCN weights from the formula.

namespace gnnd::test {

struct TestGraph {
  std::vector<uint64_t> indptr = {0};
  std::vector<uint32_t> indices;

  TopologyView view() const { return {indptr, indices}; }
};

// The graph of `rows[v]` = in-neighbours of v, in that order.
inline TestGraph GraphOf(const std::vector<std::vector<uint32_t>>& rows) {
  TestGraph graph;
  for (const auto& row : rows) {
    graph.indices.insert(graph.indices.end(), row.begin(), row.end());
    graph.indptr.push_back(graph.indices.size());
  }
  return graph;
}

struct RecordRequest {
  BatchKey key{};
  std::vector<uint32_t> seeds;
  std::vector<int32_t> fanouts;  // hop 0 first; -1 = full neighbourhood
  bool gcn_weights = false;
};

// A record in memory of its own.
class TestRecord {
 public:
  TestRecord(const TestGraph& graph, const RecordRequest& request);

  Sample view() const {
    const Result<Sample> opened = OpenRecord(bytes(), /*deep=*/true);
    GNND_CHECK(opened.ok());
    return *opened;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  static constexpr uint64_t kPage = 4096;

  struct Hop {
    std::vector<uint32_t> indptr = {0};
    std::vector<uint32_t> src;
    std::vector<float> weight;
    std::vector<float> self_weight;
  };

  Hop Expand(const TestGraph& graph, const RecordRequest& request, int32_t fanout);
  uint32_t LocalId(uint32_t node) {
    const auto [at, added] = local_.emplace(node, static_cast<uint32_t>(nodes_.size()));
    if (added) nodes_.push_back(node);
    return at->second;
  }

  template <typename T>
  uint64_t Append(const std::vector<T>& section, uint64_t* payload) {
    static_assert(sizeof(T) == 4);
    const uint64_t at = (end_ + kPage - 1) / kPage * kPage;
    end_ = at + section.size() * sizeof(T);
    words_.resize((end_ + kPage) / sizeof(uint64_t));
    if (!section.empty()) {
      std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + at, section.data(),
                  section.size() * sizeof(T));
    }
    *payload += section.size() * sizeof(T);
    return at;
  }

  std::vector<uint64_t> words_;
  uint64_t end_ = kPage;
  std::vector<uint32_t> nodes_;
  std::unordered_map<uint32_t, uint32_t> local_;
  std::mt19937_64 random_;
};

inline TestRecord::Hop TestRecord::Expand(const TestGraph& graph, const RecordRequest& request,
                                          int32_t fanout) {
  const TopologyView topology = graph.view();
  const auto norm = [&](uint32_t v) {
    return 1.0 / std::sqrt(static_cast<double>(topology.degree(v)) + 1.0);
  };
  Hop hop;
  const size_t num_dst = nodes_.size();
  for (size_t d = 0; d < num_dst; ++d) {
    const uint32_t v = nodes_[d];
    std::vector<uint32_t> picks(graph.indices.begin() + static_cast<int64_t>(graph.indptr[v]),
                                graph.indices.begin() + static_cast<int64_t>(graph.indptr[v + 1]));
    const size_t degree = picks.size();
    if (fanout >= 0 && degree > static_cast<size_t>(fanout)) {
      std::shuffle(picks.begin(), picks.end(), random_);
      picks.resize(static_cast<size_t>(fanout));
    }
    for (const uint32_t u : picks) {
      hop.src.push_back(LocalId(u));
      const double scale = static_cast<double>(degree) / static_cast<double>(picks.size());
      if (request.gcn_weights) {
        hop.weight.push_back(static_cast<float>(norm(u) * norm(v) * scale));
      }
    }
    hop.indptr.push_back(static_cast<uint32_t>(hop.src.size()));
    if (request.gcn_weights) hop.self_weight.push_back(static_cast<float>(norm(v) * norm(v)));
  }
  return hop;
}

inline TestRecord::TestRecord(const TestGraph& graph, const RecordRequest& request)
    : random_(request.key.random_seed + request.key.epoch * 1000003ULL + request.key.batch) {
  GNND_CHECK(!request.seeds.empty() && request.fanouts.size() <= kMaxHops);
  for (const uint32_t seed : request.seeds) LocalId(seed);
  GNND_CHECK(nodes_.size() == request.seeds.size());

  RecordTables tables;
  tables.Begin(SampleKind::kBlocks, request.key);
  std::vector<Hop> hops;
  for (uint32_t h = 0; h < request.fanouts.size(); ++h) {
    BlockEntry& block = tables.blocks.emplace_back();
    block.hop = h;
    block.id_bytes = sizeof(uint32_t);
    block.num_dst = static_cast<uint32_t>(nodes_.size());
    hops.push_back(Expand(graph, request, request.fanouts[h]));
    block.num_src = static_cast<uint32_t>(nodes_.size());
    block.num_edges = static_cast<uint32_t>(hops.back().src.size());
  }
  uint64_t payload = 0;
  NodeEntry& list = tables.nodes.emplace_back();
  list.id_bytes = sizeof(uint32_t);
  list.num_nodes = static_cast<uint32_t>(nodes_.size());
  list.num_seeds = static_cast<uint32_t>(request.seeds.size());
  list.nodes_at = Append(nodes_, &payload);
  for (uint32_t h = 0; h < hops.size(); ++h) {
    BlockEntry& block = tables.blocks[h];
    block.indptr_at = Append(hops[h].indptr, &payload);
    block.src_at = Append(hops[h].src, &payload);
    if (!request.gcn_weights) continue;
    block.weight_at = Append(hops[h].weight, &payload);
    block.self_weight_at = Append(hops[h].self_weight, &payload);
  }
  WriteTables(&tables, std::as_writable_bytes(std::span(words_)));
  GNND_CHECK(tables.header.payload_bytes == tables.bytes() + payload);
  GNND_CHECK(tables.header.extent_bytes == end_);
}

}  // namespace gnnd::test
