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
    const ParameterManifest& manifest = input_.model.manifest;
    GNND_CHECK(buffer.key.epoch == sample.key().epoch && buffer.key.batch == sample.key().batch);
    Workspace* const memory = &side_.memory();
    memory->Reset();
    std::vector<RunningValue> running;
    const auto compute = [&] {
      std::vector<at::Tensor> leaves =
          ViewsOf(manifest, side_.Parameters(parameters), side_.where());
      for (size_t i = 0; i < leaves.size(); ++i) {
        leaves[i].requires_grad_(manifest.tensors[i].role != TensorRole::kRunning);
      }
      const at::Tensor logits =
          ForwardRows(input_.model, leaves, batches_.BatchOf(number, true), memory, &running)
              .contiguous();
      const auto loss = [&](const at::Tensor& grad, BatchReport* told) {
        const LossInput known{input_.files.targets, buffer.targets, batches_.LabelsOf(number)};
        return ComputeLoss(known, logits, grad, memory, told);
      };
      return side_.WriteGradient({manifest, leaves, logits, loss}, gradient, report);
    };
    GNND_TRY(side_.RunTimed(compute, &report->device_ns));
    WriteRunning(manifest, running, parameters.floats, buffer.rows.size(), gradient);
    return Status::Ok();
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

std::unique_ptr<Training> RowTraining(const RowInput& input, ComputeSide* side,
                                      RowBatches* batches) {
  return std::make_unique<OnRows>(input, side, batches);
}

}  // namespace gnnd
