#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "test/support/reference.h"
#include "test/support/sampling.h"

namespace gnnd::test {

template <typename T>
bool SameBits(std::span<const T> actual, const std::vector<T>& expected) {
  return actual.size() == expected.size() &&
         std::equal(actual.begin(), actual.end(), expected.begin());
}

// Samples by every instruction set, by both relabel tables and with lines asked for into either
// cache; each must equal the reference.
inline void CheckEqualsReference(const TopologyView& topology, SamplerOptions options,
                                 const std::vector<std::vector<uint32_t>>& batches,
                                 uint64_t random_seed, uint32_t scale = kScaleOne) {
  uint32_t batch_size = 1;
  for (const auto& seeds : batches) {
    batch_size = std::max(batch_size, static_cast<uint32_t>(seeds.size()));
  }
  for (uint32_t batch = 0; batch < batches.size(); ++batch) {
    const BatchKey key{random_seed, 3, batch};
    const ReferenceSample expected = SampleReference(topology, options, key, batches[batch], scale);
    for (const InstructionSet set : AvailableInstructionSets()) {
      for (const uint64_t max_dense_table_bytes : {uint64_t{200'000'000}, uint64_t{0}}) {
        CAPTURE(std::string(NameOf(set)));
        CAPTURE(max_dense_table_bytes);
        options.max_dense_table_bytes = max_dense_table_bytes;
        const bool near = (max_dense_table_bytes == 0) == (batch % 2 == 0);
        SamplerUnderTest sampler(topology, options, batch_size, set,
                                 near ? PrefetchLevel::kL1 : PrefetchLevel::kL2);
        // Another batch first: what it leaves behind must not matter.
        sampler.Sample({random_seed, 2, batch}, batches[(batch + 1) % batches.size()], scale);
        const Sample sample = sampler.Sample(key, batches[batch], scale);
        REQUIRE(SameBits(sample.nodes(), expected.nodes));
        REQUIRE(sample.num_hops() == expected.blocks.size());
        for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
          CAPTURE(hop);
          const BlockView block = sample.block(hop);
          REQUIRE(SameBits(block.indptr, expected.blocks[hop].indptr));
          REQUIRE(SameBits(block.src, expected.blocks[hop].src));
          REQUIRE(SameBits(block.weight, expected.blocks[hop].weight));
          REQUIRE(SameBits(block.self_weight, expected.blocks[hop].self_weight));
        }
      }
    }
  }
}

}  // namespace gnnd::test
