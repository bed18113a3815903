#include "train/evaluate/sampled_evaluator.h"

#include <algorithm>
#include <utility>
#include <vector>

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

  at::Tensor Logits(const Sample& sample, std::span<const at::Tensor> constants) override {
    memory_.Reset();
    BottomInput bottom;
    bottom.x = Rows(sample.nodes());
    return model_.Evaluate(constants, sample, bottom, &memory_).contiguous();
  }
  uint64_t work_bytes() const override { return memory_.reserved_bytes(); }

 private:
  // Feature rows of these nodes as float32.
  at::Tensor Rows(std::span<const uint32_t> nodes) {
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

  at::Tensor Logits(const Sample& sample, std::span<const at::Tensor> constants) override {
    memory_->Reset();
    BottomInput bottom;
    const Sample copy = CopyToDevice(store_, sample, &reader_, memory_, &bottom.x);
    const at::Tensor given = model_.Evaluate(constants, copy, bottom, memory_);
    // Torch may have allocated `given` itself, and the plug-in cannot copy from such memory.
    const at::Tensor logits = EmptyIn(memory_, given, given.size(0), given.size(1));
    logits.copy_(given);
    logits_.resize(static_cast<uint64_t>(logits.numel()));
    TrainStream& stream = TrainStream::Of(memory_->device());
    stream.CopyOut(logits_.data(), logits.const_data_ptr<float>(), logits_.size() * sizeof(float));
    stream.Synchronize();
    return ViewOf(logits_.data(), logits.size(0), logits.size(1));
  }
  uint64_t work_bytes() const override { return 0; }

 private:
  const FeatureStore& store_;
  BlockModel& model_;
  DeviceReader reader_;
  Workspace* memory_;
  std::vector<float> logits_;
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
  forward_->Logits(sample, model_.Constants(side.Gradient(), memory->device().where));
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
  const at::Tensor rows = forward_->Logits(sample, constants);
  *result = EvalResult{};
  result->rows = seeds.size();
  return outcome_.Take(task, seeds,
                       {rows.const_data_ptr<float>(), seeds.size() * model_.model().spec.out_dim},
                       result);
}

}  // namespace gnnd
