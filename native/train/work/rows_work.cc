#include "train/work/rows_work.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/prefetch.h"
#include "core/draw/row_order.h"
#include "core/graph/npy.h"
#include "core/item/item_range.h"
#include "core/model/manifest.h"
#include "core/model/parameter_digest.h"
#include "core/model/row_manifest.h"
#include "core/prepare/propagation.h"
#include "train/device/device_rows.h"
#include "train/evaluate/row_results.h"
#include "train/input/row_files.h"
#include "train/layers/model.h"
#include "train/layers/row_model.h"
#include "train/ops/device.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"
#include "train/ops/torch_threads.h"
#include "train/ops/workspace.h"
#include "train/tasks/losses.h"
#include "train/tasks/task.h"
#include "train/work/guarded.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 16;
constexpr uint32_t kGrainDraws = 128;  // places in an epoch's order
constexpr uint64_t kMostStride = 64;   // of Trainers that take turns

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

// What was read of one batch.
struct RowBuffer {
  explicit RowBuffer(const TrainDevice& where) : memory(where) {}

  Workspace memory;
  std::vector<at::Tensor> tokens;
  std::vector<uint32_t> rows;
  std::vector<uint32_t> nodes;
  TargetRows targets;
  BatchKey key{};

  void Take(std::span<const RowRun> runs) {
    size_t count = 0;
    for (const RowRun& run : runs) count += run.count;
    rows.resize(count);
    size_t at = 0;
    for (const RowRun& run : runs) {
      for (uint32_t i = 0; i < run.count; ++i) rows[at++] = run.first + i;
    }
  }
};

class RowsWork final : public TorchWork {
 public:
  RowsWork(const RowsOptions& options, RowFiles files, std::unique_ptr<DeviceRows> device)
      : options_(options),
        files_(std::move(files)),
        model_(options.model),
        device_(std::move(device)),
        buffers_{RowBuffer(HostMemory()), RowBuffer(HostMemory())},
        evaluated_(HostMemory()),
        compute_(device_ ? device_->side().compute().train_device() : CpuDevice()) {}
  ~RowsWork() override {
    if (device_) device_->side().Drain();
  }

  void WeighClasses() {
    std::vector<int64_t> train(options_.weighting.balanced ? options_.train : 0);
    std::iota(train.begin(), train.end(), 0);
    weights_ = WeightsOf(options_.weighting, files_.targets, train);
    files_.targets.weights = weights_;
  }

  // Evaluations predict from now on, where the options say so.
  Status UsePredictions() {
    if (options_.predictions.folder.empty()) return Status::Ok();
    targets_ = GNND_VALUE(RowTargets::Of(options_.predicted, files_.nodes.values<uint32_t>()));
    predictions_ = GNND_VALUE(PredictionFiles::Open(
        options_.predictions, {targets_.nodes, targets_.are_all},
        Predictions(TaskOf(options_.predictions.task), options_.model.out_dim)));
    return Status::Ok();
  }

  const ParameterManifest& manifest() const override { return model_.manifest; }

  void InitParameters(std::span<float> parameters) override {
    InitGlorot(manifest(), options_.random_seed, 1.0, parameters);
  }

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    GNND_CHECK(number < kExtractBuffers && sample.kind() == SampleKind::kRows);
    RowBuffer* const buffer = &buffers_[number];
    return Guarded(options_.device, [&] {
      UseTeamOf(ExtractThreads());
      buffer->key = {options_.random_seed, sample.key().epoch, sample.key().batch};
      BatchRuns(buffer->key, &runs_);
      buffer->Take(runs_);
      if (buffer->rows.size() != sample.num_seeds()) {
        return Status(Code::kShmCorrupted, "the segment's batches are not those of the rows");
      }
      const uint64_t place = PlaceOf(buffer->key);
      // Trainers take turns: what the last one was behind the one before is a guess at the next.
      if (place > last_place_) stride_ = std::min(place - last_place_, kMostStride);
      last_place_ = place;
      GNND_TRY(ReadBatch(number, buffer, [this, place](uint32_t ahead, std::vector<RowRun>* runs) {
        BatchRuns(KeyAt(place + ahead * stride_), runs);
      }));
      return Report(number, report);
    });
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& view,
                         std::span<float> gradient, BatchReport* report) override {
    const std::span<const float> parameters = view.floats;
    const RowBuffer& buffer = buffers_[number];
    GNND_CHECK(parameters.size() == manifest().num_floats && gradient.size() == parameters.size());
    GNND_CHECK(buffer.key.epoch == sample.key().epoch && buffer.key.batch == sample.key().batch);
    return Guarded(options_.device, [&] {
      UseThreads(options_.threads, 1);
      const c10::AutoGradMode with_gradients(true);
      std::optional<TrainStream::Current> current;
      if (device_) current.emplace(device_->side().compute());
      compute_.Reset();
      if (device_) device_->side().compute().BeginTiming();
      std::vector<at::Tensor> leaves = ParameterTensors(view);
      for (size_t i = 0; i < leaves.size(); ++i) leaves[i].requires_grad_(!IsRunning(i));
      std::vector<RunningValue> running;
      const at::Tensor logits =
          ForwardRows(model_, leaves, BatchOf(buffer, number, true), &compute_, &running)
              .contiguous();
      const at::Tensor slopes = EmptyIn(&compute_, logits, logits.size(0), logits.size(1));
      const uint32_t* const labels =
          device_ ? device_->batch(number).labels : buffer.targets.labels.data();
      GNND_TRY(
          ComputeLoss({files_.targets, buffer.targets, labels}, logits, slopes, &compute_, report));
      WriteGradients(logits, slopes, leaves, gradient);
      if (device_) report->device_ns = device_->side().compute().EndTiming();
      WriteRunning(manifest(), running, parameters, buffer.rows.size(), gradient);
      return Status::Ok();
    });
  }

  void Apply(const StepView& step) override {
    ApplyBy(*CpuDevice().operators, manifest(), options_.optimizer, options_.threads, step);
  }

  void PredictParameters(uint64_t version, uint64_t lag, std::span<const float> parameters,
                         std::span<const float> optimizer, std::span<float> predicted) override {
    gnnd::PredictParameters(manifest(), options_.optimizer,
                            {version, lag, parameters, optimizer, predicted});
  }

  Result<EvalShape> PlanEvaluation(EvalNodes nodes, const Alive&) override {
    uint64_t rows = nodes == EvalNodes::kValidation ? options_.val : options_.test;
    if (predictions_) rows = nodes == EvalNodes::kValidation ? targets_.rows.size() : 0;
    const auto chunks = static_cast<uint32_t>((rows + kRowsOfChunk - 1) / kRowsOfChunk);
    return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
  }

  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override {
    if (!alive()) return EvaluationAborted();
    if (predictions_) {
      return predictions_->Once(task, {task.chunk, -1}, result, [&] {
        return PredictRows(parameters, task.chunk, targets_,
                           [&](uint64_t first, std::span<const float> logits) {
                             *result = EvalResult{};
                             result->rows = logits.size() / options_.model.out_dim;
                             return predictions_->Write(first, logits);
                           });
      });
    }
    const bool tests = task.run.nodes == EvalNodes::kTest;
    const uint64_t first = options_.train + (tests ? options_.val : 0);
    const uint64_t place = task.chunk * kRowsOfChunk;
    const uint64_t rows = std::min(kRowsOfChunk, (tests ? options_.test : options_.val) - place);
    runs_.assign(1, {static_cast<uint32_t>(first + place), static_cast<uint32_t>(rows)});
    return Guarded(options_.device, [&] {
      at::Tensor logits;
      GNND_TRY(Evaluate(parameters, &logits));
      return CountRows(task, logits, evaluated_.rows, place, files_.targets, result);
    });
  }

  Status Reduce(const ReduceTask& task, const Alive& alive) override {
    return ReduceScores(files_.targets, task, alive);
  }
  Judgement Judge(const EvalResult& whole, std::span<std::byte> kept) const override {
    return JudgementOf(files_.targets, whole, kept);
  }
  void EndEvaluation(const EvalRun&) override {}
  Sha256Digest DigestOf(std::span<const float> parameters) override {
    return gnnd::DigestOf(manifest(), parameters);
  }
  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override {
    const RowTargets targets =
        GNND_VALUE(RowTargets::OfNodes(nodes, files_.nodes.values<uint32_t>()));
    for (uint64_t chunk = 0; chunk * kRowsOfChunk < nodes.size(); ++chunk) {
      progress_ = static_cast<double>(chunk * kRowsOfChunk) / static_cast<double>(nodes.size());
      if (!alive()) return EvaluationAborted();
      GNND_TRY(PredictRows({.floats = parameters}, chunk, targets,
                           [&](uint64_t first, std::span<const float> logits) {
                             const uint64_t rows = logits.size() / options_.model.out_dim;
                             return consume(nodes.subspan(first, rows), logits.data());
                           }));
    }
    return Status::Ok();
  }
  double predicted() const override { return progress_; }

 private:
  // Logits of the rows of runs_.
  Status Evaluate(const ParametersView& parameters, at::Tensor* logits) {
    UseThreads(options_.threads, 1);
    const c10::AutoGradMode without_gradients(false);
    std::optional<TrainStream::Current> current;
    if (device_) current.emplace(device_->side().compute());
    compute_.Reset();
    evaluated_.Take(runs_);
    const auto nobody_knows = [](uint32_t, std::vector<RowRun>*) {};
    GNND_TRY(ReadBatch(DeviceRows::kEvaluated, &evaluated_, nobody_knows));
    const RowBatch batch = BatchOf(evaluated_, DeviceRows::kEvaluated, false);
    *logits = ForwardRows(model_, ParameterTensors(parameters), batch, &compute_, nullptr)
                  .contiguous()
                  .to(at::kCPU);
    return Status::Ok();
  }

  // `take` gets the logits of a chunk of the targets, and the place of the first of them.
  template <typename Take>
  Status PredictRows(const ParametersView& parameters, uint64_t chunk, const RowTargets& targets,
                     const Take& take) {
    const uint64_t first = chunk * kRowsOfChunk;
    runs_ = targets.RunsOf(first, std::min<uint64_t>(first + kRowsOfChunk, targets.rows.size()));
    return Guarded(options_.device, [&] {
      at::Tensor logits;
      GNND_TRY(Evaluate(parameters, &logits));
      return take(first, std::span<const float>(logits.const_data_ptr<float>(),
                                                static_cast<size_t>(logits.numel())));
    });
  }

  // Beside a batch that is computed a whole team would only take its cores: copying needs few.
  uint32_t ExtractThreads() const {
    const bool is_ahead = std::this_thread::get_id() != owner_;
    return is_ahead ? (options_.threads + 3) / 4 : options_.threads;
  }

  bool IsRunning(size_t index) const {
    return manifest().tensors[index].role == TensorRole::kRunning;
  }

  std::vector<at::Tensor> ParameterTensors(const ParametersView& view) {
    return TensorsOf(device_ ? device_->side().Parameters(view) : view.floats);
  }
  std::vector<at::Tensor> TensorsOf(std::span<const float> floats) const {
    return ViewsOf(manifest(), floats, compute_.device().where);
  }

  // The batch's rows, from its key alone.
  void BatchRuns(const BatchKey& key, std::vector<RowRun>* runs) {
    const auto train = static_cast<uint32_t>(options_.train);
    const ItemRange range = ItemRange::OfBatch(key.batch, options_.batch_size, train);
    runs->clear();
    if (options_.chunk == 1) {
      // The same order, many positions at a time.
      permuted_.resize(range.size());
      const ItemOrder order{options_.random_seed, key.epoch, train};
      ParallelRows(range.size(), kGrainDraws, [&](uint32_t from, uint32_t to) {
        order.Write({range.begin + from, range.begin + to}, permuted_.data() + from);
      });
      runs->resize(permuted_.size());
      for (size_t i = 0; i < permuted_.size(); ++i) (*runs)[i] = {permuted_[i], 1};
      return;
    }
    const RowOrder order =
        RowOrderOf(KeyOf(options_.random_seed), key.epoch, train, options_.chunk);
    for (uint32_t at = range.begin; at < range.end; at += runs->back().count) {
      runs->push_back(RowRunAt(order, at, range.end));
    }
  }

  // Batches counted over all epochs.
  uint64_t BatchesPerEpoch() const {
    return (options_.train + options_.batch_size - 1) / options_.batch_size;
  }
  uint64_t PlaceOf(const BatchKey& key) const { return key.epoch * BatchesPerEpoch() + key.batch; }
  BatchKey KeyAt(uint64_t place) const {
    const uint64_t batches = BatchesPerEpoch();
    return {options_.random_seed, static_cast<uint32_t>(place / batches),
            static_cast<uint32_t>(place % batches)};
  }

  const TrainDevice& HostMemory() const { return device_ ? device_->pinned() : CpuDevice(); }

  // The buffer's rows, which are those of runs_, to where they are computed with.
  Status ReadBatch(uint32_t number, RowBuffer* buffer, const NextRuns& next) {
    const uint64_t held = device_ ? device_->held_rows() : 0;
    if (held > 0 && (number != DeviceRows::kEvaluated || held > options_.train)) {
      TakeLabels(buffer);
      device_->Gather(number, buffer->rows, buffer->nodes, buffer->targets.labels);
      return Status::Ok();
    }
    const bool is_long = number == DeviceRows::kEvaluated && runs_.size() == 1;
    GNND_TRY(is_long ? ReadStretches(buffer) : Read(buffer, next));
    if (device_) device_->Put(number, buffer->tokens, buffer->nodes, buffer->targets.labels);
    return Status::Ok();
  }

  // What Extract says of a batch that was read.
  Status Report(uint32_t number, ExtractReport* report) {
    const uint64_t rows = buffers_[number].rows.size() * files_.tokens->num_tokens();
    const uint64_t bytes = rows * files_.tokens->row_bytes();
    const Tier tiers[] = {Tier::kHost, Tier::kDisk, device_ ? Tier::kDevice : Tier::kHost};
    const auto tier = static_cast<uint32_t>(tiers[static_cast<uint32_t>(options_.tier)]);
    report->traffic.rows[tier] += rows;
    report->traffic.bytes[tier] += bytes;
    report->work_bytes = compute_.reserved_bytes() + files_.tokens->memory_bytes();
    for (const RowBuffer& each : buffers_) report->work_bytes += each.memory.reserved_bytes();
    if (!device_) return Status::Ok();
    report->work_bytes += device_->reserved_bytes();
    report->cache_rows = device_->held_rows();
    report->device_ns = device_->batch(number).device_ns;
    if (device_->held_rows() == 0) {
      report->staged_rows = rows;
      report->staged_bytes = bytes;
    }
    if (IsUseDue(extracted_++)) report->device = GNND_VALUE(options_.device->Use());
    return Status::Ok();
  }

  // Reads the buffer's rows of each token.
  Status Read(RowBuffer* buffer, const NextRuns& next) {
    BeginRead(buffer);
    GNND_TRY(files_.tokens->Stage(runs_, next));
    CopyStaged(buffer, 0, buffer->rows.size());
    return Status::Ok();
  }

  // The same of one run, in stretches for which there is memory.
  Status ReadStretches(RowBuffer* buffer) {
    BeginRead(buffer);
    const RowRun all = runs_[0];
    const auto most = static_cast<uint32_t>(StretchRows(options_));
    const auto stretch_at = [&](uint32_t begin, std::vector<RowRun>* runs) {
      if (begin < all.count)
        runs->assign(1, {all.first + begin, std::min(most, all.count - begin)});
    };
    for (uint32_t begin = 0; begin < all.count; begin += most) {
      stretch_at(begin, &runs_);
      GNND_TRY(files_.tokens->Stage(runs_, [&](uint32_t ahead, std::vector<RowRun>* runs) {
        stretch_at(begin + ahead * most, runs);
      }));
      CopyStaged(buffer, begin, runs_[0].count);
    }
    return Status::Ok();
  }

  void TakeLabels(RowBuffer* buffer) const {
    buffer->nodes.resize(buffer->rows.size());
    const bool classifies = !files_.targets.labels.empty();
    if (!classifies) files_.targets.Read(buffer->rows, &buffer->targets);
    buffer->targets.labels.resize(classifies ? buffer->rows.size() : 0);
    const auto count = static_cast<uint32_t>(buffer->rows.size());
    ParallelRows(count, kGrainDraws, [this, buffer, classifies](uint32_t begin, uint32_t end) {
      // Nobody else wants to know the nodes.
      if (draws_) Take(files_.nodes.values<uint32_t>(), buffer->rows, begin, end, &buffer->nodes);
      if (!classifies) return;
      const std::span<const uint32_t> labels = files_.labels.values<uint32_t>();
      Take(labels, buffer->rows, begin, end, &buffer->targets.labels);
    });
  }

  void BeginRead(RowBuffer* buffer) const {
    TakeLabels(buffer);
    buffer->memory.Reset();
    buffer->tokens.clear();
    const uint64_t columns = options_.model.in_dim;
    for (uint32_t token = 0; token < files_.tokens->num_tokens(); ++token) {
      float* const out = buffer->memory.Get<float>(buffer->rows.size() * columns);
      buffer->tokens.push_back(
          ViewOf(out, static_cast<int64_t>(buffer->rows.size()), static_cast<int64_t>(columns)));
    }
  }

  // to[i] = from[rows[i]] for begin <= i < end; lines are asked for ahead, one for each element.
  static void Take(std::span<const uint32_t> from, std::span<const uint32_t> rows, uint32_t begin,
                   uint32_t end, std::vector<uint32_t>* to) {
    constexpr uint32_t kAhead = 64;
    const PrefetchLevel level = BestPrefetchLevel();
    for (uint32_t i = begin; i < end; ++i) {
      if (i + kAhead < end) Prefetch(level, &from[rows[i + kAhead]]);
      (*to)[i] = from[rows[i]];
    }
  }

  // Staged rows to rows [at, at + count) of the buffer, widened to float32.
  void CopyStaged(RowBuffer* buffer, uint64_t at, uint64_t count) const {
    const uint64_t columns = options_.model.in_dim;
    ParallelRows(static_cast<uint32_t>(count), kGrainRows, [&](uint32_t begin, uint32_t end) {
      for (uint32_t token = 0; token < files_.tokens->num_tokens(); ++token) {
        float* const out = buffer->tokens[token].data_ptr<float>() + at * columns;
        files_.tokens->Copy(token, begin, end, out + begin * columns);
      }
    });
  }

  RowBatch BatchOf(const RowBuffer& buffer, uint32_t number, bool training) const {
    if (!device_) return {buffer.tokens, buffer.key, buffer.nodes.data(), training};
    const DeviceBatch& there = device_->batch(number);
    return {there.tokens, buffer.key, there.nodes, training};
  }

  void WriteGradients(const at::Tensor& logits, const at::Tensor& slopes,
                      const std::vector<at::Tensor>& leaves, std::span<float> gradient) {
    std::vector<at::Tensor> moved;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!IsRunning(i)) moved.push_back(leaves[i]);
    }
    const auto grads = torch::autograd::grad({logits}, moved, {slopes}, std::nullopt, false, true);
    const std::span<float> whole = device_ ? device_->side().Gradient() : gradient;
    if (!device_) std::fill(gradient.begin(), gradient.end(), 0.0F);
    const std::vector<at::Tensor> places = TensorsOf(whole);
    size_t next = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (IsRunning(i)) continue;
      const at::Tensor& given = grads[next++];
      if (given.defined()) places[i].view(given.sizes()).copy_(given);
    }
    if (device_)
      device_->side().compute().CopyOut(gradient.data(), whole.data(), whole.size_bytes());
  }

  const std::thread::id owner_ = std::this_thread::get_id();  // computes
  RowsOptions options_;
  // Whether dropout asks which nodes rows are of.
  const bool draws_ = options_.model.dropout > 0 || options_.model.input_dropout > 0 ||
                      options_.model.attention_dropout > 0;
  RowFiles files_;
  std::vector<float> weights_;  // of files_.targets
  Model model_;
  std::unique_ptr<DeviceRows> device_;  // null: the CPU
  uint64_t extracted_ = 0;              // batches, by the thread that extracts
  RowBuffer buffers_[kExtractBuffers];
  RowBuffer evaluated_;
  RowTargets targets_;  // of an inference
  std::optional<PredictionFiles> predictions_;
  double progress_ = 0;  // of Predict
  Workspace compute_;
  std::vector<RowRun> runs_;  // of what is read now
  std::vector<uint32_t> permuted_;
  uint64_t last_place_ = 0;
  uint64_t stride_ = 1;
};

}  // namespace

Result<std::unique_ptr<TorchWork>> CreateRowsWork(const RowsOptions& options) {
  if (!TakesRows(options.model.type)) return Invalid("the model takes no rows");
  if (auto manifest = ManifestOf(options.model); !manifest.ok()) return manifest.status();
  GNND_TRY(CheckOptimizer(options.optimizer));
  if (options.threads == 0) return Invalid("threads must be at least 1");
  const bool predicts = !options.predictions.folder.empty();
  if (!predicts && (options.train == 0 || options.batch_size == 0 || options.chunk == 0)) {
    return Invalid("train, batch_size and chunk must be at least 1");
  }
  RowFiles files = GNND_VALUE(OpenRowFiles(options));
  std::unique_ptr<RowsWork> work;
  GNND_TRY(Guarded(options.device, [&] {
    UseOneInteropThread();
    std::unique_ptr<DeviceRows> device;
    if (options.device != nullptr) {
      device = GNND_VALUE(DeviceRows::Create(options, ManifestOf(options.model)->num_floats));
    }
    work = std::make_unique<RowsWork>(options, std::move(files), std::move(device));
    return Status::Ok();
  }));
  if (!predicts) work->WeighClasses();
  GNND_TRY(work->UsePredictions());
  return std::unique_ptr<TorchWork>(std::move(work));
}

}  // namespace gnnd
