#include "train/rows_work.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/contain.h"
#include "core/base/prefetch.h"
#include "core/batch/permute.h"
#include "core/draw/row_order.h"
#include "core/graph/npy.h"
#include "core/kernels/loss.h"
#include "core/model/parameter_digest.h"
#include "core/model/row_manifest.h"
#include "core/prepare/propagation.h"
#include "train/device.h"
#include "train/model.h"
#include "train/ops.h"
#include "train/parallel.h"
#include "train/row_files.h"
#include "train/row_model.h"
#include "train/workspace.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 16;
constexpr uint32_t kGrainDraws = 128;  // places in an epoch's order
constexpr uint64_t kMostStride = 64;   // of Trainers that take turns

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

// Runs `body`, turning what torch throws into a Status.
template <typename Body>
Status Guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const c10::Error& error) {
    return Status(Code::kInternal, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return Status(Code::kInternal, error.what());
  }
}

// What was read of one batch.
struct RowBuffer {
  Workspace memory;
  std::vector<at::Tensor> tokens;
  std::vector<uint32_t> rows;
  std::vector<uint32_t> nodes;
  std::vector<uint32_t> labels;
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
  RowsWork(const RowsOptions& options, RowFiles files)
      : options_(options), files_(std::move(files)), model_(options.model) {}

  // Evaluations predict from now on, where the options say so.
  Status UsePredictions() {
    if (options_.predictions.folder.empty()) return Status::Ok();
    targets_ = GNND_VALUE(RowTargets::Of(options_.predicted, files_.nodes.values<uint32_t>()));
    predictions_ = GNND_VALUE(PredictionFiles::Open(
        options_.predictions, {targets_.nodes, targets_.are_all}, options_.model.out_dim));
    return Status::Ok();
  }

  const ParameterManifest& manifest() const override { return model_.manifest; }

  void InitParameters(std::span<float> parameters) override {
    InitGlorot(manifest(), options_.random_seed, 1.0, parameters);
  }

  Status Extract(const Sample& sample, uint32_t number, ExtractReport* report) override {
    GNND_CHECK(number < kExtractBuffers && sample.kind() == SampleKind::kRows);
    RowBuffer* const buffer = &buffers_[number];
    return Guarded([&] {
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
      GNND_TRY(Read(buffer, [this, place](uint32_t ahead, std::vector<RowRun>* runs) {
        BatchRuns(KeyAt(place + ahead * stride_), runs);
      }));
      const uint64_t rows = buffer->rows.size() * files_.tokens->num_tokens();
      const auto tier =
          static_cast<uint32_t>(options_.tier == RowTier::kDisk ? Tier::kDisk : Tier::kHost);
      report->traffic.rows[tier] += rows;
      report->traffic.bytes[tier] += rows * files_.tokens->row_bytes();
      report->work_bytes = compute_.reserved_bytes() + files_.tokens->memory_bytes();
      for (const RowBuffer& each : buffers_) report->work_bytes += each.memory.reserved_bytes();
      return Status::Ok();
    });
  }

  Status ComputeGradient(const Sample& sample, uint32_t number, const ParametersView& view,
                         std::span<float> gradient, BatchReport* report) override {
    const std::span<const float> parameters = view.floats;
    const RowBuffer& buffer = buffers_[number];
    GNND_CHECK(parameters.size() == manifest().num_floats && gradient.size() == parameters.size());
    GNND_CHECK(buffer.key.epoch == sample.key().epoch && buffer.key.batch == sample.key().batch);
    return Guarded([&] {
      UseThreads();
      const c10::AutoGradMode with_gradients(true);
      compute_.Reset();
      std::vector<at::Tensor> leaves = ParameterTensors(parameters);
      for (size_t i = 0; i < leaves.size(); ++i) leaves[i].requires_grad_(!IsRunning(i));
      std::vector<RunningValue> running;
      const at::Tensor logits =
          ForwardRows(model_, leaves, BatchOf(buffer, true), &compute_, &running).contiguous();
      const at::Tensor slopes = EmptyIn(&compute_, logits, logits.size(0), logits.size(1));
      *report = BatchReport();
      AddLosses(buffer, logits, slopes, report);
      if (!std::isfinite(report->loss_sum)) {
        return Status(Code::kNumericDivergence, "the training loss is not finite");
      }
      WriteGradients(logits, slopes, leaves, gradient);
      WriteRunning(running, parameters, buffer.rows.size(), gradient);
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
    const auto chunks = static_cast<uint32_t>((rows + kEvalRows - 1) / kEvalRows);
    return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
  }

  Status EvaluateChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                       EvalResult* result) override {
    if (!alive()) return EvaluationAborted();
    if (predictions_) {
      return predictions_->Once(task, {task.chunk, -1}, result, [&] {
        return PredictRows(parameters.floats, task.chunk, targets_,
                           [&](uint64_t first, std::span<const float> logits) {
                             *result = EvalResult{};
                             result->rows = logits.size() / options_.model.out_dim;
                             return predictions_->Write(first, logits);
                           });
      });
    }
    const bool validates = task.run.nodes == EvalNodes::kValidation;
    const uint64_t first = validates ? options_.train : options_.train + options_.val;
    const uint64_t end = first + (validates ? options_.val : options_.test);
    const uint64_t begin = first + task.chunk * kEvalRows;
    const auto count = static_cast<uint32_t>(std::min(begin + kEvalRows, end) - begin);
    runs_.assign(1, {static_cast<uint32_t>(begin), count});
    return Guarded([&] {
      at::Tensor logits;
      GNND_TRY(Evaluate(parameters.floats, &logits));
      return Count(logits, validates, result);
    });
  }

  void EndEvaluation(const EvalRun&) override {}
  Sha256Digest DigestOf(std::span<const float> parameters) override {
    return gnnd::DigestOf(manifest(), parameters);
  }
  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override {
    const RowTargets targets =
        GNND_VALUE(RowTargets::OfNodes(nodes, files_.nodes.values<uint32_t>()));
    for (uint64_t chunk = 0; chunk * kEvalRows < nodes.size(); ++chunk) {
      progress_ = static_cast<double>(chunk * kEvalRows) / static_cast<double>(nodes.size());
      if (!alive()) return EvaluationAborted();
      GNND_TRY(PredictRows(parameters, chunk, targets,
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
  Status Evaluate(std::span<const float> parameters, at::Tensor* logits) {
    UseThreads();
    const c10::AutoGradMode without_gradients(false);
    compute_.Reset();
    evaluated_.Take(runs_);
    const auto nobody_knows = [](uint32_t, std::vector<RowRun>*) {};
    GNND_TRY(runs_.size() == 1 ? ReadStretches(&evaluated_) : Read(&evaluated_, nobody_knows));
    *logits = ForwardRows(model_, ParameterTensors(parameters), BatchOf(evaluated_, false),
                          &compute_, nullptr)
                  .contiguous();
    return Status::Ok();
  }

  // `take` gets the logits of a chunk of the targets, and the place of the first of them.
  template <typename Take>
  Status PredictRows(std::span<const float> parameters, uint64_t chunk, const RowTargets& targets,
                     const Take& take) {
    const uint64_t first = chunk * kEvalRows;
    const uint64_t end = std::min<uint64_t>(first + kEvalRows, targets.rows.size());
    runs_.clear();
    for (uint64_t i = first; i < end; ++i) {
      const uint32_t row = targets.rows[i];
      const bool begins = runs_.empty() || runs_.back().first + runs_.back().count != row;
      if (begins) runs_.push_back({row, 0});
      ++runs_.back().count;
    }
    return Guarded([&] {
      at::Tensor logits;
      GNND_TRY(Evaluate(parameters, &logits));
      return take(first, std::span<const float>(logits.const_data_ptr<float>(),
                                                static_cast<size_t>(logits.numel())));
    });
  }

  void UseThreads() const {
    // OpenMP keeps the number per thread, so the caller's thread must set it itself.
    if (at::get_num_threads() != static_cast<int>(options_.threads)) {
      at::set_num_threads(static_cast<int>(options_.threads));
    }
  }

  // Beside a batch that is computed a whole team would only take its cores: copying needs few.
  uint32_t ExtractThreads() const {
    const bool is_ahead = std::this_thread::get_id() != owner_;
    return is_ahead ? (options_.threads + 3) / 4 : options_.threads;
  }

  bool IsRunning(size_t index) const {
    return manifest().tensors[index].role == TensorRole::kRunning;
  }

  std::vector<at::Tensor> ParameterTensors(std::span<const float> parameters) const {
    std::vector<at::Tensor> tensors;
    for (const ParameterTensor& tensor : manifest().tensors) {
      // Torch has no view of constant memory; nothing writes to a parameter here.
      float* data = const_cast<float*>(parameters.data()) + tensor.offset;
      tensors.push_back(tensor.is_bias ? ViewOf(data, 0, tensor.rows)
                                       : ViewOf(data, tensor.rows, tensor.cols));
    }
    return tensors;
  }

  // The batch's rows, from its key alone.
  void BatchRuns(const BatchKey& key, std::vector<RowRun>* runs) {
    const auto train = static_cast<uint32_t>(options_.train);
    const PhiloxKey philox = KeyOf(options_.random_seed);
    const uint32_t begin = key.batch * options_.batch_size;
    GNND_CHECK(begin < train);
    const uint32_t end = begin + std::min(options_.batch_size, train - begin);
    runs->clear();
    if (options_.chunk == 1) {
      // The same order, many positions at a time.
      permuted_.resize(end - begin);
      ParallelRows(end - begin, kGrainDraws, [&](uint32_t from, uint32_t to) {
        BestLoops<PermuteLoops>().permute(philox, key.epoch, train, begin + from, to - from,
                                          permuted_.data() + from);
      });
      runs->resize(permuted_.size());
      for (size_t i = 0; i < permuted_.size(); ++i) (*runs)[i] = {permuted_[i], 1};
      return;
    }
    const RowOrder order = RowOrderOf(philox, key.epoch, train, options_.chunk);
    for (uint32_t at = begin; at < end; at += runs->back().count) {
      runs->push_back(RowRunAt(order, at, end));
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

  // Reads the buffer's rows, which are those of runs_, of each token.
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

  void BeginRead(RowBuffer* buffer) const {
    buffer->memory.Reset();
    buffer->tokens.clear();
    buffer->nodes.resize(buffer->rows.size());
    buffer->labels.resize(buffer->rows.size());
    const auto count = static_cast<uint32_t>(buffer->rows.size());
    ParallelRows(count, kGrainDraws, [this, buffer](uint32_t begin, uint32_t end) {
      // Nobody else wants to know the nodes.
      if (draws_) Take(files_.nodes.values<uint32_t>(), buffer->rows, begin, end, &buffer->nodes);
      Take(files_.labels.values<uint32_t>(), buffer->rows, begin, end, &buffer->labels);
    });
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

  static RowBatch BatchOf(const RowBuffer& buffer, bool training) {
    return {buffer.tokens, buffer.key, buffer.nodes.data(), training};
  }

  uint32_t LabelOf(uint32_t row) const {
    return static_cast<uint32_t>(files_.labels.values<int32_t>()[row]);
  }

  void AddLosses(const RowBuffer& buffer, const at::Tensor& logits, const at::Tensor& slopes,
                 BatchReport* report) {
    LossRows rows;
    rows.logits = logits.const_data_ptr<float>();
    rows.labels = buffer.labels.data();
    rows.rows = static_cast<uint32_t>(buffer.rows.size());
    rows.classes = options_.model.out_dim;
    rows.grad = slopes.data_ptr<float>();
    const LossSums sums = CpuDevice().operators->loss(rows, &compute_);
    report->loss_sum = sums.loss;
    report->correct = sums.correct;
    report->seeds = buffer.rows.size();
  }

  void WriteGradients(const at::Tensor& logits, const at::Tensor& slopes,
                      const std::vector<at::Tensor>& leaves, std::span<float> gradient) {
    std::vector<at::Tensor> moved;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!IsRunning(i)) moved.push_back(leaves[i]);
    }
    const auto grads = torch::autograd::grad({logits}, moved, {slopes}, std::nullopt, false, true);
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    size_t next = 0;
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (IsRunning(i)) continue;
      const at::Tensor& given = grads[next++];
      if (!given.defined()) continue;
      const at::Tensor grad = given.contiguous();
      std::copy_n(grad.const_data_ptr<float>(), grad.numel(),
                  gradient.begin() + static_cast<int64_t>(manifest().tensors[i].offset));
    }
  }

  // The distance to what the batch found, times its rows (kernels/optimizer.h).
  void WriteRunning(const std::vector<RunningValue>& running, std::span<const float> parameters,
                    uint64_t rows, std::span<float> gradient) const {
    for (const RunningValue& value : running) {
      const ParameterTensor& tensor = manifest().tensors[value.index];
      const float* const found = value.value.const_data_ptr<float>();
      for (uint64_t i = 0; i < tensor.size(); ++i) {
        const uint64_t at = tensor.offset + i;
        gradient[at] = static_cast<float>(rows) * (parameters[at] - found[i]);
      }
    }
  }

  Status Count(const at::Tensor& logits, bool with_loss, EvalResult* result) const {
    const uint64_t classes = options_.model.out_dim;
    *result = EvalResult{};
    result->rows = result->nodes = evaluated_.rows.size();
    for (size_t i = 0; i < evaluated_.rows.size(); ++i) {
      const std::span row(logits.const_data_ptr<float>() + i * classes, classes);
      const uint32_t label = LabelOf(evaluated_.rows[i]);
      if (with_loss) result->loss_sum += CrossEntropy<float>(row, label, nullptr);
      if (ArgMax(row) == label) ++result->correct;
    }
    if (std::isfinite(result->loss_sum)) return Status::Ok();
    return Status(Code::kNumericDivergence, "the validation loss is not finite");
  }

  const std::thread::id owner_ = std::this_thread::get_id();  // computes
  RowsOptions options_;
  // Whether dropout asks which nodes rows are of.
  const bool draws_ = options_.model.dropout > 0 || options_.model.input_dropout > 0 ||
                      options_.model.attention_dropout > 0;
  RowFiles files_;
  Model model_;
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
  GNND_TRY(Guarded([&] {
    static std::once_flag interop;  // torch accepts this once per process, before any work
    std::call_once(interop, [] { at::set_num_interop_threads(1); });
    work = std::make_unique<RowsWork>(options, std::move(files));
    return Status::Ok();
  }));
  GNND_TRY(work->UsePredictions());
  return std::unique_ptr<TorchWork>(std::move(work));
}

}  // namespace gnnd
