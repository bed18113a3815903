#pragma once

#include <cstdint>

#include "core/base/hd.h"
#include "core/draw/purpose.h"

// Keyed random numbers: Philox 4x32-10 (Salmon et al., SC'11), a counter-based generator.
//
// A draw depends on its key and counter alone; there is no state and no order of execution. The
// counter's fields are frozen, because they decide the bits of every sample and every model:
//
//   key      the job's 64-bit random seed (low word, high word)
//   word 0   node, low 32 bits
//   word 1   node, bits 32..43 (12 bits) << 20 | hop (4 bits) << 16 | block (16 bits)
//   word 2   batch index within the epoch
//   word 3   purpose (8 bits) << 24 | epoch (24 bits)
//
// One evaluation gives four 32-bit words; draw j of a node is word j % 4 of block j / 4. No lane,
// thread or group index ever enters the counter.
//
// Two things have no field there and get keys of their own, derived from the job's: blocks from
// 2^16 on (2^16 of them make a page), and relations. Page 0 and relation 0 use the job's key
// itself.

namespace gnnd {

inline constexpr uint32_t kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMul0 = 0xD2511F53U;
inline constexpr uint32_t kPhiloxMul1 = 0xCD9E8D57U;
inline constexpr uint32_t kPhiloxWeyl0 = 0x9E3779B9U;
inline constexpr uint32_t kPhiloxWeyl1 = 0xBB67AE85U;
inline constexpr uint32_t kPhiloxHopShift = 16;  // in word 1

struct PhiloxKey {
  uint32_t lo;
  uint32_t hi;
};

struct PhiloxCounter {
  uint32_t word[4];
};

struct PhiloxWords {
  uint32_t word[4];
};

GNND_HD PhiloxKey KeyOf(uint64_t random_seed) {
  return PhiloxKey{static_cast<uint32_t>(random_seed), static_cast<uint32_t>(random_seed >> 32)};
}

GNND_HD PhiloxCounter CounterOf(Purpose purpose, uint32_t epoch, uint32_t batch, uint32_t hop,
                                uint64_t node, uint32_t block) {
  return PhiloxCounter{{static_cast<uint32_t>(node),
                        static_cast<uint32_t>((node >> 32) & 0xFFFU) << 20 |
                            (hop & 0xFU) << kPhiloxHopShift | (block & 0xFFFFU),
                        batch, static_cast<uint32_t>(purpose) << 24 | (epoch & 0xFFFFFFU)}};
}

GNND_HD PhiloxWords Philox(PhiloxKey key, PhiloxCounter counter) {
  uint32_t c0 = counter.word[0];
  uint32_t c1 = counter.word[1];
  uint32_t c2 = counter.word[2];
  uint32_t c3 = counter.word[3];
  uint32_t k0 = key.lo;
  uint32_t k1 = key.hi;
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kPhiloxMul0) * c0;
    const uint64_t p1 = static_cast<uint64_t>(kPhiloxMul1) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kPhiloxWeyl0;
    k1 += kPhiloxWeyl1;
  }
  return PhiloxWords{{c0, c1, c2, c3}};
}

// Word `at` (0 to 3) of a block when `at` is not a compile-time constant: a choice among four
// registers, because a device cannot index registers.
GNND_HD uint32_t WordAt(const PhiloxWords& words, uint32_t at) {
  const uint32_t low = at % 2 == 0 ? words.word[0] : words.word[1];
  const uint32_t high = at % 2 == 0 ? words.word[2] : words.word[3];
  return at < 2 ? low : high;
}

// The key of number `index` of a kind: words 0 and 1 of Philox with the kind as purpose and the
// index as node, all else 0.
GNND_HD PhiloxKey DerivedKey(PhiloxKey key, Purpose kind, uint32_t index) {
  const PhiloxWords words = Philox(key, CounterOf(kind, 0, 0, 0, index, 0));
  return PhiloxKey{words.word[0], words.word[1]};
}

GNND_HD PhiloxKey RelationKey(PhiloxKey key, uint32_t relation) {
  return relation == 0 ? key : DerivedKey(key, Purpose::kRelationKey, relation);
}

inline constexpr uint32_t kPageBlocks = 1U << 16;

GNND_HD PhiloxKey PageKey(PhiloxKey key, uint32_t page) {
  return page == 0 ? key : DerivedKey(key, Purpose::kPageKey, page);
}

// Uniform in [0, bound) by multiply-high; bias below bound / 2^32.
GNND_HD uint32_t BoundedDraw(uint32_t word, uint32_t bound) {
  return static_cast<uint32_t>((static_cast<uint64_t>(word) * bound) >> 32);
}

// Uniform in [0, 1), 24 bits, exact in float32.
GNND_HD float UnitDraw(uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24F; }

}  // namespace gnnd
