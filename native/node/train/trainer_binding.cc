#include <memory>
#include <string>
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

OptimizerType OptimizerTypeOf(const std::string& name) {
  return OptionOf<OptimizerType>(name, {{"ADAM", OptimizerType::kAdam},
                                        {"ADAMW", OptimizerType::kAdamW},
                                        {"SGD", OptimizerType::kSgd}});
}

ScheduleType ScheduleTypeOf(const std::string& name) {
  return OptionOf<ScheduleType>(name, {{"CONSTANT", ScheduleType::kConstant},
                                       {"STEP", ScheduleType::kStep},
                                       {"COSINE", ScheduleType::kCosine}});
}

ScheduleOptions ScheduleOf(const Fields& fields) {
  ScheduleOptions schedule;
  schedule.type = ScheduleTypeOf(fields.String("type"));
  if (schedule.type == ScheduleType::kStep) {
    schedule.step_epochs = fields.Uint32("stepEpochs");
    schedule.gamma = fields.Double("gamma");
  }
  schedule.warmup_epochs = fields.Uint32("warmupEpochs");
  schedule.steps_per_epoch = fields.Uint64("stepsPerEpoch");
  schedule.epochs = fields.Uint64("epochs");
  return schedule;
}

OptimizerOptions OptimizerOf(const Fields& fields) {
  OptimizerOptions options;
  options.learning_rate = fields.Double("learningRate");
  options.beta1 = fields.Double("beta1");
  options.beta2 = fields.Double("beta2");
  options.epsilon = fields.Double("epsilon");
  options.weight_decay = fields.Double("weightDecay");
  options.weight_decay_first_layer_only = fields.Bool("firstLayerOnly");
  options.type = OptimizerTypeOf(fields.String("type"));
  options.momentum = fields.Double("momentum");
  options.clip_norm = fields.Double("clipNorm");
  options.schedule = ScheduleOf(fields.Object("schedule"));
  return options;
}

Result<LoopEnd> RunTrainer(const ExecutorOptions& options, const ModelSpec& model,
                           const OptimizerOptions& optimizer, uint32_t threads, bool prefetch) {
  Result<Dataset> dataset =
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kSlotsReadOnly);
  if (!segment.ok()) return segment.status();

  TrainOptions train;
  train.model = model;
  train.random_seed = options.random_seed;
  train.optimizer = optimizer;
  train.threads = threads;
  train.features = dataset->features();
  train.labels = dataset->labels();
  train.topology = topology->view();
  // Draws by edge weight estimate weighted means; evaluation takes those.
  if (options.sampling.sampler.algorithm == Algorithm::kWeighted) {
    train.edge_weights = dataset->edge_weights();
  }
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
  return RunTrainerLoop(*segment, options.executor, **work, prefetch);
}

// trainerRun(options): Promise<'COMPLETE' | 'STOPPED'>
Napi::Value TrainerRun(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const ExecutorOptions options = ExecutorOptionsOf(fields);
  const ModelSpec model = ModelOf(fields.Object("model"));
  const OptimizerOptions optimizer = OptimizerOf(fields.Object("optimizer"));
  const uint32_t threads = fields.Uint32("threads");
  const bool prefetch = fields.Bool("prefetch");
  return RunOnThread<LoopEnd>(
      info.Env(), [=] { return RunTrainer(options, model, optimizer, threads, prefetch); },
      LoopEndOf);
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("trainerRun", Napi::Function::New(env, TrainerRun));
  return exports;
}

}  // namespace
}  // namespace gnnd::node

using gnnd::node::Init;
NODE_API_MODULE(gnnd_train, Init)
