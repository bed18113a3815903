#pragma once

#include <cstdint>
#include <span>

#include "core/model/model_spec.h"

// Version 0 of the parameters and the optimizer's step, as loops over the flat parameter vector.

namespace gnnd {

struct AdamOptions {
  double learning_rate = 0.003;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // added to the gradient, as in torch.optim.Adam
  bool weight_decay_first_layer_only = false;
};

// Adam's memory is the first moments, then the second, each laid out like the parameter vector.
inline uint64_t AdamFloats(const ParameterManifest& manifest) { return 2 * manifest.num_floats; }

// Weights Glorot-uniform (Glorot and Bengio, AISTATS 2010) from the keyed generator, biases and
// padding zero. A layer's fan-in counts all its weights: for GraphSAGE neighbours and self, which
// are one matrix over their concatenation. Element i of tensor t (its place in the manifest) takes
// word i % 4 of the draw with node i / 4 and batch t under Purpose::kInit.
void InitGlorot(const ParameterManifest& manifest, uint64_t random_seed,
                std::span<float> parameters);

// Arguments of one Adam step; all spans have manifest.num_floats floats, memory twice as many.
struct AdamStep {
  std::span<const std::span<const float>> gradients;  // each a sum over seeds; added in this order
  uint64_t num_seeds = 0;                             // their total
  uint64_t step = 0;                                  // counts from 1
  std::span<const float> parameters_in;
  std::span<const float> memory_in;
  std::span<float> parameters_out;
  std::span<float> memory_out;
};

// Writes every float of the outputs; padding becomes zero.
void RunAdam(const ParameterManifest& manifest, const AdamOptions& options, const AdamStep& step);

}  // namespace gnnd
