#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/cache/hot_order.h"
#include "core/dataset/topology.h"
#include "core/run/trainer_loop.h"
#include "node/executor_options.h"
#include "node/gen/job_spec.h"
#include "node/manifest_value.h"
#include "node/run_on_thread.h"
#include "node/train/bindings.h"
#include "train/script_model.h"
#include "train/torch_work.h"

// A Trainer's life: mirrors `trainerRun` of contract.ts.

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

// The user's model that ModelOptions name, where they do.
ScriptOptions ScriptOf(const Fields& model, bool weighted) {
  const Fields script = model.Object("script");
  return {script.String("path"), script.String("sha256"), model.Uint32("layers"),
          model.Uint32("inDim"), model.Uint32("outDim"),  weighted};
}

// Descriptor 0 is never a scratch: it says that there is none.
int ScratchOf(const Fields& evaluation) {
  const uint32_t fd = evaluation.Uint32("scratchFd");
  return fd == 0 ? -1 : static_cast<int>(fd);
}

std::optional<SamplerOptions> EvalSamplerOf(const Fields& evaluation) {
  if (!evaluation.Bool("sampled")) return std::nullopt;
  return SamplingOf(evaluation.Object("sampling")).sampler;
}

// How a Trainer computes.
struct Computing {
  ModelSpec model;
  ScriptOptions script;
  OptimizerOptions optimizer;
  uint32_t threads = 1;
  bool prefetch = false;
  int scratch_fd = -1;                         // of exact evaluations; -1: there are none
  std::optional<SamplerOptions> eval_sampler;  // of sampled ones
};

Result<LoopEnd> RunTrainer(const ExecutorOptions& options, const Computing& computing) {
  Result<Dataset> dataset =
      Dataset::Open(options.dataset.folder, options.dataset.counts, options.dataset.features_path);
  if (!dataset.ok()) return dataset.status();
  Result<Topology> topology = Topology::Attach(options.topology_fd);
  if (!topology.ok()) return topology.status();
  Result<Segment> segment = Segment::Attach(options.segment_fd, Access::kSlotsReadOnly);
  if (!segment.ok()) return segment.status();

  TrainOptions train;
  train.model = computing.model;
  train.script = computing.script;
  train.random_seed = options.random_seed;
  train.optimizer = computing.optimizer;
  train.threads = computing.threads;
  train.features = dataset->features();
  train.labels = dataset->labels();
  train.topology = topology->view();
  // Draws by edge weight estimate weighted means; evaluation takes those.
  if (options.sampling.sampler.algorithm == Algorithm::kWeighted) {
    train.edge_weights = dataset->edge_weights();
  }
  train.val_nodes = dataset->val();
  train.test_nodes = dataset->test();
  train.eval_place.fd = computing.scratch_fd;
  train.eval_sampler = computing.eval_sampler;
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
  return RunTrainerLoop(*segment, options.executor, **work, computing.prefetch);
}

// trainerRun(options): Promise<'COMPLETE' | 'STOPPED'>
Napi::Value TrainerRun(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const ExecutorOptions options = ExecutorOptionsOf(fields);
  const Fields model = fields.Object("model");
  const SamplerOptions& sampler = options.sampling.sampler;
  const bool weighted =
      sampler.weights != EdgeWeights::kNone || sampler.algorithm == Algorithm::kWeighted;
  const Computing computing{ModelOf(model),
                            ScriptOf(model, weighted),
                            OptimizerOf(fields.Object("optimizer")),
                            fields.Uint32("threads"),
                            fields.Bool("prefetch"),
                            ScratchOf(fields.Object("evaluation")),
                            EvalSamplerOf(fields.Object("evaluation"))};
  return RunOnThread<LoopEnd>(
      info.Env(), [=] { return RunTrainer(options, computing); }, LoopEndOf);
}

// modelProbe(options): Promise<ModelManifest>
Napi::Value ModelProbe(const Napi::CallbackInfo& info) {
  const Fields fields(info[0], "options");
  const ScriptOptions script = ScriptOf(fields.Object("model"), fields.Bool("weighted"));
  return RunOnThread<ParameterManifest>(
      info.Env(),
      [script]() -> Result<ParameterManifest> {
        auto model = ScriptModel::Load(script);
        if (!model.ok()) return model.status();
        ParameterManifest manifest = (*model)->manifest();
        manifest.widths = (*model)->spec().widths;
        return manifest;
      },
      [](Napi::Env env, ParameterManifest& manifest) { return ManifestValue(env, manifest); });
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("modelProbe", Napi::Function::New(env, ModelProbe));
  exports.Set("trainerRun", Napi::Function::New(env, TrainerRun));
  DefinePredict(env, exports);
  return exports;
}

}  // namespace
}  // namespace gnnd::node

using gnnd::node::Init;
NODE_API_MODULE(gnnd_train, Init)
