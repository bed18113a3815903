#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/kernels/optimizer.h"
#include "core/model/manifest.h"
#include "partition.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

using test::Partition;

constexpr uint32_t kNodes = 60;
constexpr uint32_t kColumns = 5;
constexpr uint32_t kClasses = 3;

TrainOptions OptionsOf(const Partition& data, ModelType type) {
  TrainOptions options = data.Options(type);
  options.model.num_layers = 2;
  options.model.out_dim = kClasses;
  if (type == ModelType::kPinSage) options.model.normalization = Normalization::kL2;
  options.eval_place = {-1, 1, ""};
  return options;
}

// Logits of all nodes, as evaluations of whole neighbourhoods compute them.
std::vector<float> LogitsBy(TrainOptions options, std::span<const float> edge_weights) {
  options.edge_weights = edge_weights;
  const Result<ParameterManifest> manifest = ManifestOf(options.model);
  REQUIRE(manifest.ok());
  std::vector<float> parameters(manifest->num_floats);
  InitGlorot(*manifest, 7, 1.0, parameters);
  auto work = TorchWork::Create(options);
  REQUIRE(work.ok());
  std::vector<float> logits;
  const auto append = [&](std::span<const uint32_t> part, const float* rows) {
    logits.insert(logits.end(), rows, rows + part.size() * kClasses);
    return Status::Ok();
  };
  std::vector<uint32_t> nodes(kNodes);
  std::iota(nodes.begin(), nodes.end(), 0);
  REQUIRE((*work)->Predict(parameters, nodes, [] { return true; }, append).ok());
  return logits;
}

TEST_CASE("a weighted mean has no unit: any that float32 holds gives the same logits") {
  const Partition data(kNodes, kClasses, kColumns, 3);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<float> draw(0.5F, 1.5F);
  std::vector<float> weights(data.graph.view().num_edges());
  for (float& weight : weights) weight = draw(random);
  // Rows without any weight, and some without one.
  for (size_t e = 0; e < weights.size(); e += 4) weights[e] = 0.0F;
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kPinSage}) {
    const TrainOptions options = OptionsOf(data, type);
    const std::vector<float> expected = LogitsBy(options, weights);
    const auto apart = [&](double unit) {
      std::vector<float> scaled;
      for (const float weight : weights) {
        scaled.push_back(static_cast<float>(double{weight} * unit));
      }
      const std::vector<float> logits = LogitsBy(options, scaled);
      double most = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        most = std::max(most, std::abs(double{logits[i]} - double{expected[i]}));
      }
      return most;
    };
    // Exact in float32: the same bits.
    for (const double unit : {0x1p-100, 0x1p-1, 0x1p3, 0x1p110}) CHECK(apart(unit) == 0);
    // Rounded, and below the normal numbers with fewer digits.
    for (const double unit : {1e-30, 1e-38, 0.3, 1e30, 2e38}) CHECK(apart(unit) < 1e-4);
    CHECK(apart(1e-42) < 1e-2);
  }
}

}  // namespace
}  // namespace gnnd
