#pragma once

#include <algorithm>
#include <cstdint>

#include "core/sample/expand.h"
#include "core/sample/weighted.h"

namespace gnnd {

// Expands one hop with a finite fanout by edge weights. One stage more than SampledHop:
//
//   group g + 4   prefetch the rows' bounds
//   group g       read bounds, draw slots, prefetch their alias entries
//   group g - 1   read alias entries, choose, prefetch the chosen neighbours
//   group g - 2   read neighbours, prefetch their table entries
//   group g - 3   look up or insert, write local ids
template <typename Table>
class WeightedHop : private HopRing<Table> {
 public:
  WeightedHop(const TopologyView& topology, Table* table, ExpandBuffers* buffers,
              WeightedPicker* picker, const PickLoops& loops, uint32_t fanout, bool replace,
              HopTask* task)
      : Ring(topology, table, buffers, ExpandBuffers::RowsPerGroup(fanout), task),
        alias_(topology.alias.data()),
        picker_(picker),
        loops_(loops),
        fanout_(fanout),
        replace_(replace),
        draws_(replace ? fanout : WeightedCandidates(fanout)) {}

  void Run() {
    this->PrefetchFirstRows();
    for (uint32_t g = 0; g < this->num_groups_ + 3; ++g) {
      this->PrefetchRows(g + this->kBoundsAhead);
      this->Follow(g - 2, g - 3);
      if (g >= 1 && g <= this->num_groups_) Choose(g - 1);
      if (g < this->num_groups_) Draw(g);
      this->LastTurn();
    }
  }

 private:
  using Ring = HopRing<Table>;
  using Slot = ExpandBuffers::Slot;

  // A group between draw and choice.
  struct Drawn {
    alignas(64) uint32_t nodes[kGroupRows];
    alignas(64) uint32_t degrees[kGroupRows];  // degrees of rows drawn by group, else 0
    alignas(64) uint32_t slots[kGroupRows * kMaxAliasDraws];
    alignas(64) uint32_t words[kGroupRows * kMaxAliasDraws];
    uint64_t starts[kGroupRows];
    uint64_t lengths[kGroupRows];
  };

  bool ByGroup(uint64_t degree) const {
    return degree < kTwoWordDegree && (replace_ ? degree > 0 : degree > fanout_);
  }

  void Draw(uint32_t group) {
    if (fanout_ > kMaxGroupFanout) return;
    Drawn& drawn = drawn_groups_[group % 2];
    const uint32_t begin = this->FirstRow(group);
    const uint32_t rows = this->FirstRow(group + 1) - begin;
    std::fill_n(drawn.nodes, kGroupRows, 0);
    std::fill_n(drawn.degrees, kGroupRows, 0);
    for (uint32_t r = 0; r < rows; ++r) {
      const uint32_t node = this->task_->dst[begin + r];
      drawn.nodes[r] = node;
      drawn.starts[r] = this->graph_indptr_[node];
      drawn.lengths[r] = this->graph_indptr_[node + 1] - drawn.starts[r];
      // A row that does without some neighbours is drawn by itself.
      const bool whole = this->task_->skips.of(begin + r).empty();
      if (whole && ByGroup(drawn.lengths[r])) {
        drawn.degrees[r] = static_cast<uint32_t>(drawn.lengths[r]);
      }
    }
    loops_.draw_alias(this->task_->stream, drawn.nodes, drawn.degrees, draws_, drawn.slots,
                      drawn.words);
    for (uint32_t r = 0; r < rows; ++r) {
      const AliasEntry* row = alias_ + drawn.starts[r];
      if (drawn.degrees[r] == 0) {
        // A short row, which is read whole.
        constexpr uint32_t kEntriesPerLine = 64 / sizeof(AliasEntry);
        const uint64_t size = std::min<uint64_t>(drawn.lengths[r], fanout_);
        for (uint64_t i = 0; i < size; i += kEntriesPerLine) Prefetch(this->level_, row + i);
        continue;
      }
      for (uint32_t j = 0; j < draws_; ++j) {
        Prefetch(this->level_, row + drawn.slots[j * kGroupRows + r]);
      }
    }
  }

  void Choose(uint32_t group) {
    Slot& slot = this->SlotOf(group);
    slot.size = 0;
    const uint32_t begin = this->FirstRow(group);
    const uint32_t rows = this->FirstRow(group + 1) - begin;
    if (fanout_ <= kMaxGroupFanout) {
      ChooseGroup(&drawn_groups_[group % 2], begin, rows, &slot);
    } else {
      for (uint32_t r = 0; r < rows; ++r) {
        const uint32_t node = this->task_->dst[begin + r];
        const uint64_t start = this->graph_indptr_[node];
        ChooseRow(begin + r, start, this->graph_indptr_[node + 1] - start, &slot);
        this->FinishRow(begin + r, slot);
      }
    }
    this->drawn_ += slot.size;
  }

  void ChooseGroup(Drawn* drawn, uint32_t begin, uint32_t rows, Slot* slot) {
    uint32_t* picks = drawn->slots;  // in place
    uint32_t weightless = 0;         // bit r: row r
    for (uint32_t r = 0; r < rows; ++r) {
      if (drawn->degrees[r] == 0) continue;
      const AliasEntry* row = alias_ + drawn->starts[r];
      const uint32_t first = drawn->slots[r];
      if (IsWeightless(row[first], first)) weightless |= uint32_t{1} << r;
      for (uint32_t j = 0; j < draws_; ++j) {
        const uint32_t at = j * kGroupRows + r;
        picks[at] = ChosenOf(row[picks[at]], picks[at], drawn->words[at]);
      }
    }
    alignas(64) uint16_t repeats[kMaxAliasDraws] = {};  // bit r of entry j: row r drew it before
    if (!replace_) loops_.find_repeats(picks, draws_, repeats);
    for (uint32_t r = 0; r < rows; ++r) {
      if ((weightless >> r & 1) == 0) {
        if (drawn->degrees[r] == 0 || !Append(*drawn, picks, repeats, r, slot)) {
          ChooseRow(begin + r, drawn->starts[r], drawn->lengths[r], slot);
        }
      }
      this->FinishRow(begin + r, *slot);
      if ((r + 1) % this->kTurnRows == 0) this->Turn(this->kTurnRows * fanout_);
    }
  }

  // Appends the first fanout distinct picks of a row; false, appending nothing, when there are
  // fewer.
  bool Append(const Drawn& drawn, const uint32_t* picks, const uint16_t* repeats, uint32_t r,
              Slot* slot) {
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    uint32_t different = 0;
    // Looks at all draws in any case, so that the loop's length is constant.
    for (uint32_t j = 0; j < draws_; ++j) {
      edge_at[different] = drawn.starts[r] + picks[j * kGroupRows + r];
      different += (repeats[j] >> r & 1) ^ 1;
    }
    if (different < fanout_) return false;
    for (uint32_t j = 0; j < fanout_; ++j) {
      Prefetch(this->level_, this->graph_indices_ + edge_at[j]);
    }
    slot->size += fanout_;
    return true;
  }

  void ChooseRow(uint32_t row, uint64_t start, uint64_t degree, Slot* slot) {
    const RowSkips& skips = this->task_->skips;
    const std::span<const uint64_t> absent =
        skips.after ? std::span<const uint64_t>() : skips.of(row);
    uint64_t* edge_at = slot->edge_at.data() + slot->size;
    uint32_t size = picker_->Pick(this->task_->stream, this->task_->dst[row], alias_ + start,
                                  degree, fanout_, replace_, absent, edge_at);
    if (skips.after) size = skips.Keep(row, edge_at, size);
    for (uint32_t j = 0; j < size; ++j) {
      edge_at[j] += start;
      Prefetch(this->level_, this->graph_indices_ + edge_at[j]);
    }
    slot->size += size;
  }

  const AliasEntry* alias_;
  WeightedPicker* picker_;
  const PickLoops& loops_;
  uint32_t fanout_;
  bool replace_;
  uint32_t draws_;
  Drawn drawn_groups_[2];
};

}  // namespace gnnd
