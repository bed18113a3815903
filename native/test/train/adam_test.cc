#include "train/adam.h"

#include <ATen/ops/from_blob.h>
#include <doctest/doctest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gnnd {
namespace {

ParameterManifest SmallManifest() {
  ModelSpec spec;
  spec.type = ModelType::kGraphSage;
  spec.num_layers = 2;
  spec.in_dim = 9;
  spec.hidden_dim = 5;
  spec.out_dim = 3;
  return *ManifestOf(spec);
}

std::vector<float> RandomVector(const ParameterManifest& manifest, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(manifest.num_floats, 0.0F);
  for (const ParameterTensor& tensor : manifest.tensors) {
    for (uint64_t i = 0; i < tensor.size(); ++i) values[tensor.offset + i] = normal(random);
  }
  return values;
}

// Twenty steps of ours and of torch's optimizer on the same mean gradients.
void CompareWithTorch(const AdamOptions& options) {
  const ParameterManifest manifest = SmallManifest();
  std::vector<float> parameters = RandomVector(manifest, 1);
  std::vector<float> memory(AdamFloats(manifest), 0.0F);
  std::vector<at::Tensor> tensors;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const ParameterTensor& t : manifest.tensors) {
    tensors.push_back(
        at::from_blob(parameters.data() + t.offset, {static_cast<int64_t>(t.size())}, at::kFloat)
            .clone()
            .requires_grad_(true));
    auto mine = std::make_unique<torch::optim::AdamOptions>(options.learning_rate);
    mine->betas({options.beta1, options.beta2}).eps(options.epsilon);
    const bool decays = !options.weight_decay_first_layer_only || t.layer == 0;
    mine->weight_decay(decays ? options.weight_decay : 0.0);
    groups.emplace_back(std::vector<at::Tensor>{tensors.back()}, std::move(mine));
  }
  torch::optim::Adam reference(groups, torch::optim::AdamOptions(options.learning_rate));

  for (uint64_t step = 1; step <= 20; ++step) {
    const std::vector<float> first = RandomVector(manifest, 100 + step);
    const std::vector<float> second = RandomVector(manifest, 200 + step);
    const std::span<const float> gradients[] = {first, second};
    std::vector<float> next(parameters.size(), -1.0F);
    std::vector<float> next_memory(memory.size(), -1.0F);
    RunAdam(manifest, options, {gradients, 8, step, parameters, memory, next, next_memory});
    parameters = next;
    memory = next_memory;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const uint64_t offset = manifest.tensors[i].offset;
      at::Tensor mean = at::empty_like(tensors[i]).detach();
      for (int64_t k = 0; k < mean.numel(); ++k) {
        const auto at = offset + static_cast<uint64_t>(k);
        mean.data_ptr<float>()[k] = (first[at] + second[at]) / 8.0F;
      }
      tensors[i].mutable_grad() = mean;
    }
    reference.step();
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (int64_t k = 0; k < tensors[i].numel(); ++k) {
      const float mine = parameters[manifest.tensors[i].offset + static_cast<uint64_t>(k)];
      const float theirs = tensors[i].const_data_ptr<float>()[k];
      REQUIRE(mine == doctest::Approx(theirs).epsilon(1e-5));
    }
  }
}

TEST_CASE("Adam steps as torch's does") { CompareWithTorch({}); }

TEST_CASE("Adam with weight decay steps as torch's does") {
  AdamOptions options;
  options.weight_decay = 0.05;
  options.learning_rate = 0.02;
  CompareWithTorch(options);
}

TEST_CASE("weight decay of the first layer only leaves the others alone") {
  AdamOptions options;
  options.weight_decay = 0.05;
  options.weight_decay_first_layer_only = true;
  CompareWithTorch(options);
}

TEST_CASE("padding stays zero whatever the outputs held") {
  const ParameterManifest manifest = SmallManifest();
  const std::vector<float> parameters = RandomVector(manifest, 1);
  const std::vector<float> gradient = RandomVector(manifest, 2);
  const std::vector<float> memory(AdamFloats(manifest), 0.0F);
  std::vector<float> next(parameters.size(), -1.0F);
  std::vector<float> next_memory(memory.size(), -1.0F);
  const std::span<const float> gradients[] = {gradient};
  RunAdam(manifest, {}, {gradients, 1, 1, parameters, memory, next, next_memory});
  uint64_t padding = manifest.num_floats;
  for (const ParameterTensor& tensor : manifest.tensors) padding -= tensor.size();
  REQUIRE(padding > 0);
  for (const ParameterTensor& tensor : manifest.tensors) {
    for (uint64_t i = 0; i < tensor.size(); ++i) next[tensor.offset + i] = 0.0F;
  }
  CHECK(std::count(next.begin(), next.end(), 0.0F) == static_cast<int64_t>(next.size()));
}

TEST_CASE("initial weights are Glorot-uniform over the layer, keyed, and biases are zero") {
  ModelSpec spec;
  spec.in_dim = 100;
  spec.hidden_dim = 60;
  spec.out_dim = 10;
  const ParameterManifest manifest = *ManifestOf(spec);
  std::vector<float> one(manifest.num_floats, -1.0F);
  std::vector<float> again(manifest.num_floats, -1.0F);
  std::vector<float> other(manifest.num_floats);
  InitGlorot(manifest, 5, one);
  InitGlorot(manifest, 5, again);
  InitGlorot(manifest, 6, other);
  CHECK(one == again);
  CHECK(one != other);
  for (const ParameterTensor& tensor : manifest.tensors) {
    const auto begin = one.begin() + static_cast<int64_t>(tensor.offset);
    const auto end = begin + static_cast<int64_t>(tensor.size());
    const auto [least, most] = std::minmax_element(begin, end);
    if (tensor.is_bias) {
      CHECK(*least == 0.0F);
      CHECK(*most == 0.0F);
      continue;
    }
    const double bound = std::sqrt(6.0 / (2.0 * tensor.cols + tensor.rows));
    CHECK(*least >= -static_cast<float>(bound));
    CHECK(*most <= static_cast<float>(bound));
    CHECK(*least == doctest::Approx(-bound).epsilon(0.02));
    CHECK(*most == doctest::Approx(bound).epsilon(0.02));
    double sum = 0;
    for (auto at = begin; at != end; ++at) sum += static_cast<double>(*at);
    CHECK(std::abs(sum / static_cast<double>(tensor.size())) < 0.1 * bound);
  }
}

}  // namespace
}  // namespace gnnd
