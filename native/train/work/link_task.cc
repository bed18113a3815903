#include <cmath>
#include <utility>
#include <vector>

#include "core/kernels/link_loss.h"
#include "train/input/link_use.h"
#include "train/layers/link_head.h"
#include "train/ops/device_stream.h"
#include "train/ops/pairs.h"
#include "train/ops/parallel.h"
#include "train/tasks/losses.h"
#include "train/work/block_task.h"
#include "train/work/pair_task.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainLinks = 32;

// Scores and their gradient where the host reads and writes them: in place, or copies of what lies
// on a device.
class HostScores {
 public:
  HostScores(const at::Tensor& outputs, const at::Tensor& grad, Workspace* workspace)
      : scores_(outputs.const_data_ptr<float>()),
        grad_(grad.data_ptr<float>()),
        count_(static_cast<uint64_t>(outputs.numel())) {
    if (workspace->device().context == nullptr) return;
    stream_ = &TrainStream::Of(workspace->device());
    copies_.resize(2 * count_);
    stream_->CopyOut(copies_.data(), scores_, count_ * sizeof(float));
    stream_->Synchronize();
  }

  const float* scores() const { return stream_ == nullptr ? scores_ : copies_.data(); }
  float* grad() { return stream_ == nullptr ? grad_ : copies_.data() + count_; }
  // Called when the gradient is written.
  void Finish() {
    if (stream_ == nullptr) return;
    stream_->CopyIn(grad_, grad(), count_ * sizeof(float));
    stream_->Synchronize();
  }

 private:
  const float* scores_;
  float* grad_;
  uint64_t count_;
  TrainStream* stream_ = nullptr;  // null: they lie in the host's memory
  std::vector<float> copies_;      // scores, then the gradient
};

// The outputs are a row for each link: its own score and those of its negatives; or, in a batch
// whose negatives are its destinations, those of all of them, among which its own is at its place.
class Links final : public PairTask {
 public:
  Links(const Model& model, const LinkUse& use)
      : model_(model), use_(use), head_(HeadOf(*model.spec.head)) {}

  at::Tensor Outputs(const PairRows& given, Workspace* workspace) const override {
    const PairsView& pairs = given.pairs;
    const LayerParameters head = ParametersOf(model_, given.parameters, model_.spec.num_layers);
    const HeadContext at{head, workspace};
    const at::Tensor sources = RowsAt(given.rows, pairs.source, workspace);
    if (pairs.in_batch) {
      return head_.OfAll(at, sources, RowsAt(given.rows, pairs.destination, workspace));
    }
    std::vector<uint32_t> destinations;
    destinations.reserve(uint64_t{pairs.size()} * Columns(pairs));
    for (uint32_t link = 0; link < pairs.size(); ++link) {
      destinations.push_back(pairs.destination[link]);
      const auto negatives =
          pairs.negatives.subspan(uint64_t{link} * pairs.per_pair, pairs.per_pair);
      destinations.insert(destinations.end(), negatives.begin(), negatives.end());
    }
    return head_.OfEach(at, sources, RowsAt(given.rows, destinations, workspace), Columns(pairs));
  }

  Status Loss(const PairsView& pairs, const PairOutputs& of, BatchReport* report) const override {
    const uint64_t columns = Columns(pairs);
    const std::vector<uint8_t> left_out = LeftOut(pairs);
    std::vector<double> losses(pairs.size());
    HostScores host(of.outputs, of.grad, of.workspace);
    const float* const scores = host.scores();
    float* const slopes = host.grad();
    ParallelRows(pairs.size(), kGrainLinks, [&](uint32_t begin, uint32_t end) {
      for (uint32_t link = begin; link < end; ++link) {
        const uint64_t at = link * columns;
        const LinkScores<float> one{{scores + at, columns},
                                    pairs.in_batch ? link : 0U,
                                    left_out.empty() ? nullptr : left_out.data() + at};
        losses[link] = LossOfLink(use_.loss, one, slopes + at);
        if (use_.weights.of.empty()) continue;
        const double weight = use_.weights.At(pairs.items[link]);
        losses[link] *= weight;
        for (uint64_t i = at; i < at + columns; ++i) {
          slopes[i] = static_cast<float>(weight * static_cast<double>(slopes[i]));
        }
      }
    });
    host.Finish();
    *report = BatchReport();
    report->sums.items = pairs.size();
    for (const double loss : losses) report->sums.loss += loss;
    if (std::isfinite(report->sums.loss)) return Status::Ok();
    return Status(Code::kNumericDivergence, "the training loss is not finite");
  }

 private:
  static uint32_t Columns(const PairsView& pairs) {
    return pairs.in_batch ? pairs.size() : 1 + pairs.per_pair;
  }

  // 1 for each score that losses leave out; empty if there is none.
  static std::vector<uint8_t> LeftOut(const PairsView& pairs) {
    std::vector<uint8_t> left_out;
    if (pairs.masked.empty()) return left_out;
    const uint64_t columns = Columns(pairs);
    left_out.resize(pairs.size() * columns);
    for (const uint32_t place : pairs.masked) {
      const uint64_t column = place % pairs.per_pair + (pairs.in_batch ? 0 : 1);
      left_out[place / pairs.per_pair * columns + column] = 1;
    }
    return left_out;
  }

  const Model& model_;
  const LinkUse& use_;
  const PairHead& head_;
};

// The outputs are a row for each link: what the head makes of its two ends, for what is known of
// it.
class LabelledLinks final : public PairTask {
 public:
  LabelledLinks(const Model& model, const LinkLabels& labels)
      : model_(model), targets_(labels.train), head_(HeadOf(*model.spec.head)) {}

  at::Tensor Outputs(const PairRows& given, Workspace* workspace) const override {
    const LayerParameters head = ParametersOf(model_, given.parameters, model_.spec.num_layers);
    return head_.OfPairs({head, workspace}, RowsAt(given.rows, given.pairs.source, workspace),
                         RowsAt(given.rows, given.pairs.destination, workspace));
  }

  Status Loss(const PairsView& pairs, const PairOutputs& of, BatchReport* report) const override {
    TargetRows known;
    targets_.Read(pairs.items, &known);
    const uint32_t* labels = known.labels.data();
    TrainStream* stream = nullptr;
    if (of.workspace->device().context != nullptr && !known.labels.empty()) {
      stream = &TrainStream::Of(of.workspace->device());
      auto* const there = of.workspace->Get<uint32_t>(known.labels.size());
      stream->CopyIn(there, labels, known.labels.size() * sizeof(uint32_t));
      labels = there;
    }
    const Status status =
        ComputeLoss({targets_, known, labels}, of.outputs, of.grad, of.workspace, report);
    if (stream != nullptr) stream->Synchronize();  // before the host's copy goes
    return status;
  }

 private:
  const Model& model_;
  const NodeTargets& targets_;
  const PairHead& head_;
};

// Pairs of the seeds of blocks, as records list them.
class OfBlocks final : public BlockTask {
 public:
  explicit OfBlocks(std::unique_ptr<PairTask> task) : task_(std::move(task)) {}

  Status Read(const Sample& sample, ExtractBuffer* buffer) const override {
    buffer->seeds = TargetRows();
    buffer->labels = nullptr;
    if (!sample.pairs().empty()) return Status::Ok();
    return Status(Code::kShmCorrupted, "a record of a job of links has no pairs");
  }
  at::Tensor Outputs(const Batch& batch, const at::Tensor& rows) const override {
    return task_->Outputs({batch.sample.pairs(), batch.parameters, rows}, batch.workspace);
  }
  Status Loss(const Known& known, const at::Tensor& outputs, const at::Tensor& grad,
              BatchReport* report) const override {
    return task_->Loss(known.sample.pairs(), {outputs, grad, known.workspace}, report);
  }

 private:
  std::unique_ptr<PairTask> task_;
};

}  // namespace

std::unique_ptr<PairTask> TaskOfPairs(const Model& model, const LinkUse& use) {
  if (use.labels != nullptr) return std::make_unique<LabelledLinks>(model, *use.labels);
  return std::make_unique<Links>(model, use);
}

std::unique_ptr<BlockTask> LinksOfBlocks(const Model& model, const LinkUse& use) {
  return std::make_unique<OfBlocks>(TaskOfPairs(model, use));
}

}  // namespace gnnd
