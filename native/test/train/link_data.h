#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "test/support/record_builder.h"
#include "train/input/link_use.h"
#include "train/input/train_options.h"

namespace gnnd::test {

// Nodes in equal groups, linked mostly inside their group; some links are kept for validation and
// test, and the others are the graph. Features are noise with a hint of the group.
struct LinkData {
  explicit LinkData(uint32_t nodes, uint32_t dim, bool symmetric, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<std::vector<uint32_t>> rows(nodes);
    for (uint32_t v = 0; v < nodes; ++v) {
      for (uint32_t k = 0; k < 6; ++k) {
        auto u = static_cast<uint32_t>(random() % nodes);
        if (random() % 10 != 0) u = u / 8 * 8 + v % 8;
        if (u >= nodes || u == v) continue;
        const uint32_t source = symmetric ? std::min(u, v) : u;
        const uint32_t destination = symmetric ? std::max(u, v) : v;
        auto& to = k == 0 ? validation : k == 1 ? test : train;
        to.insert(to.end(), {source, destination});
        if (k < 2) continue;
        rows[destination].push_back(source);
        if (symmetric) rows[source].push_back(destination);
      }
      for (uint32_t c = 0; c < dim; ++c) {
        features.push_back(normal(random) + (c == v % 8 ? 1.5F : 0.0F));
      }
    }
    for (auto& row : rows) {
      std::ranges::sort(row);
      row.erase(std::unique(row.begin(), row.end()), row.end());
    }
    graph = GraphOf(rows);
    use.symmetric = symmetric;
    use.sets[0].ends = validation;
    use.sets[1].ends = this->test;
  }
  LinkData(const LinkData&) = delete;
  LinkData& operator=(const LinkData&) = delete;

  // Borrows this.
  TrainOptions Options(ModelType type, LinkHead head) const {
    TrainOptions options;
    options.model.type = type;
    options.model.in_dim = static_cast<uint32_t>(features.size() / graph.view().num_nodes());
    options.model.hidden_dim = 16;
    options.model.out_dim = 16;
    options.model.head = head;
    options.random_seed = 17;
    options.optimizer.learning_rate = 0.01;
    options.features = RowTable(features, options.model.in_dim);
    options.topology = graph.view();
    options.links = &use;
    return options;
  }

  uint32_t num_nodes() const { return graph.view().num_nodes(); }

  TestGraph graph;
  std::vector<float> features;
  std::vector<uint32_t> train;  // [links, 2]
  std::vector<uint32_t> validation;
  std::vector<uint32_t> test;
  LinkUse use;
};

// A batch of training links with negatives, as a Sampler would leave it.
class LinkBatch {
 public:
  // `per_pair` negatives of each link; 0: the batch's destinations.
  LinkBatch(const LinkData& data, const BatchKey& key, uint32_t links, uint32_t per_pair,
            std::vector<int32_t> fanouts, bool gcn_weights) {
    std::mt19937_64 random(key.epoch * 7919ULL + key.batch);
    std::vector<uint32_t> seeds;
    std::unordered_map<uint32_t, uint32_t> places;
    const auto place_of = [&](uint32_t node) {
      const auto [at, added] = places.emplace(node, static_cast<uint32_t>(seeds.size()));
      if (added) seeds.push_back(node);
      return at->second;
    };
    for (uint32_t i = 0; i < links; ++i) {
      const auto item = static_cast<uint32_t>(random() % (data.train.size() / 2));
      items_.push_back(item);
      sources_.push_back(place_of(data.train[2 * item]));
      destinations_.push_back(place_of(data.train[2 * item + 1]));
    }
    for (uint32_t i = 0; i < links * per_pair; ++i) {
      negatives_.push_back(place_of(static_cast<uint32_t>(random() % data.num_nodes())));
    }
    in_batch_ = per_pair == 0;
    per_pair_ = in_batch_ ? links : per_pair;
    for (uint32_t i = 0; i < links * per_pair_; ++i) {
      if (random() % 9 == 0) masked_.push_back(i);
    }
    records_.emplace_back(data.graph, RecordRequest{key, seeds, std::move(fanouts), gcn_weights});
  }

  Sample view() const {
    Sample sample = records_.front().view();
    PairsView pairs;
    pairs.source = sources_;
    pairs.destination = destinations_;
    pairs.negatives = in_batch_ ? destinations_ : negatives_;
    pairs.items = items_;
    pairs.masked = masked_;
    pairs.per_pair = per_pair_;
    pairs.in_batch = in_batch_;
    sample.SetPairs(pairs);
    return sample;
  }

 private:
  std::vector<uint32_t> items_;
  std::vector<uint32_t> sources_;
  std::vector<uint32_t> destinations_;
  std::vector<uint32_t> negatives_;
  std::vector<uint32_t> masked_;
  uint32_t per_pair_ = 0;
  bool in_batch_ = false;
  std::vector<TestRecord> records_;
};

}  // namespace gnnd::test
