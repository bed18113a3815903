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

}  // namespace gnnd
