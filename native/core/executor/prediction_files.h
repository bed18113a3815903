#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/executor/chunk_files.h"
#include "core/executor/prediction_place.h"
#include "core/executor/row_outputs.h"

namespace gnnd {

// What is made of nodes' rows: in the folder's out/ nodes.npy and a file for each output
// (row_outputs.h). Used as ChunkFiles are.
class PredictionFiles : public ChunkFiles {
 public:
  // `nodes`: ascending and distinct. If they are all of the graph's, nodes.npy is not written. kIo,
  // kDiskFull.
  struct Nodes {
    std::span<const uint32_t> nodes{};
    bool are_all = false;
  };
  static Result<PredictionFiles> Open(const PredictionPlace& place, const Nodes& targets,
                                      RowOutputs outputs);

  // The layers whose rows it takes, ascending.
  const std::vector<uint32_t>& layers() const { return layers_; }

  // Writes what the outputs make of rows [first, first + rows.size() / their width) of a layer.
  // kNumericDivergence when a number is not finite.
  Status Write(uint32_t layer, uint64_t first, std::span<const float> rows);

 private:
  PredictionFiles(ChunkFiles files, RowOutputs outputs);

  std::vector<uint32_t> layers_;
  RowOutputs outputs_;           // in the order of the files
  std::vector<std::byte> made_;  // of one output, at a time
};

}  // namespace gnnd
