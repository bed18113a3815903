#include "core/kernels/update.h"
#include "cuda/dev.h"
#include "cuda/operators.h"

// One update of the flat parameter vector, a thread a parameter.

namespace gnnd::cuda {
namespace {

GNND_DEVICE float GradientAt(const UpdateVectors& vectors, uint64_t i) {
  float sum = vectors.gradients[0][i];
  for (uint32_t g = 1; g < vectors.num_gradients; ++g) sum += vectors.gradients[g][i];
  return sum;
}

// One warp: squares are added up in the order of the parameters, as core/kernels does.
GNND_KERNEL ClipOf(UpdateVectors vectors, float seeds, double clip_norm, float* clip) {
  double squares = 0;
  for (uint64_t from = 0; from < vectors.num_floats; from += kWarpLanes) {
    const uint64_t i = from + Lane();
    double square = 0;
    if (i < vectors.num_floats) {
      const auto mean = static_cast<double>(GradientAt(vectors, i) / seeds);
      square = mean * mean;
    }
    const uint64_t left = vectors.num_floats - from;
    const auto count = static_cast<uint32_t>(left < kWarpLanes ? left : kWarpLanes);
    for (uint32_t k = 0; k < count; ++k) squares += Shuffle(kFullMask, square, k);
  }
  if (Lane() == 0) *clip = static_cast<float>(ClipFactorOf(clip_norm, squares));
}

template <bool kSgd>
GNND_KERNEL UpdateFloats(UpdateVectors vectors, StepConstants constants, const float* clip,
                         uint64_t begin, uint64_t end) {
  if (clip != nullptr) constants.clip = *clip;
  const uint64_t second = vectors.num_floats;
  for (uint64_t i = begin + GridThread(); i < end; i += GridThreads()) {
    const UpdatedFloat old{vectors.parameters_in[i], vectors.memory_in[i],
                           kSgd ? 0.0F : vectors.memory_in[second + i]};
    const float gradient = GradientAt(vectors, i);
    const UpdatedFloat next =
        kSgd ? SgdUpdate(constants, gradient, old) : AdamUpdate(constants, gradient, old);
    vectors.parameters_out[i] = next.parameter;
    vectors.memory_out[i] = next.memory1;
    vectors.memory_out[second + i] = next.memory2;
  }
}

GNND_KERNEL ZeroFloats(UpdateVectors vectors, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin + GridThread(); i < end; i += GridThreads()) {
    vectors.parameters_out[i] = 0.0F;
    vectors.memory_out[i] = 0.0F;
    vectors.memory_out[vectors.num_floats + i] = 0.0F;
  }
}

template <bool kSgd>
GNND_KERNEL PredictFloats(PathConstants path, uint64_t num_floats, const float* parameters,
                          const float* memory, float* predicted, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin + GridThread(); i < end; i += GridThreads()) {
    predicted[i] = kSgd ? PredictedBySgd(path, parameters[i], memory[i])
                        : PredictedByAdam(path, parameters[i], memory[i], memory[num_floats + i]);
  }
}

}  // namespace

void ClipFactor(const Queue& queue, const UpdateVectors& vectors, uint64_t num_seeds,
                double clip_norm, float* clip) {
  Launch(queue, ClipOf, 1, kWarpLanes, 0, vectors, static_cast<float>(num_seeds), clip_norm, clip);
}

void UpdateRange(const Queue& queue, const UpdateVectors& vectors, const StepConstants& constants,
                 const float* clip, bool sgd, uint64_t begin, uint64_t end) {
  LaunchFor(queue, end - begin, sgd ? UpdateFloats<true> : UpdateFloats<false>, vectors, constants,
            clip, begin, end);
}

void ZeroRange(const Queue& queue, const UpdateVectors& vectors, uint64_t begin, uint64_t end) {
  LaunchFor(queue, end - begin, ZeroFloats, vectors, begin, end);
}

void PredictRange(const Queue& queue, const PathConstants& path, bool sgd, uint64_t num_floats,
                  const float* parameters, const float* memory, float* predicted, uint64_t begin,
                  uint64_t end) {
  LaunchFor(queue, end - begin, sgd ? PredictFloats<true> : PredictFloats<false>, path, num_floats,
            parameters, memory, predicted, begin, end);
}

}  // namespace gnnd::cuda
