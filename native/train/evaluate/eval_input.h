#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "core/graph/row_table.h"
#include "core/graph/topology_view.h"
#include "train/ops/workspace.h"

// How a layer of exact evaluation gets its rows, which lie by node id in tables in the host's
// memory: the host's operators read the tables, a device's operators a copy.

namespace gnnd {

// Rows of a block that are computed together, with their whole neighbourhoods.
struct EvalPart {
  uint64_t first = 0;               // number of the part's first row in the block
  std::span<const uint32_t> nodes;  // in the host's memory
  // Input of operators: `index` and `self` are rows of `x`.
  RowTable x;
  const uint32_t* indptr = nullptr;  // [nodes.size() + 1]
  const uint32_t* index = nullptr;   // [num_edges]
  const uint32_t* self = nullptr;    // [nodes.size()]
  uint64_t num_edges = 0;
  std::span<const uint32_t> sources;  // the host's: node of each row of x; empty: rows are nodes
  Workspace* memory = nullptr;        // workspace for operators, valid for this part only
  // Has too many neighbours for the device, so the host's operators compute it in host memory.
  bool is_aside = false;

  uint32_t rows() const { return static_cast<uint32_t>(nodes.size()); }
};

// Rows whose neighbourhoods operators read.
struct EvalRows {
  const TopologyView& graph;
  const RowTable& table;
  std::span<const uint32_t> nodes;
};

// For use by one thread.
class EvalInput {
 public:
  using Compute = std::function<void(const EvalPart&)>;
  virtual ~EvalInput() = default;

  // Calls `compute` for the parts of a block in order. `heads` numbers accompany each row of x and
  // each edge (attention).
  virtual void ForParts(const EvalRows& rows, uint64_t heads, const Compute& compute) = 0;
  // Rows of the table as float32 for operators, [nodes.size(), dim].
  virtual at::Tensor Rows(const RowTable& table, std::span<const uint32_t> nodes) = 0;
  // Host numbers as operators over `memory` read them.
  virtual const float* Given(std::span<const float> values, Workspace* memory) = 0;
  // The place where operators write the [count] numbers for `host`; Bring then copies them there.
  virtual float* PlaceOf(float* host, uint64_t count) = 0;
  virtual void Bring(const float* from, uint64_t count, float* host) = 0;
  // Operators' output as the host reads it: in place, or a copy in `host`.
  virtual const float* Seen(const float* from, uint64_t count, Workspace* host) = 0;
  // Copies rows that were computed aside to the place where operators continue with them.
  virtual void Join(const float* host, uint64_t count, float* to) = 0;
  // Workspace of blocks; its Reset frees the results of the functions above.
  virtual Workspace* memory() = 0;
  virtual uint64_t reserved_bytes() const = 0;  // in the host's memory
};

// Whether ids are consecutive, so that their rows are contiguous.
inline bool Consecutive(std::span<const uint32_t> nodes) {
  return nodes.back() - nodes.front() + 1 == nodes.size();
}

// Copies row r of `rows` to row nodes[r] of `to`, on the caller's team.
void ScatterRows(const float* rows, std::span<const uint32_t> nodes, uint64_t columns, float* to);

// For the host's operators, which read the tables directly.
class HostInput final : public EvalInput {
 public:
  void ForParts(const EvalRows& rows, uint64_t heads, const Compute& compute) override;
  at::Tensor Rows(const RowTable& table, std::span<const uint32_t> nodes) override;
  const float* Given(std::span<const float> values, Workspace*) override { return values.data(); }
  float* PlaceOf(float* host, uint64_t) override { return host; }
  void Bring(const float*, uint64_t, float*) override {}
  const float* Seen(const float* from, uint64_t, Workspace*) override { return from; }
  void Join(const float*, uint64_t, float*) override {}
  Workspace* memory() override { return &memory_; }
  uint64_t reserved_bytes() const override { return memory_.reserved_bytes(); }

 private:
  Workspace memory_;
};

}  // namespace gnnd
