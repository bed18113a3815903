#include <algorithm>

#include "core/batch/layout.h"
#include "core/executor/eval_scratch.h"
#include "core/model/model_spec.h"
#include "node/core/bindings.h"
#include "node/tables.h"

// Sizes that follow from a spec.

namespace gnnd::node {

struct EvaluationSizesOptions {
  DatasetCounts counts;
  ModelOptions model;
  bool sampled = false;
  bool ranked = false;
  std::vector<uint32_t> widths;
};

template <>
inline constexpr auto kTable<EvaluationSizesOptions> =
    StructOf("EvaluationSizesOptions", Field{"counts", &EvaluationSizesOptions::counts},
             Field{"model", &EvaluationSizesOptions::model},
             Field{"sampled", &EvaluationSizesOptions::sampled, "On samples, not exact."},
             Field{"ranked", &EvaluationSizesOptions::ranked, "With a phase that ranks nodes."},
             Field{"widths", &EvaluationSizesOptions::widths, "Of the model's manifest."});

struct EvaluationSizes {
  uint64_t chunks = 0;
  uint64_t scratch_bytes = 0;
  uint64_t kept_bytes = 0;
  uint64_t work_bytes = 0;
};

template <>
inline constexpr auto kTable<EvaluationSizes> = StructOf(
    "EvaluationSizes", Field{"chunks", &EvaluationSizes::chunks, "At most, of one evaluation."},
    Field{"scratchBytes", &EvaluationSizes::scratch_bytes,
          "Of hidden rows and what is made of them, if all are touched."},
    Field{"keptBytes", &EvaluationSizes::kept_bytes,
          "More for the scratch, to keep sums of features from one evaluation to the next."},
    Field{"workBytes", &EvaluationSizes::work_bytes,
          "Private to each Trainer, beside what batches take."});

namespace {

Result<ParameterManifest> Manifest(const ModelOptions& model) { return ManifestOf(model); }

Result<EvaluationSizes> SizesOf(const EvaluationSizesOptions& options) {
  const DatasetCounts& counts = options.counts;
  ModelSpec spec = options.model;
  spec.widths = options.widths;
  if (spec.type == ModelType::kScript && spec.widths.size() != spec.num_layers) {
    return Status(Code::kInvalidArgument, "options.widths: one for each layer");
  }
  const uint64_t ranks = options.ranked ? 1 : 0;
  if (options.sampled) {
    const uint64_t most = std::max({counts.val, counts.test, uint64_t{1}});
    // As a batch, and never beside one: no memory of its own.
    return EvaluationSizes{(ranks + 1) * ((most + kEvalChunkSeeds - 1) / kEvalChunkSeeds), 0, 0, 0};
  }
  const EvalLayout layout = EvalLayout::Of(spec, counts.num_nodes);
  return EvaluationSizes{(MaxEvalPhases(spec) + ranks) * EvalChunks(counts.num_nodes),
                         layout.total_bytes, layout.kept_bytes,
                         EvalWorkBytes(spec, counts.num_nodes, counts.val + counts.test)};
}

Result<int> Scratch(uint64_t bytes, const std::string& folder) {
  return GNND_VALUE(EvalScratch::Create(bytes, folder)).Release();
}

Result<uint64_t> SlotBytes(const DatasetCounts& counts, const SamplingOptions& sampling) {
  return GNND_VALUE(RecordLayout::Of(LimitsOf(counts, sampling))).slot_bytes();
}

}  // namespace

void DefineModel(Subject& subject) {
  subject.Enum<ModelType>()
      .Enum<Activation>()
      .Enum<Normalization>()
      .Enum<ModelVariant>()
      .Struct<ScriptSource>()
      .Struct<ModelOptions>()
      .Struct<ParameterTensor>()
      .Struct<ParameterManifest>()
      .Struct<EvaluationSizesOptions>()
      .Struct<EvaluationSizes>()
      .Function("modelManifest", Manifest, {"model"}, "Not for TORCHSCRIPT: `modelProbe`.")
      .Function("evaluationSizes", SizesOf, {"options"})
      .Function("evaluationScratch", Scratch, {"bytes", "folder"},
                "Sparse memory, or with a folder an unnamed file in it; the caller closes it.")
      .Function("recordSlotBytes", SlotBytes, {"counts", "sampling"},
                "Virtual bytes of the largest possible record.");
}

}  // namespace gnnd::node
