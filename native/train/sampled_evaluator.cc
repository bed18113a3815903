#include "train/sampled_evaluator.h"

#include <algorithm>
#include <utility>

#include "core/base/cpu.h"
#include "core/draw/philox.h"
#include "core/graph/features.h"
#include "train/model.h"
#include "train/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 256;

Model WithoutDropout(const Model& model) {
  Model quiet = model;
  quiet.spec.dropout = quiet.spec.input_dropout = quiet.spec.attention_dropout = 0;
  return quiet;
}

}  // namespace

Result<std::unique_ptr<SampledEvaluator>> SampledEvaluator::Create(const EvalInput& input,
                                                                   const Model& model,
                                                                   ScriptModel* script,
                                                                   const SamplerOptions& sampler,
                                                                   uint64_t random_seed) {
  const TopologyView& topology = input.topology;
  const Result<RecordLayout> layout = RecordLayout::Of(
      LimitsOf(topology.num_nodes(), topology.num_edges(), kEvalChunkSeeds, sampler));
  if (!layout.ok()) return layout.status();
  return std::unique_ptr<SampledEvaluator>(
      new SampledEvaluator(input, model, script, sampler, *layout, random_seed));
}

SampledEvaluator::SampledEvaluator(const EvalInput& input, const Model& model, ScriptModel* script,
                                   const SamplerOptions& sampler, const RecordLayout& layout,
                                   uint64_t random_seed)
    : input_(input),
      model_(WithoutDropout(model)),
      script_(script),
      random_seed_(random_seed),
      sampler_(input.topology, sampler, layout, DetectInstructionSet()),
      slot_(layout.slot_bytes()),
      targets_{EvalTargets(input.val_nodes), EvalTargets(input.test_nodes)} {}

EvalShape SampledEvaluator::Plan(EvalNodes nodes) const {
  const uint64_t rows = targets_[static_cast<uint32_t>(nodes)].once().size();
  const auto chunks = static_cast<uint32_t>((rows + kEvalChunkSeeds - 1) / kEvalChunkSeeds);
  return EvalShape{chunks == 0 ? 0U : 1U, chunks, rows};
}

at::Tensor SampledEvaluator::Logits(const Sample& sample, std::span<const at::Tensor> parameters) {
  memory_.Reset();
  const std::span<const uint32_t> nodes = sample.nodes();
  const uint64_t columns = model_.spec.in_dim;
  float* rows = memory_.Get<float>(nodes.size() * columns);
  ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainRows, [&](uint32_t begin, uint32_t end) {
    GatherRows(input_.features, nodes.subspan(begin, end - begin),
               {rows + begin * columns, (end - begin) * columns});
  });
  BottomInput bottom;
  bottom.x = ViewOf(rows, static_cast<int64_t>(nodes.size()), static_cast<int64_t>(columns));
  if (script_ != nullptr) return script_->Forward(sample, bottom.x).contiguous();
  return ForwardBlocks(model_, parameters, sample, bottom, &memory_).contiguous();
}

Status SampledEvaluator::RunChunk(const EvalTask& task, std::span<const at::Tensor> parameters,
                                  const Alive& alive, EvalResult* result) {
  const auto which = static_cast<uint32_t>(task.run.nodes);
  const EvalTargets& targets = targets_[which];
  const std::span<const uint32_t> all(targets.once());
  const uint64_t first = uint64_t{task.chunk} * kEvalChunkSeeds;
  const auto seeds = all.subspan(first, std::min<uint64_t>(kEvalChunkSeeds, all.size() - first));
  if (!alive()) return EvaluationAborted();
  const BatchKey key{random_seed_, kEvaluationEpoch + which, task.chunk};
  GNND_TRY(sampler_.Sample(key, seeds, {slot_.data(), slot_.size()}));
  const at::Tensor logits = Logits(OwnSample({slot_.data(), slot_.size()}), parameters);
  *result = EvalResult{};
  result->rows = seeds.size();
  return targets.Count(seeds, {logits.const_data_ptr<float>(), seeds.size() * model_.spec.out_dim},
                       input_.labels, task.run.nodes == EvalNodes::kValidation, result);
}

}  // namespace gnnd
