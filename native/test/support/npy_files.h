#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/dataset.h"
#include "core/graph/npy.h"

// Small .npy files and datasets for tests, in a folder that goes away with its object.

namespace gnnd::test {

class TempFolder {
 public:
  TempFolder() : TempFolder(std::filesystem::temp_directory_path()) {}
  explicit TempFolder(const std::filesystem::path& below) {
    std::string pattern = (below / "gnnd-test-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(out.good());
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline NpyArray OpenNpy(const std::string& path) {
  Result<NpyArray> array = NpyArray::Open(path);
  REQUIRE(array.ok());
  return std::move(*array);
}

// The bytes of a version 1.0 file. `shape` empty means one dimension.
template <typename T>
std::string NpyBytes(const std::vector<T>& values, std::vector<uint64_t> shape = {}) {
  if (shape.empty()) shape = {values.size()};
  std::string bytes = NpyHeader(NpyTypeOf<T>::kType, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

template <typename T>
void WriteNpy(const std::string& path, const std::vector<T>& values,
              const std::vector<uint64_t>& shape = {}) {
  WriteFile(path, NpyBytes(values, shape));
}

// A version 1.0 file with any header text, for headers that NpyBytes would not write.
inline std::string NpyBytesWithHeader(const std::string& dict, const std::string& data) {
  std::string text = dict;
  text.append(64 - (10 + text.size() + 1) % 64, ' ');
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xFF);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text + data;
}

// A dataset as values: changed by a test, then written.
struct TinyDataset {
  std::vector<int64_t> indptr;
  std::vector<int32_t> indices;
  std::vector<float> features;      // [nodes, num_features]
  std::vector<int32_t> labels;      // for kClassification; one per node in any case
  std::vector<uint8_t> label_bits;  // [nodes, num_classes], of a kMultiLabel
  std::vector<float> targets;       // [nodes, num_classes], of a kRegression
  std::vector<int64_t> train;
  std::vector<int64_t> val;
  std::vector<int64_t> test;
  std::vector<float> edge_weights;  // written when not empty
  uint64_t num_features = 2;
  uint64_t num_classes = 3;

  Task task() const {
    if (!label_bits.empty()) return Task::kMultiLabel;
    return targets.empty() ? Task::kClassification : Task::kRegression;
  }

  DatasetCounts counts() const {
    return {labels.size(), indices.size(), num_features, num_classes, train.size(),
            val.size(),    test.size(),    {},           task()};
  }

  void WriteTo(const TempFolder& folder) const {
    WriteNpy(folder / "indptr.npy", indptr);
    WriteNpy(folder / "indices.npy", indices);
    WriteNpy(folder / "features.npy", features, {features.size() / num_features, num_features});
    WriteLabels(folder);
    WriteNpy(folder / "train.npy", train);
    WriteNpy(folder / "val.npy", val);
    WriteNpy(folder / "test.npy", test);
    if (!edge_weights.empty()) WriteNpy(folder / "edge_weights.npy", edge_weights);
  }

 private:
  void WriteLabels(const TempFolder& folder) const {
    const std::vector<uint64_t> shape = {labels.size(), num_classes};
    if (task() == Task::kClassification) {
      WriteNpy(folder / "labels.npy", labels);
    } else if (task() == Task::kMultiLabel) {
      WriteNpy(folder / "labels.npy", label_bits, shape);
    } else {
      WriteNpy(folder / "labels.npy", targets, shape);
    }
  }
};

// A path of six nodes 0-1-2-3-4-5, both directions; node 5 has no label.
inline TinyDataset PathOfSix() {
  TinyDataset tiny;
  tiny.indptr = {0, 1, 3, 5, 7, 9, 10};
  tiny.indices = {1, 0, 2, 1, 3, 2, 4, 3, 5, 4};
  tiny.features = {0.5F, -1.0F, 1.5F, 2.0F, -0.25F, 0.0F, 3.0F, 1.0F, 0.0F, 0.0F, 4.0F, -2.0F};
  tiny.labels = {0, 1, 2, 0, 1, -1};
  tiny.train = {0, 2};
  tiny.val = {1, 3};
  tiny.test = {4};
  tiny.edge_weights = {1, 1, 0.5F, 0.5F, 1, 1, 0.25F, 0.25F, 1, 1};
  return tiny;
}

// The same path with two labels a node: of node 1 one is not known, of node 5 neither.
inline TinyDataset PathWithLabels() {
  TinyDataset tiny = PathOfSix();
  tiny.num_classes = 2;
  tiny.label_bits = {0, 1, 1, kUnknownLabel, 0, 0, 1, 1, 1, 0, kUnknownLabel, kUnknownLabel};
  return tiny;
}

// The same path with two targets a node: of node 1 one is not known, of node 5 neither.
inline TinyDataset PathWithTargets() {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  TinyDataset tiny = PathOfSix();
  tiny.num_classes = 2;
  tiny.targets = {0.5F, -1, 2, kNaN, 0, 0, 1e30F, 7, -0.25F, 3, kNaN, kNaN};
  return tiny;
}

}  // namespace gnnd::test
