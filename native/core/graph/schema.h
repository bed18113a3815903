#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/dataset.h"

// What a graph of several types of nodes and relations has: types × relations, each relation from
// one type to one, with ids that are local to their type (docs/formats/dataset.md). A graph without
// types is one of each, and has DatasetCounts alone.

namespace gnnd {

struct NodeType {
  std::string name;
  uint64_t num_nodes = 0;
  uint64_t num_features = 0;  // 0: it has no features.npy
  FeatureType feature_type = FeatureType::kFloat32;
  bool labelled = false;  // it has labels.npy, train.npy, val.npy and test.npy
  Task task = Task::kClassification;
  uint64_t num_classes = 0;  // classes, or labels or targets of a node
  uint64_t train = 0;
  uint64_t val = 0;
  uint64_t test = 0;
};

// Row v lists the sources from which node v of the destination type aggregates.
struct Relation {
  uint32_t source = 0;  // index of a type, as destination
  std::string name;
  uint32_t destination = 0;
  uint64_t num_edges = 0;
};

struct Schema {
  static constexpr size_t kMaxTypes = 64;
  static constexpr size_t kMaxRelations = 256;

  std::vector<NodeType> types;
  std::vector<Relation> relations;
};

// kInvalidArgument when no graph can have this schema: no types or more than kMaxTypes, more
// relations than kMaxRelations, counts that no dataset can have, a relation between no types.
Status CheckSchema(const Schema& schema);

// "edges/author__writes__paper/": where a relation's arrays lie in a dataset's folder.
std::string FolderOf(const Schema& schema, const Relation& relation);
// "nodes/author/".
std::string FolderOf(const NodeType& type);

// What CheckCounts and OpenDatasetFile take for the arrays of a type.
DatasetCounts CountsOf(const NodeType& type);

}  // namespace gnnd
