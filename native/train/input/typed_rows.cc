#include "train/input/typed_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/draw/type_seed.h"
#include "core/kernels/optimizer.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 256;

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }
Status Corrupted(const std::string& what) { return Status(Code::kShmCorrupted, what); }

Status CheckBlocks(const TypedOptions& options, const Sample& sample) {
  const GraphView& graph = options.graph;
  if (sample.num_hops() != options.own.model.num_layers) {
    return Corrupted("record has " + std::to_string(sample.num_hops()) + " hops, the model " +
                     std::to_string(options.own.model.num_layers) + " layers");
  }
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    if (block.relation < graph.relations.size() &&
        graph.relations[block.relation].src_type == block.src_type &&
        graph.relations[block.relation].dst_type == block.dst_type) {
      continue;
    }
    return Corrupted("record has a block of a relation that the graph lacks");
  }
  return Status::Ok();
}

Status CheckTypedSample(const TypedOptions& options, const Sample& sample) {
  const GraphView& graph = options.graph;
  if (sample.num_node_types() != graph.num_nodes.size()) {
    return Corrupted("record has " + std::to_string(sample.num_node_types()) +
                     " types of nodes, the graph " + std::to_string(graph.num_nodes.size()));
  }
  for (uint32_t type = 0; type < sample.num_node_types(); ++type) {
    uint32_t end = 0;
    for (const uint32_t node : sample.nodes(type)) end = std::max(end, node + 1);
    if (end <= graph.num_nodes[type]) continue;
    return Corrupted("record names a node beyond the graph");
  }
  return CheckBlocks(options, sample);
}

void Add(const TierTraffic& part, TierTraffic* sum) {
  for (uint32_t tier = 0; tier < kNumTiers; ++tier) {
    sum->rows[tier] += part.rows[tier];
    sum->bytes[tier] += part.bytes[tier];
  }
}

at::Tensor RowsOf(const FeatureStore& store, const RowTable& table, std::span<const uint32_t> nodes,
                  Workspace* memory) {
  uint32_t* at = memory->Get<uint32_t>(nodes.size());
  if (!store.on_disk())
    return GatheredRows<float>(store.table(), store.Locate(nodes, {}, at), memory);
  const uint64_t bytes = nodes.size() * table.row_bytes();
  std::byte* copies = memory->Get<std::byte>(bytes);
  ReadRows(store, nodes, {}, table.row_bytes(), copies);
  std::iota(at, at + nodes.size(), 0U);
  return GatheredRows<float>(RowTable(table.type(), {copies, bytes}, table.dim()),
                             {at, nodes.size()}, memory);
}

}  // namespace

Status CheckTypedOptions(const TypedOptions& options) {
  const TrainOptions& own = options.own;
  const ModelGraph& model = own.model.graph;
  const GraphView& graph = options.graph;
  if (!TakesRelations(own.model.type)) return Invalid("the model takes no relations");
  GNND_TRY(CheckOptimizer(own.optimizer));
  if (own.threads == 0) return Invalid("threads must be at least 1");
  if (own.precision != Precision::kFloat32) {
    return Invalid("models over relations are trained in float32");
  }
  if (own.device.device != nullptr) {
    return Status(Code::kDeviceUnavailable,
                  std::string(KindOf(own.model.type).name) + " is trained on CPU devices only");
  }
  if (model.types.size() != graph.num_nodes.size() || options.rows.size() != model.types.size() ||
      model.relations.size() != graph.relations.size()) {
    return Invalid("types and relations of the model are not those of the graph");
  }
  for (size_t type = 0; type < model.types.size(); ++type) {
    const RowTable& rows = options.rows[type];
    if (rows.num_rows() == graph.num_nodes[type] && rows.dim() == model.types[type].in_dim) {
      continue;
    }
    return Invalid("input rows of " + model.types[type].name + " are [" +
                   std::to_string(rows.num_rows()) + ", " + std::to_string(rows.dim()) +
                   "], not [" + std::to_string(graph.num_nodes[type]) + ", " +
                   std::to_string(model.types[type].in_dim) + "]");
  }
  for (size_t r = 0; r < model.relations.size(); ++r) {
    if (model.relations[r].source == graph.relations[r].src_type &&
        model.relations[r].destination == graph.relations[r].dst_type) {
      continue;
    }
    return Invalid("relation " + model.relations[r].name + " of the model is not the graph's");
  }
  return CheckTargets(own);
}

Result<TypedInput> TypedInput::Of(const TypedOptions& options) {
  TypedInput input{options, {}};
  for (const RowTable& rows : options.rows) {
    FeatureStore::Options store;
    store.features = rows;
    store.on_disk = options.own.features_on_disk;
    input.stores.push_back(GNND_VALUE(FeatureStore::Create(store)));
  }
  return input;
}

Status ExtractTyped(const TypedInput& input, const Sample& sample, TypedBuffer* buffer,
                    ExtractReport* report) {
  GNND_TRY(CheckTypedSample(input.options, sample));
  ExtractBuffer& seeds = buffer->seeds;
  seeds.sample = sample;
  seeds.memory.Reset();
  seeds.key = sample.key();
  const uint32_t types = sample.num_node_types();
  buffer->rows.assign(types, at::Tensor());
  for (uint32_t type = 0; type < types; ++type) {
    const std::span<const uint32_t> nodes = sample.nodes(type);
    if (nodes.empty()) continue;
    const FeatureStore& store = input.stores[type];
    at::Tensor& rows = buffer->rows[type];
    const BatchKey& key = seeds.key;
    rows = RowsOf(store, input.options.rows[type], nodes, &seeds.memory);
    const DropoutSite site{{SeedOfType(key.random_seed, type), key.epoch, key.batch, /*layer=*/0},
                           nodes.data(),
                           input.options.own.model.input_dropout};
    const auto dropout = DropoutOf<float>(site, rows);
    ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainRows,
                 [&dropout](uint32_t begin, uint32_t end) { RunDropout(dropout, begin, end); });
    Add(store.TrafficOf(nodes, {}), &report->traffic);
  }
  return Status::Ok();
}

}  // namespace gnnd
