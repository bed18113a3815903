#include "core/sample/tree_relabel.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/sample/relabel.h"

namespace gnnd {

void TreeRelabel::SetCapacity(uint64_t capacity) {
  entries_ = HugeArray<Entry>(capacity);
  capacity_ = capacity;
  shift_ = 64 - static_cast<uint32_t>(std::countr_zero(capacity));
}

void TreeRelabel::Begin(uint32_t max_nodes) {
  if (base_ + max_nodes <= kTagEnd) return;
  std::memset(static_cast<void*>(entries_.data()), 0, capacity_ * sizeof(Entry));
  base_ = 1;
}

void TreeRelabel::Reserve(const uint32_t* nodes, uint32_t count, uint32_t more) {
  const uint64_t most = uint64_t{count} + more;
  if (trees_.size() < most) trees_.resize(std::max(most, 2 * uint64_t{trees_.size()}));
  if (capacity_ >= 2 * most) return;
  // A new array is zero, and no valid tag is, so the ids so far keep theirs.
  SetCapacity(std::bit_ceil(2 * most));
  for (uint32_t i = 0; i < count; ++i) Find(trees_[i], nodes[i], i);
}

// The local id of a node among the first `count`; where it is none of them, it becomes `count`.
uint32_t TreeRelabel::Find(uint32_t tree, uint32_t id, uint32_t count) {
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

uint32_t TreeRelabel::Insert(uint32_t tree, uint32_t id, uint32_t* nodes, uint32_t* count) {
  const uint32_t local = Find(tree, id, *count);
  if (local < *count) return local;
  nodes[local] = id;
  trees_[local] = tree;
  ++*count;
  return local;
}

}  // namespace gnnd
