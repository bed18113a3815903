#include "core/sample/relabel.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gnnd {
namespace {

constexpr uint64_t kFirstCapacity = uint64_t{1} << 16;

// Twice as many slots as ids keeps probes short.
uint64_t CapacityFor(uint64_t ids) { return std::bit_ceil(std::max<uint64_t>(2 * ids, 2)); }

}  // namespace

void DenseRelabel::Begin(uint32_t max_nodes) {
  if (base_ + max_nodes <= kTagEnd) return;
  std::memset(entries_.data(), 0, bytes());
  base_ = 1;
}

uint32_t DenseRelabel::InsertAll(const uint32_t* ids, uint32_t size, uint32_t* nodes,
                                 uint32_t count, uint32_t* local_ids) {
  uint32_t* const entries = entries_.data();
  const auto base = static_cast<uint32_t>(base_);
  // Free of branches, because no predictor could guess whether an id is new.
  for (uint32_t k = 0; k < size; ++k) {
    const uint32_t id = ids[k];
    const uint32_t known = entries[id] - base;
    const bool is_new = known >= count;
    const uint32_t local = is_new ? count : known;
    entries[id] = base + local;
    nodes[count] = id;
    count += is_new ? 1 : 0;
    local_ids[k] = local;
  }
  return count;
}

HashRelabel::HashRelabel(uint32_t max_nodes, uint32_t first_base)
    : entries_(CapacityFor(max_nodes)), base_(first_base), max_nodes_(max_nodes) {
  SetCapacity(std::min(kFirstCapacity, entries_.size()));
}

void HashRelabel::SetCapacity(uint64_t capacity) {
  capacity_ = capacity;
  shift_ = 64 - static_cast<uint32_t>(std::countr_zero(capacity));
}

void HashRelabel::Begin(uint32_t max_nodes) {
  if (base_ + max_nodes <= kTagEnd) return;
  std::memset(static_cast<void*>(entries_.data()), 0, bytes());
  base_ = 1;
}

uint32_t HashRelabel::InsertAll(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                                uint32_t* local_ids) {
  const uint64_t most = std::min<uint64_t>(uint64_t{count} + size, max_nodes_);
  while (capacity_ < 2 * most) Grow(nodes, count);
  return Insert(ids, size, nodes, count, local_ids);
}

// Moves all ids so far to tags of a new base, so that old entries read as free.
void HashRelabel::Grow(uint32_t* nodes, uint32_t count) {
  End(count);
  Begin(max_nodes_);
  SetCapacity(capacity_ * 2);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t local = 0;
    Insert(nodes + i, 1, nodes, i, &local);
  }
}

uint32_t HashRelabel::Insert(const uint32_t* ids, uint32_t size, uint32_t* nodes, uint32_t count,
                             uint32_t* local_ids) {
  Entry* const entries = entries_.data();
  const auto base = static_cast<uint32_t>(base_);
  const uint64_t mask = capacity_ - 1;
  for (uint32_t k = 0; k < size; ++k) {
    const uint32_t id = ids[k];
    uint64_t slot = Slot(id);
    uint32_t local = entries[slot].tag - base;
    while (local < count && entries[slot].id != id) {
      slot = (slot + 1) & mask;
      local = entries[slot].tag - base;
    }
    if (local >= count) {
      local = count;
      entries[slot] = Entry{id, base + local};
      nodes[count] = id;
      ++count;
    }
    local_ids[k] = local;
  }
  return count;
}

}  // namespace gnnd
