#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "fake_works.h"

namespace gnnd::test {

// Work as a device does it that has memory of its own: it computes on its copies of parameters,
// gradients and optimizer, which it takes from the segment only where it has none, and counts that.
// Whoever tells it a wrong version ends with other parameters.
class DeviceTrainWork final : public FakeTrainWork {
 public:
  using FakeTrainWork::FakeTrainWork;

  struct Copies {
    int parameters = 0;
    int optimizers = 0;
    int gradients = 0;
  };
  Copies copies;  // to the device

  Status ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    const ParametersView mine{parameters.version, parameters.lag, OnDevice(parameters)};
    GNND_TRY(FakeTrainWork::ComputeGradient(sample, buffer, mine, gradient, report));
    gradients_[{sample.key().epoch, sample.key().batch}].assign(gradient.begin(), gradient.end());
    return Status::Ok();
  }

  void Apply(const StepView& step) override {
    const ParametersView before{step.version, 0, step.parameters_in};
    StepView mine = step;
    mine.parameters_in = OnDevice(before);
    if (!optimizers_.contains(step.version)) {
      ++copies.optimizers;
      optimizers_[step.version].assign(step.optimizer_in.begin(), step.optimizer_in.end());
    }
    mine.optimizer_in = optimizers_[step.version];
    std::vector<GradientView> gradients(step.gradients.begin(), step.gradients.end());
    for (GradientView& gradient : gradients) {
      const auto epoch = static_cast<uint32_t>(gradient.batch / batches_per_epoch);
      const auto batch = static_cast<uint32_t>(gradient.batch % batches_per_epoch);
      const auto kept = gradients_.find({epoch, batch});
      if (gradient.is_own && kept != gradients_.end()) {
        gradient.floats = kept->second;
      } else {
        ++copies.gradients;
      }
    }
    mine.gradients = gradients;
    FakeTrainWork::Apply(mine);
    // The master copy of what may become the next version; older ones are given up.
    Keep({step.version + 1, 0}, step.parameters_out);
    optimizers_[step.version + 1].assign(step.optimizer_out.begin(), step.optimizer_out.end());
    optimizers_.erase(optimizers_.begin(), optimizers_.lower_bound(step.version));
  }

  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override {
    const ParametersView mine{parameters.version, parameters.lag, OnDevice(parameters)};
    return FakeTrainWork::EvaluateChunk(task, mine, alive, result);
  }

  uint64_t batches_per_epoch = 1;

 private:
  using Which = std::pair<uint64_t, uint64_t>;  // version, lag

  void Keep(const Which& which, std::span<const float> floats) {
    parameters_[which].assign(floats.begin(), floats.end());
  }

  std::span<const float> OnDevice(const ParametersView& view) {
    const Which which{view.version, view.lag};
    if (!parameters_.contains(which)) {
      ++copies.parameters;
      Keep(which, view.floats);
    }
    return parameters_[which];
  }

  std::map<Which, std::vector<float>> parameters_;
  std::map<uint64_t, std::vector<float>> optimizers_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<float>> gradients_;
};

}  // namespace gnnd::test
