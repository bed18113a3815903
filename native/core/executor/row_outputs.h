#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/executor/prediction_place.h"
#include "core/executor/predictions.h"
#include "core/graph/npy.h"

namespace gnnd {

// One file of an inference: an array with a row for each node, made of the node's row of one layer.
class RowOutput {
 public:
  RowOutput(uint32_t layer, uint32_t width) : layer_(layer), width_(width) {}
  virtual ~RowOutput() = default;

  // The layer whose rows it takes, and their columns.
  uint32_t layer() const { return layer_; }
  uint32_t width() const { return width_; }
  // The file's name.
  virtual std::string name() const = 0;
  virtual NpyType type() const = 0;
  virtual std::vector<uint64_t> ShapeOf(uint64_t nodes) const = 0;
  // Appends what it makes of whole rows.
  virtual void Append(std::span<const float> rows, std::vector<std::byte>* to) const = 0;

  uint64_t bytes_per_node() const {
    uint64_t bytes = BytesOf(type());
    for (const uint64_t extent : ShapeOf(1)) bytes *= extent;
    return bytes;
  }

 private:
  uint32_t layer_;
  uint32_t width_;
};

using RowOutputs = std::vector<std::unique_ptr<RowOutput>>;

// The outputs chosen of a model whose layers give rows of these `widths`. Borrows the rule.
// kInvalidArgument for a layer that the model lacks, and when nothing is chosen.
Result<RowOutputs> OutputsOf(std::span<const OutputChoice> choices, const PredictionRule& rule,
                             std::span<const uint32_t> widths);

}  // namespace gnnd
