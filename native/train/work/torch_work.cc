#include "train/work/torch_work.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/contain.h"
#include "core/feature/feature_store.h"
#include "core/kernels/optimizer.h"
#include "core/model/manifest.h"
#include "core/model/parameter_digest.h"
#include "train/device/device_side.h"
#include "train/evaluate/device_eval_input.h"
#include "train/evaluate/evaluator.h"
#include "train/evaluate/sampled_evaluator.h"
#include "train/evaluate/script_eval_layer.h"
#include "train/input/extraction.h"
#include "train/layers/model.h"
#include "train/layers/script_model.h"
#include "train/ops/operators.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/ops/torch_threads.h"
#include "train/ops/workspace.h"
#include "train/tasks/losses.h"
#include "train/tasks/task.h"
#include "train/work/guarded.h"

namespace gnnd {
namespace {

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

class Work final : public TorchWork {
 public:
  Work(const TrainOptions& options, FeatureStore store, uint64_t cache_fill_ns,
       std::unique_ptr<ScriptModel> script, std::unique_ptr<DeviceSide> side,
       std::unique_ptr<TrainerHistory> history)
      : options_(options),
        store_(std::move(store)),
        cache_fill_ns_(cache_fill_ns),
        script_(std::move(script)),
        model_(script_ ? Model(script_->spec(), script_->manifest())
                       : Model(options.model, options.shares)),
        side_(std::move(side)),
        history_(std::move(history)),
        buffers_{ExtractBuffer(ExtractDevice()), ExtractBuffer(ExtractDevice())},
        compute_(ComputeDevice()),
        evaluator_(options_, model_, LayerRunnerOfModel()) {
    if (!side_) return;
    const RowShares* const shares = options.device.shares;
    if (shares != nullptr) {
      peers_.emplace(side_->device(), side_->features().placement(), options.features.row_bytes(),
                     *shares);
    }
    reader_.emplace(side_->features(), peers_ ? &*peers_ : nullptr);
  }
  ~Work() override {
    if (side_) side_->Drain();
  }

  // Evaluations are sampled from now on, predict, and are computed on the device, where the options
  // say so and it has room for them.
  Status UseSamples();
  Status UsePredictions();
  Status UseDevice();

  bool keeps_history() const override { return history_ != nullptr; }
  Status BringHistoryTo(const BatchPoint& point) override {
    UseTeamOf(options_.threads);
    return history_->BringTo(point, &store_);
  }
  void InitParameters(std::span<float> parameters) override;
  Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) override;
  Status ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& parameters,
                         std::span<float> gradient, BatchReport* report) override;
  void Apply(const StepView& step) override {
    ApplyBy(operators(), manifest(), options_.optimizer, options_.threads, step);
  }
  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override {
    gnnd::PredictParameters(manifest(), options_.optimizer,
                            {version, lag, parameters, optimizer, predicted});
  }
  Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive& alive) override;
  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override;
  Status Reduce(const ReduceTask& task, const Alive& alive) override {
    return ReduceScores(options_.targets, task, alive);
  }
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override {
    return JudgementOf(options_.targets, whole, kept);
  }
  void EndEvaluation(const EvalRun&) override {
    if (!sampled_) evaluator_.End();
  }
  Sha256Digest DigestOf(std::span<const float> parameters) override {
    return gnnd::DigestOf(manifest(), parameters);
  }

  const ParameterManifest& manifest() const override { return model_.manifest; }
  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override;
  double predicted() const override { return evaluator_.progress(); }

 private:
  const TrainDevice& ExtractDevice() const {
    return side_ ? side_->extract().train_device() : CpuDevice();
  }
  const TrainDevice& ComputeDevice() const {
    if (side_) return side_->compute().train_device();
    return options_.operators == nullptr ? CpuDevice() : *options_.operators;
  }
  std::vector<at::Tensor> ParameterTensors(std::span<const float> parameters,
                                           at::Device where = at::kCPU) const {
    return ViewsOf(model_.manifest, parameters, where);
  }
  Status ExtractInto(const Sample& sample, ExtractBuffer* buffer);
  Status Compute(const ExtractBuffer& extracted, const ParametersView& view,
                 std::span<float> gradient, BatchReport* report);
  void WriteGradient(const std::vector<at::Tensor>& grads, std::span<float> gradient);
  std::vector<at::Tensor> TensorsToEvaluate(std::span<const float> parameters);
  bool Evaluates() const {
    return !options_.val_nodes.empty() || !options_.test_nodes.empty() ||
           !options_.predicted_nodes.empty();
  }
  Status TakeRoomToEvaluate();
  void EvaluateOnHost(const Status& why);
  Status RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters, const Alive& alive,
                  EvalResult* result) {
    return sampled_ ? sampled_->RunChunk(task, parameters, alive, result)
                    : evaluator_.RunChunk(task, parameters, alive, result);
  }
  Status RunChunkOnDevice(const EvalTask& task, const ParametersView& view, const Alive& alive,
                          EvalResult* result);
  Status RunChunkAnywhere(const EvalTask& task, const ParametersView& view, const Alive& alive,
                          EvalResult* result);
  std::vector<at::Tensor> TensorsToTrain(const BatchKey& key, std::span<const float> parameters);
  std::unique_ptr<LayerRunner> LayerRunnerOfModel();
  ExtractBuffer& BufferOf(uint32_t index) {
    GNND_CHECK(index < kExtractBuffers);
    return buffers_[index];
  }
  const Device* DeviceOrNull() const { return options_.device.device; }
  const Operators& operators() const { return compute_.operators(); }
  PredictionFiles::Chunk ChunkOf(const EvalTask& task) const {
    return {task.phase * predicted_chunks_ + task.chunk, evaluator_.scratch_fd()};
  }
  // A script's operators are all torch's.
  void UseCores() const { UseThreads(options_.threads, script_ ? options_.threads : 1); }
  Code ThrownCode() const { return script_ ? Code::kPluginFailed : Code::kInternal; }

  TrainOptions options_;
  FeatureStore store_;
  uint64_t cache_fill_ns_;
  std::unique_ptr<ScriptModel> script_;  // null: the model is one of ours
  Model model_;

  std::unique_ptr<DeviceSide> side_;         // null: the CPU
  std::optional<PeerRows> peers_;            // whose rows it reads
  std::optional<DeviceReader> reader_;       // of extraction
  std::unique_ptr<TrainerHistory> history_;  // null: nothing is kept
  ExtractBuffer buffers_[kExtractBuffers];
  uint64_t extracted_ = 0;  // batches, by the thread that extracts
  Workspace compute_;
  std::atomic<uint64_t> compute_bytes_{0};  // of compute_, for an Extract on another thread

  Evaluator evaluator_;
  std::unique_ptr<SampledEvaluator> sampled_;  // null: evaluation is exact
  bool evaluates_on_device_ = false;
  std::optional<PredictionFiles> predictions_;
  uint32_t predicted_chunks_ = 0;        // of each phase
  uint64_t evaluated_ = 0;               // chunks, on the device
  std::atomic<uint64_t> eval_bytes_{0};  // of compute_'s sort, of evaluation
};

Status Work::Extract(const Sample& sample, uint32_t number, ExtractReport* report) {
  ExtractBuffer* buffer = &BufferOf(number);
  return Guarded(DeviceOrNull(), [&] {
    // Torch's operators are not used here, only our loops, on the calling thread's own team: so
    // extraction never waits for a team that computes.
    UseTeamOf(options_.threads);
    GNND_TRY(BeginExtraction(options_, sample, buffer));
    const Sample& read = history_ ? history_->Prune(sample, &report->history) : sample;
    GNND_TRY(ExtractInto(read, buffer));
    report->cache_rows = side_ ? side_->features().cache_rows() : store_.most_cache_rows();
    report->cache_given_up_rows = store_.most_cache_rows() - store_.cache_rows();
    if (side_) {
      reader_->Tell(report);
    } else {
      report->traffic = store_.TrafficOf(read.nodes(), read.ranks());
    }
    report->device_ns = buffer->device_ns;
    report->cache_fill_ns = cache_fill_ns_;
    report->work_bytes = compute_bytes_.load(std::memory_order_relaxed) +
                         eval_bytes_.load(std::memory_order_relaxed);
    for (const ExtractBuffer& each : buffers_) report->work_bytes += each.memory.reserved_bytes();
    if (side_ && IsUseDue(extracted_++)) {
      report->device = GNND_VALUE(options_.device.device->Use());
    }
    return Status::Ok();
  });
}

Status Work::ExtractInto(const Sample& sample, ExtractBuffer* buffer) {
  if (!side_) return ExtractRows(options_, store_, sample, buffer);
  return ExtractToDevice(options_, store_, sample, &*reader_, buffer);
}

std::unique_ptr<LayerRunner> Work::LayerRunnerOfModel() {
  if (script_) return std::make_unique<ScriptEvalLayer>(options_, script_.get());
  return std::make_unique<EvalLayer>(options_, model_,
                                     std::make_unique<HostInput>(options_.topology));
}

std::vector<at::Tensor> Work::TensorsToTrain(const BatchKey& key,
                                             std::span<const float> parameters) {
  if (script_) {
    script_->SetParameters(parameters);
    script_->BeginBatch(key);
    return {script_->parameters().begin(), script_->parameters().end()};
  }
  std::vector<at::Tensor> leaves = ParameterTensors(parameters, compute_.device().where);
  for (at::Tensor& leaf : leaves) leaf.requires_grad_(true);
  return leaves;
}

std::vector<at::Tensor> Work::TensorsToEvaluate(std::span<const float> parameters) {
  if (!script_) return ParameterTensors(parameters);
  script_->SetParameters(parameters);
  script_->BeginEvaluation();
  return {};
}

void Work::InitParameters(std::span<float> parameters) {
  if (script_) {
    std::ranges::copy(script_->initial_parameters(), parameters.begin());
    return;
  }
  const bool is_scaled = KindOf(options_.model.type).is_scaled;
  InitGlorot(manifest(), options_.random_seed, is_scaled ? FirstLayerGain(options_.features) : 1.0,
             parameters);
}

Status Work::ComputeGradient(const Sample& sample, uint32_t buffer, const ParametersView& view,
                             std::span<float> gradient, BatchReport* report) {
  const ExtractBuffer& extracted = BufferOf(buffer);
  GNND_CHECK(view.floats.size() == model_.manifest.num_floats &&
             gradient.size() == model_.manifest.num_floats);
  const BottomInput& input = extracted.input;
  GNND_CHECK(input.x.defined() || input.aggregated.defined());
  GNND_CHECK(extracted.key.epoch == sample.key().epoch &&
             extracted.key.batch == sample.key().batch);
  return Guarded(
      DeviceOrNull(),
      [&] {
        UseCores();
        const c10::AutoGradMode with_gradients(true);
        if (!side_) return Compute(extracted, view, gradient, report);
        const TrainStream::Current current(side_->compute());
        return Compute(extracted, view, gradient, report);
      },
      ThrownCode());
}

Status Work::Compute(const ExtractBuffer& extracted, const ParametersView& view,
                     std::span<float> gradient, BatchReport* report) {
  compute_.Reset();
  if (side_) side_->compute().BeginTiming();
  const std::vector<at::Tensor> leaves =
      TensorsToTrain(extracted.key, side_ ? side_->Parameters(view) : view.floats);
  const Sample& sample = extracted.sample;
  const BottomInput& input = extracted.input;
  const at::Tensor given =
      script_ ? script_->Forward(sample, input.x)
              : ForwardBlocks(model_, leaves, sample, input, &compute_, history_.get());
  const at::Tensor logits = given.contiguous();

  const at::Tensor grad_logits =
      EmptyIn(&compute_, logits, sample.num_seeds(), options_.model.out_dim);
  GNND_TRY(ComputeLoss({options_.targets, extracted.seeds, extracted.labels}, logits, grad_logits,
                       &compute_, report));

  const auto grads = torch::autograd::grad({logits}, leaves, {grad_logits}, std::nullopt, false,
                                           /*allow_unused=*/true);
  compute_bytes_.store(compute_.reserved_bytes(), std::memory_order_relaxed);
  WriteGradient(grads, gradient);
  if (history_) report->history = history_->Update();
  if (side_) report->device_ns = side_->compute().EndTiming();
  return Status::Ok();
}

// Padding is zero, and so is what a script did not use in this batch.
void Work::WriteGradient(const std::vector<at::Tensor>& grads, std::span<float> gradient) {
  const std::span<float> whole = side_ ? side_->Gradient() : gradient;
  if (!side_) std::fill(gradient.begin(), gradient.end(), 0.0F);
  const std::vector<at::Tensor> places = ParameterTensors(whole, compute_.device().where);
  for (size_t t = 0; t < grads.size(); ++t) {
    if (grads[t].defined()) places[t].view(grads[t].sizes()).copy_(grads[t]);
  }
  if (!side_) return;
  side_->compute().CopyOut(gradient.data(), whole.data(), whole.size_bytes());
}

Status Work::UseSamples() {
  if (!options_.eval_sampler) return Status::Ok();
  sampled_ = GNND_VALUE(SampledEvaluator::Create(options_, model_, script_.get()));
  return Status::Ok();
}

Status Work::UsePredictions() {
  if (options_.predictions.folder.empty()) return Status::Ok();
  predictions_ = GNND_VALUE(PredictionFiles::Open(
      options_.predictions, {options_.predicted_nodes, options_.predicts_all},
      Predictions(TaskOf(options_.predictions.task), options_.model.out_dim)));
  evaluator_.PredictInto(&*predictions_);
  if (sampled_) sampled_->PredictInto(&*predictions_);
  return Status::Ok();
}

Status Work::UseDevice() {
  if (!side_ || !Evaluates()) return Status::Ok();
  UseCores();
  const c10::AutoGradMode without_gradients(false);
  const TrainStream::Current current(side_->compute());
  const Status placed = Guarded(DeviceOrNull(), [this] { return TakeRoomToEvaluate(); });
  evaluates_on_device_ = placed.ok();
  if (placed.code() != Code::kDeviceMemory) return placed;
  EvaluateOnHost(placed);
  return Status::Ok();
}

Status Work::TakeRoomToEvaluate() {
  if (sampled_) {
    const auto zeros = ParameterTensors(side_->Gradient(), compute_.device().where);
    return sampled_->UseDevice(store_, *side_, zeros, &compute_);
  }
  auto input = GNND_VALUE(DeviceInput::Create(options_, store_, *side_, &compute_));
  evaluator_.Use(std::make_unique<EvalLayer>(options_, model_, std::move(input)));
  return Status::Ok();
}

// From now on. No reason for a job to fail: the processor computes the same.
void Work::EvaluateOnHost(const Status& why) {
  evaluates_on_device_ = false;
  evaluator_.Use(LayerRunnerOfModel());
  if (sampled_) sampled_->UseHost();
  static_cast<void>(std::fprintf(stderr,
                                 "gnnd.evaluation: the device has no room for evaluations, which "
                                 "this Trainer computes on the processor from now on: %s\n",
                                 why.message().c_str()));
}

Status Work::RunChunkOnDevice(const EvalTask& task, const ParametersView& view, const Alive& alive,
                              EvalResult* result) {
  TrainStream& stream = side_->compute();
  const TrainStream::Current current(stream);
  stream.BeginTiming();
  const auto tensors = ParameterTensors(side_->Parameters(view), compute_.device().where);
  GNND_TRY(RunChunk(task, tensors, alive, result));
  ChunkReport report{.on_device = true, .device_ns = stream.EndTiming()};
  if (IsUseDue(evaluated_++)) report.device = GNND_VALUE(options_.device.device->Use());
  compute_bytes_.store(compute_.reserved_bytes(), std::memory_order_relaxed);
  if (task.report != nullptr) *task.report = report;
  return Status::Ok();
}

Status Work::RunChunkAnywhere(const EvalTask& task, const ParametersView& view, const Alive& alive,
                              EvalResult* result) {
  if (evaluates_on_device_) {
    const Status status =
        Guarded(DeviceOrNull(), [&] { return RunChunkOnDevice(task, view, alive, result); });
    if (status.code() != Code::kDeviceMemory) return status;
    EvaluateOnHost(status);
  }
  return RunChunk(task, TensorsToEvaluate(view.floats), alive, result);
}

Result<EvalShape> Work::PlanEvaluation(EvalNodes nodes, const Alive& alive) {
  EvalShape shape;
  GNND_TRY(Guarded(DeviceOrNull(), [&] {
    UseCores();
    const Result<EvalShape> planned =
        sampled_ ? Result<EvalShape>(sampled_->Plan(nodes)) : evaluator_.Plan(nodes, alive);
    if (planned.ok()) shape = *planned;
    if (nodes == EvalNodes::kValidation) predicted_chunks_ = shape.chunks;
    return planned.ok() ? Status::Ok() : planned.status();
  }));
  return shape;
}

Status Work::EvaluateChunk(const EvalTask& task, const ParametersView& view, const Alive& alive,
                           EvalResult* result) {
  GNND_CHECK(view.floats.size() == model_.manifest.num_floats);
  return Guarded(
      DeviceOrNull(),
      [&] {
        UseCores();
        const c10::AutoGradMode without_gradients(false);
        const at::NoTF32Guard exact;  // evaluations are float32, whatever training computes in
        const auto compute = [&] { return RunChunkAnywhere(task, view, alive, result); };
        const Status status =
            predictions_ ? predictions_->Once(task, ChunkOf(task), result, compute) : compute();
        eval_bytes_.store(sampled_ ? sampled_->work_bytes() : evaluator_.work_bytes(),
                          std::memory_order_relaxed);
        return status;
      },
      ThrownCode());
}

Status Work::Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                     const Alive& alive, const LogitsConsumer& consume) {
  GNND_CHECK(parameters.size() == model_.manifest.num_floats && !evaluates_on_device_);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GNND_TRY(CheckInGraph(options_, nodes[i]));
    if (i > 0 && nodes[i - 1] >= nodes[i]) return Invalid("nodes to predict are not ascending");
  }
  return Guarded(
      DeviceOrNull(),
      [&] {
        UseCores();
        const c10::AutoGradMode without_gradients(false);
        return evaluator_.Predict(TensorsToEvaluate(parameters), nodes, alive, consume);
      },
      ThrownCode());
}

// Throws what torch and the device do.
Result<std::unique_ptr<TorchWork>> MadeWork(const TrainOptions& given) {
  TrainOptions options = given;
  std::unique_ptr<ScriptModel> script;
  if (options.model.type == ModelType::kScript) {
    script = GNND_VALUE(ScriptModel::Load(options.script));
    options.model = script->spec();
  } else if (auto manifest = ManifestOf(options.model); !manifest.ok()) {
    return manifest.status();
  }
  if (options.targets.width == 0) options.targets.width = options.model.out_dim;
  GNND_TRY(CheckOptions(options));
  const uint64_t start_ns = MonotonicNs();
  std::unique_ptr<DeviceSide> side;
  if (options.device.device != nullptr) {
    const ModelKind& kind = KindOf(options.model.type);
    if (!kind.on_devices) {
      return Status(Code::kDeviceUnavailable,
                    std::string(kind.name) + " is trained on CPU devices only");
    }
    side = GNND_VALUE(DeviceSide::Create(options, ManifestOf(options.model)->num_floats));
  }
  auto history = GNND_VALUE(
      TrainerHistory::Of(options.history, options.features, side ? &side->compute() : nullptr));
  const FeatureStore::Options rows{options.features, options.hot_order, options.cache_rows,
                                   options.features_on_disk, options.host_features};
  FeatureStore store = GNND_VALUE(history ? history->MakeStore(rows) : FeatureStore::Create(rows));
  const bool fills = store.cache_rows() > 0 || (side && side->features().cache_rows() > 0);
  const uint64_t fill_ns = fills ? MonotonicNs() - start_ns : 0;
  UseOneInteropThread();
  auto work = std::make_unique<Work>(options, std::move(store), fill_ns, std::move(script),
                                     std::move(side), std::move(history));
  GNND_TRY(work->UseSamples());
  GNND_TRY(work->UsePredictions());
  GNND_TRY(work->UseDevice());
  return std::unique_ptr<TorchWork>(std::move(work));
}

}  // namespace

void TorchWork::ApplyBy(const Operators& operators, const ParameterManifest& manifest,
                        const OptimizerOptions& options, uint32_t threads, const StepView& step) {
  UseTeamOf(threads);
  std::vector<std::span<const float>> gradients;
  for (const GradientView& gradient : step.gradients) gradients.push_back(gradient.floats);
  const OptimizerStep arguments{gradients,          step.num_items,    step.version + 1,
                                step.parameters_in, step.optimizer_in, step.parameters_out,
                                step.optimizer_out};
  operators.update(manifest, options, arguments);
}

Result<std::unique_ptr<TorchWork>> TorchWork::Create(const TrainOptions& options) {
  std::unique_ptr<TorchWork> work;
  GNND_TRY(Guarded(options.device.device, [&] {
    work = GNND_VALUE(MadeWork(options));
    return Status::Ok();
  }));
  return work;
}

}  // namespace gnnd
