#pragma once

#include <cstdint>

#include "core/draw/philox.h"

namespace gnnd {

// The random seed of draws for nodes of a type, whose ids are those of other types too: that of the
// job for type 0, and derived from it like a relation's key (philox.h) for others. Frozen.
GNND_HD uint64_t SeedOfType(uint64_t random_seed, uint32_t type) {
  if (type == 0) return random_seed;
  const PhiloxKey key = RelationKey(KeyOf(random_seed), type);
  return uint64_t{key.hi} << 32 | key.lo;
}

}  // namespace gnnd
