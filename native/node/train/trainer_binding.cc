#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/executor/trainer_loop.h"
#include "core/feature/host_tier.h"
#include "core/feature/hot_order.h"
#include "core/graph/npy.h"
#include "core/graph/topology.h"
#include "node/core/sample_work.h"
#include "node/opened_device.h"
#include "node/tables.h"
#include "node/train/bindings.h"
#include "node/train/link_files.h"
#include "node/train/predicted_nodes.h"
#include "node/train/trainer_options.h"
#include "train/input/link_use.h"
#include "train/layers/script_model.h"
#include "train/work/torch_work.h"

// The life of a Trainer.

namespace gnnd::node {

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

// The user's model, if the options name one.
ScriptOptions ScriptOf(const ModelOptions& model, bool weighted) {
  return {model.script.path, model.script.sha256, model.num_layers,
          model.in_dim,      model.out_dim,       weighted};
}

// The options of the Trainer's computation, from an opened dataset.
TrainOptions TrainOptionsOf(const TrainerOptions& options, const Dataset& dataset,
                            const Topology& topology) {
  const SamplerOptions& sampler = options.sampling;
  const bool weighted_draws = sampler.algorithm == Algorithm::kWeighted;
  TrainOptions train;
  train.model = options.model;
  train.shares = sampler.weights == EdgeWeights::kShares;
  train.script = ScriptOf(options.model, sampler.weights != EdgeWeights::kNone || weighted_draws);
  train.random_seed = options.random_seed.value;
  train.optimizer = options.optimizer;
  train.precision = options.precision;
  train.threads = options.threads;
  train.features = dataset.features();
  train.targets = TargetsOf(dataset);
  train.topology = topology.view();
  // Draws by edge weight estimate weighted means, so evaluation computes weighted means, too.
  if (weighted_draws) train.edge_weights = dataset.edge_weights();
  train.val_nodes = dataset.val();
  train.test_nodes = dataset.test();
  // Descriptor 0 means that there is no scratch.
  if (options.evaluation.scratch_fd != 0) train.eval_place.fd = options.evaluation.scratch_fd;
  if (options.evaluation.sampled) train.eval_sampler = options.evaluation.sampling;
  train.features_on_disk = options.cache.features_on_disk;
  return train;
}

// Listed nodes and all nodes need a propagation of all nodes; a split is in that of its job.
Result<RowsToPredict> RowsToPredictOf(const PredictionOptions& prediction,
                                      const DatasetCounts& counts) {
  RowsToPredict rows;
  switch (prediction.nodes) {
    case PredictedNodes::kListed:
      rows.listed = GNND_VALUE(ListedNodes(ListOf(prediction)));
      [[fallthrough]];
    case PredictedNodes::kAll:
      rows.num_nodes = counts.num_nodes;
      return rows;
    case PredictedNodes::kTrain:
      rows.end = counts.train;
      return rows;
    case PredictedNodes::kVal:
      rows.begin = counts.train;
      rows.end = counts.train + counts.val;
      return rows;
    case PredictedNodes::kTest:
      rows.begin = counts.train + counts.val;
      rows.end = rows.begin + counts.test;
      return rows;
  }
  return rows;
}

// What a Trainer of links computes: nothing in the inference of rows alone.
Result<LinkUse> LinkUseOf(const TrainerOptions& options, bool ranks, LinkSource* from) {
  LinkFiles* const files = &from->files;
  LinkUse use;
  use.symmetric = options.sampling.links.symmetric;
  const PredictionOptions& prediction = options.prediction;
  if (!prediction.place.folder.empty()) {
    use.question = prediction.question.own;
    GNND_TRY(files->ReadAsked({prediction.place.folder, options.dataset.folder,
                               prediction.question.among, options.sampling.links.given},
                              &use.question));
    return use;
  }
  use.loss = options.links.loss;
  use.negatives = options.links.negatives;
  use.count = options.links.count;
  use.decides = options.evaluation.decides;
  use.ranks = ranks;
  GNND_TRY(files->ReadEvaluated(options.dataset.folder, &use));
  if (!options.links.test_folder.empty()) {
    DatasetCounts counts = options.dataset.counts;
    counts.num_edges = options.links.test_edges;
    GNND_TRY(files->ReadTestMessages(options.links.test_folder, counts, &use));
  }
  if (options.links.weighted) {
    GNND_TRY(
        files->ReadWeights(options.dataset.folder, options.sampling.links.count, &use.weights));
  }
  if (!options.links.labelled) return use;
  NodeTargets as;
  as.task = options.links.task;
  as.width = options.model.head_outputs;
  as.decides = options.evaluation.decides;
  as.ranks = ranks;
  GNND_TRY(from->ReadLabels(options.dataset.folder, as, options.class_weighting, &use));
  return use;
}

// The links that a Trainer of models over rows learns, or is asked for, and their graph.
struct RowLinkFiles {
  std::optional<Dataset> dataset;
  std::optional<Topology> topology;
  TrainingLinks train;
  LinkSource evaluated;
  LinkUse use;

  Result<std::optional<RowLinks>> Open(const TrainerOptions& options, bool ranks) {
    std::optional<RowLinks> links;
    if (!options.model.head) return links;
    use = GNND_VALUE(LinkUseOf(options, ranks, &evaluated));
    const bool predicts = !options.prediction.place.folder.empty();
    if (predicts && use.question.asks == LinkAsks::kNothing) return links;
    const DatasetLocation& at = options.dataset;
    dataset = GNND_VALUE(Dataset::Open(at.folder, at.counts, at.features_path));
    topology = GNND_VALUE(Topology::Attach(options.topology_fd, *dataset));
    links.emplace();
    links->batches = options.sampling.links;
    if (!predicts) {
      train = GNND_VALUE(TrainingLinks::Open(at.folder, links->batches));
      links->train = train.values();
    }
    links->topology = topology->view();
    links->use = &use;
    return links;
  }
};

// Runs a Trainer of models over rows, which needs neither the graph nor its features, unless links
// are learnt.
Result<LoopEnd> RunRowTrainer(const TrainerOptions& options) {
  Segment segment = GNND_VALUE(Segment::Attach(options.segment_fd, Access::kSlotsReadOnly));
  // Predictions are computed in the host's memory.
  const bool predicts = !options.prediction.place.folder.empty();
  const OpenedDevice opened =
      predicts ? OpenedDevice() : GNND_VALUE(OpenedDevice::Open(options.device));
  const DatasetCounts& counts = options.dataset.counts;
  RowsOptions rows;
  rows.model = options.model;
  rows.random_seed = options.random_seed.value;
  rows.optimizer = options.optimizer;
  rows.threads = options.threads;
  rows.folder = options.rows.folder;
  rows.train = counts.train;
  rows.val = counts.val;
  rows.test = counts.test;
  rows.task = counts.task;
  rows.weighting = options.class_weighting;
  rows.decides = options.evaluation.decides;
  rows.ranks = segment.config().kept_bytes > 0;
  rows.batch_size = options.sampling.batch_size;
  rows.chunk = options.rows.chunk;
  rows.predictions = options.prediction.place;
  if (predicts) {
    rows.predicted = GNND_VALUE(RowsToPredictOf(options.prediction, counts));
  }
  rows.tier = options.rows.tier;
  rows.device_splits = options.rows.device_splits;
  rows.device = opened.device.get();
  RowLinkFiles files;
  rows.links = GNND_VALUE(files.Open(options, rows.ranks));
  // Descriptor 0 means that there is no scratch.
  if (options.evaluation.scratch_fd != 0) rows.scratch_fd = options.evaluation.scratch_fd;
  std::unique_ptr<TorchWork> work = GNND_VALUE(TorchWork::Create(rows));
  return RunTrainerLoop(segment, options.executor, *work, options.prefetch);
}

HistoryUse HistoryOf(const HistoryOptions& options, const Segment& segment) {
  HistoryUse use{options.own, nullptr, {}, 1, options.levels, options.p_grad};
  if (segment.history() == nullptr) return use;
  use.config = segment.config().history;
  use.shared = segment.history();
  use.file = {segment.fd(), segment.history_offset()};
  use.group = segment.config().group;
  return use;
}

// The host's tier of features, mapped and registered with the device. A refusal is no error: it is
// logged, and rows are staged instead.
Result<HostTier> AttachHostTier(int fd, const RowTable& features, const Registrar& registrar) {
  HostTier tier = GNND_VALUE(HostTier::Attach(fd, features, &registrar));
  if (tier.seen() == nullptr) {
    const Status& status = tier.registration_status();
    const char* const why = status.ok() ? "its kernels see it in pieces" : status.message().c_str();
    static_cast<void>(std::fprintf(stderr,
                                   "gnnd.staged: the device cannot read features in the host's "
                                   "memory by itself, the host copies them to it: %s\n",
                                   why));
  }
  return tier;
}

Result<LoopEnd> RunTrainer(const TrainerOptions& options) {
  if (TakesRows(options.model.type)) return RunRowTrainer(options);
  if (TakesRelations(options.model.type)) return RunTypedTrainer(options);
  Dataset dataset = GNND_VALUE(
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path));
  Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
  const bool predicts = !options.prediction.place.folder.empty();
  const OpenedDevice opened = GNND_VALUE(OpenedDevice::Open(options.device));
  HostTier tier;
  if (opened.device != nullptr && options.cache.host_tier_fd != 0) {
    tier = GNND_VALUE(AttachHostTier(options.cache.host_tier_fd, dataset.features(), opened.own));
  }
  Segment segment =
      GNND_VALUE(Segment::Attach(options.segment_fd, Access::kSlotsReadOnly, opened.registrar()));

  TrainOptions train = TrainOptionsOf(options, dataset, topology);
  const std::vector<float> weights =
      predicts ? std::vector<float>()
               : WeightsOf(options.class_weighting, train.targets, dataset.train());
  train.targets.weights = weights;
  train.targets.decides = options.evaluation.decides;
  train.targets.ranks = segment.config().kept_bytes > 0;
  LinkSource files;
  LinkUse links;
  if (options.model.head) {
    links = GNND_VALUE(LinkUseOf(options, train.targets.ranks, &files));
    if (!predicts || links.question.asks != LinkAsks::kNothing) train.links = &links;
  }
  train.history = HistoryOf(options.history, segment);
  train.device.device = opened.device.get();
  train.device.features_seen = tier.seen();
  train.host_features = tier.rows();
  if (predicts) GNND_TRY(PredictInstead(options, dataset, &train));
  HotOrder hot;
  const bool is_beside = train.history.config.cache_rows > 0;
  if (options.cache.rows > 0 || is_beside || tier.rows().num_rows() > 0) {
    hot = GNND_VALUE(HotOrder::Open(options.cache.order_path, dataset.num_nodes()));
    train.hot_order = hot.order();
    train.hot_ranks = hot.ranks();
    if (opened.device == nullptr) {
      // Cached rows in history's memory need no cache.
      train.cache_rows = is_beside ? 0 : options.cache.rows;
    } else {
      train.device.cache_bytes = options.cache.rows * train.features.row_bytes();
      train.device.placement = options.cache.placement;
    }
  }
  const ExecutorId self = options.executor;
  const RowShares shares(segment);
  if (!train.device.placement.lines.empty()) {
    train.device.shares = &shares;
    train.device.incarnation = self.incarnation;
  }
  std::unique_ptr<TorchWork> work = GNND_VALUE(TorchWork::Create(train));
  const Result<LoopEnd> end = RunTrainerLoop(segment, options.executor, *work, options.prefetch);
  // Withdraws before the rows go. A process that dies does not come here: the daemon does it then.
  shares.Withdraw(train.device.placement.device, self.incarnation);
  return end;
}

Task<LoopEnd> TrainerRun(const TrainerOptions& options) {
  return {[options] { return RunTrainer(options); }};
}

Task<ParameterManifest> ModelProbe(const ProbeOptions& options) {
  const ScriptOptions script = ScriptOf(options.model, options.weighted);
  return {[script]() -> Result<ParameterManifest> {
    auto model = GNND_VALUE(ScriptModel::Load(script));
    ParameterManifest manifest = model->manifest();
    manifest.widths = model->spec().widths;
    return manifest;
  }};
}

}  // namespace

void DefineTrainer(Subject& subject) {
  subject.Enum<OptimizerType>()
      .Enum<WeightDecayScope>()
      .Enum<ScheduleType>()
      .Struct<ScheduleOptions>()
      .Struct<OptimizerOptions>()
      .Struct<ProbeOptions>()
      .Struct<EvaluationOptions>()
      .Enum<RowTier>()
      .Enum<DeviceSplits>()
      .Struct<RowOptions>()
      .Enum<OutputKind>()
      .Struct<OutputChoice>()
      .Enum<LinkAsks>()
      .Struct<QuestionOptions>()
      .Struct<PredictionOptions>()
      .Struct<HistoryOptions>()
      .Struct<ClassWeighting>()
      .Enum<LinkLoss>()
      .Enum<EvaluationNegatives>()
      .Struct<LinkTrainingOptions>()
      .Struct<TrainerOptions>()
      .Function("modelProbe", ModelProbe, {"options"},
                "Loads a user's model and tries it on a tiny block of each layer: for child "
                "processes.")
      .Function("trainerRun", TrainerRun, {"options"});
}

}  // namespace gnnd::node
