#include "train/work/block_evaluation.h"

#include <c10/core/GradMode.h>

#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "train/work/compute_side.h"
#include "train/work/guarded.h"

namespace gnnd {
namespace {

class OnHost : public Evaluation {
 public:
  OnHost(ComputeSide* side, BlockModel* model, std::unique_ptr<ChunkEvaluator> evaluator)
      : side_(*side), model_(*model), evaluator_(std::move(evaluator)) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override {
    return evaluator_->Plan(nodes, alive);
  }
  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    const auto constants = model_.Constants(parameters.floats, at::kCPU);
    const Status status = evaluator_->RunChunk(task, constants, alive, result);
    side_.TellChunks(evaluator_->work_bytes());
    return status;
  }
  void End() override { evaluator_->End(); }
  int scratch_fd() const override { return evaluator_->scratch_fd(); }

 protected:
  ComputeSide& side_;
  BlockModel& model_;
  std::unique_ptr<ChunkEvaluator> evaluator_;
};

class OnDevice final : public OnHost {
 public:
  OnDevice(DeviceSide* device, ComputeSide* side, BlockModel* model,
           std::unique_ptr<ChunkEvaluator> evaluator)
      : OnHost(side, model, std::move(evaluator)), device_(*device) {}

  // Takes the memory of evaluations. A want of room is no error.
  Status TakeRoom() {
    const Status placed = Try([&] {
      const c10::AutoGradMode without_gradients(false);
      return side_.Run([&] { return evaluator_->UseDevice(device_, &side_.memory()); });
    });
    return has_room_ ? placed : Status::Ok();
  }

  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    if (has_room_) {
      const Status status = Try([&] { return RunThere(task, parameters, alive, result); });
      if (has_room_) return status;
    }
    return OnHost::RunChunk(task, parameters, alive, result);
  }

 private:
  // Runs `body`, which takes device memory. If there is none, evaluations move to the processor.
  Status Try(const std::function<Status()>& body) {
    const Status status = Guarded(&device_.device(), body);
    if (status.code() != Code::kDeviceMemory) return status;
    has_room_ = false;
    evaluator_->UseHost();
    static_cast<void>(std::fprintf(stderr,
                                   "gnnd.evaluation: the device has no room for evaluations, which "
                                   "this Trainer computes on the processor from now on: %s\n",
                                   status.message().c_str()));
    return status;
  }

  Status RunThere(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) {
    ChunkReport report{.on_device = true};
    const auto compute = [&] {
      const auto constants = model_.Constants(side_.Parameters(parameters), side_.where());
      return evaluator_->RunChunk(task, constants, alive, result);
    };
    GNND_TRY(side_.RunTimed(compute, &report.device_ns));
    if (IsUseDue(evaluated_++)) report.device = GNND_VALUE(device_.device().Use());
    side_.TellMemory();
    side_.TellChunks(evaluator_->work_bytes());
    if (task.report != nullptr) *task.report = report;
    return Status::Ok();
  }

  DeviceSide& device_;
  bool has_room_ = true;
  uint64_t evaluated_ = 0;  // chunks, there
};

class Exact final : public NodeLogits {
 public:
  Exact(const BlockInput& input, BlockModel* model, std::shared_ptr<ExactLayers> layers)
      : input_(input), model_(*model), layers_(std::move(layers)) {}

  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override {
    progress_ = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      GNND_TRY(CheckInGraph(input_.options, nodes[i]));
      if (i > 0 && nodes[i - 1] >= nodes[i]) {
        return Status(Code::kInvalidArgument, "nodes to predict are not ascending");
      }
    }
    const auto constants = model_.Constants(parameters, at::kCPU);
    const uint32_t last = model_.model().spec.num_layers - 1;
    const EvalPlan plan = GNND_VALUE(layers_->Plan({nodes, std::span(&last, 1)}, alive));
    const auto take = [&](const LayerRows& rows) {
      return consume(rows.nodes, rows.values.data());
    };
    uint64_t done = 0;
    for (const EvalPhase& phase : plan.phases) {
      for (uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
        uint64_t rows = 0;
        GNND_TRY(layers_->Run(plan, phase, chunk, constants, alive, take, &rows));
        done += rows;
        progress_ = static_cast<double>(done) / static_cast<double>(plan.rows);
      }
    }
    layers_->End();
    return Status::Ok();
  }

 private:
  const BlockInput& input_;
  BlockModel& model_;
  std::shared_ptr<ExactLayers> layers_;
};

}  // namespace

std::unique_ptr<Evaluation> HostEvaluation(ComputeSide* side, BlockModel* model,
                                           std::unique_ptr<ChunkEvaluator> evaluator) {
  return std::make_unique<OnHost>(side, model, std::move(evaluator));
}

Result<std::unique_ptr<Evaluation>> DeviceEvaluation(DeviceSide* device, ComputeSide* side,
                                                     BlockModel* model,
                                                     std::unique_ptr<ChunkEvaluator> evaluator) {
  auto made = std::make_unique<OnDevice>(device, side, model, std::move(evaluator));
  GNND_TRY(made->TakeRoom());
  return std::unique_ptr<Evaluation>(std::move(made));
}

std::unique_ptr<NodeLogits> ExactLogits(const BlockInput& input, BlockModel* model,
                                        std::shared_ptr<ExactLayers> layers) {
  return std::make_unique<Exact>(input, model, std::move(layers));
}

}  // namespace gnnd
