#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/dataset/topology.h"
#include "node/job_options.h"
#include "node/run_on_thread.h"
#include "node/train/bindings.h"
#include "train/prediction_stream.h"

// Predictions of a trained model: mirrors `modelPredict` of contract.ts.

namespace gnnd::node {
namespace {

struct PredictOptions {
  DatasetLocation dataset;
  ModelSpec model;
  std::vector<float> parameters;
  std::string nodes;
  bool weighted_means = false;
  uint32_t threads = 1;
  EvalPlace place;
  int topology_fd = -1;
  int output_fd = -1;
};

PredictOptions PredictOptionsOf(const Fields& fields) {
  PredictOptions options;
  options.dataset = LocationOf(fields.Object("dataset"));
  options.model = ModelOf(fields.Object("model"));
  options.parameters = fields.Floats("parameters");
  options.nodes = fields.String("nodes");
  options.weighted_means = fields.Bool("weightedMeans");
  options.threads = fields.Uint32("threads");
  options.place.memory_bytes = fields.Uint64("memoryBytes");
  options.place.folder = fields.String("scratchFolder");
  options.topology_fd = static_cast<int>(fields.Uint32("topologyFd"));
  options.output_fd = static_cast<int>(fields.Uint32("outputFd"));
  return options;
}

std::vector<uint32_t> NodesOf(const Dataset& dataset, const std::string& which) {
  std::vector<uint32_t> nodes;
  if (which == "ALL") {
    nodes.resize(dataset.num_nodes());
    std::iota(nodes.begin(), nodes.end(), 0U);
    return nodes;
  }
  for (const int64_t node : which == "VAL" ? dataset.val() : dataset.test()) {
    nodes.push_back(static_cast<uint32_t>(node));
  }
  return nodes;
}

Status Predict(const PredictOptions& options) {
  Result<Dataset> dataset =
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  TrainOptions train;
  train.model = options.model;
  train.threads = options.threads;
  train.features = dataset->features();
  train.labels = dataset->labels();
  train.topology = topology->view();
  if (options.weighted_means) train.edge_weights = dataset->edge_weights();
  train.eval_place = options.place;
  Result<std::unique_ptr<TorchWork>> work = TorchWork::Create(train);
  if (!work.ok()) return work.status();
  PredictionRequest request;
  request.parameters = options.parameters;
  request.nodes = NodesOf(*dataset, options.nodes);
  request.all_nodes = options.nodes == "ALL";
  request.classes = options.model.out_dim;
  request.fd = options.output_fd;
  return StreamPredictions(work->get(), request);
}

// modelPredict(options): Promise<void>
Napi::Value ModelPredict(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const auto options = std::make_shared<PredictOptions>(PredictOptionsOf(fields));
  return RunOnThread(info.Env(), [options] { return Predict(*options); });
}

}  // namespace

void DefinePredict(Napi::Env env, Napi::Object exports) {
  exports.Set("modelPredict", Napi::Function::New(env, ModelPredict));
}

}  // namespace gnnd::node
