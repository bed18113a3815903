#include "train/work/row_training.h"

#include <thread>
#include <vector>

#include "core/base/check.h"
#include "train/evaluate/row_results.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/tasks/losses.h"
#include "train/work/compute_side.h"

namespace gnnd {
namespace {

class OnRows final : public Training {
 public:
  OnRows(const RowInput& input, ComputeSide* side, RowBatches* batches)
      : input_(input), side_(*side), batches_(*batches), order_(input.options) {}

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    GNND_CHECK(sample.kind() == SampleKind::kRows);
    UseTeamOf(ExtractThreads(owner_, input_.options.threads));
    const BatchKey key = order_.KeyOf(sample.key().epoch, sample.key().batch);
    order_.RunsOf(key, &runs_);
    RowBuffer& buffer = batches_.buffer(number);
    buffer.Begin(key, runs_);
    if (buffer.rows.size() != sample.num_seeds()) {
      return Status(Code::kShmCorrupted, "the segment's batches are not those of the rows");
    }
    GNND_TRY(batches_.Bring(number, order_.After(key)));
    report->work_bytes = side_.told_bytes();
    return batches_.Tell(number, report);
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    const RowBuffer& buffer = batches_.buffer(number);
    const auto outputs_of = [&](std::span<const at::Tensor>, const at::Tensor& logits) {
      const auto loss = [&](const at::Tensor& grad, BatchReport* told) {
        const LossInput known{input_.files.targets, buffer.targets, batches_.LabelsOf(number)};
        return ComputeLoss(known, logits, grad, &side_.memory(), told);
      };
      return BatchOutputs{logits, loss};
    };
    const RowStep step{input_, side_, batches_, sample, number, buffer.rows.size()};
    return WriteRowGradient(step, parameters, outputs_of, gradient, report);
  }

 private:
  const RowInput& input_;
  ComputeSide& side_;
  RowBatches& batches_;
  RowBatchOrder order_;
  const std::thread::id owner_ = std::this_thread::get_id();  // computes
  std::vector<RowRun> runs_;
};

}  // namespace

Status WriteRowGradient(
    const RowStep& step, const ParametersView& parameters,
    const std::function<BatchOutputs(std::span<const at::Tensor>, const at::Tensor&)>& outputs_of,
    std::span<float> gradient, BatchReport* report) {
  const BatchKey& key = step.batches.buffer(step.number).key;
  GNND_CHECK(key.epoch == step.sample.key().epoch && key.batch == step.sample.key().batch);
  const Model& model = step.input.model;
  const ParameterManifest& manifest = model.manifest;
  Workspace* const memory = &step.side.memory();
  memory->Reset();
  std::vector<RunningValue> running;
  const auto compute = [&] {
    std::vector<at::Tensor> leaves =
        ViewsOf(manifest, step.side.Parameters(parameters), step.side.where());
    for (size_t i = 0; i < leaves.size(); ++i) {
      leaves[i].requires_grad_(manifest.tensors[i].role != TensorRole::kRunning);
    }
    const at::Tensor rows =
        ForwardRows(model, leaves, step.batches.BatchOf(step.number, true), memory, &running)
            .contiguous();
    const auto [outputs, loss] = outputs_of(leaves, rows);
    return step.side.WriteGradient({manifest, leaves, outputs, loss}, gradient, report);
  };
  GNND_TRY(step.side.RunTimed(compute, &report->device_ns));
  WriteRunning(manifest, running, parameters.floats, step.items, gradient);
  return Status::Ok();
}

std::unique_ptr<Training> RowTraining(const RowInput& input, ComputeSide* side,
                                      RowBatches* batches) {
  return std::make_unique<OnRows>(input, side, batches);
}

}  // namespace gnnd
