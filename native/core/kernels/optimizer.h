#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/graph/row_table.h"
#include "core/kernels/update.h"
#include "core/model/model_spec.h"

// Version 0 of the parameters and the optimizer's step, as loops over the flat parameter vector.
// A step depends on its arguments and its number alone.

namespace gnnd {

// As torch.optim's classes of these names.
enum class OptimizerType : uint32_t { kAdam = 1, kAdamW = 2, kSgd = 3 };

enum class ScheduleType : uint32_t {
  kConstant = 1,
  kStep = 2,    // times gamma after every step_epochs epochs (torch's StepLR)
  kCosine = 3,  // down to 0 after the last epoch along half a cosine (torch's CosineAnnealingLR)
};

// Which parameters decay: all, or those of the layer nearest the input.
enum class WeightDecayScope : uint32_t { kAll = 1, kFirstLayer = 2 };

// The learning rate over the job. For warmup_epochs it rises linearly with the step number, ending
// at the full rate; the schedule counts its epochs from there.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::kConstant;
  uint32_t step_epochs = 1;  // read for kStep only, as gamma
  double gamma = 0.1;
  uint32_t warmup_epochs = 0;
  uint64_t steps_per_epoch = 1;  // parameter updates; constant over the job
  uint64_t epochs = 1;           // of the job
};

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdam;
  double learning_rate = 0.003;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;      // SGD
  bool nesterov = false;    // SGD: the step is the gradient beside one more decay of the momentum
  double weight_decay = 0;  // added to the gradient; AdamW: decoupled
  WeightDecayScope weight_decay_scope = WeightDecayScope::kAll;
  double clip_norm = 0;  // bound on the Euclidean norm of the mean gradient; 0 = none
  ScheduleOptions schedule;
};

// kInvalidArgument, naming the field.
Status CheckOptimizer(const OptimizerOptions& options);

// The learning rate of update `step` (counts from 1).
double LearningRateAt(const OptimizerOptions& options, uint64_t step);

inline bool Decays(const OptimizerOptions& options, const ParameterTensor& tensor) {
  return options.weight_decay_scope == WeightDecayScope::kAll || tensor.layer == 0;
}

// Constants of update `step` (counts from 1) over gradients of `num_seeds` seeds together.
StepConstants ConstantsOf(const OptimizerOptions& options, uint64_t step, uint64_t num_seeds,
                          double clip, bool decays);

// The optimizer's memory is two vectors laid out like the parameters, whatever its type: Adam's
// first and second moments; SGD's momentum and zeros.
inline uint64_t OptimizerFloats(const ParameterManifest& manifest) {
  return 2 * manifest.num_floats;
}

// How many times as large the first layer's weights begin than Glorot's, for features so small that
// its outputs would hardly differ: 0.5 / root mean square, at least 1, at most 3, over all of up to
// 1,024 rows that are evenly spread (docs/decisions/0045-initial-weights.md). 1 without rows.
double FirstLayerGain(const RowTable& features);

// Weights Glorot-uniform (Glorot and Bengio, AISTATS 2010) from the keyed generator, over the fan
// that the manifest gives each, those of layer 0 `first_gain` times as large (why:
// docs/decisions/0045-initial-weights.md); biases their fill and padding zero. Element i of tensor
// t (its place in the manifest) takes word i % 4 of the draw with node i / 4 and batch t under
// Purpose::kInit.
void InitGlorot(const ParameterManifest& manifest, uint64_t random_seed, double first_gain,
                std::span<float> parameters);

// Running means and variances of batch normalisation (TensorRole::kRunning) move by so much of
// their distance to the batches', whatever the optimizer: torch.nn.BatchNorm1d's momentum. Their
// gradient is that distance times the batch's seeds; neither decay nor the bound on the norm knows
// of them.
inline constexpr float kRunningMomentum = 0.1F;

// Arguments of one step; all spans have manifest.num_floats floats, memory twice as many.
struct OptimizerStep {
  std::span<const std::span<const float>> gradients;  // each a sum over seeds; added in this order
  uint64_t num_seeds = 0;                             // their total
  uint64_t step = 0;                                  // counts from 1
  std::span<const float> parameters_in;
  std::span<const float> memory_in;
  std::span<float> parameters_out;
  std::span<float> memory_out;
};

// Arguments of one prediction; memory and parameters as RunOptimizer left them.
struct Prediction {
  uint64_t version = 0;  // updates made so far, at least 1
  uint64_t lag = 0;      // updates ahead, at least 1
  std::span<const float> parameters;
  std::span<const float> memory;
  std::span<float> predicted;
};

// Where the parameters will be if each of the next `lag` updates goes as the memory says, with that
// update's own learning rate and decay: Adam's corrected first moment over the root of the second,
// SGD's momentum. Weight prediction of Chen, Yang and Cheng (SpecTrain, arXiv:1809.02839), whose
// velocity is the momentum; for Adam as Guan's XPipe (arXiv:1911.04610). A bound on the gradient
// acts through the memory. Padding becomes zero.
void PredictParameters(const ParameterManifest& manifest, const OptimizerOptions& options,
                       const Prediction& prediction);

// Its constants, for tensors whose weight decay is `weight_decay`.
PathConstants PathOf(const OptimizerOptions& options, const Prediction& prediction,
                     double weight_decay);

// One step, in parts that may run beside each other. Borrows its arguments.
class OptimizerUpdate {
 public:
  OptimizerUpdate(const ParameterManifest& manifest, const OptimizerOptions& options,
                  const OptimizerStep& step);

  // Writes floats [begin, end) of the parameter vector, and their memory; padding becomes zero.
  void Run(uint64_t begin, uint64_t end) const;

 private:
  void RunTensor(const ParameterTensor& tensor, uint64_t begin, uint64_t end) const;
  void RunRunning(uint64_t begin, uint64_t end) const;

  const ParameterManifest& manifest_;
  const OptimizerOptions& options_;
  const OptimizerStep& step_;
  double clip_ = 1;
};

// All of the step.
inline void RunOptimizer(const ParameterManifest& manifest, const OptimizerOptions& options,
                         const OptimizerStep& step) {
  OptimizerUpdate(manifest, options, step).Run(0, manifest.num_floats);
}

}  // namespace gnnd
