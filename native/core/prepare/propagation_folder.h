#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/npy.h"
#include "core/prepare/propagation.h"
#include "core/prepare/range_moments.h"
#include "core/prepare/row_files.h"

// The folder in which a propagation grows; its files say which work is done (row_files.h).

namespace gnnd {

// Columns [begin, begin + width) of all nodes.
struct ColumnBlock {
  uint64_t begin = 0;
  uint64_t width = 0;
};

std::vector<ColumnBlock> BlocksOf(uint64_t columns, uint64_t width);

struct PropagationShape {
  uint64_t num_nodes;
  uint64_t rows;
  uint64_t columns;
};

// A block's rows of a hop are a *part*; the parts of a hop are joined when all exist. If one block
// has all columns, its parts are the final files. If rows are standardised, the moments of a hop's
// columns are written before its rows: rows without moments count as missing.
class PropagationFolder {
 public:
  // `plan` and `blocks` must outlive it.
  PropagationFolder(std::string folder, const PropagationPlan& plan,
                    std::span<const ColumnBlock> blocks, const PropagationShape& shape);

  // Removes files of a run with other blocks, and temporary files of a run that was killed.
  Status RemoveStrangers() const;

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string PartPath(uint32_t op, uint32_t hop, const ColumnBlock& block) const;
  // Header of the .npy files of whole rows.
  const std::string& header() const { return header_; }

  bool HasRows(uint32_t op, uint32_t hop) const;
  // Also true when the parts have been joined already.
  bool HasPart(uint32_t op, uint32_t hop, const ColumnBlock& block) const;

  // Writes the array unless its file exists.
  template <typename T>
  Status WriteArray(const char* name, NpyType type, std::span<const T> values) const {
    const uint64_t shape[] = {values.size()};
    return WriteArray(name, type, shape, std::as_bytes(values));
  }
  // Writes a table with this many columns unless its file exists.
  template <typename T>
  Status WriteTable(const char* name, NpyType type, uint64_t columns,
                    std::span<const T> values) const {
    const uint64_t shape[] = {values.size() / columns, columns};
    return WriteArray(name, type, shape, std::as_bytes(values));
  }
  Status WriteMoments(const Moments& moments, uint32_t op, uint32_t hop,
                      const ColumnBlock& block) const;

  // A block's state between two hops: [num_nodes, width].
  Status WriteState(uint32_t op, uint32_t hop, const ColumnBlock& block, const float* state) const;
  // Reads a saved state and returns its hop; 0: none is saved, or rows up to its hop are missing.
  Result<uint32_t> ReadState(uint32_t op, const ColumnBlock& block, float* state) const;
  void RemoveState(uint32_t op, const ColumnBlock& block) const;

  // Joins all hops of an operator, whose parts must all exist. Calls `joined` after each file.
  Status Join(uint32_t op, const std::function<void()>& joined) const;

  // Digests of all final files.
  Result<std::vector<DigestedFile>> Digest(uint32_t threads) const;

 private:
  std::string BlockName(uint32_t op, const ColumnBlock& block) const;
  std::string PartName(uint32_t op, uint32_t hop, const ColumnBlock& block) const;
  std::string MomentsName(uint32_t op, uint32_t hop, const ColumnBlock& block) const;
  std::string StateName(uint32_t op, const ColumnBlock& block) const;
  uint64_t PartBytes(uint64_t width) const;
  bool HasMoments(const std::string& name, uint64_t width) const;
  Status WriteArray(const char* name, NpyType type, std::span<const uint64_t> shape,
                    std::span<const std::byte> values) const;
  Status JoinMoments(uint32_t op, uint32_t hop) const;

  const std::string folder_;
  const PropagationPlan& plan_;
  const std::span<const ColumnBlock> blocks_;
  const PropagationShape shape_;
  const std::string header_;
};

}  // namespace gnnd
