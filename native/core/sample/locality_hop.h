#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/prefetch.h"
#include "core/draw/locality.h"
#include "core/sample/expand.h"

namespace gnnd {

// Buffers for one row, owned by the sampler.
struct LocalityBuffers {
  std::vector<uint32_t> others;    // neighbours of a row that lacks some
  std::vector<uint32_t> favoured;  // positions in the row; as long as the longest row so far
  std::vector<uint32_t> picks;

  uint64_t bytes() const {
    return (others.capacity() + favoured.size() + picks.size()) * sizeof(uint32_t);
  }
};

// Expands one hop by core/draw/locality.h. Rows are read whole, because the favoured nodes decide
// each neighbour's probability: O(degree) a row, where the base sampler takes O(fanout).
template <typename Table>
class LocalityHop {
 public:
  struct Draw {
    uint32_t hop = 0;
    uint32_t fanout = 0;
    uint32_t scale = kScaleOne;
    bool shares = false;  // edges get 1 / (d q), else 1 / q
  };

  // `topology.favoured` holds the favoured nodes.
  LocalityHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
              LocalityBuffers* rows, const Draw& draw, HopTask* task)
      : topology_(topology),
        level_(buffers->level),
        ids_(table, buffers, task),
        rows_(*rows),
        draw_(draw),
        task_(task) {
    if (rows_.picks.size() < draw.fanout) rows_.picks.resize(draw.fanout);
  }

  void Run() {
    uint32_t edges = task_->num_edges;
    for (uint32_t row = task_->first_row; row < task_->num_dst; ++row) {
      PrefetchRowsAhead(level_, topology_, *task_, row);
      const uint32_t node = task_->dst[row];
      const uint32_t* ids = topology_.indices.data() + topology_.indptr[node];
      uint64_t degree = topology_.degree(node);
      if (row < task_->skips.num_rows()) ids = OthersOf(row, ids, &degree);
      edges += degree <= draw_.fanout ? TakeAll(ids, degree, task_->weight + edges)
                                      : TakeSome(node, ids, degree, task_->weight + edges);
      task_->indptr[row + 1] = edges;
    }
    ids_.Finish();
  }

 private:
  // The neighbours of a row that are there.
  const uint32_t* OthersOf(uint32_t row, const uint32_t* ids, uint64_t* degree) {
    const std::span<const uint64_t> absent = task_->skips.of(row);
    if (absent.empty()) return ids;
    rows_.others.clear();
    uint64_t from = 0;
    for (const uint64_t place : absent) {
      rows_.others.insert(rows_.others.end(), ids + from, ids + place);
      from = place + 1;
    }
    rows_.others.insert(rows_.others.end(), ids + from, ids + *degree);
    *degree = rows_.others.size();
    return rows_.others.data();
  }

  float WeightOf(double inverse, uint64_t degree) const {
    return static_cast<float>(draw_.shares ? inverse / static_cast<double>(degree) : inverse);
  }

  uint32_t TakeAll(const uint32_t* ids, uint64_t degree, float* weight) {
    const auto size = static_cast<uint32_t>(degree);
    std::copy_n(ids, size, ids_.Room(size));
    ids_.Append(size);
    std::fill_n(weight, size, WeightOf(1, degree));
    return size;
  }

  uint32_t TakeSome(uint32_t node, const uint32_t* ids, uint64_t degree, float* weight) {
    const LocalityRow row{degree, FindFavoured(ids, degree), draw_.fanout, draw_.scale};
    uint32_t* picks = rows_.picks.data();
    const uint32_t near = PickLocally(task_->stream, node, row, rows_.favoured.data(), picks);
    uint32_t* out = ids_.Room(draw_.fanout);
    for (uint32_t j = 0; j < draw_.fanout; ++j) out[j] = ids[picks[j]];
    ids_.Append(draw_.fanout);
    std::fill_n(weight, near, WeightOf(FavouredWeight(row), degree));
    if (near == draw_.fanout) return near;
    std::fill(weight + near, weight + draw_.fanout, WeightOf(OtherWeight(row), degree));
    return draw_.fanout;
  }

  // Writes the positions of the row's favoured neighbours; returns their number.
  uint64_t FindFavoured(const uint32_t* ids, uint64_t degree) {
    constexpr uint64_t kAhead = 24;
    const uint8_t* hops = topology_.favoured.data();
    if (rows_.favoured.size() < degree) rows_.favoured.resize(degree);
    uint32_t* out = rows_.favoured.data();
    uint64_t count = 0;
    for (uint64_t e = 0; e < degree; ++e) {
      if (e + kAhead < degree) Prefetch(level_, hops + ids[e + kAhead]);
      out[count] = static_cast<uint32_t>(e);
      count += hops[ids[e]] >> draw_.hop & 1;
    }
    return count;
  }

  const TopologyView& topology_;
  PrefetchLevel level_;
  IdStream<Table> ids_;
  LocalityBuffers& rows_;
  Draw draw_;
  HopTask* task_;
};

}  // namespace gnnd
