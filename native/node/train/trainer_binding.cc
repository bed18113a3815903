#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/executor/trainer_loop.h"
#include "core/feature/hot_order.h"
#include "core/graph/topology.h"
#include "node/tables.h"
#include "node/train/bindings.h"
#include "train/script_model.h"
#include "train/torch_work.h"

// A Trainer's life.

namespace gnnd::node {
namespace {

OptimizerOptions OptimizerOf(const Fields& fields) {
  OptimizerOptions options;
  ReadOptimizerSpec(fields, options);
  const Fields schedule = fields.Object("schedule");
  ReadLrScheduleSpec(schedule, options.schedule);
  options.schedule.steps_per_epoch = schedule.Uint64("stepsPerEpoch");
  options.schedule.epochs = schedule.Uint64("epochs");
  return options;
}

}  // namespace

template <>
struct Codec<OptimizerOptions> {
  static std::string Type() { return "OptimizerOptions"; }
  static OptimizerOptions Read(const Napi::Value& value, const std::string& path) {
    return OptimizerOf(Fields(value, path));
  }
};

template <>
inline constexpr auto kNames<Precision> = NamesOf<Precision>(
    "Precision", {{"FLOAT32", Precision::kFloat32}, {"BFLOAT16", Precision::kBfloat16}});

struct EvaluationOptions {
  int scratch_fd = 0;
  bool sampled = false;
  SamplingOptions sampling;
};

template <>
inline constexpr auto kTable<EvaluationOptions> =
    StructOf("EvaluationOptions",
             Field{"scratchFd", &EvaluationOptions::scratch_fd,
                   "Receives hidden rows of exact evaluations; 0: there are none."},
             Field{"sampled", &EvaluationOptions::sampled},
             Field{"sampling", &EvaluationOptions::sampling,
                   "Used for sampled evaluations only; batchSize is not."});

struct TrainerOptions : ExecutorOptions {
  ModelOptions model;
  OptimizerOptions optimizer;
  Precision precision = Precision::kFloat32;
  uint32_t threads = 1;
  bool prefetch = false;
  EvaluationOptions evaluation;
};

template <>
inline constexpr auto kTable<TrainerOptions> = Extending(
    kTable<ExecutorOptions>, "TrainerOptions", Field{"model", &TrainerOptions::model},
    Field{"optimizer", &TrainerOptions::optimizer}, Field{"precision", &TrainerOptions::precision},
    Field{"threads", &TrainerOptions::threads},
    Field{"prefetch", &TrainerOptions::prefetch,
          "Extract the next batch while the present one is computed."},
    Field{"evaluation", &TrainerOptions::evaluation});

struct ProbeOptions {
  ModelOptions model;
  bool weighted = false;
};

template <>
inline constexpr auto kTable<ProbeOptions> =
    StructOf("ProbeOptions", "A model of the user's.", Field{"model", &ProbeOptions::model},
             Field{"weighted", &ProbeOptions::weighted,
                   "Whether the job calls it with edge weights, in batches or in evaluations."});

namespace {

// The user's model, where the options name one.
ScriptOptions ScriptOf(const ModelOptions& model, bool weighted) {
  return {model.script.path, model.script.sha256, model.spec.num_layers,
          model.spec.in_dim, model.spec.out_dim,  weighted};
}

// What the Trainer computes with, of an opened dataset.
TrainOptions TrainOptionsOf(const TrainerOptions& options, const Dataset& dataset,
                            const Topology& topology) {
  const SamplerOptions& sampler = options.sampling.sampler;
  const bool weighted_draws = sampler.algorithm == Algorithm::kWeighted;
  TrainOptions train;
  train.model = options.model.spec;
  train.script = ScriptOf(options.model, sampler.weights != EdgeWeights::kNone || weighted_draws);
  train.random_seed = options.random_seed.value;
  train.optimizer = options.optimizer;
  train.precision = options.precision;
  train.threads = options.threads;
  train.features = dataset.features();
  train.labels = dataset.labels();
  train.topology = topology.view();
  // Draws by edge weight estimate weighted means; evaluation takes those.
  if (weighted_draws) train.edge_weights = dataset.edge_weights();
  train.val_nodes = dataset.val();
  train.test_nodes = dataset.test();
  // Descriptor 0 is never a scratch: it says that there is none.
  if (options.evaluation.scratch_fd != 0) train.eval_place.fd = options.evaluation.scratch_fd;
  if (options.evaluation.sampled) train.eval_sampler = options.evaluation.sampling.sampler;
  train.features_on_disk = options.cache.features_on_disk;
  return train;
}

Result<LoopEnd> RunTrainer(const TrainerOptions& options) {
  Result<Dataset> dataset =
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kSlotsReadOnly);
  if (!segment.ok()) return segment.status();

  TrainOptions train = TrainOptionsOf(options, *dataset, *topology);
  HotOrder hot;
  if (options.cache.rows > 0) {
    Result<HotOrder> opened = HotOrder::Open(options.cache.order_path, dataset->num_nodes());
    if (!opened.ok()) return opened.status();
    hot = std::move(*opened);
    train.hot_order = hot.order();
    train.cache_rows = options.cache.rows;
  }
  Result<std::unique_ptr<TorchWork>> work = TorchWork::Create(train);
  if (!work.ok()) return work.status();
  return RunTrainerLoop(*segment, options.executor, **work, options.prefetch);
}

Task<LoopEnd> TrainerRun(const TrainerOptions& options) {
  return {[options] { return RunTrainer(options); }};
}

Task<ParameterManifest> ModelProbe(const ProbeOptions& options) {
  const ScriptOptions script = ScriptOf(options.model, options.weighted);
  return {[script]() -> Result<ParameterManifest> {
    auto model = ScriptModel::Load(script);
    if (!model.ok()) return model.status();
    ParameterManifest manifest = (*model)->manifest();
    manifest.widths = (*model)->spec().widths;
    return manifest;
  }};
}

}  // namespace

void DefineTrainer(Subject& subject) {
  subject.Struct<ProbeOptions>()
      .Struct<EvaluationOptions>()
      .Enum<Precision>()
      .Struct<TrainerOptions>()
      .Function("modelProbe", ModelProbe, {"options"},
                "Loads a user's model and tries it on a tiny block of each layer: for child "
                "processes.")
      .Function("trainerRun", TrainerRun, {"options"});
}

}  // namespace gnnd::node
