#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/executor/prediction_files.h"
#include "core/kernels/optimizer.h"
#include "core/model/manifest.h"
#include "core/model/row_manifest.h"
#include "train/device/device_rows.h"
#include "train/evaluate/pairs_of.h"
#include "train/input/link_use.h"
#include "train/ops/torch_threads.h"
#include "train/tasks/task.h"
#include "train/work/compute_side.h"
#include "train/work/guarded.h"
#include "train/work/journaled_evaluation.h"
#include "train/work/row_evaluation.h"
#include "train/work/row_training.h"
#include "train/work/torch_work.h"

// The one place that chooses the parts of a Trainer over rows.

namespace gnnd {
namespace {

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

bool Predicts(const RowsOptions& options) { return !options.predictions.folder.empty(); }

// The objects that parts borrow. Later members borrow earlier ones.
struct RowsBase {
  RowsBase(const RowsOptions& options, RowFiles files) : input(options, std::move(files)) {}
  ~RowsBase() { side->Drain(); }

  RowInput input;
  std::unique_ptr<DeviceRows> device;  // null: the CPU
  std::unique_ptr<ComputeSide> side = std::make_unique<HostComputeSide>();
  std::unique_ptr<RowBatches> batches;
  std::unique_ptr<RowLogits> logits;
  RowTargets targets;    // of an inference
  PairsOfRows of_links;  // where links are learnt, or asked for
};

Status ChooseSide(RowsBase* base) {
  const RowInput& input = base->input;
  if (input.options.device == nullptr) {
    base->batches = HostRowBatches(input);
  } else {
    base->device = GNND_VALUE(DeviceRows::Create(input.options, input.model.manifest.num_floats));
    base->side = std::make_unique<DeviceComputeSide>(&base->device->side());
    base->batches = DeviceRowBatches(input, base->device.get());
  }
  base->logits = std::make_unique<RowLogits>(input, base->side.get(), base->batches.get());
  return Status::Ok();
}

void WeighClasses(RowInput* input) {
  std::vector<int64_t> train(input->options.weighting.balanced ? input->options.train : 0);
  std::iota(train.begin(), train.end(), 0);
  input->weights = WeightsOf(input->options.weighting, input->files.targets, train);
  input->files.targets.weights = input->weights;
}

Status ChooseTraining(RowsBase* base, WorkParts* parts) {
  WeighClasses(&base->input);
  parts->training = RowTraining(base->input, base->side.get(), base->batches.get());
  parts->evaluation = RowEvaluation(base->logits.get());
  return Status::Ok();
}

Status ChooseLinks(RowsBase* base, WorkParts* parts) {
  const RowsOptions& options = base->input.options;
  const RowLinks& links = *options.links;
  const RowTargets& targets = base->targets;
  base->of_links = GNND_VALUE(ChoosePairs({*links.use,
                                           links.topology,
                                           options.model,
                                           options.random_seed,
                                           {targets.nodes, targets.are_all},
                                           options.predictions.folder}));
  parts->judging = JudgingOf(*links.use);
  parts->evaluation = RowPairs(base->logits.get(), base->of_links.phase.get());
  if (base->of_links.files == nullptr) {
    parts->training = RowLinkTraining(base->input, base->side.get(), base->batches.get());
    return Status::Ok();
  }
  parts->training = std::make_unique<NoTraining>();
  parts->evaluation =
      std::make_unique<JournaledEvaluation>(base->of_links.files, std::move(parts->evaluation));
  return Status::Ok();
}

Status ChooseInference(RowsBase* base, WorkParts* parts) {
  const RowsOptions& options = base->input.options;
  RowTargets& targets = base->targets;
  RowOutputs outputs = GNND_VALUE(OutputsOf(
      options.predictions.outputs, TaskOf(options.predictions.task), WidthsOf(options.model)));
  const auto files = std::make_shared<PredictionFiles>(GNND_VALUE(PredictionFiles::Open(
      options.predictions, {targets.nodes, targets.are_all}, std::move(outputs))));
  parts->training = std::make_unique<NoTraining>();
  parts->evaluation = std::make_unique<JournaledEvaluation>(
      files, RowInference(base->logits.get(), targets, files));
  return Status::Ok();
}

// Throws what torch and the device throw.
Result<std::unique_ptr<TorchWork>> Made(const RowsOptions& options, RowFiles files) {
  UseOneInteropThread();
  const auto base = std::make_shared<RowsBase>(options, std::move(files));
  GNND_TRY(ChooseSide(base.get()));
  WorkParts parts;
  parts.manifest = base->input.model.manifest;
  parts.optimizer = options.optimizer;
  parts.threads = options.threads;
  parts.device = options.device;
  parts.init = [&input = base->input](std::span<float> floats) {
    InitGlorot(input.model.manifest, input.options.random_seed, 1.0, floats);
  };
  parts.shared = base;
  parts.side = base->side.get();
  parts.judging = std::make_unique<NodeJudging>(base->input.files.targets);
  if (Predicts(options)) {
    base->targets =
        GNND_VALUE(RowTargets::Of(options.predicted, base->input.files.nodes.values<uint32_t>()));
  }
  if (options.links) {
    GNND_TRY(ChooseLinks(base.get(), &parts));
  } else {
    GNND_TRY(Predicts(options) ? ChooseInference(base.get(), &parts)
                               : ChooseTraining(base.get(), &parts));
  }
  parts.prediction = LogitsByRows(base->logits.get());
  return std::make_unique<TorchWork>(std::move(parts));
}

}  // namespace

Result<std::unique_ptr<TorchWork>> TorchWork::Create(const RowsOptions& options) {
  if (!TakesRows(options.model.type)) return Invalid("the model takes no rows");
  if (auto manifest = ManifestOf(options.model); !manifest.ok()) return manifest.status();
  GNND_TRY(CheckOptimizer(options.optimizer));
  if (options.threads == 0) return Invalid("threads must be at least 1");
  const uint64_t items = options.links ? options.links->batches.count : options.train;
  if (!Predicts(options) && (items == 0 || options.batch_size == 0 || options.chunk == 0)) {
    return Invalid("items, batch_size and chunk must be at least 1");
  }
  if (options.links) {
    if (!options.model.head) return Invalid("a model of links has no head");
    GNND_TRY(options.links->use->Check(options.links->topology.num_nodes()));
  }
  RowFiles files = GNND_VALUE(OpenRowFiles(options));
  std::unique_ptr<TorchWork> work;
  GNND_TRY(Guarded(options.device, [&] {
    work = GNND_VALUE(Made(options, std::move(files)));
    return Status::Ok();
  }));
  return work;
}

}  // namespace gnnd
