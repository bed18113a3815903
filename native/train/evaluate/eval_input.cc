#include "train/evaluate/eval_input.h"

#include <algorithm>

#include "core/base/check.h"
#include "train/ops/ops.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

constexpr uint32_t kGrainRows = 64;

}  // namespace

void ScatterRows(const float* rows, std::span<const uint32_t> nodes, uint64_t columns, float* to) {
  ParallelRows(static_cast<uint32_t>(nodes.size()), kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint64_t r = begin; r < end; ++r) {
      std::copy_n(rows + r * columns, columns, to + nodes[r] * columns);
    }
  });
}

void HostInput::ForParts(const EvalRows& rows, uint64_t, const Compute& compute) {
  const TopologyView& graph = rows.graph;
  const std::span<const uint32_t> nodes = rows.nodes;
  EvalPart part;
  part.nodes = nodes;
  part.x = rows.table;
  part.self = nodes.data();
  part.memory = &memory_;
  uint32_t* indptr = memory_.Get<uint32_t>(nodes.size() + 1);
  indptr[0] = 0;
  for (uint32_t r = 0; r < part.rows(); ++r) {
    const uint64_t end = indptr[r] + graph.degree(nodes[r]);
    GNND_CHECK(end <= UINT32_MAX);
    indptr[r + 1] = static_cast<uint32_t>(end);
  }
  part.indptr = indptr;
  part.num_edges = indptr[part.rows()];
  if (Consecutive(nodes)) {
    part.index = graph.indices.data() + graph.indptr[nodes.front()];
    return compute(part);
  }
  uint32_t* index = memory_.Get<uint32_t>(part.num_edges);
  ParallelRows(part.rows(), kGrainRows, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      std::copy_n(graph.indices.data() + graph.indptr[nodes[r]], indptr[r + 1] - indptr[r],
                  index + indptr[r]);
    }
  });
  part.index = index;
  compute(part);
}

at::Tensor HostInput::Rows(const RowTable& table, std::span<const uint32_t> nodes) {
  if (table.type() == FeatureType::kFloat32 && Consecutive(nodes)) {
    const float* const rows = table.values<float>().data() + nodes.front() * table.dim();
    return ViewOf(const_cast<float*>(rows), static_cast<int64_t>(nodes.size()),
                  static_cast<int64_t>(table.dim()));
  }
  return GatheredRows<float>(table, nodes, &memory_);
}

}  // namespace gnnd
