#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/graph/dataset.h"
#include "core/graph/npy.h"

// What the makers of message graphs read and write.

namespace gnnd {

struct MessageGraphCounts {
  uint64_t num_edges = 0;  // that are left
  bool symmetric = false;
  uint64_t train = 0;  // items of each list; of walks their pairs
  uint64_t val = 0;
  uint64_t test = 0;
  uint64_t val_pool = 0;  // pairs that are none, of given lists
  uint64_t test_pool = 0;
  uint64_t overlap = 0;  // validation and test links that are edges of the graph; of given lists
};

// The edges of a dataset; row v is indices[indptr[v] .. indptr[v + 1]), ascending.
struct Edges {
  std::span<const int64_t> indptr;
  std::span<const uint32_t> indices;

  uint32_t num_nodes() const { return static_cast<uint32_t>(indptr.size() - 1); }
  std::span<const uint32_t> row(uint32_t v) const {
    return indices.subspan(static_cast<size_t>(indptr[v]),
                           static_cast<size_t>(indptr[v + 1] - indptr[v]));
  }
};

// Calls visit(source, first, count) for every run of equal sources of row v, loops left out.
template <typename Visit>
void VisitRuns(const Edges& edges, uint32_t v, const Visit& visit) {
  const std::span<const uint32_t> row = edges.row(v);
  for (size_t i = 0; i < row.size();) {
    size_t end = i + 1;
    while (end < row.size() && row[end] == row[i]) ++end;
    if (row[i] != v) visit(row[i], i, end - i);
    i = end;
  }
}

// An array that is written element by element.
template <typename T>
class ArrayFile {
 public:
  ArrayFile(const std::string& folder, const std::string& name) : file_(folder + "/" + name) {
    buffer_.reserve(kBuffered);
  }

  Status Create(std::initializer_list<uint64_t> shape) {
    GNND_TRY(file_.Create());
    const std::string header = NpyHeader(NpyTypeOf<T>::kType, std::span(shape));
    return file_.Write(std::as_bytes(std::span(header)));
  }
  Status Append(std::span<const T> values) {
    if (buffer_.size() + values.size() > kBuffered) GNND_TRY(Flush());
    if (values.size() > kBuffered) return file_.Write(std::as_bytes(values));
    buffer_.insert(buffer_.end(), values.begin(), values.end());
    return Status::Ok();
  }
  Status Commit() {
    GNND_TRY(Flush());
    return file_.Commit();
  }

 private:
  static constexpr size_t kBuffered = 1 << 16;

  Status Flush() {
    GNND_TRY(file_.Write(std::as_bytes(std::span<const T>(buffer_))));
    buffer_.clear();
    return Status::Ok();
  }

  AtomicFile file_;
  std::vector<T> buffer_;
};

// The dataset's files in a folder beside it.
class Shared {
 public:
  Shared(std::string dataset, std::string folder)
      : dataset_(std::move(dataset)), folder_(std::move(folder)) {}

  // Names a file of the dataset, if it has it and the folder has none of that name.
  Status Link(const std::string& name) const {
    std::error_code error;
    if (std::filesystem::exists(folder_ + "/" + name, error)) return Status::Ok();
    const auto target = std::filesystem::absolute(dataset_, error) / name;
    if (!error && !std::filesystem::exists(target, error)) return Status::Ok();
    const std::string path = folder_ + "/" + name;
    if (!error) std::filesystem::create_symlink(target, path, error);
    if (error) return Status(Code::kIo, "linking " + path + ": " + error.message());
    return Status::Ok();
  }

  // What a message graph has in common with its dataset, and the lists of nodes that it has not.
  Status AddNodes() const {
    GNND_TRY(Link(FileName(DatasetFile::kFeatures)));
    GNND_TRY(Link(FileName(DatasetFile::kLabels)));
    for (const DatasetFile file : {DatasetFile::kTrain, DatasetFile::kVal, DatasetFile::kTest}) {
      ArrayFile<int64_t> nodes(folder_, FileName(file));
      GNND_TRY(nodes.Create({0}));
      GNND_TRY(nodes.Commit());
    }
    return Status::Ok();
  }

 private:
  std::string dataset_;
  std::string folder_;
};

}  // namespace gnnd
