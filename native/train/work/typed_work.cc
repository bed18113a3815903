#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/executor/prediction_files.h"
#include "core/kernels/optimizer.h"
#include "core/model/manifest.h"
#include "train/evaluate/eval_outcome.h"
#include "train/evaluate/typed_layers.h"
#include "train/input/typed_rows.h"
#include "train/layers/relational.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/ops/torch_threads.h"
#include "train/tasks/task.h"
#include "train/work/block_task.h"
#include "train/work/compute_side.h"
#include "train/work/guarded.h"
#include "train/work/journaled_evaluation.h"
#include "train/work/torch_work.h"

// The one place that chooses the parts of a Trainer over several types of nodes, and these parts.

namespace gnnd {
namespace {

// The objects that parts borrow. Later members borrow earlier ones.
struct TypedBase {
  TypedBase(TypedInput of, const ModelSpec& spec) : input(std::move(of)), model(spec) {}

  TypedInput input;
  Model model;
  HostComputeSide side;
  std::unique_ptr<BlockTask> task;
  std::unique_ptr<EvalOutcome> outcome;
};

class TypedTraining final : public Training {
 public:
  explicit TypedTraining(TypedBase* base) : base_(*base) {}

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    TypedBuffer* const buffer = &buffers_[number];
    UseTeamOf(base_.input.options.own.threads);
    GNND_TRY(ExtractTyped(base_.input, sample, buffer, report));
    GNND_TRY(base_.task->Read(sample, &buffer->seeds));
    report->work_bytes = base_.side.told_bytes();
    for (const TypedBuffer& each : buffers_) {
      report->work_bytes += each.seeds.memory.reserved_bytes();
    }
    return Status::Ok();
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override {
    const TypedBuffer& extracted = buffers_[number];
    GNND_CHECK(extracted.seeds.key.epoch == sample.key().epoch &&
               extracted.seeds.key.batch == sample.key().batch);
    Workspace* const memory = &base_.side.memory();
    memory->Reset();
    std::vector<at::Tensor> leaves = ViewsOf(base_.model.manifest, parameters.floats, at::kCPU);
    for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
    const at::Tensor rows = ForwardTyped(base_.model, leaves, extracted.seeds.sample,
                                         extracted.rows, /*trains=*/true, memory);
    const BlockTask& task = *base_.task;
    const at::Tensor outputs = task.Outputs({sample, leaves, memory}, rows).contiguous();
    const auto loss = [&](const at::Tensor& grad, BatchReport* told) {
      return task.Loss({sample, extracted.seeds, memory}, outputs, grad, told);
    };
    return base_.side.WriteGradient({base_.model.manifest, leaves, outputs, loss}, gradient,
                                    report);
  }

 private:
  TypedBase& base_;
  TypedBuffer buffers_[kExtractBuffers];
};

class TypedEvaluation final : public Evaluation {
 public:
  explicit TypedEvaluation(TypedBase* base) : base_(*base), layers_(base->input, base->model) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) override {
    std::optional<TypedPlan>& plan = plans_[static_cast<uint32_t>(nodes)];
    if (!plan) {
      const EvalOutcome& outcome = *base_.outcome;
      plan = GNND_VALUE(layers_.Plan({outcome.nodes(nodes), outcome.layers()}, alive));
    }
    return EvalShape{plan->phases(), plan->chunks, plan->rows};
  }

  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    const std::optional<TypedPlan>& plan = plans_[static_cast<uint32_t>(task.run.nodes)];
    GNND_CHECK(plan && task.phase < plan->phases());
    *result = EvalResult{};
    const Status status = layers_.Run(
        *plan, task.phase, task.chunk, ViewsOf(base_.model.manifest, parameters.floats, at::kCPU),
        alive, [&](const LayerRows& rows) { return base_.outcome->Take(task, rows, result); },
        &result->rows);
    base_.side.TellChunks(work_bytes());
    return status;
  }

  void End() override { layers_.End(); }
  int scratch_fd() const override { return layers_.scratch_fd(); }

 private:
  uint64_t work_bytes() const {
    uint64_t bytes = layers_.work_bytes() + base_.outcome->bytes();
    for (const std::optional<TypedPlan>& plan : plans_) {
      if (!plan) continue;
      for (const NodeSet& set : plan->sets) bytes += set.bytes();
    }
    return bytes;
  }

  TypedBase& base_;
  TypedLayers layers_;
  std::optional<TypedPlan> plans_[2];  // by EvalNodes
};

class TypedLogits final : public NodeLogits {
 public:
  explicit TypedLogits(TypedBase* base) : base_(*base), layers_(base->input, base->model) {}

  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override {
    progress_ = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      GNND_TRY(CheckInGraph(base_.input.options.own, nodes[i]));
      if (i > 0 && nodes[i - 1] >= nodes[i]) {
        return Status(Code::kInvalidArgument, "nodes to predict are not ascending");
      }
    }
    const auto constants = ViewsOf(base_.model.manifest, parameters, at::kCPU);
    const uint32_t last = base_.model.spec.num_layers - 1;
    const TypedPlan plan = GNND_VALUE(layers_.Plan({nodes, std::span(&last, 1)}, alive));
    const auto take = [&](const LayerRows& rows) {
      return consume(rows.nodes, rows.values.data());
    };
    uint64_t done = 0;
    for (uint32_t phase = 0; phase < plan.phases(); ++phase) {
      for (uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
        uint64_t rows = 0;
        GNND_TRY(layers_.Run(plan, phase, chunk, constants, alive, take, &rows));
        done += rows;
        progress_ = static_cast<double>(done) / static_cast<double>(plan.rows);
      }
    }
    layers_.End();
    return Status::Ok();
  }

 private:
  TypedBase& base_;
  TypedLayers layers_;
};

// Evaluations of an inference go to files, and it trains on no batch.
Status ChooseInference(TypedBase* base, WorkParts* parts) {
  const TrainOptions& own = base->input.options.own;
  RowOutputs outputs = GNND_VALUE(
      OutputsOf(own.predictions.outputs, TaskOf(own.predictions.task), WidthsOf(own.model)));
  const auto files = std::make_shared<PredictionFiles>(GNND_VALUE(PredictionFiles::Open(
      own.predictions, {own.predicted_nodes, own.predicts_all}, std::move(outputs))));
  base->outcome = std::make_unique<PredictedOutcome>(own.predicted_nodes, files);
  parts->training = std::make_unique<NoTraining>();
  parts->evaluation =
      std::make_unique<JournaledEvaluation>(files, std::make_unique<TypedEvaluation>(base));
  return Status::Ok();
}

void ChooseTraining(TypedBase* base, WorkParts* parts) {
  const TrainOptions& own = base->input.options.own;
  base->task = NodesOfBlocks(own.targets);
  base->outcome = std::make_unique<CountedOutcome>(own);
  parts->training = std::make_unique<TypedTraining>(base);
  parts->evaluation = std::make_unique<TypedEvaluation>(base);
}

// Throws what torch throws.
Result<std::unique_ptr<TorchWork>> Made(const TypedOptions& options) {
  UseOneInteropThread();
  const auto base =
      std::make_shared<TypedBase>(GNND_VALUE(TypedInput::Of(options)), options.own.model);
  TrainOptions& own = base->input.options.own;
  WorkParts parts;
  parts.manifest = base->model.manifest;
  parts.optimizer = own.optimizer;
  parts.threads = own.threads;
  parts.init = [&model = base->model, seed = own.random_seed](std::span<float> floats) {
    InitGlorot(model.manifest, seed, 1.0, floats);
  };
  parts.shared = base;
  parts.side = &base->side;
  parts.judging = std::make_unique<NodeJudging>(own.targets);
  if (own.predictions.folder.empty()) {
    ChooseTraining(base.get(), &parts);
  } else {
    GNND_TRY(ChooseInference(base.get(), &parts));
  }
  parts.prediction = std::make_unique<TypedLogits>(base.get());
  return std::make_unique<TorchWork>(std::move(parts));
}

}  // namespace

Result<std::unique_ptr<TorchWork>> TorchWork::Create(const TypedOptions& options) {
  if (auto manifest = ManifestOf(options.own.model); !manifest.ok()) return manifest.status();
  TypedOptions given = options;
  if (given.own.targets.width == 0) given.own.targets.width = given.own.model.out_dim;
  GNND_TRY(CheckTypedOptions(given));
  std::unique_ptr<TorchWork> work;
  GNND_TRY(Guarded(nullptr, [&] {
    work = GNND_VALUE(Made(given));
    return Status::Ok();
  }));
  return work;
}

}  // namespace gnnd
