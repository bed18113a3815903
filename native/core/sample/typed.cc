#include "core/sample/typed.h"

#include <string>
#include <utility>

namespace gnnd {
namespace {

Status NotYet(const std::string& what) {
  return Status(Code::kInvalidArgument, what + " is not for graphs of several types");
}

Status CheckFanouts(const SamplerOptions& options, size_t num_relations) {
  const auto bad = [](const std::string& of, size_t found, size_t expected) {
    return Status(Code::kInvalidArgument, "fanouts of " + of + std::to_string(found) +
                                              ", expected " + std::to_string(expected));
  };
  const auto& lists = options.relation_fanouts;
  if (lists.empty()) return Status::Ok();
  if (lists.size() != num_relations) return bad("relations: ", lists.size(), num_relations);
  for (size_t r = 0; r < lists.size(); ++r) {
    if (lists[r].size() == options.fanouts.size()) continue;
    return bad("relation " + std::to_string(r) + ": hops: ", lists[r].size(),
               options.fanouts.size());
  }
  return Status::Ok();
}

}  // namespace

Status CheckTyped(const SamplerOptions& options, const LinkOptions& links, size_t num_relations) {
  if (links.on()) return NotYet("sampling for links");
  switch (options.algorithm) {
    case Algorithm::kUniform:
    case Algorithm::kLabor:
      break;
    case Algorithm::kWeighted:
      return NotYet("sampling by edge weight");
    case Algorithm::kWalk:
      return NotYet("sampling by random walks");
    case Algorithm::kPlugin:
      return NotYet("sampling by a plug-in");
  }
  if (options.locality.on()) return NotYet("sampling with locality");
  if (options.weights == EdgeWeights::kGcn) return NotYet("weighing edges as GCN does");
  return CheckFanouts(options, num_relations);
}

Result<RecordLayout> LayoutOf(const Schema& schema, uint32_t batch_size,
                              const SamplerOptions& options) {
  GNND_TRY(CheckSchema(schema));
  GNND_TRY(CheckTyped(options, {}, schema.relations.size()));
  GraphView types;
  for (const NodeType& type : schema.types) {
    types.num_nodes.push_back(static_cast<uint32_t>(type.num_nodes));
  }
  SampleLimits limits = LimitsOf(types, 0, batch_size, options);
  const auto& lists = options.relation_fanouts;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const Relation& relation = schema.relations[r];
    limits.relations.push_back({relation.source, relation.destination, relation.num_edges,
                                lists.empty() ? options.fanouts : lists[r]});
  }
  return RecordLayout::Of(limits);
}

}  // namespace gnnd
