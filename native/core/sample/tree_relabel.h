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
  uint32_t Insert(uint32_t tree, uint32_t id, uint32_t* nodes, uint32_t* count);

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
  uint32_t Find(uint32_t tree, uint32_t id, uint32_t count);

  HugeArray<Entry> entries_;
  uint64_t capacity_ = 0;  // a power of two, at least twice the nodes in the table
  uint32_t shift_ = 0;
  uint64_t base_ = 1;            // base_ + count of the running batch <= 2^32
  std::vector<uint32_t> trees_;  // by local id
};

}  // namespace gnnd
