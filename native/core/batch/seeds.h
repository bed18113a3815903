#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/batch/permute.h"
#include "core/batch/record.h"

namespace gnnd {

// Batches of an epoch; the last may be short.
inline uint32_t NumBatches(uint32_t num_train_nodes, uint32_t batch_size) {
  return static_cast<uint32_t>((uint64_t{num_train_nodes} + batch_size - 1) / batch_size);
}

// The seeds of batch `key`: positions batch * batch_size .. of the epoch's keyed permutation of the
// training nodes. Replaces the content of *seeds; key.batch < NumBatches.
inline void SeedsOf(const BatchKey& key, std::span<const uint32_t> train_nodes, uint32_t batch_size,
                    std::vector<uint32_t>* seeds) {
  const auto n = static_cast<uint32_t>(train_nodes.size());
  GNND_CHECK(key.batch < NumBatches(n, batch_size));
  const uint32_t begin = key.batch * batch_size;
  const uint32_t end = begin + std::min(batch_size, n - begin);
  seeds->resize(end - begin);
  BestLoops<PermuteLoops>().permute(KeyOf(key.random_seed), key.epoch, n, begin, end - begin,
                                    seeds->data());
  for (uint32_t& seed : *seeds) seed = train_nodes[seed];
}

}  // namespace gnnd
