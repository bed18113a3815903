#include "core/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "core/base/check.h"
#include "core/draw/philox.h"
#include "core/kernels/optimizer_loops.h"

namespace gnnd {
namespace {

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

float GradientAt(const OptimizerStep& step, uint64_t i) {
  float sum = step.gradients[0][i];
  for (size_t g = 1; g < step.gradients.size(); ++g) sum += step.gradients[g][i];
  return sum;
}

// The factor of the mean gradient that keeps its norm within the bound.
double ClipFactor(const ParameterManifest& manifest, const OptimizerOptions& options,
                  const OptimizerStep& step) {
  if (options.clip_norm == 0) return 1.0;
  const auto seeds = static_cast<float>(step.num_seeds);
  double squares = 0;
  const auto add = [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const auto mean = static_cast<double>(GradientAt(step, i) / seeds);
      squares += mean * mean;
    }
  };
  uint64_t done = 0;
  for (const ParameterTensor& tensor : manifest.tensors) {
    if (tensor.role != TensorRole::kRunning) continue;
    add(done, tensor.offset);
    done = tensor.offset + tensor.size();
  }
  add(done, step.parameters_in.size());
  return ClipFactorOf(options.clip_norm, squares);
}

// Predicts floats [begin, end) of the parameter vector.
void PredictAdam(const PathConstants& k, const Prediction& prediction, uint64_t begin,
                 uint64_t end) {
  const uint64_t num_floats = prediction.parameters.size();
  for (uint64_t i = begin; i < end; ++i) {
    prediction.predicted[i] = PredictedByAdam(k, prediction.parameters[i], prediction.memory[i],
                                              prediction.memory[num_floats + i]);
  }
}

void PredictSgd(const PathConstants& k, const Prediction& prediction, uint64_t begin,
                uint64_t end) {
  for (uint64_t i = begin; i < end; ++i) {
    prediction.predicted[i] = PredictedBySgd(k, prediction.parameters[i], prediction.memory[i]);
  }
}

Status CheckSchedule(const ScheduleOptions& schedule) {
  if (schedule.type < ScheduleType::kConstant || schedule.type > ScheduleType::kCosine) {
    return Invalid("unknown schedule");
  }
  const bool steps = schedule.type == ScheduleType::kStep;
  if (steps && schedule.step_epochs == 0) return Invalid("step_epochs must be at least 1");
  if (steps && !(schedule.gamma > 0 && schedule.gamma <= 1)) {
    return Invalid("gamma must be in (0, 1]");
  }
  if (schedule.steps_per_epoch == 0) return Invalid("steps_per_epoch must be at least 1");
  if (schedule.epochs == 0) return Invalid("epochs must be at least 1");
  if (schedule.warmup_epochs >= schedule.epochs && schedule.warmup_epochs > 0) {
    return Invalid("warmup_epochs must be below the number of epochs");
  }
  return Status::Ok();
}

}  // namespace

Status CheckOptimizer(const OptimizerOptions& options) {
  const auto in_unit = [](double value) { return value >= 0 && value < 1; };
  if (options.type < OptimizerType::kAdam || options.type > OptimizerType::kSgd) {
    return Invalid("unknown optimizer");
  }
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate)) {
    return Invalid("learning_rate must be positive");
  }
  if (!in_unit(options.beta1) || !in_unit(options.beta2)) return Invalid("betas must be in [0, 1)");
  if (!(options.epsilon > 0)) return Invalid("epsilon must be positive");
  if (!in_unit(options.momentum)) return Invalid("momentum must be in [0, 1)");
  if (!(options.weight_decay >= 0)) return Invalid("weight_decay must not be negative");
  if (options.weight_decay_scope != WeightDecayScope::kAll &&
      options.weight_decay_scope != WeightDecayScope::kFirstLayer) {
    return Invalid("unknown weight_decay_scope");
  }
  if (!(options.clip_norm >= 0)) return Invalid("clip_norm must not be negative");
  return CheckSchedule(options.schedule);
}

double LearningRateAt(const OptimizerOptions& options, uint64_t step) {
  const ScheduleOptions& schedule = options.schedule;
  const uint64_t warmup_steps = schedule.warmup_epochs * schedule.steps_per_epoch;
  if (step <= warmup_steps) {
    return options.learning_rate * static_cast<double>(step) / static_cast<double>(warmup_steps);
  }
  const uint64_t epoch = (step - 1 - warmup_steps) / schedule.steps_per_epoch;
  switch (schedule.type) {
    case ScheduleType::kConstant:
      break;
    case ScheduleType::kStep:
      return options.learning_rate *
             std::pow(schedule.gamma, static_cast<double>(epoch / schedule.step_epochs));
    case ScheduleType::kCosine: {
      const auto span = static_cast<double>(schedule.epochs - schedule.warmup_epochs);
      const double angle = std::numbers::pi * std::min(1.0, static_cast<double>(epoch) / span);
      return options.learning_rate * 0.5 * (1.0 + std::cos(angle));
    }
  }
  return options.learning_rate;
}

StepConstants ConstantsOf(const OptimizerOptions& options, uint64_t step, uint64_t num_seeds,
                          double clip, bool decays) {
  const auto t = static_cast<double>(step);
  const double learning_rate = LearningRateAt(options, step);
  const double correction1 = 1.0 - std::pow(options.beta1, t);
  const double correction2 = 1.0 - std::pow(options.beta2, t);
  const bool decoupled = options.type == OptimizerType::kAdamW;
  const bool sgd = options.type == OptimizerType::kSgd;
  StepConstants constants{};
  constants.seeds = static_cast<float>(num_seeds);
  constants.clip = static_cast<float>(clip);
  constants.beta2 = static_cast<float>(options.beta2);
  constants.one_minus_beta1 = static_cast<float>(1.0 - options.beta1);
  constants.one_minus_beta2 = static_cast<float>(1.0 - options.beta2);
  constants.negative_step_size =
      static_cast<float>(sgd ? -learning_rate : -learning_rate / correction1);
  constants.root_correction2 = static_cast<float>(std::sqrt(correction2));
  constants.epsilon = static_cast<float>(options.epsilon);
  constants.weight_decay = decoupled || !decays ? 0.0F : static_cast<float>(options.weight_decay);
  constants.keep =
      decoupled && decays ? static_cast<float>(1.0 - learning_rate * options.weight_decay) : 1.0F;
  constants.momentum = static_cast<float>(options.momentum);
  constants.nesterov = options.nesterov;
  return constants;
}

PathConstants PathOf(const OptimizerOptions& options, const Prediction& prediction,
                     double weight_decay) {
  const bool decoupled = options.type == OptimizerType::kAdamW;
  double keep = 1;
  double rate = 0;
  for (uint64_t i = 1; i <= prediction.lag; ++i) {
    const double learning_rate = LearningRateAt(options, prediction.version + i);
    const double kept = decoupled ? 1.0 - learning_rate * weight_decay : 1.0;
    keep *= kept;
    rate = rate * kept + learning_rate;
  }
  PathConstants constants{};
  constants.keep = static_cast<float>(keep);
  constants.epsilon = static_cast<float>(options.epsilon);
  if (options.type != OptimizerType::kSgd) {
    const auto t = static_cast<double>(prediction.version);
    rate /= 1.0 - std::pow(options.beta1, t);
    constants.root_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(options.beta2, t)));
  }
  constants.negative_rate = static_cast<float>(-rate);
  return constants;
}

namespace {

float Widened(float value) { return value; }
float Widened(Half value) { return ToFloat(value); }

}  // namespace

double FirstLayerGain(const RowTable& features) {
  constexpr uint64_t kRows = 1024;
  const uint64_t rows = std::min(features.num_rows(), kRows);
  if (rows == 0) return 1.0;
  const uint64_t step = features.num_rows() / rows;
  const double squares = features.Visited([&](auto values) {
    double sum = 0.0;
    for (uint64_t row = 0; row < rows; ++row) {
      for (const auto element : values.subspan(row * step * features.dim(), features.dim())) {
        const auto value = static_cast<double>(Widened(element));
        sum += value * value;
      }
    }
    return sum;
  });
  const double mean = squares / static_cast<double>(rows * features.dim());
  return std::clamp(0.5 / std::sqrt(mean), 1.0, 3.0);
}

void InitGlorot(const ParameterManifest& manifest, uint64_t random_seed, double first_gain,
                std::span<float> parameters) {
  GNND_CHECK(parameters.size() == manifest.num_floats);
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  const PhiloxKey key = KeyOf(random_seed);
  for (uint32_t t = 0; t < manifest.tensors.size(); ++t) {
    const ParameterTensor& tensor = manifest.tensors[t];
    if (tensor.is_bias) {
      std::fill_n(parameters.begin() + static_cast<int64_t>(tensor.offset), tensor.size(),
                  tensor.fill);
      continue;
    }
    const double gain = tensor.layer == 0 ? first_gain : 1.0;
    const double bound = gain * std::sqrt(6.0 / static_cast<double>(tensor.fan));
    for (uint64_t i = 0; i < tensor.size(); ++i) {
      const PhiloxWords words = Philox(key, CounterOf(Purpose::kInit, 0, t, 0, i / 4, 0));
      const double unit = UnitDraw(words.word[i % 4]);
      parameters[tensor.offset + i] = static_cast<float>((2.0 * unit - 1.0) * bound);
    }
  }
}

void PredictParameters(const ParameterManifest& manifest, const OptimizerOptions& options,
                       const Prediction& prediction) {
  GNND_CHECK(prediction.version >= 1 && prediction.lag >= 1);
  GNND_CHECK(prediction.parameters.size() == manifest.num_floats);
  GNND_CHECK(prediction.predicted.size() == manifest.num_floats);
  GNND_CHECK(prediction.memory.size() == OptimizerFloats(manifest));
  const PathConstants decaying = PathOf(options, prediction, options.weight_decay);
  const PathConstants others = PathOf(options, prediction, 0.0);
  std::fill(prediction.predicted.begin(), prediction.predicted.end(), 0.0F);
  const auto predict = options.type == OptimizerType::kSgd ? PredictSgd : PredictAdam;
  for (const ParameterTensor& tensor : manifest.tensors) {
    if (tensor.role == TensorRole::kRunning) {
      std::copy_n(prediction.parameters.begin() + static_cast<int64_t>(tensor.offset),
                  tensor.size(),
                  prediction.predicted.begin() + static_cast<int64_t>(tensor.offset));
      continue;
    }
    predict(Decays(options, tensor) ? decaying : others, prediction, tensor.offset,
            tensor.offset + tensor.size());
  }
}

OptimizerUpdate::OptimizerUpdate(const ParameterManifest& manifest, const OptimizerOptions& options,
                                 const OptimizerStep& step)
    : manifest_(manifest),
      options_(options),
      step_(step),
      clip_(ClipFactor(manifest, options, step)) {
  GNND_CHECK(step.step >= 1 && step.num_seeds >= 1 && !step.gradients.empty());
  GNND_CHECK(step.parameters_in.size() == manifest.num_floats);
  GNND_CHECK(step.parameters_out.size() == manifest.num_floats);
  GNND_CHECK(step.memory_in.size() == OptimizerFloats(manifest));
  GNND_CHECK(step.memory_out.size() == OptimizerFloats(manifest));
  for (const auto& gradient : step.gradients) GNND_CHECK(gradient.size() == manifest.num_floats);
}

void OptimizerUpdate::Run(uint64_t begin, uint64_t end) const {
  const auto zero = [this](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      step_.parameters_out[i] = 0.0F;
      step_.memory_out[i] = 0.0F;
      step_.memory_out[manifest_.num_floats + i] = 0.0F;
    }
  };
  uint64_t done = begin;
  for (const ParameterTensor& tensor : manifest_.tensors) {
    const uint64_t from = std::clamp<uint64_t>(tensor.offset, done, end);
    const uint64_t to = std::clamp<uint64_t>(tensor.offset + tensor.size(), from, end);
    zero(done, from);
    RunTensor(tensor, from, to);
    done = to;
  }
  zero(done, end);
}

void OptimizerUpdate::RunRunning(uint64_t begin, uint64_t end) const {
  const auto seeds = static_cast<float>(step_.num_seeds);
  for (uint64_t i = begin; i < end; ++i) {
    const float distance = GradientAt(step_, i) / seeds;
    step_.parameters_out[i] = step_.parameters_in[i] - kRunningMomentum * distance;
    step_.memory_out[i] = 0.0F;
    step_.memory_out[manifest_.num_floats + i] = 0.0F;
  }
}

void OptimizerUpdate::RunTensor(const ParameterTensor& tensor, uint64_t begin, uint64_t end) const {
  if (tensor.role == TensorRole::kRunning) return RunRunning(begin, end);
  const StepConstants constants =
      ConstantsOf(options_, step_.step, step_.num_seeds, clip_, Decays(options_, tensor));
  const OptimizerLoops& loops = BestLoops<OptimizerLoops>();
  const auto update = options_.type == OptimizerType::kSgd ? loops.sgd : loops.adam;
  constexpr uint64_t kSummed = 1024;
  float sums[kSummed];
  for (uint64_t at = begin; at < end;) {
    const bool single = step_.gradients.size() == 1;
    const uint64_t count = single ? end - at : std::min(kSummed, end - at);
    for (uint64_t i = 0; !single && i < count; ++i) sums[i] = GradientAt(step_, at + i);
    const uint64_t second = manifest_.num_floats + at;
    update(constants, {single ? step_.gradients[0].data() + at : sums,
                       step_.parameters_in.data() + at, step_.memory_in.data() + at,
                       step_.memory_in.data() + second, step_.parameters_out.data() + at,
                       step_.memory_out.data() + at, step_.memory_out.data() + second, count});
    at += count;
  }
}

}  // namespace gnnd
