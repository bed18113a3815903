#include <memory>
#include <string>
#include <utility>

#include "core/graph/topology.h"
#include "node/tables.h"
#include "node/train/bindings.h"
#include "node/train/predicted_nodes.h"
#include "node/train/typed_input_files.h"
#include "train/work/prediction_stream.h"
#include "train/work/torch_work.h"

// Predictions of a trained model.

namespace gnnd::node {

struct PredictOptions {
  DatasetLocation dataset;
  ModelOptions model;
  Floats parameters;
  PredictedNodes nodes = PredictedNodes::kAll;
  std::string rows_folder;
  bool weighted_means = false;
  uint32_t threads = 1;
  EvalPlace place;
  int topology_fd = -1;
  int output_fd = -1;
};

template <>
inline constexpr auto kTable<PredictOptions> = StructOf(
    "PredictOptions", Field{"dataset", &PredictOptions::dataset},
    Field{"model", &PredictOptions::model},
    Field{"parameters", &PredictOptions::parameters, "In manifest order, padding included."},
    Field{"nodes", &PredictOptions::nodes},
    Field{"rowsFolder", &PredictOptions::rows_folder,
          "Of a propagation's row files, for models over rows: nodes VAL or TEST."},
    Field{"weightedMeans", &PredictOptions::weighted_means,
          "Means over neighbours are weighted by the dataset's edge weights."},
    Field{"threads", &PredictOptions::threads},
    Field{"memoryBytes", [](auto& options) -> auto& { return options.place.memory_bytes; },
          "For hidden layers' rows; where they are more they lie in a file in `scratchFolder`."},
    Field{"scratchFolder", [](auto& options) -> auto& { return options.place.folder; }},
    Field{"topologyFd", &PredictOptions::topology_fd},
    Field{"outputFd", &PredictOptions::output_fd,
          "Receives frames (native/train/work/prediction_stream.h)."});

namespace {

Result<std::unique_ptr<TorchWork>> RowsWorkOf(const PredictOptions& options) {
  const DatasetCounts& counts = options.dataset.counts;
  RowsOptions rows;
  rows.model = options.model;
  rows.threads = options.threads;
  rows.folder = options.rows_folder;
  rows.train = counts.train;
  rows.val = counts.val;
  rows.test = counts.test;
  rows.task = counts.task;
  return TorchWork::Create(rows);
}

template <typename AnyDataset>
Status Stream(TorchWork* work, const AnyDataset& dataset, const PredictOptions& options) {
  const auto num_nodes = static_cast<uint32_t>(options.dataset.counts.num_nodes);
  PredictionRequest request;
  request.parameters = options.parameters.values;
  request.nodes = GNND_VALUE(NodesOf(dataset, num_nodes, options.nodes, ""));
  request.all_nodes = options.nodes == PredictedNodes::kAll;
  request.classes = options.model.out_dim;
  request.task = options.dataset.counts.task;
  request.fd = options.output_fd;
  return StreamPredictions(work, request);
}

Status PredictTyped(const PredictOptions& options) {
  const TypedInputFiles files =
      GNND_VALUE(TypedInputFiles::Open(options.dataset, options.topology_fd));
  TypedOptions typed = files.Options();
  typed.own.model = options.model;
  typed.own.threads = options.threads;
  typed.own.eval_place = options.place;
  std::unique_ptr<TorchWork> work = GNND_VALUE(TorchWork::Create(typed));
  return Stream(work.get(), files.dataset, options);
}

Status Predict(const PredictOptions& options) {
  if (TakesRelations(options.model.type)) return PredictTyped(options);
  Dataset dataset = GNND_VALUE(
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path));
  if (TakesRows(options.model.type)) {
    return Stream(GNND_VALUE(RowsWorkOf(options)).get(), dataset, options);
  }
  Topology topology = GNND_VALUE(Topology::Attach(options.topology_fd, dataset));
  TrainOptions train;
  train.model = options.model;
  train.threads = options.threads;
  train.features = dataset.features();
  train.targets = TargetsOf(dataset);
  train.topology = topology.view();
  if (options.weighted_means) train.edge_weights = dataset.edge_weights();
  train.eval_place = options.place;
  std::unique_ptr<TorchWork> work = GNND_VALUE(TorchWork::Create(train));
  return Stream(work.get(), dataset, options);
}

Task<void> ModelPredict(const PredictOptions& options) {
  // Shared instead of copied, because the parameters may be large.
  return {[shared = std::make_shared<PredictOptions>(options)] { return Predict(*shared); }};
}

}  // namespace

void DefinePredict(Subject& subject) {
  subject.Enum<PredictedNodes>().Struct<PredictOptions>().Function(
      "modelPredict", ModelPredict, {"options"},
      "Logits and classes of nodes with full neighbourhoods. ABORTED when nobody reads "
      "them.");
}

}  // namespace gnnd::node
