#include "core/graph/typed_dataset.h"

#include <utility>

namespace gnnd {
namespace {

// The input rows of a type in a derived file, whose width is its own.
Result<NpyArray> OpenDerivedRows(const std::string& path, uint64_t num_nodes) {
  Result<NpyArray> array = NpyArray::Open(path);
  if (!array.ok()) return array.status();
  const std::vector<uint64_t>& shape = array->shape();
  const uint64_t width = shape.size() == 2 && shape[1] > 0 ? shape[1] : 1;
  GNND_TRY(array->Expect({NpyType::kFloat32, NpyType::kFloat16}, {num_nodes, width}));
  return array;
}

}  // namespace

Result<TypedDataset> TypedDataset::Open(const std::string& folder, const Schema& schema,
                                        const std::vector<std::string>& type_rows) {
  GNND_TRY(CheckSchema(schema));
  if (!type_rows.empty() && type_rows.size() != schema.types.size()) {
    return Status(Code::kInvalidArgument, "input rows of " + std::to_string(type_rows.size()) +
                                              " types, expected " +
                                              std::to_string(schema.types.size()));
  }
  TypedDataset dataset;
  dataset.schema_ = schema;
  GNND_TRY(dataset.OpenRows(folder, type_rows));
  GNND_TRY(dataset.OpenEdges(folder));
  GNND_TRY(dataset.OpenLabels(folder));
  return dataset;
}

Status TypedDataset::OpenRows(const std::string& folder,
                              const std::vector<std::string>& type_rows) {
  for (size_t t = 0; t < schema_.types.size(); ++t) {
    const NodeType& type = schema_.types[t];
    NpyArray& rows = rows_.emplace_back();
    if (!type_rows.empty() && !type_rows[t].empty()) {
      rows = GNND_VALUE(OpenDerivedRows(type_rows[t], type.num_nodes));
    } else if (type.num_features > 0) {
      const std::string path = folder + "/" + FolderOf(type) + FileName(DatasetFile::kFeatures);
      rows = GNND_VALUE(OpenDatasetFile(DatasetFile::kFeatures, path, CountsOf(type)));
    }
  }
  return Status::Ok();
}

Status TypedDataset::OpenEdges(const std::string& folder) {
  for (const Relation& relation : schema_.relations) {
    const std::string prefix = folder + "/" + FolderOf(schema_, relation);
    const auto open = [&](DatasetFile file, uint64_t num_nodes) {
      DatasetCounts counts;
      counts.num_nodes = num_nodes;
      counts.num_edges = relation.num_edges;
      return OpenDatasetFile(file, prefix + FileName(file), counts);
    };
    const uint64_t sources = schema_.types[relation.source].num_nodes;
    Edges& edges = edges_.emplace_back();
    edges.indptr =
        GNND_VALUE(open(DatasetFile::kIndptr, schema_.types[relation.destination].num_nodes));
    edges.indices = GNND_VALUE(open(DatasetFile::kIndices, sources));
  }
  return Status::Ok();
}

Status TypedDataset::OpenLabels(const std::string& folder) {
  const NodeType& type = schema_.types[0];
  if (!type.labelled) return Status::Ok();
  const auto open = [&](DatasetFile file, NpyArray* into) {
    const std::string path = folder + "/" + FolderOf(type) + FileName(file);
    Result<NpyArray> array = OpenDatasetFile(file, path, CountsOf(type));
    if (array.ok()) *into = std::move(*array);
    return array.status();
  };
  GNND_TRY(open(DatasetFile::kLabels, &labels_));
  GNND_TRY(open(DatasetFile::kTrain, &train_));
  GNND_TRY(open(DatasetFile::kVal, &val_));
  return open(DatasetFile::kTest, &test_);
}

uint64_t TypedDataset::total_nodes() const {
  uint64_t total = 0;
  for (const NodeType& type : schema_.types) total += type.num_nodes;
  return total;
}

RowTable TypedDataset::rows(uint32_t type) const {
  const NpyArray& rows = rows_[type];
  if (rows.shape().empty()) return {};
  const uint64_t width = rows.shape()[1];
  if (rows.type() == NpyType::kFloat16) return {rows.values<Half>(), width};
  return {rows.values<float>(), width};
}

TopologyView TypedDataset::topology(uint32_t relation) const {
  const Edges& edges = edges_[relation];
  const std::span<const int64_t> indptr = edges.indptr.values<int64_t>();
  TopologyView view;
  // Offsets are not negative in a graph that was checked.
  view.indptr = {reinterpret_cast<const uint64_t*>(indptr.data()), indptr.size()};
  view.indices = edges.indices.values<uint32_t>();
  return view;
}

GraphView TypedDataset::graph() const {
  GraphView graph;
  for (uint32_t t = 0; t < num_types(); ++t) graph.num_nodes.push_back(num_nodes(t));
  for (uint32_t r = 0; r < num_relations(); ++r) {
    const Relation& relation = schema_.relations[r];
    graph.relations.push_back({relation.source, relation.destination, topology(r)});
  }
  return graph;
}

std::span<const int32_t> TypedDataset::labels() const {
  if (labels_.type() != NpyType::kInt32) return {};
  return labels_.values<int32_t>();
}

std::span<const uint8_t> TypedDataset::label_bits() const {
  if (labels_.type() != NpyType::kUint8) return {};
  return labels_.values<uint8_t>();
}

std::span<const float> TypedDataset::targets() const {
  if (labels_.type() != NpyType::kFloat32) return {};
  return labels_.values<float>();
}

}  // namespace gnnd
