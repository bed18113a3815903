#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/philox.h"

// The epoch's order of training nodes as a function: no process holds or sends a shuffled list.
//
// A balanced Feistel network over the smallest even number of bits that holds n is a bijection of
// [0, 4^half); walking its cycle until the value is below n again makes it one of [0, n). At most
// 4 n values share the domain, so a walk takes fewer than four steps on average. Frozen, because it
// decides which nodes make up a batch: round r of value R takes word 0 of Philox with purpose
// kPermutation, hop = r, node = R, batch 0, block 0.
//
// core/item/permute.h permutes a range of positions at once, by vectors.

namespace gnnd {

inline constexpr uint32_t kPermutationRounds = 8;

// Bits of either half of the network over [0, n).
GNND_HD uint32_t PermutationHalfBits(uint32_t n) {
  uint32_t half_bits = 1;
  while (half_bits < 16 && (uint64_t{1} << (2 * half_bits)) < n) ++half_bits;
  return half_bits;
}

// The value at `position` of a keyed permutation of [0, n); position < n.
GNND_HD uint32_t PermutedIndex(PhiloxKey key, uint32_t epoch, uint32_t n, uint32_t position) {
  const uint32_t half_bits = PermutationHalfBits(n);
  const uint32_t mask = (uint32_t{1} << half_bits) - 1;
  uint32_t value = position;
  do {
    uint32_t left = value >> half_bits;
    uint32_t right = value & mask;
    for (uint32_t round = 0; round < kPermutationRounds; ++round) {
      const PhiloxWords words =
          Philox(key, CounterOf(Purpose::kPermutation, epoch, 0, round, right, 0));
      const uint32_t next = left ^ (words.word[0] & mask);
      left = right;
      right = next;
    }
    value = left << half_bits | right;
  } while (value >= n);
  return value;
}

// The position of a value: the same walk backwards. value < n.
GNND_HD uint32_t PositionOfIndex(PhiloxKey key, uint32_t epoch, uint32_t n, uint32_t value) {
  const uint32_t half_bits = PermutationHalfBits(n);
  const uint32_t mask = (uint32_t{1} << half_bits) - 1;
  uint32_t position = value;
  do {
    uint32_t left = position >> half_bits;
    uint32_t right = position & mask;
    for (uint32_t round = kPermutationRounds; round-- > 0;) {
      const PhiloxWords words =
          Philox(key, CounterOf(Purpose::kPermutation, epoch, 0, round, left, 0));
      const uint32_t before = right ^ (words.word[0] & mask);
      right = left;
      left = before;
    }
    position = left << half_bits | right;
  } while (position >= n);
  return position;
}

}  // namespace gnnd
