#include "core/graph/dataset.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gnnd {
namespace {

NpyType TypeOfFile(FeatureType type) {
  return type == FeatureType::kFloat16 ? NpyType::kFloat16 : NpyType::kFloat32;
}

// How labels.npy holds what a task learns of nodes. Whoever reads an array that is open asks for
// its type, not for the task.
struct LabelFormat {
  NpyType type;
  bool has_columns;  // [nodes, classes], else [nodes]
};

LabelFormat LabelFormatOf(Task task) {
  switch (task) {
    case Task::kClassification:
      break;
    case Task::kMultiLabel:
      return {NpyType::kUint8, true};
    case Task::kRegression:
      return {NpyType::kFloat32, true};
  }
  return {NpyType::kInt32, false};
}

Status ExpectLabels(const NpyArray& array, const DatasetCounts& counts) {
  const LabelFormat format = LabelFormatOf(counts.task);
  if (format.has_columns)
    return array.Expect({format.type}, {counts.num_nodes, counts.num_classes});
  return array.Expect({format.type}, {counts.num_nodes});
}

Status ExpectFile(const NpyArray& array, DatasetFile file, const DatasetCounts& counts) {
  constexpr uint64_t kInt32Ids = uint64_t{1} << 31;
  switch (file) {
    case DatasetFile::kIndptr:
      return array.Expect({NpyType::kInt64}, {counts.num_nodes + 1});
    case DatasetFile::kIndices:
      // A negative id would pass for a large one if there are more nodes than int32 can name.
      if (counts.num_nodes > kInt32Ids) return array.Expect({NpyType::kUint32}, {counts.num_edges});
      return array.Expect({NpyType::kInt32, NpyType::kUint32}, {counts.num_edges});
    case DatasetFile::kFeatures:
      return array.Expect({TypeOfFile(counts.feature_type)},
                          {counts.num_nodes, counts.num_features});
    case DatasetFile::kLabels:
      return ExpectLabels(array, counts);
    case DatasetFile::kTrain:
      return array.Expect({NpyType::kInt64}, {counts.train});
    case DatasetFile::kVal:
      return array.Expect({NpyType::kInt64}, {counts.val});
    case DatasetFile::kTest:
      return array.Expect({NpyType::kInt64}, {counts.test});
    case DatasetFile::kEdgeWeights:
      return array.Expect({NpyType::kFloat32}, {counts.num_edges});
  }
  return Status(Code::kInternal, "no such dataset file");
}

}  // namespace

Status CheckCounts(const DatasetCounts& counts) {
  constexpr uint64_t kMaxNodes = std::numeric_limits<uint32_t>::max() - uint64_t{1};
  constexpr uint64_t kMaxClasses = std::numeric_limits<int32_t>::max();
  constexpr uint64_t kMaxFloats = std::numeric_limits<uint64_t>::max() / sizeof(float);
  const auto within = [](const char* name, uint64_t value, uint64_t low, uint64_t high) {
    if (value >= low && value <= high) return Status::Ok();
    return Status(Code::kInvalidArgument, std::string(name) + " is " + std::to_string(value) +
                                              ", expected " + std::to_string(low) + " to " +
                                              std::to_string(high));
  };
  GNND_TRY(within("num_nodes", counts.num_nodes, 1, kMaxNodes));
  GNND_TRY(within("num_edges", counts.num_edges, 0, std::numeric_limits<int64_t>::max()));
  GNND_TRY(within("num_features", counts.num_features, 1, kMaxFloats / counts.num_nodes));
  const bool has_columns = LabelFormatOf(counts.task).has_columns;
  const uint64_t most_classes =
      has_columns ? std::min(kMaxClasses, kMaxFloats / counts.num_nodes) : kMaxClasses;
  // A graph on which another graph's model only predicts may have no labels and no classes.
  const uint64_t fewest_classes = has_columns ? 1 : 0;
  GNND_TRY(within("num_classes", counts.num_classes, fewest_classes, most_classes));
  GNND_TRY(within("split.train", counts.train, 0, counts.num_nodes));
  GNND_TRY(within("split.val", counts.val, 0, counts.num_nodes));
  return within("split.test", counts.test, 0, counts.num_nodes);
}

const char* FileName(DatasetFile file) {
  constexpr const char* kNames[] = {"indptr.npy", "indices.npy",     "features.npy",
                                    "labels.npy", "train.npy",       "val.npy",
                                    "test.npy",   "edge_weights.npy"};
  return kNames[static_cast<size_t>(file)];
}

Result<NpyArray> OpenDatasetFile(DatasetFile file, const std::string& path,
                                 const DatasetCounts& counts) {
  Result<NpyArray> array = NpyArray::Open(path);
  if (array.ok()) GNND_TRY(ExpectFile(*array, file, counts));
  return array;
}

Result<Dataset> Dataset::Open(const std::string& folder, const DatasetCounts& counts,
                              const std::string& features_path) {
  GNND_TRY(CheckCounts(counts));
  Dataset dataset;
  dataset.counts_ = counts;
  const auto open = [&](DatasetFile file, NpyArray* into) {
    const bool derived = file == DatasetFile::kFeatures && !features_path.empty();
    DatasetCounts expected = counts;
    if (derived) expected.feature_type = FeatureType::kFloat32;
    Result<NpyArray> array =
        OpenDatasetFile(file, derived ? features_path : folder + "/" + FileName(file), expected);
    if (array.ok()) *into = std::move(*array);
    return array.status();
  };
  GNND_TRY(open(DatasetFile::kIndptr, &dataset.indptr_));
  GNND_TRY(open(DatasetFile::kIndices, &dataset.indices_));
  GNND_TRY(open(DatasetFile::kFeatures, &dataset.features_));
  GNND_TRY(open(DatasetFile::kLabels, &dataset.labels_));
  GNND_TRY(open(DatasetFile::kTrain, &dataset.train_));
  GNND_TRY(open(DatasetFile::kVal, &dataset.val_));
  GNND_TRY(open(DatasetFile::kTest, &dataset.test_));
  const Status weights = open(DatasetFile::kEdgeWeights, &dataset.edge_weights_);
  if (weights.code() != Code::kNotFound) GNND_TRY(weights);
  return dataset;
}

std::span<const int32_t> Dataset::labels() const {
  if (labels_.type() != NpyType::kInt32) return {};
  return labels_.values<int32_t>();
}

std::span<const uint8_t> Dataset::label_bits() const {
  if (labels_.type() != NpyType::kUint8) return {};
  return labels_.values<uint8_t>();
}

std::span<const float> Dataset::targets() const {
  if (labels_.type() != NpyType::kFloat32) return {};
  return labels_.values<float>();
}

RowTable Dataset::features() const {
  const uint64_t dim = counts_.num_features;
  if (features_.type() == NpyType::kFloat16) return {features_.values<Half>(), dim};
  return {features_.values<float>(), dim};
}

}  // namespace gnnd
