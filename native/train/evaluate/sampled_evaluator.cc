#include "train/evaluate/sampled_evaluator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/draw/philox.h"
#include "core/executor/eval_scratch.h"
#include "core/graph/features.h"
#include "train/device/device_extraction.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

class HostForward final : public SampleForward {
 public:
  HostForward(const TrainOptions& options, BlockModel* model) : options_(options), model_(*model) {}

  std::vector<at::Tensor> Rows(const Sample& sample, std::span<const at::Tensor> constants,
                               std::span<const uint32_t> layers) override {
    memory_.Reset();
    BottomInput bottom;
    bottom.x = Features(sample.nodes());
    std::vector<at::Tensor> rows;
    model_.Evaluate(constants, sample, bottom, &memory_,
                    [&](uint32_t layer, const at::Tensor& given) {
                      if (!std::ranges::binary_search(layers, layer)) return;
                      rows.push_back(given.narrow(0, 0, sample.num_seeds()).contiguous());
                    });
    return rows;
  }
  uint64_t work_bytes() const override { return memory_.reserved_bytes(); }

 private:
  // Feature rows of these nodes as float32.
  at::Tensor Features(std::span<const uint32_t> nodes) {
    const RowTable& table = options_.features;
    if (!options_.features_on_disk) return GatheredRows<float>(table, nodes, &memory_);
    const uint64_t dim = table.dim();
    const std::span<float> rows(memory_.Get<float>(nodes.size() * dim), nodes.size() * dim);
    ReadInParts(
        nodes.size(),
        [&](uint64_t begin, uint64_t end) { AskForRows(table, nodes.subspan(begin, end - begin)); },
        [&](uint64_t begin, uint64_t end) {
          GatherRows(table, nodes.subspan(begin, end - begin),
                     rows.subspan(begin * dim, (end - begin) * dim));
        });
    return ViewOf(rows.data(), static_cast<int64_t>(nodes.size()), static_cast<int64_t>(dim));
  }

  const TrainOptions& options_;
  BlockModel& model_;
  Workspace memory_;
};

class DeviceForward final : public SampleForward {
 public:
  DeviceForward(const BlockInput& input, BlockModel* model, const DeviceSide& side,
                Workspace* memory)
      : store_(input.store), model_(*model), reader_(side.features()), memory_(memory) {}

  std::vector<at::Tensor> Rows(const Sample& sample, std::span<const at::Tensor> constants,
                               std::span<const uint32_t> layers) override {
    memory_->Reset();
    BottomInput bottom;
    const Sample copy = CopyToDevice(store_, sample, &reader_, memory_, &bottom.x);
    std::vector<at::Tensor> there;
    model_.Evaluate(constants, copy, bottom, memory_, [&](uint32_t layer, const at::Tensor& given) {
      if (!std::ranges::binary_search(layers, layer)) return;
      // Torch may have allocated `given` itself, and the plug-in cannot copy from
      // such memory.
      const int64_t seeds = sample.num_seeds();
      there.push_back(EmptyIn(memory_, given, seeds, given.size(1)));
      there.back().copy_(given.narrow(0, 0, seeds));
    });
    return BroughtHere(there);
  }
  uint64_t work_bytes() const override { return 0; }

 private:
  std::vector<at::Tensor> BroughtHere(const std::vector<at::Tensor>& there) {
    rows_.resize(there.size());
    std::vector<at::Tensor> here;
    TrainStream& stream = TrainStream::Of(memory_->device());
    for (size_t i = 0; i < there.size(); ++i) {
      rows_[i].resize(static_cast<uint64_t>(there[i].numel()));
      stream.CopyOut(rows_[i].data(), there[i].const_data_ptr<float>(),
                     rows_[i].size() * sizeof(float));
      here.push_back(ViewOf(rows_[i].data(), there[i].size(0), there[i].size(1)));
    }
    stream.Synchronize();
    return here;
  }

  const FeatureStore& store_;
  BlockModel& model_;
  DeviceReader reader_;
  Workspace* memory_;
  std::vector<std::vector<float>> rows_;  // of each layer
};

}  // namespace

Result<std::unique_ptr<SampledEvaluator>> SampledEvaluator::Create(const BlockInput& input,
                                                                   BlockModel* model,
                                                                   EvalOutcome* outcome) {
  const TopologyView& topology = input.options.topology;
  const RecordLayout layout = GNND_VALUE(RecordLayout::Of(LimitsOf(
      topology.num_nodes(), topology.num_edges(), kEvalChunkSeeds, *input.options.eval_sampler)));
  return std::unique_ptr<SampledEvaluator>(new SampledEvaluator(input, model, outcome, layout));
}

SampledEvaluator::SampledEvaluator(const BlockInput& input, BlockModel* model, EvalOutcome* outcome,
                                   const RecordLayout& layout)
    : input_(input),
      model_(*model),
      outcome_(*outcome),
      sampler_(input.options.topology, *input.options.eval_sampler, layout, DetectInstructionSet()),
      slot_(layout.slot_bytes()) {
  UseHost();
}

void SampledEvaluator::UseHost() {
  forward_ = std::make_unique<HostForward>(input_.options, &model_);
}

Status SampledEvaluator::UseDevice(DeviceSide& side, Workspace* memory) {
  forward_ = std::make_unique<DeviceForward>(input_, &model_, side, memory);
  const std::vector<uint32_t>& validation = outcome_.nodes(EvalNodes::kValidation);
  const std::span<const uint32_t> all(validation.empty() ? outcome_.nodes(EvalNodes::kTest)
                                                         : validation);
  const auto seeds = all.first(std::min<uint64_t>(kEvalChunkSeeds, all.size()));
  if (seeds.empty()) return Status::Ok();
  const Sample sample = GNND_VALUE(Drawn({input_.options.random_seed, kEvaluationEpoch, 0}, seeds));
  const auto constants = model_.Constants(side.Gradient(), memory->device().where);
  forward_->Rows(sample, constants, outcome_.layers());
  return Status::Ok();
}

Result<EvalShape> SampledEvaluator::Plan(EvalNodes nodes, const Alive&) {
  const uint64_t rows = outcome_.nodes(nodes).size();
  const auto chunks = static_cast<uint32_t>((rows + kEvalChunkSeeds - 1) / kEvalChunkSeeds);
  return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
}

Result<Sample> SampledEvaluator::Drawn(const BatchKey& key, std::span<const uint32_t> seeds) {
  GNND_TRY(sampler_.Sample(key, seeds, {slot_.data(), slot_.size()}));
  return OwnSample({slot_.data(), slot_.size()});
}

Status SampledEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> constants,
                                  const Alive& alive, EvalResult* result) {
  const EvalNodes nodes = task.run.nodes;
  const std::span<const uint32_t> all(outcome_.nodes(nodes));
  const uint64_t first = uint64_t{task.chunk} * kEvalChunkSeeds;
  const auto seeds = all.subspan(first, std::min<uint64_t>(kEvalChunkSeeds, all.size() - first));
  if (!alive()) return EvaluationAborted();
  const uint32_t epoch = kEvaluationEpoch + static_cast<uint32_t>(nodes);
  const Sample sample = GNND_VALUE(Drawn({input_.options.random_seed, epoch, task.chunk}, seeds));
  const std::vector<uint32_t>& layers = outcome_.layers();
  const std::vector<at::Tensor> rows = forward_->Rows(sample, constants, layers);
  GNND_CHECK(rows.size() == layers.size());
  *result = EvalResult{};
  result->rows = seeds.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> values(rows[i].const_data_ptr<float>(),
                                        static_cast<uint64_t>(rows[i].numel()));
    GNND_TRY(outcome_.Take(task, {layers[i], seeds, values}, result));
  }
  return Status::Ok();
}

}  // namespace gnnd
