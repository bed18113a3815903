#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <numeric>
#include <random>
#include <vector>

#include "core/feature/hot_order.h"
#include "partition.h"
#include "test/support/halves.h"

namespace gnnd::test {

inline constexpr uint32_t kNodes = 200;
inline constexpr uint32_t kDim = 22;
inline constexpr uint64_t kCached = 60;
inline constexpr uint64_t kTierRows = 110;

// Data of several Trainers: features in either type, an order of hotness, records with ranks.
struct Data {
  explicit Data(uint64_t seed) : partition(kNodes, 4, kDim, seed), order(kNodes), rank(kNodes) {
    halves = RandomHalves(partition.features.size(), seed);
    std::iota(order.begin(), order.end(), 0U);
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    for (uint32_t r = 0; r < kNodes; ++r) rank[order[r]] = r;
  }

  // Batches whose bottom block is aggregated from raw rows, and others.
  void AddSamples(bool weighted) {
    for (uint32_t batch = 0; batch < 2; ++batch) {
      for (const int32_t fanout : {1, -1}) {
        records.emplace_back(
            partition.graph,
            RecordRequest{
                {17, 0, batch}, {batch, 50 + batch, 90, 7 + batch, 120}, {2, fanout}, weighted});
        AddRanked(records.back().view());
      }
    }
  }
  // The same with the nodes' ranks, which go as far as kTierRows.
  void AddRanked(const Sample& sample) {
    std::vector<uint32_t>& ranks = kept.emplace_back();
    for (const uint32_t node : sample.nodes()) {
      ranks.push_back(rank[node] < kTierRows ? rank[node] : kNoRank);
    }
    Sample& ranked = samples.emplace_back(sample.kind(), sample.key());
    ranked.AddNodes(sample.nodes(), sample.num_seeds(), ranks);
    for (uint32_t b = 0; b < sample.num_blocks(); ++b) ranked.AddBlock(sample.block(b));
  }

  TrainOptions Options(ModelType type, bool is_half) const {
    TrainOptions options = partition.Options(type);
    options.hot_order = order;
    options.threads = 2;
    if (is_half) options.features = RowTable(halves, kDim);
    if (IsAttention(type)) {
      options.model.heads = 4;
      options.model.attention_dropout = 0.2F;
    }
    options.model.dropout = 0.4F;
    return options;
  }

  Partition partition;
  std::vector<Half> halves;
  std::vector<uint32_t> order;
  std::vector<uint32_t> rank;
  std::list<TestRecord> records;
  std::list<std::vector<uint32_t>> kept;
  std::list<Sample> samples;
};

}  // namespace gnnd::test
