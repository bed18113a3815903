#include "core/prepare/relation_edges.h"

#include <algorithm>

namespace gnnd {

Result<RelationEdges> RelationEdges::Open(const std::string& folder, const Schema& schema,
                                          uint32_t relation) {
  GNND_TRY(CheckSchema(schema));
  if (relation >= schema.relations.size()) {
    return Status(Code::kInvalidArgument, "relation " + std::to_string(relation) + " of " +
                                              std::to_string(schema.relations.size()));
  }
  const Relation& of = schema.relations[relation];
  const NodeType& source = schema.types[of.source];
  const std::string place = folder + "/" + FolderOf(schema, of);
  RelationEdges edges;
  edges.indptr_ = GNND_VALUE(NpyArray::Open(place + "indptr.npy"));
  GNND_TRY(edges.indptr_.Expect({NpyType::kInt64}, {schema.types[of.destination].num_nodes + 1}));
  edges.indices_ = GNND_VALUE(NpyArray::Open(place + "indices.npy"));
  GNND_TRY(edges.indices_.Expect({NpyType::kInt32, NpyType::kUint32}, {of.num_edges}));
  const std::span<const int64_t> indptr = edges.indptr();
  const bool rows_follow = indptr.front() == 0 &&
                           indptr.back() == static_cast<int64_t>(of.num_edges) &&
                           std::is_sorted(indptr.begin(), indptr.end());
  const std::span<const uint32_t> indices = edges.indices();
  const bool are_nodes = std::all_of(indices.begin(), indices.end(),
                                     [&source](uint32_t id) { return id < source.num_nodes; });
  if (rows_follow && are_nodes) return edges;
  return Status(Code::kDatasetCorrupt, place +
                                           ": rows that do not follow each other, or list what "
                                           "is no node of " +
                                           source.name);
}

}  // namespace gnnd
