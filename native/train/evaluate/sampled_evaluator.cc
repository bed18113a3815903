#include "train/evaluate/sampled_evaluator.h"

#include <algorithm>
#include <utility>

#include "core/base/cpu.h"
#include "core/draw/philox.h"
#include "core/feature/feature_store.h"
#include "core/graph/features.h"
#include "train/layers/model.h"
#include "train/ops/ops.h"

namespace gnnd {
namespace {

Model WithoutDropout(const Model& model) {
  Model quiet = model;
  quiet.spec.dropout = quiet.spec.input_dropout = quiet.spec.attention_dropout = 0;
  return quiet;
}

}  // namespace

Result<std::unique_ptr<SampledEvaluator>> SampledEvaluator::Create(const TrainOptions& options,
                                                                   const Model& model,
                                                                   ScriptModel* script) {
  const TopologyView& topology = options.topology;
  const RecordLayout layout = GNND_VALUE(RecordLayout::Of(LimitsOf(
      topology.num_nodes(), topology.num_edges(), kEvalChunkSeeds, *options.eval_sampler)));
  return std::unique_ptr<SampledEvaluator>(new SampledEvaluator(options, model, script, layout));
}

SampledEvaluator::SampledEvaluator(const TrainOptions& options, const Model& model,
                                   ScriptModel* script, const RecordLayout& layout)
    : options_(options),
      model_(WithoutDropout(model)),
      script_(script),
      sampler_(options.topology, *options.eval_sampler, layout, DetectInstructionSet()),
      slot_(layout.slot_bytes()),
      targets_{TargetsOf(options, EvalNodes::kValidation), TargetsOf(options, EvalNodes::kTest)} {}

EvalShape SampledEvaluator::Plan(EvalNodes nodes) const {
  const uint64_t rows = targets_[static_cast<uint32_t>(nodes)].once().size();
  const auto chunks = static_cast<uint32_t>((rows + kEvalChunkSeeds - 1) / kEvalChunkSeeds);
  return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
}

at::Tensor SampledEvaluator::Rows(std::span<const uint32_t> nodes) {
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

at::Tensor SampledEvaluator::Logits(const Sample& sample, std::span<const at::Tensor> parameters) {
  memory_.Reset();
  BottomInput bottom;
  bottom.x = Rows(sample.nodes());
  if (script_ != nullptr) return script_->Forward(sample, bottom.x).contiguous();
  return ForwardBlocks(model_, parameters, sample, bottom, &memory_).contiguous();
}

at::Tensor SampledEvaluator::LogitsOfDevice(const Sample& sample,
                                            std::span<const at::Tensor> parameters) {
  Workspace* const memory = on_device_->memory;
  memory->Reset();
  BottomInput bottom;
  const Sample copy =
      CopyToDevice(on_device_->store, sample, &on_device_->reader, memory, &bottom.x);
  const at::Tensor given = ForwardBlocks(model_, parameters, copy, bottom, memory);
  // Torch may have allocated `given` itself, and the plug-in cannot copy from such memory.
  const at::Tensor logits = EmptyIn(memory, given, given.size(0), given.size(1));
  logits.copy_(given);
  logits_.resize(static_cast<uint64_t>(logits.numel()));
  TrainStream& stream = TrainStream::Of(memory->device());
  stream.CopyOut(logits_.data(), logits.const_data_ptr<float>(), logits_.size() * sizeof(float));
  stream.Synchronize();
  return ViewOf(logits_.data(), logits.size(0), logits.size(1));
}

Status SampledEvaluator::UseDevice(const FeatureStore& store, const DeviceSide& side,
                                   std::span<const at::Tensor> parameters, Workspace* memory) {
  on_device_.emplace(OnDevice{store, DeviceReader(side.features()), memory});
  const std::span<const uint32_t> all(targets_[0].once().empty() ? targets_[1].once()
                                                                 : targets_[0].once());
  const auto seeds = all.first(std::min<uint64_t>(kEvalChunkSeeds, all.size()));
  if (seeds.empty()) return Status::Ok();
  const BatchKey key{options_.random_seed, kEvaluationEpoch, 0};
  GNND_TRY(sampler_.Sample(key, seeds, {slot_.data(), slot_.size()}));
  LogitsOfDevice(OwnSample({slot_.data(), slot_.size()}), parameters);
  return Status::Ok();
}

Status SampledEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters,
                                  const Alive& alive, EvalResult* result) {
  const auto which = static_cast<uint32_t>(task.run.nodes);
  const EvalTargets& targets = targets_[which];
  const std::span<const uint32_t> all(targets.once());
  const uint64_t first = uint64_t{task.chunk} * kEvalChunkSeeds;
  const auto seeds = all.subspan(first, std::min<uint64_t>(kEvalChunkSeeds, all.size() - first));
  if (!alive()) return EvaluationAborted();
  const BatchKey key{options_.random_seed, kEvaluationEpoch + which, task.chunk};
  GNND_TRY(sampler_.Sample(key, seeds, {slot_.data(), slot_.size()}));
  const Sample sample = OwnSample({slot_.data(), slot_.size()});
  const at::Tensor rows =
      on_device_ ? LogitsOfDevice(sample, parameters) : Logits(sample, parameters);
  const std::span<const float> logits(rows.const_data_ptr<float>(),
                                      seeds.size() * model_.spec.out_dim);
  *result = EvalResult{};
  result->rows = seeds.size();
  if (predictions_ != nullptr) return predictions_->Write(first, logits);
  return targets.Count(task, seeds, logits, options_.targets, result);
}

}  // namespace gnnd
