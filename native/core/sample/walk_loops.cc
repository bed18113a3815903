#include "core/draw/philox_lanes.h"
#include "core/sample/walk.h"
#include "core/vec/vec.h"

namespace gnnd::GNND_SET {
namespace {

static_assert(kWalkLanes == kLanes);

void DrawWalks(const DrawStream& stream, const uint32_t* nodes, const uint32_t* blocks,
               uint32_t count, WalkWords words) {
  for (uint32_t i = 0; i < count; i += kLanes) {
    const WideWords drawn =
        PhiloxLanes(stream.key, stream.counter, Widen(Load(nodes + i)), Widen(Load(blocks + i)));
    Store(words.low + i, Narrow(drawn.word[0]));
    Store(words.high + i, Narrow(drawn.word[1]));
    Store(words.end + i, Narrow(drawn.word[2]));
  }
}

// Bit i of the result: element i equals `value`.
uint64_t EqualTo(const uint32_t* values, uint32_t size, uint32_t value) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < size; i += kLanes) {
    bits |= uint64_t{Bits(Equal(Load(values + i), Broadcast(value)))} << i;
  }
  return bits;
}
uint64_t Above(const uint32_t* values, uint32_t size, uint32_t value) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < size; i += kLanes) {
    bits |= uint64_t{Bits(Below(Broadcast(value), Load(values + i)))} << i;
  }
  return bits;
}

uint32_t CountOf(uint64_t bits) { return static_cast<uint32_t>(__builtin_popcountll(bits)); }

// Compares all visits with each other, without branches on their values: a node's key is at its
// first visit, and the number of larger keys is the key's place.
uint32_t TopVisits(const uint32_t* visits, uint32_t size, uint32_t most, uint32_t* nodes,
                   float* counts) {
  alignas(64) uint32_t keys[kMaxPairVisits];
  uint32_t distinct = 0;
  for (uint32_t i = 0; i < size; ++i) {
    const uint64_t same = EqualTo(visits, size, visits[i]);
    const bool first = visits[i] != kNoVisit && (same & ((uint64_t{1} << i) - 1)) == 0;
    keys[i] = first ? CountOf(same) << 16 | (kVisitPlaceMask - i) : 0;
    distinct += first ? 1 : 0;
  }
  uint32_t ordered_nodes[kMaxPairVisits + 1];
  float ordered_counts[kMaxPairVisits + 1];
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t place = keys[i] == 0 ? kMaxPairVisits : CountOf(Above(keys, size, keys[i]));
    ordered_nodes[place] = visits[i];
    ordered_counts[place] = static_cast<float>(keys[i] >> 16);
  }
  const uint32_t found = distinct < most ? distinct : most;
  for (uint32_t k = 0; k < found; ++k) {
    nodes[k] = ordered_nodes[k];
    counts[k] = ordered_counts[k];
  }
  return found;
}

}  // namespace

const WalkLoops kWalkLoops = {DrawWalks, TopVisits};

}  // namespace gnnd::GNND_SET
