#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/philox.h"
#include "core/draw/stream.h"

// Draws of a seed's own tree (core/sample/temporal_sampler.h). The counter has no field for a tree,
// so each has a key of its own, derived from that of its relation. A row's words then depend on the
// tree's number, the hop, the relation and the node: not on its place in the batch, which follows
// from what other trees found. Frozen like all of core/draw.

namespace gnnd {

// The purpose of keys of trees; as those in purpose.h, no other use has its number.
inline constexpr auto kTreeKey = static_cast<Purpose>(242);

GNND_HD PhiloxKey TreeKey(PhiloxKey key, uint32_t tree) { return DerivedKey(key, kTreeKey, tree); }

// `stream` is that of the hop and relation.
GNND_HD DrawStream TreeStreamOf(const DrawStream& stream, uint32_t tree) {
  return DrawStream{TreeKey(stream.key, tree), stream.counter};
}

}  // namespace gnnd
