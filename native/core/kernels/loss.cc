#include "core/kernels/loss.h"

namespace gnnd {
namespace {

// Number of elements whose target is known, as a divisor.
float KnownOf(uint64_t count, const float* targets) {
  uint32_t known = 0;
  for (uint64_t i = 0; i < count; ++i) known += std::isnan(targets[i]) ? 0 : 1;
  return static_cast<float>(known);
}

// Loss and gradient of one label: softplus(-x) or softplus(x), by exp(-|x|), which cannot overflow.
// NaN stays.
double BinaryCrossEntropy(float logit, bool is_there, float* grad) {
  const float x = is_there ? -logit : logit;  // larger means worse
  const float e = ExpOfNonPositive(x < 0 ? x : -x);
  const float sigmoid = (x < 0 ? e : 1.0F) / (1.0F + e);
  *grad = is_there ? -sigmoid : sigmoid;
  return std::log1p(static_cast<double>(e)) + (x < 0 ? 0.0 : static_cast<double>(x));
}

}  // namespace

double MultiLabelLoss(std::span<const float> outputs, const float* targets, const float* weights,
                      float* grad) {
  const float known = KnownOf(outputs.size(), targets);
  double sum = 0;
  for (uint64_t i = 0; i < outputs.size(); ++i) {
    if (grad != nullptr) grad[i] = 0;
    if (std::isnan(targets[i])) continue;
    const bool is_there = targets[i] > 0.5F;
    const float weight = is_there && weights != nullptr ? weights[i] : 1.0F;
    float slope = 0;
    sum += static_cast<double>(weight) * BinaryCrossEntropy(outputs[i], is_there, &slope);
    if (grad != nullptr) grad[i] = weight * slope / known;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

double SquaredErrorLoss(std::span<const float> outputs, const float* targets, float* grad) {
  const float known = KnownOf(outputs.size(), targets);
  double sum = 0;
  for (uint64_t i = 0; i < outputs.size(); ++i) {
    if (grad != nullptr) grad[i] = 0;
    if (std::isnan(targets[i])) continue;
    const float difference = outputs[i] - targets[i];
    sum += static_cast<double>(difference) * static_cast<double>(difference);
    if (grad != nullptr) grad[i] = 2.0F * difference / known;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

}  // namespace gnnd
