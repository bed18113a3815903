#pragma once

#include <cstddef>
#include <span>

#include "core/batch/layout.h"
#include "core/batch/record.h"

namespace gnnd {

// Writes a batch's pairs to their places in the slot. The entry is all 0 for a batch of nodes.
PairEntry WritePairs(const PairsView& pairs, const PairLayout& place, std::span<std::byte> slot);

}  // namespace gnnd
