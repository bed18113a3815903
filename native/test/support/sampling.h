#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/base/cpu.h"
#include "core/batch/layout.h"
#include "core/batch/record.h"
#include "core/sample/sampler.h"
#include "test/support/graphs.h"

// A sampler with a slot of its own, and what tests ask of the records it makes.

namespace gnnd::test {

inline RecordLayout LayoutFor(const TopologyView& topology, const SamplerOptions& options,
                              uint32_t batch_size) {
  const Result<RecordLayout> layout =
      RecordLayout::Of(LimitsOf(topology.num_nodes(), topology.num_edges(), batch_size, options));
  REQUIRE_MESSAGE(layout.ok(), layout.status().message());
  return *layout;
}

class SamplerUnderTest {
 public:
  SamplerUnderTest(const TopologyView& topology, const SamplerOptions& options, uint32_t batch_size,
                   InstructionSet set, PrefetchLevel prefetch = BestPrefetchLevel())
      : layout_(LayoutFor(topology, options, batch_size)),
        sampler_(topology, options, layout_, set, prefetch),
        slot_(layout_.slot_bytes(), std::byte{0xA5}) {}

  Status TrySample(const BatchKey& key, std::span<const uint32_t> seeds,
                   uint32_t scale = kScaleOne) {
    return sampler_.Sample(key, seeds, slot_, scale);
  }
  // A batch of links: its rows may do without neighbours.
  gnnd::Sample Sample(const BatchKey& key, std::span<const uint32_t> seeds,
                      const LinkBatch& links) {
    const Status status = sampler_.Sample(key, seeds, slot_, kScaleOne, links);
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Result<gnnd::Sample> sample = OpenRecord(slot_, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    return *sample;
  }
  // The view is valid until the next call.
  gnnd::Sample Sample(const BatchKey& key, std::span<const uint32_t> seeds,
                      uint32_t scale = kScaleOne) {
    const Status status = TrySample(key, seeds, scale);
    REQUIRE_MESSAGE(status.ok(), status.message());
    const Result<gnnd::Sample> sample = OpenRecord(slot_, true);
    REQUIRE_MESSAGE(sample.ok(), sample.status().message());
    return *sample;
  }
  const std::vector<std::byte>& slot() const { return slot_; }
  std::vector<std::byte>& slot() { return slot_; }
  const RecordLayout& layout() const { return layout_; }
  uint64_t workspace_bytes() const { return sampler_.workspace_bytes(); }

 private:
  RecordLayout layout_;
  Sampler sampler_;
  std::vector<std::byte> slot_;
};

// Writes header and tables as they are, whatever they say.
inline void CopyTables(const RecordTables& tables, std::span<std::byte> slot) {
  const auto copy = [&slot](std::span<const std::byte> bytes) {
    REQUIRE(bytes.size() <= slot.size());
    std::copy(bytes.begin(), bytes.end(), slot.begin());
    slot = slot.subspan(bytes.size());
  };
  copy(std::as_bytes(std::span(&tables.header, 1)));
  copy(std::as_bytes(std::span(tables.nodes)));
  copy(std::as_bytes(std::span(tables.blocks)));
}

// FNV-1a over everything a Trainer reads, offsets aside.
inline uint64_t ContentHash(const Sample& sample) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](uint32_t word) { hash = (hash ^ word) * 0x100000001B3; };
  const auto add_all = [&add](const auto& values) {
    add(static_cast<uint32_t>(values.size()));
    for (const auto value : values) add(std::bit_cast<uint32_t>(value));
  };
  add_all(sample.nodes());
  for (uint32_t hop = 0; hop < sample.num_hops(); ++hop) {
    const BlockView block = sample.block(hop);
    add_all(block.indptr);
    add_all(block.src);
    add_all(block.weight);
    add_all(block.self_weight);
  }
  return hash;
}

}  // namespace gnnd::test
