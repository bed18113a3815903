#pragma once

#include <cstdint>
#include <span>

#include "core/base/prefetch.h"
#include "core/sample/expand.h"
#include "core/sample/plugin.h"

namespace gnnd {

// Expands one hop with a finite fanout by a plug-in, which draws the rows; the stages around it are
// those of SampledHop, with one more ahead:
//
//   group g + 4   prefetch the rows' bounds
//   group g + 1   read bounds, prefetch the start of the rows
//   group g       ask for positions, prefetch the drawn neighbours
//   group g - 1   read neighbours, prefetch their table entries
//   group g - 2   look up or insert, write local ids
template <typename Table>
class PluginHop : private HopRing<Table> {
 public:
  PluginHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
            SamplerPlugin* plugin, uint32_t hop, uint32_t fanout, HopTask* task)
      : Ring(topology, table, buffers, ExpandBuffers::RowsPerGroup(fanout), task),
        plugin_(plugin),
        hop_(hop),
        fanout_(fanout) {}

  // The first failure of the plug-in ends the hop; the task is then unusable.
  Status Run() {
    this->PrefetchFirstRows();
    PrefetchNeighbours(0);
    for (uint32_t g = 0; g < this->num_groups_ + 2; ++g) {
      this->PrefetchRows(g + this->kBoundsAhead);
      PrefetchNeighbours(g + 1);
      this->Follow(g - 1, g - 2);
      this->LastTurn();
      if (g < this->num_groups_) GNND_TRY(Draw(g));
    }
    return Status::Ok();
  }

 private:
  using Ring = HopRing<Table>;
  using Slot = ExpandBuffers::Slot;

  GNND_PREFETCHES void PrefetchNeighbours(uint32_t group) const {
    const uint32_t end = this->FirstRow(group + 1);
    for (uint32_t row = this->FirstRow(group); row < end; ++row) {
      Prefetch(this->level_, this->graph_indices_ + this->graph_indptr_[this->task_->dst[row]]);
    }
  }

  Status Draw(uint32_t group) {
    Slot& slot = this->SlotOf(group);
    slot.size = 0;
    const uint32_t end = this->FirstRow(group + 1);
    for (uint32_t row = this->FirstRow(group); row < end; ++row) {
      const uint32_t node = this->task_->dst[row];
      const uint64_t degree = this->graph_indptr_[node + 1] - this->graph_indptr_[node];
      if (degree != this->task_->skips.Absent(row)) GNND_TRY(DrawRow(row, &slot));
      this->FinishRow(row, slot);
    }
    this->drawn_ += slot.size;
    return Status::Ok();
  }

  Status DrawRow(uint32_t row, Slot* slot) {
    const uint32_t node = this->task_->dst[row];
    const RowSkips& skips = this->task_->skips;
    const std::span<const uint64_t> left_out = skips.of(row);
    const std::span<const uint64_t> absent = skips.after ? std::span<const uint64_t>() : left_out;
    SamplerPlugin::Picks picks;
    GNND_TRY(plugin_->Pick(this->task_->stream, node, hop_, fanout_, absent, &picks));
    const uint64_t start = this->graph_indptr_[node];
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    uint32_t kept = 0;
    for (size_t k = 0; k < picks.positions.size(); ++k) {
      const uint64_t position = picks.positions[k];
      if (skips.after && RowSkips::Has(left_out, position)) continue;
      edge_at[kept] = start + RowSkips::PlaceOf(absent, position);
      Prefetch(this->level_, this->graph_indices_ + edge_at[kept]);
      if (picks.weights != nullptr) {
        this->task_->weight[this->drawn_ + slot->size + kept] = picks.weights[k];
      }
      ++kept;
    }
    slot->size += kept;
    return Status::Ok();
  }

  SamplerPlugin* plugin_;
  uint32_t hop_;
  uint32_t fanout_;
};

}  // namespace gnnd
