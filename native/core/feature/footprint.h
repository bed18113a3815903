#pragma once

#include <cstdint>
#include <span>

// Figures about footprints, of which the cache report is made. A footprint counts, per node, the
// batches of an epoch (or of several) that have it among their inputs: rows that extraction reads.

namespace gnnd {

// Rows of `footprint` that lie among the first `cache_rows` of `order`.
uint64_t HitsOf(std::span<const uint32_t> footprint, std::span<const uint32_t> order,
                uint64_t cache_rows);

// How much of epoch j's hottest tenth epoch i predicts (GNNLab, section 6.2): with T_x the
// floor(num_nodes / 10), at least one, nodes counted most in x (ties by id),
//
//   sum over T_i and T_j of min(f_i, f_j) / sum over T_j of f_j.
//
// In [0, 1], 1 for an epoch with itself, not symmetric; 0 when j counted nothing.
double Similarity(std::span<const uint32_t> footprint_i, std::span<const uint32_t> footprint_j);

}  // namespace gnnd
