#include "train/adam.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/philox.h"

namespace gnnd {
namespace {

// Constants of one step, rounded to float32 once, as torch does before its vector loops.
struct StepConstants {
  float seeds;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float negative_step_size;
  float root_correction2;
  float epsilon;
  float weight_decay;
};

StepConstants ConstantsOf(const AdamOptions& options, const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  const double correction1 = 1.0 - std::pow(options.beta1, t);
  const double correction2 = 1.0 - std::pow(options.beta2, t);
  StepConstants constants{};
  constants.seeds = static_cast<float>(step.num_seeds);
  constants.beta2 = static_cast<float>(options.beta2);
  constants.one_minus_beta1 = static_cast<float>(1.0 - options.beta1);
  constants.one_minus_beta2 = static_cast<float>(1.0 - options.beta2);
  constants.negative_step_size = static_cast<float>(-options.learning_rate / correction1);
  constants.root_correction2 = static_cast<float>(std::sqrt(correction2));
  constants.epsilon = static_cast<float>(options.epsilon);
  constants.weight_decay = static_cast<float>(options.weight_decay);
  return constants;
}

// Floats [begin, end) of the parameter vector.
void UpdateRange(const StepConstants& k, const AdamStep& step, uint64_t begin, uint64_t end) {
  const uint64_t num_floats = step.parameters_in.size();
  for (uint64_t i = begin; i < end; ++i) {
    float sum = step.gradients[0][i];
    for (size_t g = 1; g < step.gradients.size(); ++g) sum += step.gradients[g][i];
    const float parameter = step.parameters_in[i];
    const float gradient = sum / k.seeds + k.weight_decay * parameter;
    const float moment1 = step.memory_in[i];
    const float moment2 = step.memory_in[num_floats + i];
    const float next1 = moment1 + k.one_minus_beta1 * (gradient - moment1);
    const float next2 = moment2 * k.beta2 + k.one_minus_beta2 * gradient * gradient;
    const float denominator = std::sqrt(next2) / k.root_correction2 + k.epsilon;
    step.parameters_out[i] = parameter + k.negative_step_size * (next1 / denominator);
    step.memory_out[i] = next1;
    step.memory_out[num_floats + i] = next2;
  }
}

}  // namespace

void InitGlorot(const ParameterManifest& manifest, uint64_t random_seed,
                std::span<float> parameters) {
  GNND_CHECK(parameters.size() == manifest.num_floats);
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  const PhiloxKey key = KeyOf(random_seed);
  for (uint32_t t = 0; t < manifest.tensors.size(); ++t) {
    const ParameterTensor& tensor = manifest.tensors[t];
    if (tensor.is_bias) continue;
    double fan = tensor.rows;
    for (const ParameterTensor& other : manifest.tensors) {
      if (other.layer == tensor.layer) fan += other.cols;
    }
    const double bound = std::sqrt(6.0 / fan);
    for (uint64_t i = 0; i < tensor.size(); ++i) {
      const PhiloxWords words = Philox(key, CounterOf(Purpose::kInit, 0, t, 0, i / 4, 0));
      const double unit = UnitDraw(words.word[i % 4]);
      parameters[tensor.offset + i] = static_cast<float>((2.0 * unit - 1.0) * bound);
    }
  }
}

void RunAdam(const ParameterManifest& manifest, const AdamOptions& options, const AdamStep& step) {
  GNND_CHECK(step.step >= 1 && step.num_seeds >= 1 && !step.gradients.empty());
  GNND_CHECK(step.parameters_in.size() == manifest.num_floats);
  GNND_CHECK(step.parameters_out.size() == manifest.num_floats);
  GNND_CHECK(step.memory_in.size() == AdamFloats(manifest));
  GNND_CHECK(step.memory_out.size() == AdamFloats(manifest));
  for (const auto& gradient : step.gradients) GNND_CHECK(gradient.size() == manifest.num_floats);

  const StepConstants constants = ConstantsOf(options, step);
  const auto zero = [&step, &manifest](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      step.parameters_out[i] = 0.0F;
      step.memory_out[i] = 0.0F;
      step.memory_out[manifest.num_floats + i] = 0.0F;
    }
  };
  uint64_t done = 0;
  for (const ParameterTensor& tensor : manifest.tensors) {
    zero(done, tensor.offset);
    done = tensor.offset + tensor.size();
    StepConstants mine = constants;
    if (options.weight_decay_first_layer_only && tensor.layer != 0) mine.weight_decay = 0.0F;
    UpdateRange(mine, step, tensor.offset, done);
  }
  zero(done, manifest.num_floats);
}

}  // namespace gnnd
