#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/graph/row_table.h"
#include "core/kernels/update.h"
#include "core/model/model_spec.h"

// The initial parameters (version 0) and the optimizer's step, as loops over the flat parameter
// vector. A step depends on its arguments and its number alone.

namespace gnnd {

// The torch.optim classes of these names.
enum class OptimizerType : uint32_t { kAdam = 1, kAdamW = 2, kSgd = 3 };

enum class ScheduleType : uint32_t {
  kConstant = 1,
  kStep = 2,    // times gamma after every step_epochs epochs (torch's StepLR)
  kCosine = 3,  // down to 0 after the last epoch along half a cosine (torch's CosineAnnealingLR)
};

// The parameters that decay: all, or those of the layer nearest the input.
enum class WeightDecayScope : uint32_t { kAll = 1, kFirstLayer = 2 };

// The learning rate over the job. For warmup_epochs it rises linearly with the step number, ending
// at the full rate; the schedule counts its epochs from there.
struct ScheduleOptions {
  ScheduleType type = ScheduleType::kConstant;
  uint32_t step_epochs = 1;  // read for kStep only, as gamma
  double gamma = 0.1;
  uint32_t warmup_epochs = 0;
  uint64_t steps_per_epoch = 1;  // parameter updates; constant over the job
  uint64_t epochs = 1;           // number of the job's epochs
};

struct OptimizerOptions {
  OptimizerType type = OptimizerType::kAdam;
  double learning_rate = 0.003;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;      // SGD
  bool nesterov = false;    // SGD: the step is gradient + momentum * new momentum
  double weight_decay = 0;  // added to the gradient; AdamW: decoupled
  WeightDecayScope weight_decay_scope = WeightDecayScope::kAll;
  double clip_norm = 0;  // bound on the Euclidean norm of the mean gradient; 0 = none
  ScheduleOptions schedule;
};

// kInvalidArgument names the field.
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

// Factor by which the first layer's weights exceed Glorot's, for features so small that its outputs
// would hardly differ: 0.5 / root mean square, at least 1, at most 3, over up to 1,024 evenly
// spread rows (docs/decisions/0045-initial-weights.md). 1 without rows.
double FirstLayerGain(const RowTable& features);

// Initialises weights Glorot-uniform (Glorot and Bengio, AISTATS 2010) from the keyed generator,
// with the fan of each in the manifest, those of layer 0 times `first_gain` (why:
// docs/decisions/0045-initial-weights.md); biases get their fill, padding zero. Element i of tensor
// t (its place in the manifest) takes word i % 4 of the draw with node i / 4 and batch t under
// Purpose::kInit.
void InitGlorot(const ParameterManifest& manifest, uint64_t random_seed, double first_gain,
                std::span<float> parameters);

// Running means and variances of batch normalisation (TensorRole::kRunning) move by this fraction
// of their distance to the batches', whatever the optimizer: torch.nn.BatchNorm1d's momentum. Their
// gradient is that distance times the batch's seeds; weight decay and gradient clipping ignore
// them.
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

// Arguments of one prediction; memory and parameters are those that RunOptimizer wrote.
struct Prediction {
  uint64_t version = 0;  // updates made so far, at least 1
  uint64_t lag = 0;      // updates ahead, at least 1
  std::span<const float> parameters;
  std::span<const float> memory;
  std::span<float> predicted;
};

// Predicts the parameters after the next `lag` updates, assuming that each goes as the memory says,
// with that update's own learning rate and decay: Adam's corrected first moment over the root of
// the second, or SGD's momentum. This is weight prediction of Chen, Yang and Cheng (SpecTrain,
// arXiv:1809.02839), whose velocity is the momentum; for Adam as in Guan's XPipe
// (arXiv:1911.04610). A gradient bound acts through the memory. Padding becomes zero.
void PredictParameters(const ParameterManifest& manifest, const OptimizerOptions& options,
                       const Prediction& prediction);

// The constants of a prediction, for tensors whose weight decay is `weight_decay`.
PathConstants PathOf(const OptimizerOptions& options, const Prediction& prediction,
                     double weight_decay);

// One step, in parts that may run in parallel. Borrows its arguments.
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

// Runs the whole step.
inline void RunOptimizer(const ParameterManifest& manifest, const OptimizerOptions& options,
                         const OptimizerStep& step) {
  OptimizerUpdate(manifest, options, step).Run(0, manifest.num_floats);
}

}  // namespace gnnd
