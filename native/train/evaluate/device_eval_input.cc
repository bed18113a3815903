#include "train/evaluate/device_eval_input.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/executor/eval_scratch.h"
#include "core/graph/features.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 256;
// A part takes at most 1/kPartShare of a device's budget, and at most kEvalPartBytes.
constexpr uint64_t kPartShare = 16;
// Evaluations take at most 1/kBudgetShare of a device's budget.
constexpr uint64_t kBudgetShare = 4;
// Each array of a part begins on a line of its own.
constexpr uint64_t kSlackBytes = 4096;

// Upper bound of a block's memory: its own rows twice, widened, and sums; transformed and attended
// rows; output; weights in the form that the processor's products read.
uint64_t BlockBytes(const ModelSpec& spec) {
  uint64_t most = 0;
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const LayerShape shape = ShapeOf(spec, layer);
    const uint64_t wide = TransformedColumns(spec, layer);
    const uint64_t floats =
        kEvalBlockRows * (uint64_t{4} * shape.in + 3 * wide + 2 * uint64_t{shape.out}) +
        uint64_t{4} * shape.in * (wide + shape.out);
    most = std::max(most, floats * sizeof(float));
  }
  return most;
}

}  // namespace

Result<std::unique_ptr<DeviceInput>> DeviceInput::Create(const TrainOptions& options,
                                                         const FeatureStore& store,
                                                         const DeviceSide& side, Workspace* block) {
  const gnnd_device_memory memory = GNND_VALUE(side.device().Memory());
  const uint64_t asked = options.device.eval_part_bytes;
  const uint64_t part =
      asked != 0 ? asked : std::min(kEvalPartBytes, memory.budget_bytes / kPartShare);
  const uint64_t needed = part + BlockBytes(options.model);
  if (needed > memory.budget_bytes / kBudgetShare) {
    return Status(Code::kDeviceMemory,
                  "evaluations need " + std::to_string(needed) + " bytes of a budget of " +
                      std::to_string(memory.budget_bytes) + ", which is more than a quarter");
  }
  std::unique_ptr<DeviceInput> made(new DeviceInput(options, store, side, part, block));
  made->part_.Reserve(part);
  block->Reserve(BlockBytes(options.model));
  return made;
}

DeviceInput::DeviceInput(const TrainOptions& options, const FeatureStore& store,
                         const DeviceSide& side, uint64_t part_bytes, Workspace* block)
    : options_(options),
      store_(store),
      part_bytes_(part_bytes),
      needs_self_(KindOf(options.model.type).gathers_self()),
      block_(block),
      stream_(TrainStream::Of(block->device())),
      reader_(side.features()),
      part_(block->device()),
      relabel_(static_cast<uint32_t>(
          std::min<uint64_t>(options.topology.num_nodes(), part_bytes / sizeof(float)))) {}

uint64_t DeviceInput::reserved_bytes() const {
  return aside_.reserved_bytes() + relabel_.bytes() + rows_.capacity() +
         (sources_.capacity() + index_.capacity() + indptr_.capacity() + self_.capacity()) *
             sizeof(uint32_t);
}

bool DeviceInput::IsFeatures(const RowTable& table) const {
  return table.num_rows() > 0 && table.row(0) == options_.features.row(0);
}

DeviceInput::Costs DeviceInput::CostsOf(const RowTable& table, uint64_t heads) const {
  Costs costs;
  // Features that the host stages exist twice, with their places; the others need nodes and ranks.
  costs.source = (IsFeatures(table) ? 2 : 1) * table.row_bytes() + 12 + heads * sizeof(float);
  costs.edge = (2 + heads) * sizeof(float);     // index, weight, coefficients
  costs.row = (4 + 2 * heads) * sizeof(float);  // place, self, scale, its own coefficients
  return costs;
}

template <typename T>
T* DeviceInput::Copied(std::span<const T> values, Workspace* memory) {
  T* const to = memory->Get<T>(values.size());
  stream_.CopyIn(to, values.data(), values.size_bytes());
  return to;
}

RowTable DeviceInput::Brought(const RowTable& table, std::span<const uint32_t> nodes,
                              Workspace* memory) {
  const uint64_t bytes = nodes.size() * table.row_bytes();
  auto* const to = memory->Get<std::byte>(bytes);
  if (IsFeatures(table)) {
    reader_.Read(store_, {nodes, {}}, {}, &stream_, memory, to);
  } else {
    rows_.resize(bytes);
    ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainRows,
                 [&](uint32_t begin, uint32_t end) {
                   CopyRows(table, nodes.subspan(begin, end - begin),
                            rows_.data() + begin * table.row_bytes());
                 });
    stream_.CopyIn(to, rows_.data(), bytes);
  }
  return {table.type(), {to, bytes}, table.dim()};
}

at::Tensor DeviceInput::Rows(const RowTable& table, std::span<const uint32_t> nodes) {
  return FloatsOf(Brought(table, nodes, block_), nodes.size(), block_);
}

void DeviceInput::ForParts(const EvalRows& rows, uint64_t heads, const Compute& compute) {
  const auto& [graph, table, nodes] = rows;
  const Costs costs = CostsOf(table, heads);
  const uint64_t most = part_bytes_ - std::min(part_bytes_, kSlackBytes);
  for (uint64_t first = 0; first < nodes.size();) {
    // Takes as many rows as fit even if they share no neighbours.
    uint64_t edges = 0;
    uint64_t bytes = 0;
    uint64_t end = first;
    for (; end < nodes.size(); ++end) {
      const uint64_t degree = graph.degree(nodes[end]);
      bytes += costs.row + costs.source + degree * (costs.source + costs.edge);
      if (bytes > most) break;
      edges += degree;
    }
    if (end == first) {
      RunAside({graph, table, nodes.subspan(first, 1)}, first, heads, compute);
      ++first;
      continue;
    }
    RunPart({graph, table, nodes.subspan(first, end - first)}, first, edges, compute);
    first = end;
  }
}

void DeviceInput::RunPart(const EvalRows& rows, uint64_t first, uint64_t edges,
                          const Compute& compute) {
  const auto& [topology, table, nodes] = rows;
  const uint64_t ids = edges + (needs_self_ ? nodes.size() : 0);
  const auto most = static_cast<uint32_t>(std::min<uint64_t>(ids, topology.num_nodes()));
  sources_.resize(uint64_t{most} + 1);
  index_.resize(edges);
  indptr_.resize(nodes.size() + 1);
  self_.resize(needs_self_ ? nodes.size() : 0);
  relabel_.Begin(most);
  uint32_t count = 0;
  if (needs_self_) {
    count = relabel_.InsertAll(nodes.data(), static_cast<uint32_t>(nodes.size()), sources_.data(),
                               count, self_.data());
  }
  indptr_[0] = 0;
  for (uint64_t r = 0; r < nodes.size(); ++r) {
    const auto degree = static_cast<uint32_t>(topology.degree(nodes[r]));
    count = relabel_.InsertAll(topology.indices.data() + topology.indptr[nodes[r]], degree,
                               sources_.data(), count, index_.data() + indptr_[r]);
    indptr_[r + 1] = indptr_[r] + degree;
  }
  relabel_.End(count);
  part_.Reset();
  EvalPart part;
  part.first = first;
  part.nodes = nodes;
  part.sources = std::span<const uint32_t>(sources_).first(count);
  part.x = Brought(table, part.sources, &part_);
  part.indptr = Copied(std::span<const uint32_t>(indptr_), &part_);
  part.index = Copied(std::span<const uint32_t>(index_), &part_);
  if (needs_self_) part.self = Copied(std::span<const uint32_t>(self_), &part_);
  part.num_edges = edges;
  part.memory = &part_;
  compute(part);
}

void DeviceInput::RunAside(const EvalRows& row, uint64_t first, uint64_t heads,
                           const Compute& compute) {
  aside_.memory()->Reset();
  aside_.ForParts(row, heads, [&](const EvalPart& whole) {
    EvalPart part = whole;
    part.first = first;
    part.is_aside = true;
    compute(part);
  });
}

const float* DeviceInput::Given(std::span<const float> values, Workspace* memory) {
  return memory == &part_ ? Copied(values, memory) : values.data();
}

void DeviceInput::Bring(const float* from, uint64_t count, float* host) {
  stream_.CopyOut(host, from, count * sizeof(float));
  stream_.Synchronize();
}

const float* DeviceInput::Seen(const float* from, uint64_t count, Workspace* host) {
  auto* const seen = host->Get<float>(count);
  Bring(from, count, seen);
  return seen;
}

void DeviceInput::Join(const float* host, uint64_t count, float* to) {
  stream_.CopyIn(to, host, count * sizeof(float));
}

}  // namespace gnnd
