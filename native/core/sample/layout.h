#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/sample/record.h"

// Where each section of a job's records lies (docs/formats/record.md). Computed once per job from
// what its largest possible sample could hold; every process that knows the limits computes the
// same layout. The result is a size in virtual memory: a record touches only what it fills.

namespace gnnd {

// Fanout of a hop that takes every in-neighbour.
inline constexpr int32_t kFullNeighbourhood = -1;

// Largest finite fanout: a group of 16 rows is in flight at once and must stay small.
inline constexpr int32_t kMaxFanout = 4096;

// What bounds a sample.
struct SampleLimits {
  uint32_t num_nodes = 0;
  uint64_t num_edges = 0;
  uint32_t batch_size = 0;       // seeds
  std::vector<int32_t> fanouts;  // hop 0 (at the seeds) first; kFullNeighbourhood takes all
  bool edge_weights = false;     // sections for edge and self weights
  bool hot_ranks = false;        // a section for the input nodes' hot ranks
};

// Bounds and section offsets (bytes from the record's start) of one hop's block.
struct HopLayout {
  uint32_t max_dst = 0;
  uint32_t max_edges = 0;
  uint64_t indptr_at = 0;
  uint64_t src_at = 0;
  uint64_t weight_at = 0;       // 0 without edge weights
  uint64_t self_weight_at = 0;  // 0 without edge weights
};

class RecordLayout {
 public:
  // Sections start on page boundaries, so that an untouched one costs no memory.
  static constexpr uint64_t kSectionAlignment = 4096;
  // Every section may be overrun by this much, so that writers need no care at its end.
  static constexpr uint64_t kSectionSlackBytes = 64;

  // kInvalidArgument names the limit that cannot be: no nodes or seeds, a number of hops outside
  // 1..kMaxHops, a fanout that is neither -1 nor 1..kMaxFanout, a bound that needs more than 32
  // bits.
  static Result<RecordLayout> Of(const SampleLimits& limits);

  uint64_t slot_bytes() const { return slot_bytes_; }
  uint32_t num_hops() const { return num_hops_; }
  uint32_t max_seeds() const { return hops_[0].max_dst; }
  uint32_t max_nodes() const { return max_nodes_; }
  uint64_t nodes_at() const { return nodes_at_; }
  uint64_t ranks_at() const { return ranks_at_; }  // 0 without hot ranks
  const HopLayout& hop(uint32_t index) const { return hops_[index]; }

 private:
  uint64_t AddSection(uint64_t elements);

  std::array<HopLayout, kMaxHops> hops_{};
  uint32_t num_hops_ = 0;
  uint32_t max_nodes_ = 0;
  uint64_t nodes_at_ = 0;
  uint64_t ranks_at_ = 0;
  uint64_t slot_bytes_ = 0;
};

}  // namespace gnnd
