#include <algorithm>

#include "core/batch/layout.h"
#include "core/executor/eval_scratch.h"
#include "core/model/manifest.h"
#include "core/model/model_spec.h"
#include "core/model/row_manifest.h"
#include "core/prepare/job_memory.h"
#include "node/core/bindings.h"
#include "node/core/sample_work.h"
#include "node/tables.h"

// Sizes computed from a spec.

namespace gnnd::node {

struct EvaluationSizesOptions {
  DatasetCounts counts;
  ModelOptions model;
  bool sampled = false;
  bool ranked = false;
  bool asked = false;
  std::vector<uint32_t> widths;
};

template <>
inline constexpr auto kTable<EvaluationSizesOptions> =
    StructOf("EvaluationSizesOptions", Field{"counts", &EvaluationSizesOptions::counts},
             Field{"model", &EvaluationSizesOptions::model},
             Field{"sampled", &EvaluationSizesOptions::sampled, "On samples, not exact."},
             Field{"ranked", &EvaluationSizesOptions::ranked, "With a phase that ranks nodes."},
             Field{"asked", &EvaluationSizesOptions::asked,
                   "An inference, which may have more pairs than nodes."},
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

struct JobMemoryOptions {
  DatasetCounts counts;
  ModelOptions model;
  Precision precision = Precision::kFloat32;
  uint64_t batch_size = 1;
  uint64_t parameter_floats = 0;
  uint64_t slot_bytes = 0;
  uint64_t row_value_bytes = 4;
  bool alias = false;
};

template <>
inline constexpr auto kTable<JobMemoryOptions> = StructOf(
    "JobMemoryOptions", Field{"counts", &JobMemoryOptions::counts},
    Field{"model", &JobMemoryOptions::model}, Field{"precision", &JobMemoryOptions::precision},
    Field{"batchSize", &JobMemoryOptions::batch_size},
    Field{"parameterFloats", &JobMemoryOptions::parameter_floats},
    Field{"slotBytes", &JobMemoryOptions::slot_bytes,
          "The largest record; 0 where batches have none."},
    Field{"rowValueBytes", &JobMemoryOptions::row_value_bytes,
          "A value of a propagation's rows, as they are stored."},
    Field{"alias", &JobMemoryOptions::alias, "Neighbours are drawn by edge weight."});

template <>
inline constexpr auto kTable<JobMemory> = StructOf(
    "JobMemory",
    Field{"topologyBytes", &JobMemory::topology_bytes, "The graph, where it is held in memory."},
    Field{"samplerDeviceBytes", &JobMemory::sampler_device_bytes,
          "What a Sampler takes of a device that has memory of its own."},
    Field{"historyRowBytes", &JobMemory::history_row_bytes, "A hidden row as history keeps it."},
    Field{"evaluationPartBytes", &JobMemory::evaluation_part_bytes,
          "What is on its way to a device in an exact evaluation, and its numbering."},
    Field{"rowWorkBytes", &JobMemory::row_work_bytes,
          "What a Trainer of a model over rows computes with, in the host's memory."},
    Field{"rowDeviceBytes", &JobMemory::row_device_bytes,
          "The same in a device's memory, beside rows that lie there."},
    Field{"rowStagedBytes", &JobMemory::row_staged_bytes,
          "Batches of rows that are read ahead from disk."},
    Field{"rowChunkBytes", &JobMemory::row_chunk_bytes,
          "The inputs of a chunk of an evaluation of rows."});

namespace {

JobMemory Memory(const JobMemoryOptions& options) {
  return MemoryOf({options.counts, options.model, options.precision, options.batch_size,
                   options.parameter_floats, options.slot_bytes, options.row_value_bytes,
                   options.alias});
}

uint64_t TopologySize(const DatasetCounts& counts, bool alias) {
  return TopologyBytes(counts, alias);
}

Result<uint64_t> TypedTopologySize(const Schema& schema) {
  GNND_TRY(CheckSchema(schema));
  return TopologyBytes(schema);
}

Result<ParameterManifest> Manifest(const ModelOptions& model) { return ManifestOf(model); }

// Of a model over rows whose head scores pairs: first the rows of nodes, which stay until the pairs
// of them are done.
EvaluationSizes SizesOfRowPairs(const EvaluationSizesOptions& options, uint64_t ranks) {
  const DatasetCounts& counts = options.counts;
  const ModelSpec& spec = options.model;
  const uint64_t chunks = std::max<uint64_t>((counts.num_nodes + kRowsOfChunk - 1) / kRowsOfChunk,
                                             options.asked ? MaxPairChunks() : 0);
  constexpr uint64_t kPhases = 2;
  const uint64_t scratch = counts.num_nodes * spec.out_dim * sizeof(float);
  return {(kPhases + ranks) * chunks, scratch, 0,
          EvalWorkBytes(spec, counts.num_nodes, counts.val + counts.test)};
}

Result<EvaluationSizes> SizesOf(const EvaluationSizesOptions& options) {
  const DatasetCounts& counts = options.counts;
  ModelSpec spec = options.model;
  spec.widths = options.widths;
  if (spec.type == ModelType::kScript && spec.widths.size() != spec.num_layers) {
    return Status(Code::kInvalidArgument, "options.widths: one for each layer");
  }
  const uint64_t ranks = options.ranked ? 1 : 0;
  if (TakesRows(spec.type)) {
    if (spec.head) return SizesOfRowPairs(options, ranks);
    // Evaluation reads rows from their files: nothing is kept between evaluations.
    const uint64_t most = std::max(counts.val, counts.test);
    return EvaluationSizes{(ranks + 1) * ((most + kRowsOfChunk - 1) / kRowsOfChunk), 0, 0, 0};
  }
  if (options.sampled) {
    const uint64_t most = std::max({counts.val, counts.test, uint64_t{1}});
    // Runs like a batch, and never beside one, so it needs no memory of its own.
    return EvaluationSizes{(ranks + 1) * ((most + kEvalChunkSeeds - 1) / kEvalChunkSeeds), 0, 0, 0};
  }
  const EvalLayout layout = EvalLayout::Of(spec, counts.num_nodes);
  const uint32_t chunks =
      std::max(EvalChunks(counts.num_nodes), options.asked && spec.head ? MaxPairChunks() : 0);
  return EvaluationSizes{(MaxEvalPhases(spec) + ranks) * chunks, layout.total_bytes,
                         layout.kept_bytes,
                         EvalWorkBytes(spec, counts.num_nodes, counts.val + counts.test)};
}

Result<int> Scratch(uint64_t bytes, const std::string& folder) {
  return GNND_VALUE(EvalScratch::Create(bytes, folder)).Release();
}

Result<uint64_t> SlotBytes(const DatasetCounts& counts, const SamplingOptions& sampling) {
  return GNND_VALUE(RecordLayout::Of(LimitsOf(counts, sampling))).slot_bytes();
}

Result<uint64_t> TypedSlotBytes(const Schema& schema, const SamplingOptions& sampling) {
  return GNND_VALUE(TypedLayoutOf(schema, sampling)).slot_bytes();
}

}  // namespace

void DefineModel(Subject& subject) {
  subject.Enum<ModelType>()
      .Enum<Activation>()
      .Enum<Normalization>()
      .Enum<ModelVariant>()
      .Enum<Precision>()
      .Enum<LinkHead>()
      .Struct<ScriptSource>()
      .Struct<ModelGraph::Type>()
      .Struct<ModelGraph::Relation>()
      .Struct<ModelGraph>()
      .Struct<ModelOptions>()
      .Struct<ParameterTensor>()
      .Struct<ParameterManifest>()
      .Struct<EvaluationSizesOptions>()
      .Struct<EvaluationSizes>()
      .Struct<JobMemoryOptions>()
      .Struct<JobMemory>()
      .Function("modelManifest", Manifest, {"model"}, "Not for TORCHSCRIPT: `modelProbe`.")
      .Function("evaluationSizes", SizesOf, {"options"})
      .Function("jobMemory", Memory, {"options"},
                "Most that the parts of a job take, by its shape alone.")
      .Function("topologyBytes", TopologySize, {"counts", "alias"})
      .Function("topologyBytesTyped", TypedTopologySize, {"schema"}, "Of all relations.")
      .Function("evaluationScratch", Scratch, {"bytes", "folder"},
                "Sparse memory, or with a folder an unnamed file in it; the caller closes it.")
      .Function("recordSlotBytes", SlotBytes, {"counts", "sampling"},
                "Virtual bytes of the largest possible record.")
      .Function("recordSlotBytesTyped", TypedSlotBytes, {"schema", "sampling"},
                "The same of several types; seeds are nodes of the first.");
}

}  // namespace gnnd::node
