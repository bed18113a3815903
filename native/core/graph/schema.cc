#include "core/graph/schema.h"

#include <algorithm>

namespace gnnd {
namespace {

Status Impossible(const std::string& what) { return Status(Code::kInvalidArgument, what); }

}  // namespace

std::string FolderOf(const NodeType& type) { return "nodes/" + type.name + "/"; }

std::string FolderOf(const Schema& schema, const Relation& relation) {
  return "edges/" + schema.types[relation.source].name + "__" + relation.name + "__" +
         schema.types[relation.destination].name + "/";
}

DatasetCounts CountsOf(const NodeType& type) {
  DatasetCounts counts;
  counts.num_nodes = type.num_nodes;
  counts.num_features = type.num_features;
  counts.num_classes = type.num_classes;
  counts.train = type.train;
  counts.val = type.val;
  counts.test = type.test;
  counts.feature_type = type.feature_type;
  counts.task = type.task;
  return counts;
}

Status CheckSchema(const Schema& schema) {
  const auto& [types, relations] = schema;
  if (types.empty() || types.size() > Schema::kMaxTypes) {
    return Impossible(std::to_string(types.size()) + " types, expected 1 to " +
                      std::to_string(Schema::kMaxTypes));
  }
  if (relations.size() > Schema::kMaxRelations) {
    return Impossible(std::to_string(relations.size()) + " relations, expected at most " +
                      std::to_string(Schema::kMaxRelations));
  }
  for (const NodeType& type : types) {
    DatasetCounts counts = CountsOf(type);
    // CheckCounts asks for features, which not every type has.
    counts.num_features = std::max<uint64_t>(counts.num_features, 1);
    const Status checked = CheckCounts(counts);
    if (!checked.ok()) return Impossible("type " + type.name + ": " + checked.message());
  }
  for (const Relation& relation : relations) {
    if (std::max(relation.source, relation.destination) < types.size()) continue;
    return Impossible("relation " + relation.name + " is between no types");
  }
  return Status::Ok();
}

}  // namespace gnnd
