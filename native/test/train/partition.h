#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "test/support/record_builder.h"
#include "train/work/torch_work.h"

namespace gnnd::test {

// Nodes in equal groups; edges (both directions) mostly inside a group; features are noise with a
// faint hint of the group, so that the graph is needed.
struct Partition {
  explicit Partition(uint32_t nodes, uint32_t groups, uint32_t dim, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    std::vector<std::vector<uint32_t>> rows(nodes);
    for (uint32_t v = 0; v < nodes; ++v) {
      for (uint32_t k = 0; k < 4; ++k) {
        const bool inside = random() % 10 != 0;
        auto u = static_cast<uint32_t>(random() % nodes);
        if (inside) u = u / groups * groups + v % groups;
        if (u >= nodes || u == v) continue;
        rows[v].push_back(u);
        rows[u].push_back(v);
      }
      labels.push_back(static_cast<int32_t>(v % groups));
      for (uint32_t c = 0; c < dim; ++c) {
        features.push_back(normal(random) + (c == v % groups ? 1.0F : 0.0F));
      }
    }
    graph = GraphOf(rows);
    for (uint32_t v = 0; v < nodes; ++v) {
      if (v % 5 == 3) val.push_back(v);
      if (v % 5 == 4 || v % 50 == 3) test.push_back(v);
      if (v % 5 < 3) train.push_back(v);
    }
  }

  TrainOptions Options(ModelType type) const {
    TrainOptions options;
    options.model.type = type;
    options.model.in_dim = static_cast<uint32_t>(features.size() / labels.size());
    options.model.hidden_dim = 16;
    options.model.out_dim = 4;
    options.random_seed = 17;
    options.optimizer.learning_rate = 0.01;
    options.features = RowTable(features, options.model.in_dim);
    options.targets.labels = labels;
    options.topology = graph.view();
    options.val_nodes = val;
    options.test_nodes = test;
    return options;
  }

  TestGraph graph;
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<int64_t> val;
  std::vector<int64_t> test;
  std::vector<uint32_t> train;
};

// Logits of the four groups, of ascending nodes with full neighbourhoods.
inline std::vector<float> LogitsOf(TorchWork& work, std::span<const float> parameters,
                                   const std::vector<uint32_t>& nodes) {
  std::vector<float> logits;
  const auto append = [&](std::span<const uint32_t> part, const float* values) {
    logits.insert(logits.end(), values, values + part.size() * 4);
    return Status::Ok();
  };
  REQUIRE(work.Predict(parameters, nodes, [] { return true; }, append).ok());
  REQUIRE(logits.size() == nodes.size() * 4);
  return logits;
}

}  // namespace gnnd::test
