#include "train/work/row_evaluation.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/model/row_manifest.h"
#include "train/evaluate/row_results.h"
#include "train/ops/ops.h"
#include "train/work/compute_side.h"

namespace gnnd {
namespace {

EvalShape ShapeOfRows(uint64_t rows) {
  const auto chunks = static_cast<uint32_t>((rows + kRowsOfChunk - 1) / kRowsOfChunk);
  return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
}

class Counted final : public Evaluation {
 public:
  explicit Counted(RowLogits* logits) : logits_(*logits) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive&) override {
    return ShapeOfRows(RowsOf(nodes));
  }
  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    if (!alive()) return EvaluationAborted();
    const RowsOptions& options = logits_.input().options;
    const bool tests = task.run.nodes == EvalNodes::kTest;
    const uint64_t first = options.train + (tests ? options.val : 0);
    const uint64_t place = task.chunk * kRowsOfChunk;
    const uint64_t count = std::min(kRowsOfChunk, RowsOf(task.run.nodes) - place);
    const RowRun runs[] = {{static_cast<uint32_t>(first + place), static_cast<uint32_t>(count)}};
    const auto take = [&](const LayerRows& logits) {
      return CountRows(task, logits.values, logits.nodes, place, logits_.input().files.targets,
                       result);
    };
    const uint32_t last = logits_.last();
    return logits_.Of(parameters, runs, std::span(&last, 1), take);
  }

 private:
  uint64_t RowsOf(EvalNodes nodes) const {
    const RowsOptions& options = logits_.input().options;
    return nodes == EvalNodes::kValidation ? options.val : options.test;
  }

  RowLogits& logits_;
};

class Predicted final : public Evaluation {
 public:
  Predicted(RowLogits* logits, RowTargets targets, std::shared_ptr<PredictionFiles> files)
      : logits_(*logits), targets_(std::move(targets)), files_(std::move(files)) {}

  Result<EvalShape> Plan(EvalNodes nodes, const Alive&) override {
    return ShapeOfRows(nodes == EvalNodes::kValidation ? targets_.rows.size() : 0);
  }
  Status RunChunk(const EvalTask& task, const ParametersView& parameters, const Alive& alive,
                  EvalResult* result) override {
    if (!alive()) return EvaluationAborted();
    const auto take = [&](uint64_t first, const LayerRows& rows) {
      *result = EvalResult{};
      result->rows = rows.nodes.size();
      return files_->Write(rows.layer, first, rows.values);
    };
    return logits_.OfChunk(parameters, task.chunk, targets_, files_->layers(), take);
  }

 private:
  RowLogits& logits_;
  RowTargets targets_;
  std::shared_ptr<PredictionFiles> files_;
};

class ByRows final : public NodeLogits {
 public:
  explicit ByRows(RowLogits* logits) : logits_(*logits) {}

  Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                 const Alive& alive, const LogitsConsumer& consume) override {
    const RowTargets targets =
        GNND_VALUE(RowTargets::OfNodes(nodes, logits_.input().files.nodes.values<uint32_t>()));
    const auto take = [&](uint64_t first, const LayerRows& logits) {
      return consume(nodes.subspan(first, logits.nodes.size()), logits.values.data());
    };
    const uint32_t last = logits_.last();
    for (uint64_t chunk = 0; chunk * kRowsOfChunk < nodes.size(); ++chunk) {
      progress_ = static_cast<double>(chunk * kRowsOfChunk) / static_cast<double>(nodes.size());
      if (!alive()) return EvaluationAborted();
      GNND_TRY(logits_.OfChunk({.floats = parameters}, chunk, targets, std::span(&last, 1), take));
    }
    return Status::Ok();
  }

 private:
  RowLogits& logits_;
};

}  // namespace

Status RowLogits::Of(const ParametersView& parameters, std::span<const RowRun> runs,
                     std::span<const uint32_t> layers, const RowsConsumer& take) {
  Workspace* const memory = &side_.memory();
  memory->Reset();
  RowBuffer& buffer = batches_.buffer(RowBatches::kEvaluated);
  buffer.Begin({}, runs);
  std::vector<at::Tensor> given;
  const LayerTap tap = [&](uint32_t layer, const at::Tensor& rows) {
    if (std::ranges::binary_search(layers, layer)) {
      given.push_back(rows.contiguous().to(at::kCPU));
    }
  };
  const auto compute = [&] {
    GNND_TRY(batches_.BringEvaluated());
    const auto constants =
        ViewsOf(input_.model.manifest, side_.Parameters(parameters), side_.where());
    const RowBatch batch = batches_.BatchOf(RowBatches::kEvaluated, false);
    ForwardRows(input_.model, constants, batch, memory, nullptr, tap);
    return Status::Ok();
  };
  GNND_TRY(side_.Run(compute));
  side_.TellMemory();
  GNND_CHECK(given.size() == layers.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const std::span<const float> values(given[i].const_data_ptr<float>(),
                                        static_cast<size_t>(given[i].numel()));
    GNND_TRY(take({layers[i], buffer.rows, values}));
  }
  return Status::Ok();
}

Status RowLogits::OfChunk(const ParametersView& parameters, uint64_t chunk,
                          const RowTargets& targets, std::span<const uint32_t> layers,
                          const TakeChunk& take) {
  const uint64_t first = chunk * kRowsOfChunk;
  const uint64_t end = std::min<uint64_t>(first + kRowsOfChunk, targets.rows.size());
  return Of(parameters, targets.RunsOf(first, end), layers,
            [&](const LayerRows& rows) { return take(first, rows); });
}

std::unique_ptr<Evaluation> RowEvaluation(RowLogits* logits) {
  return std::make_unique<Counted>(logits);
}

std::unique_ptr<Evaluation> RowInference(RowLogits* logits, RowTargets targets,
                                         std::shared_ptr<PredictionFiles> files) {
  return std::make_unique<Predicted>(logits, std::move(targets), std::move(files));
}

std::unique_ptr<NodeLogits> LogitsByRows(RowLogits* logits) {
  return std::make_unique<ByRows>(logits);
}

}  // namespace gnnd
