#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>

#include "core/graph/row_table.h"
#include "core/graph/topology_view.h"
#include "train/ops/workspace.h"

// How a layer of exact evaluation comes by its rows, which lie by node id in tables of the host's:
// where operators are the host's they read the tables, on a device what was brought there.

namespace gnnd {

// Rows of a block that are computed together, with their whole neighbourhoods.
struct EvalPart {
  uint64_t first = 0;               // of them in the block
  std::span<const uint32_t> nodes;  // of the host's memory
  // Where operators read: `index` and `self` are rows of `x`.
  RowTable x;
  const uint32_t* indptr = nullptr;  // [nodes.size() + 1]
  const uint32_t* index = nullptr;   // [num_edges]
  const uint32_t* self = nullptr;    // [nodes.size()]
  uint64_t num_edges = 0;
  std::span<const uint32_t> sources;  // the host's: nodes of x's rows; empty: a row is its node
  Workspace* memory = nullptr;        // of its operators, valid for this part alone
  // Too many neighbours for the device: its operators are the host's and so is what they write.
  bool is_aside = false;

  uint32_t rows() const { return static_cast<uint32_t>(nodes.size()); }
};

// One thread's.
class EvalInput {
 public:
  using Compute = std::function<void(const EvalPart&)>;
  virtual ~EvalInput() = default;

  // Calls `compute` for the parts of a block in their order. `heads` numbers go with each row of x
  // and each edge beside weights (attention).
  virtual void ForParts(const RowTable& table, std::span<const uint32_t> nodes, uint64_t heads,
                        const Compute& compute) = 0;
  // float32 rows of the table for operators, [nodes.size(), dim].
  virtual at::Tensor Rows(const RowTable& table, std::span<const uint32_t> nodes) = 0;
  // The host's numbers for the operators of `memory`.
  virtual const float* Given(std::span<const float> values, Workspace* memory) = 0;
  // Where operators write what `host` is to hold, [count]; it does after Bring.
  virtual float* PlaceOf(float* host, uint64_t count) = 0;
  virtual void Bring(const float* from, uint64_t count, float* host) = 0;
  // What operators wrote, in the host's memory: as it is, or a copy in `host`.
  virtual const float* Seen(const float* from, uint64_t count, Workspace* host) = 0;
  // What was computed aside, to where operators continue with it.
  virtual void Join(const float* host, uint64_t count, float* to) = 0;
  // Of blocks; its Reset takes back what the functions above gave.
  virtual Workspace* memory() = 0;
  virtual uint64_t reserved_bytes() const = 0;  // of the host's memory
};

// Whether ids are consecutive, so that their rows lie together.
inline bool Consecutive(std::span<const uint32_t> nodes) {
  return nodes.back() - nodes.front() + 1 == nodes.size();
}

// Copies row r of `rows` to row nodes[r] of `to`, on the caller's team.
void ScatterRows(const float* rows, std::span<const uint32_t> nodes, uint64_t columns, float* to);

// The host's operators, which read the tables as they are. Borrows the topology.
class HostInput final : public EvalInput {
 public:
  explicit HostInput(const TopologyView& topology) : topology_(topology) {}

  void ForParts(const RowTable& table, std::span<const uint32_t> nodes, uint64_t heads,
                const Compute& compute) override;
  at::Tensor Rows(const RowTable& table, std::span<const uint32_t> nodes) override;
  const float* Given(std::span<const float> values, Workspace*) override { return values.data(); }
  float* PlaceOf(float* host, uint64_t) override { return host; }
  void Bring(const float*, uint64_t, float*) override {}
  const float* Seen(const float* from, uint64_t, Workspace*) override { return from; }
  void Join(const float*, uint64_t, float*) override {}
  Workspace* memory() override { return &memory_; }
  uint64_t reserved_bytes() const override { return memory_.reserved_bytes(); }

 private:
  const TopologyView& topology_;
  Workspace memory_;
};

}  // namespace gnnd
