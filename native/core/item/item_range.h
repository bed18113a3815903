#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/draw/batch_key.h"
#include "core/draw/philox.h"
#include "core/item/permute.h"

// An *item* is what an epoch permutes and a batch counts: today a training node, or a row of a
// propagation. A batch is a range of positions in the epoch's order of items, and which items stand
// there is a pure function of the batch's key: no process holds or sends a shuffled list.

namespace gnnd {

// Batches of an epoch; the last one may be short.
inline uint32_t NumBatches(uint32_t num_items, uint32_t batch_size) {
  return static_cast<uint32_t>((uint64_t{num_items} + batch_size - 1) / batch_size);
}

// Positions [begin, end) of an epoch's order.
struct ItemRange {
  uint32_t begin = 0;
  uint32_t end = 0;

  uint32_t size() const { return end - begin; }

  // The range of a batch. REQUIRES: batch < NumBatches(num_items, batch_size).
  static ItemRange OfBatch(uint32_t batch, uint32_t batch_size, uint32_t num_items) {
    GNND_CHECK(batch < NumBatches(num_items, batch_size));
    const uint32_t begin = batch * batch_size;
    return {begin, begin + std::min(batch_size, num_items - begin)};
  }
};

// The keyed order of `num_items` items in an epoch (core/draw/permutation.h).
struct ItemOrder {
  uint64_t random_seed = 0;
  uint32_t epoch = 0;
  uint32_t num_items = 0;

  // Writes the items at these positions, range.size() of them. REQUIRES: range.end <= num_items.
  void Write(const ItemRange& range, uint32_t* items) const {
    BestLoops<PermuteLoops>().permute(KeyOf(random_seed), epoch, num_items, range.begin,
                                      range.size(), items);
  }
};

// The seeds of a batch whose items are training nodes. Replaces the content of *seeds. REQUIRES:
// key.batch < NumBatches(train_nodes.size(), batch_size).
inline void SeedsOf(const BatchKey& key, std::span<const uint32_t> train_nodes, uint32_t batch_size,
                    std::vector<uint32_t>* seeds) {
  const auto n = static_cast<uint32_t>(train_nodes.size());
  const ItemRange range = ItemRange::OfBatch(key.batch, batch_size, n);
  seeds->resize(range.size());
  ItemOrder{key.random_seed, key.epoch, n}.Write(range, seeds->data());
  for (uint32_t& seed : *seeds) seed = train_nodes[seed];
}

}  // namespace gnnd
