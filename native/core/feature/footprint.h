#pragma once

#include <cstdint>
#include <span>

// Measures of footprints for the cache report. A footprint counts, per node, the batches of an
// epoch (or of several) that have it among their inputs, and so read its row.

namespace gnnd {

// Sum of `footprint` over the first `cache_rows` nodes of `order`: the reads that hit a cache.
uint64_t HitsOf(std::span<const uint32_t> footprint, std::span<const uint32_t> order,
                uint64_t cache_rows);

// How much of epoch j's hottest tenth epoch i predicts (GNNLab, section 6.2). With T_x as the
// floor(num_nodes / 10), at least one, nodes counted most in epoch x (ties by id):
//
//   sum over T_i and T_j of min(f_i, f_j) / sum over T_j of f_j.
//
// In [0, 1], 1 for an epoch with itself, not symmetric; 0 when j counted nothing.
double Similarity(std::span<const uint32_t> footprint_i, std::span<const uint32_t> footprint_j);

}  // namespace gnnd
