#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/graph/row_table.h"

// A dataset: a folder with the topology (CSC by destination), features, labels and splits of one
// graph as .npy files (docs/formats/dataset.md). Immutable once imported; mapped, never copied.

namespace gnnd {

// What is learnt about a node: its class, which of several labels it has, or numbers.
enum class Task : uint8_t { kClassification, kMultiLabel, kRegression };

// The value of a kMultiLabel label that is not known; 0: the node lacks it, 1: it has it.
inline constexpr uint8_t kUnknownLabel = 255;

// The content of dataset.json. Core does not parse JSON: the caller passes it.
struct DatasetCounts {
  uint64_t num_nodes = 0;
  uint64_t num_edges = 0;  // CSC entries: an undirected edge counts twice
  uint64_t num_features = 0;
  uint64_t num_classes = 0;  // classes (0: nothing is labelled), or labels or targets of a node
  uint64_t train = 0;
  uint64_t val = 0;
  uint64_t test = 0;
  FeatureType feature_type = FeatureType::kFloat32;  // type of features.npy
  Task task = Task::kClassification;
};

// kInvalidArgument when no dataset can have these counts: no nodes, 2^32 - 1 nodes or more (ids are
// 32-bit and the last one is reserved), no features, 2^31 classes, zero labels or targets or more
// than memory has addresses, a split larger than the graph.
Status CheckCounts(const DatasetCounts& counts);

enum class DatasetFile {
  kIndptr,
  kIndices,
  kFeatures,
  kLabels,
  kTrain,
  kVal,
  kTest,
  kEdgeWeights,  // the only one that may be missing
};

// File names: "indptr.npy" ...
const char* FileName(DatasetFile file);

// Maps `path` as the given file of a dataset with these (checked) counts: type and shape must fit.
Result<NpyArray> OpenDatasetFile(DatasetFile file, const std::string& path,
                                 const DatasetCounts& counts);

// A dataset opened with cheap checks only: headers, types, shapes, sizes. Elements are unchecked:
// Validate (validate.h) reads all of them, CreateTopology (topology.h) those of the topology.
class Dataset {
 public:
  Dataset() = default;

  // Maps the files of `folder`. `features_path`, when not empty, names a derived feature file to be
  // used in place of features.npy (StandardizeFeatures); it is float32 and has the same shape.
  // Errors: those of NpyArray::Open and CheckCounts; the first one found is returned.
  static Result<Dataset> Open(const std::string& folder, const DatasetCounts& counts,
                              const std::string& features_path = "");

  const DatasetCounts& counts() const { return counts_; }
  uint32_t num_nodes() const { return static_cast<uint32_t>(counts_.num_nodes); }
  uint64_t num_edges() const { return counts_.num_edges; }
  uint64_t num_features() const { return counts_.num_features; }
  uint32_t num_classes() const { return static_cast<uint32_t>(counts_.num_classes); }

  std::span<const int64_t> indptr() const { return indptr_.values<int64_t>(); }  // [num_nodes + 1]
  std::span<const uint32_t> indices() const { return indices_.values<uint32_t>(); }  // [num_edges]
  RowTable features() const;  // [nodes, features]
  // [num_nodes], -1 = none; empty unless the task is kClassification.
  std::span<const int32_t> labels() const;
  // [num_nodes, num_classes], 0, 1 or kUnknownLabel; empty unless the task is kMultiLabel.
  std::span<const uint8_t> label_bits() const;
  // [num_nodes, num_classes], NaN = not known; empty unless the task is kRegression.
  std::span<const float> targets() const;
  std::span<const int64_t> train() const { return train_.values<int64_t>(); }  // ascending ids
  std::span<const int64_t> val() const { return val_.values<int64_t>(); }
  std::span<const int64_t> test() const { return test_.values<int64_t>(); }
  // [num_edges], or empty where edges have no weights.
  std::span<const float> edge_weights() const { return edge_weights_.values<float>(); }

 private:
  DatasetCounts counts_;
  NpyArray indptr_;
  NpyArray indices_;
  NpyArray features_;
  NpyArray labels_;
  NpyArray train_;
  NpyArray val_;
  NpyArray test_;
  NpyArray edge_weights_;
};

}  // namespace gnnd
