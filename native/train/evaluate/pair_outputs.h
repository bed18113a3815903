#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "train/evaluate/pair_phase.h"
#include "train/layers/link_head.h"

namespace gnnd {

// What a head gives of pairs, [pairs, 2]: contiguous, [pairs, outputs]. Valid until `memory` is
// reset.
at::Tensor OutputsOfPairs(const PairHead& head, const PairPhase::Rows& rows,
                          std::span<const uint32_t> pairs, Workspace* memory);

// The nodes of pairs, each once, ascending.
std::vector<uint32_t> EndsOf(std::span<const uint32_t> pairs, uint32_t num_nodes);

}  // namespace gnnd
