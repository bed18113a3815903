#include "train/evaluate/typed_layers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/graph/features.h"
#include "train/evaluate/eval_input.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kNodesBetweenChecks = 1U << 16;
constexpr uint32_t kGrainNodes = 256;

// The numbers of a type's nodes as their ids.
std::vector<uint32_t> IdsOf(std::span<const uint32_t> numbers, uint64_t begin) {
  std::vector<uint32_t> ids(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) ids[i] = static_cast<uint32_t>(numbers[i] - begin);
  return ids;
}

// Adds the sources of all edges that lead to members of `from`.
class Reach final {
 public:
  Reach(const GraphView& graph, const NodeNumbers& numbers, const Alive& alive)
      : graph_(graph), numbers_(numbers), alive_(alive) {}

  Status Run(const NodeSet& from, NodeSet* to) const {
    std::vector<uint32_t> members;
    for (uint64_t begin = 0; begin < numbers_.end(); begin += kNodesBetweenChecks) {
      if (!alive_()) return EvaluationAborted();
      members.clear();
      from.List(static_cast<uint32_t>(begin),
                static_cast<uint32_t>(std::min(numbers_.end(), begin + kNodesBetweenChecks)),
                &members);
      numbers_.ForTypes(members, [&](uint32_t type, std::span<const uint32_t> part) {
        const std::vector<uint32_t> nodes = IdsOf(part, numbers_.begin(type));
        for (const RelationView& relation : graph_.relations) {
          if (relation.dst_type == type) AddSources(relation, nodes, to);
        }
      });
    }
    return Status::Ok();
  }

 private:
  void AddSources(const RelationView& relation, std::span<const uint32_t> nodes,
                  NodeSet* to) const {
    const TopologyView& rows = relation.rows;
    const auto begin = static_cast<uint32_t>(numbers_.begin(relation.src_type));
    ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainNodes,
                 [&](uint32_t first, uint32_t last) {
                   for (uint32_t i = first; i < last; ++i) {
                     const uint64_t end = rows.indptr[nodes[i] + 1];
                     for (uint64_t e = rows.indptr[nodes[i]]; e < end; ++e) {
                       to->AddShared(begin + rows.indices[e]);
                     }
                   }
                 });
  }

  const GraphView& graph_;
  const NodeNumbers& numbers_;
  const Alive& alive_;
};

}  // namespace

TypedLayers::TypedLayers(const TypedInput& input, const Model& model)
    : input_(input), model_(model), numbers_(input.options.graph.num_nodes) {}

Status TypedLayers::OpenScratch() {
  if (scratch_) return Status::Ok();
  const EvalPlace& place = input_.options.own.eval_place;
  const uint64_t bytes = TypedScratchBytes(model_.spec, numbers_.end());
  UniqueFd own;
  if (place.fd < 0) {
    const bool fits = bytes <= place.memory_bytes;
    own = GNND_VALUE(EvalScratch::Create(bytes, fits ? std::string() : place.folder));
  }
  scratch_ = GNND_VALUE(EvalScratch::Attach(own.valid() ? own.get() : place.fd, bytes));
  return Status::Ok();
}

// The rows of a level lie until those of the level after the next one are computed.
float* TypedLayers::Level(uint32_t level) const {
  return scratch_->at(TypedScratchBytes(model_.spec, numbers_.end()) / 2 * (level % 2));
}

at::Tensor TypedLayers::RowsOf(uint32_t level, uint32_t type) const {
  const uint64_t columns = model_.spec.hidden_dim;
  return ViewOf(Level(level) + numbers_.begin(type) * columns, input_.options.graph.num_nodes[type],
                static_cast<int64_t>(columns));
}

Result<TypedPlan> TypedLayers::Plan(const EvalWanted& wanted, const Alive& alive) {
  GNND_TRY(OpenScratch());
  TypedPlan plan;
  if (wanted.nodes.empty() || wanted.layers.empty()) return plan;
  const uint32_t layers = wanted.layers.back() + 1;
  GNND_CHECK(layers <= model_.spec.num_layers);
  plan.is_wanted.resize(layers);
  for (const uint32_t layer : wanted.layers) plan.is_wanted[layer] = true;
  plan.sets.assign(uint64_t{layers} + 1, NodeSet(static_cast<uint32_t>(numbers_.end())));
  for (const uint32_t node : wanted.nodes) plan.sets[layers].Add(node);
  const Reach reach(input_.options.graph, numbers_, alive);
  for (uint32_t level = layers; level-- > 0;) {
    plan.sets[level] = plan.sets[uint64_t{level} + 1];
    GNND_TRY(reach.Run(plan.sets[uint64_t{level} + 1], &plan.sets[level]));
  }
  uint64_t most = 0;
  for (const NodeSet& set : plan.sets) {
    const uint64_t count = set.Count();
    plan.rows += count;
    most = std::max(most, count);
  }
  plan.chunk_nodes = EvalChunkNodes(numbers_.end(), most);
  plan.chunks = static_cast<uint32_t>((numbers_.end() + plan.chunk_nodes - 1) / plan.chunk_nodes);
  return plan;
}

// Blocks are of so many rows, or of so many edges that their lists stay small. The division decides
// last bits, because matrix products round by their height.
uint64_t TypedLayers::BlockEnd(uint32_t level, uint32_t type, std::span<const uint32_t> nodes,
                               uint64_t begin) const {
  const uint64_t most = std::min<uint64_t>(nodes.size(), begin + kEvalBlockRows);
  if (level == 0) return most;
  const uint64_t edges_at_most = kEvalBlockFloats / model_.spec.hidden_dim;
  uint64_t edges = 0;
  for (uint64_t i = begin; i < most; ++i) {
    for (const RelationView& relation : input_.options.graph.relations) {
      if (relation.dst_type == type) edges += relation.rows.degree(nodes[i]);
    }
    if (edges > edges_at_most && i > begin) return i;
  }
  return most;
}

at::Tensor TypedLayers::Gathered(const RowTable& table, std::span<const uint32_t> nodes) {
  return GatheredRows<float>(table, nodes, &memory_);
}

// The whole rows of a relation. Where the layer computes with each source row, these are the
// distinct ones; else all rows of the level, which the edges name.
RelationInput TypedLayers::InputOf(uint32_t relation, uint32_t level,
                                   std::span<const uint32_t> nodes) {
  const RelationView& of = input_.options.graph.relations[relation];
  const TopologyView& rows = of.rows;
  uint32_t* const indptr = memory_.Get<uint32_t>(nodes.size() + 1);
  indptr[0] = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    indptr[i + 1] = indptr[i] + static_cast<uint32_t>(rows.degree(nodes[i]));
  }
  const uint32_t edges = indptr[nodes.size()];
  uint32_t* const src = memory_.Get<uint32_t>(edges);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::copy_n(rows.indices.begin() + static_cast<ptrdiff_t>(rows.indptr[nodes[i]]),
                rows.degree(nodes[i]), src + indptr[i]);
  }
  RelationInput input;
  input.relation = relation;
  input.x = RowsOf(level, of.src_type);
  if (GathersRows(model_.spec)) {
    std::vector<uint32_t> distinct(src, src + edges);
    std::ranges::sort(distinct);
    distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
    for (uint32_t e = 0; e < edges; ++e) {
      src[e] = static_cast<uint32_t>(std::ranges::lower_bound(distinct, src[e]) - distinct.begin());
    }
    const uint64_t columns = model_.spec.hidden_dim;
    const std::span<const float> all(input.x.const_data_ptr<float>(),
                                     static_cast<uint64_t>(input.x.numel()));
    input.x = Gathered(RowTable(all, columns), distinct);
  }
  BlockView& block = input.block;
  block.num_dst = static_cast<uint32_t>(nodes.size());
  block.num_src = static_cast<uint32_t>(input.x.size(0));
  block.indptr = {indptr, nodes.size() + 1};
  block.src = {src, edges};
  block.relation = relation;
  block.src_type = of.src_type;
  block.dst_type = of.dst_type;
  return input;
}

at::Tensor TypedLayers::Compute(uint32_t level, uint32_t type, std::span<const uint32_t> nodes,
                                std::span<const at::Tensor> parameters) {
  const uint32_t layer = level == 0 ? 0 : level - 1;
  const RelationalContext context{model_, layer,        type,  parameters,
                                  {},     nodes.data(), false, &memory_};
  if (level == 0) return ProjectInput(context, Gathered(input_.options.rows[type], nodes));
  std::vector<RelationInput> relations;
  const GraphView& graph = input_.options.graph;
  for (uint32_t r = 0; r < graph.relations.size(); ++r) {
    if (graph.relations[r].dst_type != type) continue;
    // As in a sample, a relation along which these rows have no edge takes no part.
    RelationInput input = InputOf(r, level - 1, nodes);
    if (!input.block.src.empty()) relations.push_back(std::move(input));
  }
  const at::Tensor all = RowsOf(level - 1, type);
  const std::span<const float> floats(all.const_data_ptr<float>(),
                                      static_cast<uint64_t>(all.numel()));
  return ForwardRelations(context, relations,
                          Gathered(RowTable(floats, model_.spec.hidden_dim), nodes));
}

// Gives the rows of those nodes of type 0 of a computed block that are wanted.
Status TypedLayers::Give(const TypedPlan& plan, uint32_t level, std::span<const uint32_t> nodes,
                         const float* values, const RowsConsumer& consume) {
  const uint64_t columns = model_.spec.hidden_dim;
  std::vector<uint32_t> wanted;
  std::vector<float> rows;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!plan.sets.back().Has(nodes[i])) continue;
    wanted.push_back(nodes[i]);
    rows.insert(rows.end(), values + i * columns, values + (i + 1) * columns);
  }
  return wanted.empty() ? Status::Ok() : consume({level - 1, wanted, rows});
}

Status TypedLayers::Run(const TypedPlan& plan, uint32_t phase, uint32_t chunk,
                        std::span<const at::Tensor> parameters, const Alive& alive,
                        const RowsConsumer& consume, uint64_t* rows) {
  const uint64_t first = uint64_t{chunk} * plan.chunk_nodes;
  const uint64_t last = std::min(numbers_.end(), first + plan.chunk_nodes);
  GNND_CHECK(first < last);
  std::vector<uint32_t> members;
  plan.sets[phase].List(static_cast<uint32_t>(first), static_cast<uint32_t>(last), &members);
  *rows = members.size();
  const bool is_last = phase + 1 == plan.phases();
  Status status;
  numbers_.ForTypes(members, [&](uint32_t type, std::span<const uint32_t> part) {
    const std::vector<uint32_t> nodes = IdsOf(part, numbers_.begin(type));
    const std::span<const uint32_t> all(nodes);
    for (uint64_t begin = 0; begin < all.size() && status.ok();) {
      if (!alive()) status = EvaluationAborted();
      if (!status.ok()) return;
      const uint64_t end = BlockEnd(phase, type, all, begin);
      const auto block = all.subspan(begin, end - begin);
      memory_.Reset();
      const at::Tensor out = Compute(phase, type, block, parameters).contiguous();
      const auto columns = static_cast<uint64_t>(out.size(1));
      const float* const values = out.const_data_ptr<float>();
      if (is_last) {
        status = consume({phase - 1, block, {values, block.size() * columns}});
      } else {
        ScatterRows(values, block, columns, Level(phase) + numbers_.begin(type) * columns);
        if (phase > 0 && type == 0 && plan.is_wanted[phase - 1]) {
          status = Give(plan, phase, block, values, consume);
        }
      }
      begin = end;
    }
  });
  return status;
}

void TypedLayers::End() {
  if (scratch_) scratch_->Clear(TypedScratchBytes(model_.spec, numbers_.end()));
}

}  // namespace gnnd
