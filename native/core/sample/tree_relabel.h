#pragma once

#include <cstdint>
#include <vector>

#include "core/base/huge_array.h"
#include "core/base/prefetch.h"

namespace gnnd {

// Maps the nodes of a batch's trees to local ids, in order of first occurrence within their tree: a
// node of two trees has an id in each. Open addressing, sized by the batches so far; entries are
// made invalid as in relabel.h.
class TreeRelabel {
 public:
  TreeRelabel() { SetCapacity(kFirstCapacity); }

  // Starts a batch of at most `max_nodes` nodes of all trees together.
  void Begin(uint32_t max_nodes);
  void End(uint32_t count) { base_ += count; }

  GNND_PREFETCHES void Ask(PrefetchLevel level, uint32_t tree, uint32_t id) const {
    Prefetch(level, entries_.data() + Slot(tree, id));
  }

  // Makes room for `more` nodes beside nodes[0 .. count), those so far.
  void Reserve(const uint32_t* nodes, uint32_t count, uint32_t more);

  // The local id of a node of a tree. An unseen one is appended to nodes[0 .. *count), for which
  // Reserve has made room.
  uint32_t Insert(uint32_t tree, uint32_t id, uint32_t* nodes, uint32_t* count) {
    const uint32_t local = Find(tree, id, *count);
    if (local < *count) return local;
    nodes[local] = id;
    trees_[local] = tree;
    ++*count;
    return local;
  }

  // The tree of a node of the present batch, by its local id.
  uint32_t tree(uint32_t local) const { return trees_[local]; }

  uint64_t bytes() const {
    return capacity_ * sizeof(Entry) + trees_.capacity() * sizeof(uint32_t);
  }

 private:
  static constexpr uint64_t kFirstCapacity = uint64_t{1} << 10;

  struct Entry {
    uint32_t id;
    uint32_t tree;
    uint32_t tag;
  };

  uint64_t Slot(uint32_t tree, uint32_t id) const {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    return ((uint64_t{tree} << 32 | id) * kGolden) >> shift_;
  }
  void SetCapacity(uint64_t capacity);

  // The local id of a node among the first `count`; where it is none of them, it becomes `count`.
  uint32_t Find(uint32_t tree, uint32_t id, uint32_t count) {
    Entry* const entries = entries_.data();
    const auto base = static_cast<uint32_t>(base_);
    uint64_t slot = Slot(tree, id);
    uint32_t local = entries[slot].tag - base;
    while (local < count && (entries[slot].id != id || entries[slot].tree != tree)) {
      slot = (slot + 1) & (capacity_ - 1);
      local = entries[slot].tag - base;
    }
    if (local < count) return local;
    entries[slot] = Entry{id, tree, base + count};
    return count;
  }

  HugeArray<Entry> entries_;
  uint64_t capacity_ = 0;  // a power of two, at least twice the nodes in the table
  uint32_t shift_ = 0;
  uint64_t base_ = 1;            // base_ + count of the running batch <= 2^32
  std::vector<uint32_t> trees_;  // by local id
};

}  // namespace gnnd
