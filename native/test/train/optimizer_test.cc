#include "core/kernels/optimizer.h"

#include <ATen/ops/from_blob.h>
#include <doctest/doctest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/model/manifest.h"

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

template <typename Options>
std::unique_ptr<torch::optim::OptimizerOptions> AdamLike(const OptimizerOptions& options,
                                                         double weight_decay) {
  auto theirs = std::make_unique<Options>(options.learning_rate);
  theirs->betas({options.beta1, options.beta2}).eps(options.epsilon);
  theirs->weight_decay(weight_decay);
  return theirs;
}

std::unique_ptr<torch::optim::OptimizerOptions> OptionsOfTorch(const OptimizerOptions& options,
                                                               double weight_decay) {
  if (options.type == OptimizerType::kAdam) {
    return AdamLike<torch::optim::AdamOptions>(options, weight_decay);
  }
  if (options.type == OptimizerType::kAdamW) {
    return AdamLike<torch::optim::AdamWOptions>(options, weight_decay);
  }
  auto theirs = std::make_unique<torch::optim::SGDOptions>(options.learning_rate);
  theirs->momentum(options.momentum).weight_decay(weight_decay).nesterov(options.nesterov);
  return theirs;
}

std::unique_ptr<torch::optim::Optimizer> OptimizerOfTorch(
    const OptimizerOptions& options, const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  if (options.type == OptimizerType::kAdam) {
    return std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions());
  }
  if (options.type == OptimizerType::kAdamW) {
    return std::make_unique<torch::optim::AdamW>(groups, torch::optim::AdamWOptions());
  }
  return std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0.1));
}

// Twenty steps of ours and of torch's optimizer on the same mean gradients.
void CompareWithTorch(const OptimizerOptions& options) {
  const ParameterManifest manifest = SmallManifest();
  std::vector<float> parameters = RandomVector(manifest, 1);
  std::vector<float> memory(OptimizerFloats(manifest), 0.0F);
  std::vector<at::Tensor> tensors;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const ParameterTensor& t : manifest.tensors) {
    tensors.push_back(
        at::from_blob(parameters.data() + t.offset, {static_cast<int64_t>(t.size())}, at::kFloat)
            .clone()
            .requires_grad_(true));
    const bool decays = options.weight_decay_scope == WeightDecayScope::kAll || t.layer == 0;
    groups.emplace_back(std::vector<at::Tensor>{tensors.back()},
                        OptionsOfTorch(options, decays ? options.weight_decay : 0.0));
  }
  const auto reference = OptimizerOfTorch(options, groups);

  for (uint64_t step = 1; step <= 20; ++step) {
    const std::vector<float> first = RandomVector(manifest, 100 + step);
    const std::vector<float> second = RandomVector(manifest, 200 + step);
    const std::span<const float> gradients[] = {first, second};
    std::vector<float> next(parameters.size(), -1.0F);
    std::vector<float> next_memory(memory.size(), -1.0F);
    RunOptimizer(manifest, options, {gradients, 8, step, parameters, memory, next, next_memory});
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
    if (options.clip_norm > 0) torch::nn::utils::clip_grad_norm_(tensors, options.clip_norm);
    for (auto& group : reference->param_groups()) {
      group.options().set_lr(LearningRateAt(options, step));
    }
    reference->step();
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
  OptimizerOptions options;
  options.weight_decay = 0.05;
  options.learning_rate = 0.02;
  CompareWithTorch(options);
}

TEST_CASE("weight decay of the first layer only leaves the others alone") {
  OptimizerOptions options;
  options.weight_decay = 0.05;
  options.weight_decay_scope = WeightDecayScope::kFirstLayer;
  CompareWithTorch(options);
}

TEST_CASE("AdamW steps as torch's does, decaying all layers or the first") {
  OptimizerOptions options;
  options.type = OptimizerType::kAdamW;
  options.weight_decay = 0.5;
  options.learning_rate = 0.02;
  CompareWithTorch(options);
  options.weight_decay_scope = WeightDecayScope::kFirstLayer;
  CompareWithTorch(options);
}

TEST_CASE("SGD steps as torch's does, with and without momentum and weight decay") {
  for (const double momentum : {0.0, 0.9}) {
    for (const double decay : {0.0, 0.1}) {
      OptimizerOptions options;
      options.type = OptimizerType::kSgd;
      options.learning_rate = 0.03;
      options.momentum = momentum;
      options.weight_decay = decay;
      CompareWithTorch(options);
    }
  }
}

TEST_CASE("SGD with Nesterov's momentum steps as torch's does, and otherwise than without") {
  OptimizerOptions options;
  options.type = OptimizerType::kSgd;
  options.learning_rate = 0.03;
  options.momentum = 0.9;
  options.weight_decay = 0.1;
  options.nesterov = true;
  CompareWithTorch(options);

  const ParameterManifest manifest = SmallManifest();
  const std::vector<float> parameters = RandomVector(manifest, 1);
  const std::vector<float> gradient = RandomVector(manifest, 2);
  const std::span<const float> gradients[] = {gradient};
  const std::vector<float> memory(OptimizerFloats(manifest), 0.0F);
  std::vector<float> next_memory(memory.size());
  std::vector<float> ahead(parameters.size());
  std::vector<float> plain(parameters.size());
  RunOptimizer(manifest, options, {gradients, 8, 1, parameters, memory, ahead, next_memory});
  options.nesterov = false;
  RunOptimizer(manifest, options, {gradients, 8, 1, parameters, memory, plain, next_memory});
  CHECK(ahead != plain);
}

TEST_CASE("clipping bounds the mean gradient's norm as torch's does") {
  for (const OptimizerType type : {OptimizerType::kAdam, OptimizerType::kSgd}) {
    for (const double bound : {0.05, 0.8, 1e6}) {
      OptimizerOptions options;
      options.type = type;
      options.learning_rate = 0.03;
      options.clip_norm = bound;
      options.weight_decay = 0.01;
      CompareWithTorch(options);
    }
  }
}

TEST_CASE("an optimizer under a schedule steps as torch's at that learning rate") {
  OptimizerOptions options;
  options.learning_rate = 0.05;
  options.schedule = {ScheduleType::kCosine, 1, 0.1, 2, 3, 8};
  for (const OptimizerType type :
       {OptimizerType::kAdam, OptimizerType::kAdamW, OptimizerType::kSgd}) {
    options.type = type;
    options.weight_decay = 0.1;
    CompareWithTorch(options);
  }
}

// The formula, one parameter and one update after another, in double.
double Predicted(const OptimizerOptions& options, const Prediction& prediction, uint64_t i,
                 bool decays) {
  const auto version = static_cast<double>(prediction.version);
  const double moment1 = static_cast<double>(prediction.memory[i]);
  const double moment2 = static_cast<double>(prediction.memory[prediction.parameters.size() + i]);
  const double corrected1 = moment1 / (1 - std::pow(options.beta1, version));
  const double corrected2 = moment2 / (1 - std::pow(options.beta2, version));
  const bool sgd = options.type == OptimizerType::kSgd;
  const double direction = sgd ? moment1 : corrected1 / (std::sqrt(corrected2) + options.epsilon);
  auto parameter = static_cast<double>(prediction.parameters[i]);
  for (uint64_t k = 1; k <= prediction.lag; ++k) {
    const double rate = LearningRateAt(options, prediction.version + k);
    if (decays && options.type == OptimizerType::kAdamW)
      parameter *= 1 - rate * options.weight_decay;
    parameter -= rate * direction;
  }
  return parameter;
}

void CompareWithFormula(const OptimizerOptions& options) {
  const ParameterManifest manifest = SmallManifest();
  std::vector<float> parameters = RandomVector(manifest, 1);
  std::vector<float> memory(OptimizerFloats(manifest), 0.0F);
  for (uint64_t version = 1; version <= 14; ++version) {
    const std::vector<float> gradient = RandomVector(manifest, 100 + version);
    const std::span<const float> gradients[] = {gradient};
    std::vector<float> next(parameters.size());
    std::vector<float> next_memory(memory.size());
    RunOptimizer(manifest, options, {gradients, 4, version, parameters, memory, next, next_memory});
    parameters = next;
    memory = next_memory;
    for (const uint64_t lag : {1, 2, 3, 8}) {
      std::vector<float> predicted(parameters.size(), -1.0F);
      const Prediction prediction{version, lag, parameters, memory, predicted};
      PredictParameters(manifest, options, prediction);
      uint64_t padding_from = 0;
      for (const ParameterTensor& t : manifest.tensors) {
        for (uint64_t i = padding_from; i < t.offset; ++i) REQUIRE(predicted[i] == 0.0F);
        const bool decays = options.weight_decay_scope == WeightDecayScope::kAll || t.layer == 0;
        for (uint64_t i = t.offset; i < t.offset + t.size(); ++i) {
          REQUIRE(predicted[i] ==
                  doctest::Approx(Predicted(options, prediction, i, decays)).epsilon(1e-5));
        }
        padding_from = t.offset + t.size();
      }
      REQUIRE(predicted != parameters);
    }
  }
}

TEST_CASE("a prediction follows the formula, for every optimizer, decay and schedule") {
  for (const OptimizerType type :
       {OptimizerType::kAdam, OptimizerType::kAdamW, OptimizerType::kSgd}) {
    for (const ScheduleType schedule :
         {ScheduleType::kConstant, ScheduleType::kStep, ScheduleType::kCosine}) {
      for (const bool first_layer_only : {false, true}) {
        OptimizerOptions options;
        options.type = type;
        options.learning_rate = 0.02;
        options.momentum = type == OptimizerType::kSgd ? 0.9 : 0.0;
        options.weight_decay = 0.3;
        if (first_layer_only) options.weight_decay_scope = WeightDecayScope::kFirstLayer;
        options.clip_norm = 2;
        options.schedule = {schedule, 1, 0.5, 1, 3, 6};
        CompareWithFormula(options);
      }
    }
  }
}

// The formula's purpose: if the moments tell all, the prediction is the future.
TEST_CASE("steps of equal gradients lead to where the prediction said") {
  const ParameterManifest manifest = SmallManifest();
  OptimizerOptions options;
  options.schedule = {ScheduleType::kStep, 1, 0.5, 0, 2, 9};
  const std::vector<float> gradient = RandomVector(manifest, 7);
  const std::span<const float> gradients[] = {gradient};
  std::vector<float> parameters = RandomVector(manifest, 1);
  std::vector<float> memory(OptimizerFloats(manifest), 0.0F);
  std::vector<float> predicted(parameters.size());
  for (uint64_t version = 0; version < 6; ++version) {
    if (version == 3) {
      PredictParameters(manifest, options, {version, 3, parameters, memory, predicted});
    }
    std::vector<float> next(parameters.size());
    std::vector<float> next_memory(memory.size());
    RunOptimizer(manifest, options,
                 {gradients, 1, version + 1, parameters, memory, next, next_memory});
    parameters = next;
    memory = next_memory;
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    REQUIRE(predicted[i] == doctest::Approx(parameters[i]).epsilon(1e-5));
  }
}

// torch's recursive formulas, epoch by epoch.
TEST_CASE("schedules follow torch's StepLR and CosineAnnealingLR") {
  constexpr uint64_t kSteps = 7;
  OptimizerOptions options;
  options.learning_rate = 0.2;
  options.schedule.steps_per_epoch = kSteps;
  options.schedule.epochs = 10;
  options.schedule.gamma = 0.5;
  options.schedule.step_epochs = 3;
  const double pi = std::acos(-1.0);
  double stepped = 0.2;
  double cosine = 0.2;
  for (uint64_t epoch = 0; epoch < 10; ++epoch) {
    if (epoch > 0 && epoch % 3 == 0) stepped *= 0.5;
    if (epoch > 0) {
      const auto e = static_cast<double>(epoch);
      cosine *= (1 + std::cos(pi * e / 10)) / (1 + std::cos(pi * (e - 1) / 10));
    }
    for (uint64_t k = 1; k <= kSteps; ++k) {
      const uint64_t step = epoch * kSteps + k;
      options.schedule.type = ScheduleType::kConstant;
      CHECK(LearningRateAt(options, step) == 0.2);
      options.schedule.type = ScheduleType::kStep;
      CHECK(LearningRateAt(options, step) == doctest::Approx(stepped).epsilon(1e-12));
      options.schedule.type = ScheduleType::kCosine;
      CHECK(LearningRateAt(options, step) == doctest::Approx(cosine).epsilon(1e-12));
    }
  }
  CHECK(LearningRateAt(options, 10 * kSteps + 1) == doctest::Approx(0.0));
}

TEST_CASE("warm-up rises linearly to the full rate, then the schedule starts") {
  OptimizerOptions options;
  options.learning_rate = 1.0;
  options.schedule = {ScheduleType::kStep, 1, 0.1, 2, 5, 6};
  for (uint64_t step = 1; step <= 10; ++step) {
    CHECK(LearningRateAt(options, step) ==
          doctest::Approx(static_cast<double>(step) / 10).epsilon(1e-12));
  }
  CHECK(LearningRateAt(options, 11) == 1.0);
  CHECK(LearningRateAt(options, 15) == 1.0);
  CHECK(LearningRateAt(options, 16) == doctest::Approx(0.1));
}

TEST_CASE("an optimizer that cannot be is refused with the field's name") {
  const auto refused = [](const char* field, auto&& change) {
    OptimizerOptions options;
    change(options);
    const Status status = CheckOptimizer(options);
    INFO(field);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message().find(field) != std::string::npos);
  };
  CHECK(CheckOptimizer({}).ok());
  refused("learning_rate", [](OptimizerOptions& o) { o.learning_rate = -1; });
  refused("momentum", [](OptimizerOptions& o) { o.momentum = 1; });
  refused("clip_norm", [](OptimizerOptions& o) { o.clip_norm = std::nan(""); });
  refused("optimizer", [](OptimizerOptions& o) { o.type = static_cast<OptimizerType>(9); });
  refused("schedule", [](OptimizerOptions& o) { o.schedule.type = static_cast<ScheduleType>(0); });
  refused("step_epochs", [](OptimizerOptions& o) {
    o.schedule.type = ScheduleType::kStep;
    o.schedule.step_epochs = 0;
  });
  refused("gamma", [](OptimizerOptions& o) {
    o.schedule.type = ScheduleType::kStep;
    o.schedule.gamma = 0;
  });
  refused("weight_decay_scope", [](OptimizerOptions& o) { o.weight_decay_scope = {}; });
  refused("steps_per_epoch", [](OptimizerOptions& o) { o.schedule.steps_per_epoch = 0; });
  refused("warmup_epochs", [](OptimizerOptions& o) { o.schedule.warmup_epochs = 1; });
}

TEST_CASE("padding stays zero whatever the outputs held") {
  const ParameterManifest manifest = SmallManifest();
  const std::vector<float> parameters = RandomVector(manifest, 1);
  const std::vector<float> gradient = RandomVector(manifest, 2);
  const std::vector<float> memory(OptimizerFloats(manifest), 0.0F);
  std::vector<float> next(parameters.size(), -1.0F);
  std::vector<float> next_memory(memory.size(), -1.0F);
  const std::span<const float> gradients[] = {gradient};
  RunOptimizer(manifest, {}, {gradients, 1, 1, parameters, memory, next, next_memory});
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
  InitGlorot(manifest, 5, 1.0, one);
  InitGlorot(manifest, 5, 1.0, again);
  InitGlorot(manifest, 6, 1.0, other);
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

TEST_CASE("layers whose rows a head scores begin within 1 / sqrt(fan-in), and the head as others") {
  ModelSpec spec;
  spec.in_dim = 100;
  spec.hidden_dim = 60;
  spec.out_dim = 60;
  spec.head = LinkHead::kBilinear;
  const ParameterManifest manifest = *ManifestOf(spec);
  std::vector<float> parameters(manifest.num_floats);
  InitGlorot(manifest, 5, 1.0, parameters);
  for (const ParameterTensor& tensor : manifest.tensors) {
    if (tensor.is_bias) continue;
    const auto begin = parameters.begin() + static_cast<int64_t>(tensor.offset);
    const auto end = begin + static_cast<int64_t>(tensor.size());
    const double bound =
        tensor.layer == spec.num_layers ? std::sqrt(6.0 / (60 + 60)) : 1.0 / std::sqrt(tensor.cols);
    CHECK(*std::max_element(begin, end) <= static_cast<float>(bound));
    CHECK(*std::max_element(begin, end) == doctest::Approx(bound).epsilon(0.02));
    CHECK(*std::min_element(begin, end) == doctest::Approx(-bound).epsilon(0.02));
  }
}

TEST_CASE("the first layer's weights begin larger where features are small") {
  ModelSpec spec;
  spec.in_dim = 100;
  spec.hidden_dim = 60;
  spec.out_dim = 10;
  const ParameterManifest manifest = *ManifestOf(spec);
  std::vector<float> one(manifest.num_floats);
  std::vector<float> larger(manifest.num_floats);
  InitGlorot(manifest, 5, 1.0, one);
  InitGlorot(manifest, 5, 3.0, larger);
  for (const ParameterTensor& tensor : manifest.tensors) {
    const float gain = tensor.layer == 0 && !tensor.is_bias ? 3.0F : 1.0F;
    for (uint64_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i)
      REQUIRE(larger[i] == doctest::Approx(gain * one[i]).epsilon(1e-6));
  }

  const auto gain_of = [](float value, uint64_t rows) {
    return FirstLayerGain(RowTable(std::vector<float>(rows * 7, value), 7));
  };
  CHECK(gain_of(1.0F, 5) == 1.0);
  CHECK(gain_of(-40.0F, 5) == 1.0);
  CHECK(gain_of(0.25F, 5) == 2.0);
  CHECK(gain_of(-0.01F, 5) == 3.0);
  CHECK(gain_of(0.0F, 5) == 3.0);
  CHECK(gain_of(0.0F, 0) == 1.0);
  // Rows that are not in the sample do not count: of 2,048 each second one.
  std::vector<gnnd::Half> values(2048 * 7, ToHalf(100.0F));
  for (uint64_t row = 0; row < 2048; row += 2)
    std::fill_n(values.begin() + static_cast<int64_t>(row * 7), 7, ToHalf(0.25F));
  CHECK(FirstLayerGain(RowTable(std::span<const gnnd::Half>(values), 7)) == 2.0);
}

}  // namespace
}  // namespace gnnd
