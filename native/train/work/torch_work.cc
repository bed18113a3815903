#include "train/work/torch_work.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "core/base/check.h"
#include "core/model/parameter_digest.h"
#include "train/ops/parallel.h"
#include "train/ops/torch_threads.h"
#include "train/work/compute_side.h"
#include "train/work/guarded.h"

namespace gnnd {

TorchWork::~TorchWork() { parts_.side->Drain(); }

template <typename Body>
Status TorchWork::Computed(const Body& body) {
  const auto with_cores = [&] {
    UseThreads(parts_.threads, parts_.torch_threads);
    return body();
  };
  return Guarded(parts_.device, with_cores, parts_.thrown);
}

template <typename Body>
Status TorchWork::WithoutGradients(const Body& body) {
  return Computed([&] {
    const c10::AutoGradMode without_gradients(false);
    const at::NoTF32Guard exact;  // evaluations are float32, whatever training computes in
    return body();
  });
}

Status TorchWork::BringHistoryTo(const BatchPoint& point) {
  UseTeamOf(parts_.threads);
  return parts_.training->BringHistoryTo(point);
}

// Torch's operators are not used here, only our loops, on the calling thread's own team: so
// extraction never waits for a team that computes.
Status TorchWork::Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) {
  GNND_CHECK(buffer < kExtractBuffers);
  return Guarded(parts_.device, [&] { return parts_.training->Extract(sample, buffer, report); });
}

Status TorchWork::ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& view,
                                  std::span<float> gradient, BatchReport* report) {
  GNND_CHECK(buffer < kExtractBuffers && view.floats.size() == manifest().num_floats &&
             gradient.size() == manifest().num_floats);
  return Computed([&] {
    const c10::AutoGradMode with_gradients(true);
    return parts_.training->ComputeGradient(sample, buffer, view, gradient, report);
  });
}

void TorchWork::Apply(const StepView& step) {
  UseTeamOf(parts_.threads);
  std::vector<std::span<const float>> gradients;
  for (const GradientView& gradient : step.gradients) gradients.push_back(gradient.floats);
  const OptimizerStep arguments{gradients,          step.num_items,    step.version + 1,
                                step.parameters_in, step.optimizer_in, step.parameters_out,
                                step.optimizer_out};
  parts_.side->operators().update(manifest(), parts_.optimizer, arguments);
}

void TorchWork::PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                                  std::span<const float> optimizer, std::span<float> predicted) {
  gnnd::PredictParameters(manifest(), parts_.optimizer,
                          {version, lag, parameters, optimizer, predicted});
}

Result<EvalShape> TorchWork::PlanEvaluation(EvalNodes nodes, const Alive& alive) {
  EvalShape shape;
  GNND_TRY(Computed([&] {
    shape = GNND_VALUE(parts_.evaluation->Plan(nodes, alive));
    return Status::Ok();
  }));
  return shape;
}

Status TorchWork::EvaluateChunk(const EvalTask& task, const ParametersView& view,
                                const Alive& alive, EvalResult* result) {
  GNND_CHECK(view.floats.size() == manifest().num_floats);
  return WithoutGradients([&] { return parts_.evaluation->RunChunk(task, view, alive, result); });
}

Status TorchWork::Reduce(const ReduceTask& task, const Alive& alive) {
  return parts_.judging->Reduce(task, alive);
}

Judgement TorchWork::Judge(const EvalResult& whole, std::span<std::byte> kept) const {
  return parts_.judging->Judge(whole, kept);
}

Sha256Digest TorchWork::DigestOf(std::span<const float> parameters) {
  return gnnd::DigestOf(manifest(), parameters);
}

Status TorchWork::Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                          const Alive& alive, const LogitsConsumer& consume) {
  GNND_CHECK(parameters.size() == manifest().num_floats);
  return WithoutGradients(
      [&] { return parts_.prediction->Predict(parameters, nodes, alive, consume); });
}

}  // namespace gnnd
