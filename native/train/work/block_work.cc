#include <memory>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/executor/prediction_files.h"
#include "core/model/manifest.h"
#include "train/evaluate/eval_outcome.h"
#include "train/evaluate/exact_evaluator.h"
#include "train/evaluate/link_evaluator.h"
#include "train/evaluate/pairs_of.h"
#include "train/evaluate/sampled_evaluator.h"
#include "train/evaluate/script_eval_layer.h"
#include "train/input/link_use.h"
#include "train/ops/torch_threads.h"
#include "train/tasks/task.h"
#include "train/work/block_evaluation.h"
#include "train/work/block_task.h"
#include "train/work/block_training.h"
#include "train/work/compute_side.h"
#include "train/work/guarded.h"
#include "train/work/journaled_evaluation.h"
#include "train/work/torch_work.h"

// The one place that chooses the parts of a Trainer over blocks.

namespace gnnd {
namespace {

// The objects that parts borrow. Later members borrow earlier ones.
struct BlockBase {
  ~BlockBase() { side->Drain(); }

  BlockInput input;
  std::unique_ptr<DeviceSide> device;  // null: the CPU
  std::unique_ptr<ComputeSide> side = std::make_unique<HostComputeSide>();
  std::unique_ptr<BlockModel> model;
  ExactLayers::MakeRunner make_runner;  // makes the model's layers on the processor
  std::unique_ptr<BatchHistory> history;
  std::shared_ptr<ChunkFiles> files;  // null: no inference
  std::unique_ptr<BlockTask> task;
  std::unique_ptr<PairPhase> pairs;  // null: rows of nodes are all that is wanted
  std::unique_ptr<EvalOutcome> outcome;
  std::shared_ptr<ExactLayers> exact;

  std::shared_ptr<ExactLayers> HostLayers() const {
    return std::make_shared<ExactLayers>(input, model->model(), make_runner);
  }
};

Status ChooseModel(BlockBase* base) {
  TrainOptions& options = base->input.options;
  if (options.model.type == ModelType::kScript) {
    std::unique_ptr<ScriptModel> script = GNND_VALUE(ScriptModel::Load(options.script));
    options.model = script->spec();
    base->make_runner = [&options, borrowed = script.get()] {
      return std::make_unique<ScriptEvalLayer>(options, borrowed);
    };
    base->model = ScriptedModel(std::move(script));
    return Status::Ok();
  }
  if (auto manifest = ManifestOf(options.model); !manifest.ok()) return manifest.status();
  base->model =
      OwnModel(Model(options.model, options.shares), options.features, options.random_seed);
  base->make_runner = [&options, &model = base->model->model()] {
    return std::make_unique<EvalLayer>(options, model, std::make_unique<HostInput>());
  };
  return Status::Ok();
}

Status ChooseSide(BlockBase* base) {
  const TrainOptions& options = base->input.options;
  if (options.operators != nullptr) {
    base->side = std::make_unique<HostComputeSide>(*options.operators);
  }
  if (options.device.device == nullptr) return Status::Ok();
  const ModelKind& kind = KindOf(options.model.type);
  if (!kind.on_devices) {
    return Status(Code::kDeviceUnavailable,
                  std::string(kind.name) + " is trained on CPU devices only");
  }
  base->device = GNND_VALUE(DeviceSide::Create(options, base->model->manifest().num_floats));
  base->side = std::make_unique<DeviceComputeSide>(base->device.get());
  return Status::Ok();
}

// Makes the place that computes, history and the store of features with its cache.
Status OpenStore(BlockBase* base) {
  const uint64_t start_ns = MonotonicNs();
  GNND_TRY(ChooseSide(base));
  BlockInput& input = base->input;
  const TrainOptions& options = input.options;
  base->history = GNND_VALUE(BatchHistory::Of(options.history, options.features,
                                              base->device ? &base->device->compute() : nullptr));
  input.store =
      GNND_VALUE(base->history->MakeStore({options.features, options.hot_order, options.cache_rows,
                                           options.features_on_disk, options.host_features}));
  const bool fills =
      input.store.cache_rows() > 0 || (base->device && base->device->features().cache_rows() > 0);
  if (fills) input.cache_fill_ns = MonotonicNs() - start_ns;
  return Status::Ok();
}

// What is learnt, and what judges evaluations of it.
Result<std::unique_ptr<Judging>> ChooseTask(BlockBase* base) {
  TrainOptions& options = base->input.options;
  if (options.links != nullptr) {
    const LinkUse& use = *options.links;
    if (!options.model.head) return Status(Code::kInvalidArgument, "a model of links has no head");
    if (options.eval_sampler) {
      return Status(Code::kInvalidArgument, "links are not evaluated on samples");
    }
    GNND_TRY(use.Check(options.num_nodes()));
    base->task = LinksOfBlocks(base->model->model(), use);
    return JudgingOf(use);
  }
  if (options.targets.width == 0) options.targets.width = options.model.out_dim;
  GNND_TRY(CheckTargets(options));
  base->task = NodesOfBlocks(options.targets);
  return std::unique_ptr<Judging>(std::make_unique<NodeJudging>(options.targets));
}

Status ChooseOutcome(BlockBase* base) {
  const TrainOptions& options = base->input.options;
  if (options.links != nullptr) {
    PairsOfRows chosen = GNND_VALUE(ChoosePairs({*options.links,
                                                 options.topology,
                                                 base->model->model().spec,
                                                 options.random_seed,
                                                 {options.predicted_nodes, options.predicts_all},
                                                 options.predictions.folder}));
    base->files = std::move(chosen.files);
    base->pairs = std::move(chosen.phase);
    base->outcome = std::make_unique<KeptRows>(*base->pairs, *base->exact);
    return Status::Ok();
  }
  if (options.predictions.folder.empty()) {
    base->outcome = std::make_unique<CountedOutcome>(options);
    return Status::Ok();
  }
  RowOutputs outputs = GNND_VALUE(OutputsOf(
      options.predictions.outputs, TaskOf(options.predictions.task), WidthsOf(options.model)));
  auto files = std::make_shared<PredictionFiles>(GNND_VALUE(PredictionFiles::Open(
      options.predictions, {options.predicted_nodes, options.predicts_all}, std::move(outputs))));
  base->files = files;
  base->outcome = std::make_unique<PredictedOutcome>(options.predicted_nodes, std::move(files));
  return Status::Ok();
}

std::unique_ptr<Training> TrainingOf(BlockBase* base) {
  if (base->files) return std::make_unique<NoTraining>();
  const BlockTrainer parts{&base->input, base->side.get(), base->model.get(), base->history.get(),
                           base->task.get()};
  return base->device ? BlockTraining(parts, base->device.get()) : BlockTraining(parts);
}

Result<std::unique_ptr<ChunkEvaluator>> EvaluatorOf(BlockBase* base) {
  std::unique_ptr<ChunkEvaluator> evaluator;
  if (base->input.options.eval_sampler) {
    evaluator =
        GNND_VALUE(SampledEvaluator::Create(base->input, base->model.get(), base->outcome.get()));
  } else {
    evaluator = std::make_unique<ExactEvaluator>(base->exact.get(), base->outcome.get());
  }
  if (base->pairs) {
    evaluator = std::make_unique<LinkEvaluator>(std::move(evaluator), base->model->model(),
                                                *base->exact, base->pairs.get());
  }
  return evaluator;
}

Result<std::unique_ptr<Evaluation>> EvaluationOf(BlockBase* base) {
  ComputeSide* const side = base->side.get();
  BlockModel* const model = base->model.get();
  auto evaluator = GNND_VALUE(EvaluatorOf(base));
  std::unique_ptr<Evaluation> evaluation;
  if (base->device && !base->outcome->empty()) {
    evaluation =
        GNND_VALUE(DeviceEvaluation(base->device.get(), side, model, std::move(evaluator)));
  } else {
    evaluation = HostEvaluation(side, model, std::move(evaluator));
  }
  if (!base->files) return evaluation;
  return std::unique_ptr<Evaluation>(
      std::make_unique<JournaledEvaluation>(base->files, std::move(evaluation)));
}

// Throws what torch and the device throw.
Result<std::unique_ptr<TorchWork>> Made(const TrainOptions& given) {
  const auto base = std::make_shared<BlockBase>();
  TrainOptions& options = base->input.options;
  options = given;
  GNND_TRY(ChooseModel(base.get()));
  GNND_TRY(CheckOptions(options));
  WorkParts parts;
  parts.judging = GNND_VALUE(ChooseTask(base.get()));
  GNND_TRY(OpenStore(base.get()));
  base->exact = base->HostLayers();
  GNND_TRY(ChooseOutcome(base.get()));
  UseOneInteropThread();

  parts.manifest = base->model->manifest();
  parts.optimizer = options.optimizer;
  parts.threads = options.threads;
  parts.torch_threads = base->model->torch_threads(options.threads);
  parts.device = options.device.device;
  parts.thrown = base->model->thrown();
  parts.init = [model = base->model.get()](std::span<float> floats) { model->Init(floats); };
  parts.shared = base;
  parts.side = base->side.get();
  parts.training = TrainingOf(base.get());
  UseThreads(parts.threads, parts.torch_threads);
  parts.evaluation = GNND_VALUE(EvaluationOf(base.get()));
  // The layers of an evaluation may compute on a device.
  parts.prediction =
      ExactLogits(base->input, base->model.get(), base->device ? base->HostLayers() : base->exact);
  return std::make_unique<TorchWork>(std::move(parts));
}

}  // namespace

Result<std::unique_ptr<TorchWork>> TorchWork::Create(const TrainOptions& options) {
  std::unique_ptr<TorchWork> work;
  GNND_TRY(Guarded(options.device.device, [&] {
    work = GNND_VALUE(Made(options));
    return Status::Ok();
  }));
  return work;
}

}  // namespace gnnd
