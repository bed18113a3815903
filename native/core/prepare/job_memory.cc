#include "core/prepare/job_memory.h"

#include <algorithm>
#include <cmath>

#include "core/executor/device_sample_work.h"
#include "core/executor/eval_scratch.h"
#include "core/executor/train_work.h"
#include "core/feature/disk_rows.h"
#include "core/model/row_manifest.h"

namespace gnnd {
namespace {

constexpr uint64_t kFloatBytes = sizeof(float);
// Workspaces grow by half at a time, in pages of 2 MiB, and allocators keep some bytes back.
constexpr double kGrowth = 1.5;
constexpr uint64_t kSmallParts = uint64_t{16} << 20;
// A device's Sampler needs at most one more record for each strategy's own tables, and one for the
// ids of a batch before they are numbered.
constexpr uint64_t kRecordsInHand = 3;
constexpr uint64_t kSamplerSmallParts = uint64_t{1} << 20;
// Bytes of a word in the table that numbers the nodes of a batch.
constexpr uint64_t kNumberBytes = 8;

uint64_t SamplerDeviceBytes(const JobMemoryShape& shape) {
  return TopologyBytes(shape.counts, shape.alias) + kNumberBytes * shape.counts.num_nodes +
         DeviceSampleWork::kDepth * kRecordsInHand * shape.slot_bytes + kSamplerSmallParts;
}

uint64_t EvaluatedRows(const DatasetCounts& counts) {
  return std::min(kRowsOfChunk, std::max(counts.val, counts.test));
}

// Floats per row of a batch's tensors and their gradients: every tensor of a pass
// (train/layers/row_model.cc) counts, because none is freed before the end.
uint64_t FloatsPerRow(const ModelSpec& spec) {
  const uint64_t tokens = TokensRead(spec);
  const uint64_t features = spec.in_dim;
  const uint64_t hidden = spec.hidden_dim;
  const uint64_t layers = spec.num_layers;
  // Dropout adds a mask and its result to the tokens.
  const uint64_t input = tokens * features * (spec.input_dropout > 0 ? 3 : 1);
  const uint64_t logits = uint64_t{4} * spec.out_dim;
  if (spec.type == ModelType::kSgc) return input + logits;
  // A layer keeps its product, the normalised one, the result of dropout, and gradients of all.
  const uint64_t perceptron = 6 * hidden * (layers - 1);
  if (spec.type == ModelType::kSign) {
    if (spec.variant != ModelVariant::kConcat) return input + perceptron + logits;
    // The columns of each hop, their products, and the concatenated products.
    const uint64_t projected = 2 * tokens * features + 12 * hidden * (spec.num_hops + 1);
    return input + projected + perceptron + logits;
  }
  const uint64_t attention = 4 * spec.heads * tokens * tokens;
  const uint64_t width = tokens * hidden;
  if (spec.variant == ModelVariant::kDac24) {
    return input + 30 * width * (layers + 1) + attention * layers + 10 * hidden + logits;
  }
  const uint64_t perceptrons = 12 * tokens * std::max<uint64_t>(hidden, spec.hop_hidden_dim) *
                               (uint64_t{spec.hop_layers} + 1);
  const uint64_t read = tokens * features + 24 * width;
  return input + perceptrons + 36 * width * layers + read + attention * (layers + 1) + logits;
}

// Rows that were read, the tensors of a batch or of an evaluation, and gradients. Evaluation keeps
// no gradients and reuses the memory of batches.
uint64_t RowWorkBytes(const JobMemoryShape& shape) {
  const uint64_t evaluated = EvaluatedRows(shape.counts);
  const uint64_t rows = (kExtractBuffers * shape.batch_size + evaluated) * TokensRead(shape.model) *
                        shape.model.in_dim;
  const auto floats = static_cast<double>(FloatsPerRow(shape.model));
  const double work = std::max(static_cast<double>(shape.batch_size) * floats,
                               static_cast<double>(evaluated) * (floats / 2));
  const double all = static_cast<double>(rows) + kGrowth * work +
                     2.0 * static_cast<double>(shape.parameter_floats);
  return static_cast<uint64_t>(std::ceil(static_cast<double>(kFloatBytes) * all)) + kSmallParts;
}

// Parameters, gradient, batches, and the tensors that forward keeps for backward; a generous
// estimate from the widths of the passes.
uint64_t RowDeviceBytes(const JobMemoryShape& shape) {
  const ModelSpec& spec = shape.model;
  const bool is_sgc = spec.type == ModelType::kSgc;
  const uint64_t tokens = TokensRead(spec);
  const uint64_t inputs = tokens * spec.in_dim;
  const uint64_t hidden = is_sgc ? 0 : spec.hidden_dim;
  const uint64_t layers = is_sgc ? 0 : spec.num_layers + 2;
  const uint64_t parameters =
      inputs * std::max<uint64_t>(hidden, spec.out_dim) + 6 * layers * hidden * hidden;
  const uint64_t kept =
      6 * inputs + 24 * layers * hidden * (spec.type == ModelType::kHoga ? tokens : 1);
  const uint64_t rows = std::max(shape.batch_size, EvaluatedRows(shape.counts));
  return kFloatBytes * (2 * parameters + rows * (kept + uint64_t{4} * spec.out_dim));
}

}  // namespace

uint64_t TopologyBytes(const DatasetCounts& counts, bool alias) {
  return 8 * (counts.num_nodes + 1) + (alias ? 12 : 4) * counts.num_edges;
}

uint64_t TopologyBytes(const Schema& schema) {
  uint64_t bytes = 0;
  for (const Relation& relation : schema.relations) {
    DatasetCounts counts;
    counts.num_nodes = schema.types[relation.destination].num_nodes;
    counts.num_edges = relation.num_edges;
    bytes += TopologyBytes(counts, false);
  }
  return bytes;
}

uint32_t HistoryRowBytes(const ModelSpec& spec, Precision precision) {
  // The rows that FinishLayer (train/ops/after_layer.h) returns.
  const bool is_plain =
      NormalizationOf(spec) == Normalization::kNone && spec.activation == Activation::kRelu;
  const bool is_narrow = precision == Precision::kBfloat16 && is_plain && !IsAttention(spec.type);
  return spec.hidden_dim * (is_narrow ? 2 : 4);
}

JobMemory MemoryOf(const JobMemoryShape& shape) {
  JobMemory memory;
  memory.topology_bytes = TopologyBytes(shape.counts, shape.alias);
  memory.history_row_bytes = HistoryRowBytes(shape.model, shape.precision);
  memory.evaluation_part_bytes = 2 * kEvalPartBytes;
  if (!TakesRows(shape.model.type)) {
    memory.sampler_device_bytes = SamplerDeviceBytes(shape);
    return memory;
  }
  const uint64_t floats = uint64_t{TokensRead(shape.model)} * shape.model.in_dim;
  memory.row_work_bytes = RowWorkBytes(shape);
  memory.row_device_bytes = RowDeviceBytes(shape);
  memory.row_staged_bytes =
      DiskRows::kMostSlots * shape.batch_size * floats * shape.row_value_bytes;
  memory.row_chunk_bytes = kRowsOfChunk * floats * kFloatBytes;
  return memory;
}

}  // namespace gnnd
