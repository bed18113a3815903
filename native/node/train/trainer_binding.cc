#include <memory>
#include <utility>

#include "core/cache/hot_order.h"
#include "core/dataset/topology.h"
#include "core/run/trainer_loop.h"
#include "node/executor_options.h"
#include "node/run_on_thread.h"
#include "train/torch_work.h"

// A Trainer's life: mirrors `trainerRun` of contract.ts.

namespace gnnd::node {
namespace {

struct OptimizerOptions {
  double learning_rate;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  bool first_layer_only;
};

OptimizerOptions OptimizerOf(const Fields& fields) {
  return {fields.Double("learningRate"), fields.Double("beta1"),       fields.Double("beta2"),
          fields.Double("epsilon"),      fields.Double("weightDecay"), fields.Bool("firstLayerOnly")};
}

Result<LoopEnd> RunTrainer(const ExecutorOptions& options, const ModelSpec& model,
                           const OptimizerOptions& optimizer, uint32_t threads) {
  Result<Dataset> dataset = Dataset::Open(options.dataset.folder, options.dataset.counts,
                                          options.dataset.features_path);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kSlotsReadOnly);
  if (!segment.ok()) return segment.status();

  TrainOptions train;
  train.model = model;
  train.random_seed = options.random_seed;
  train.learning_rate = optimizer.learning_rate;
  train.beta1 = optimizer.beta1;
  train.beta2 = optimizer.beta2;
  train.epsilon = optimizer.epsilon;
  train.weight_decay = optimizer.weight_decay;
  train.weight_decay_first_layer_only = optimizer.first_layer_only;
  train.threads = threads;
  train.features = dataset->features();
  train.labels = dataset->labels();
  train.topology = topology->view();
  train.val_nodes = dataset->val();
  train.test_nodes = dataset->test();
  HotOrder hot;
  if (options.cache.rows > 0) {
    Result<HotOrder> opened = HotOrder::Open(options.cache.order_path, dataset->num_nodes());
    if (!opened.ok()) return opened.status();
    hot = std::move(*opened);
    train.hot_order = hot.order();
    train.cache_rows = options.cache.rows;
  }
  train.features_on_disk = options.cache.features_on_disk;
  Result<std::unique_ptr<TorchWork>> work = TorchWork::Create(train);
  if (!work.ok()) return work.status();
  return RunTrainerLoop(*segment, options.executor, **work);
}

// trainerRun(options): Promise<'COMPLETE' | 'STOPPED'>
Napi::Value TrainerRun(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const ExecutorOptions options = ExecutorOptionsOf(fields);
  const ModelSpec model = ModelOf(fields.Object("model"));
  const OptimizerOptions optimizer = OptimizerOf(fields.Object("optimizer"));
  const uint32_t threads = fields.Uint32("threads");
  return RunOnThread<LoopEnd>(
      info.Env(),
      [=] { return RunTrainer(options, model, optimizer, threads); }, LoopEndOf);
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("trainerRun", Napi::Function::New(env, TrainerRun));
  return exports;
}

}  // namespace
}  // namespace gnnd::node

using gnnd::node::Init;
NODE_API_MODULE(gnnd_train, Init)
