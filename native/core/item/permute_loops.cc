#include "core/draw/philox_lanes.h"
#include "core/item/permute.h"
#include "core/vec/vec.h"

namespace gnnd::GNND_SET {
namespace {

// Positions permuted at a time.
constexpr uint32_t kChunk = 1024;
// Vectors processed together: the network of one is a chain of 80 rounds of multiplications, each
// of which waits for the one before.
constexpr uint32_t kTogether = 2;
constexpr uint32_t kStep = kTogether * kLanes;

struct Network {
  PhiloxKey key;
  PhiloxCounter counter;  // the counter of round 0, node 0
  uint32_t half_bits;
};

// One step of the cycle walk, in place. Halves are in 64-bit lanes, whose upper parts stay 0.
GNND_VEC void Walk(const Network& network, U32x16 (&values)[kTogether]) {
  constexpr uint32_t kAll = kTogether * kWideParts;
  const WidePart mask = WideOf((1U << network.half_bits) - 1U);
  WidePart left[kAll];
  WidePart right[kAll];
  for (uint32_t v = 0; v < kTogether; ++v) {
    const Wide wide = Widen(values[v]);
    for (uint32_t p = 0; p < kWideParts; ++p) {
      left[v * kWideParts + p] = (wide.part[p] >> network.half_bits) & mask;
      right[v * kWideParts + p] = wide.part[p] & mask;
    }
  }
  for (uint32_t round = 0; round < kPermutationRounds; ++round) {
    const WidePart hop = WideOf(network.counter.word[1] | round << kPhiloxHopShift);
    for (uint32_t p = 0; p < kAll; ++p) {
      WidePart word[4] = {right[p], hop, WideOf(network.counter.word[2]),
                          WideOf(network.counter.word[3])};
      PhiloxRounds(network.key, word);
      const WidePart next = left[p] ^ (word[0] & mask);
      left[p] = right[p];
      right[p] = next;
    }
  }
  for (uint32_t v = 0; v < kTogether; ++v) {
    Wide wide;
    for (uint32_t p = 0; p < kWideParts; ++p) {
      const uint32_t at = v * kWideParts + p;
      wide.part[p] = left[at] << network.half_bits | right[at];
    }
    values[v] = Narrow(wide);
  }
}

// Permutes `size` <= kChunk positions. All values walk a step; those outside [0, n) move to the
// front and walk on, until none is left.
void PermuteChunk(const Network& network, uint32_t n, uint32_t first, uint32_t size,
                  uint32_t* out) {
  alignas(64) uint32_t walking[kChunk + kStep];
  alignas(64) uint32_t place[kChunk + kStep];  // place of each value in `out`
  alignas(64) uint32_t lane[kLanes];
  for (uint32_t i = 0; i < kLanes; ++i) lane[i] = i;
  for (uint32_t i = 0; i < size + kStep; ++i) {
    walking[i] = first + i;
    place[i] = i;
  }
  const U32x16 largest = Broadcast(n - 1U);
  for (uint32_t left = size; left > 0;) {
    uint32_t stay = 0;
    for (uint32_t i = 0; i < left; i += kStep) {
      U32x16 values[kTogether];
      U32x16 places[kTogether];
      for (uint32_t v = 0; v < kTogether; ++v) {
        values[v] = Load(walking + i + v * kLanes);
        places[v] = Load(place + i + v * kLanes);
      }
      Walk(network, values);
      for (uint32_t v = 0; v < kTogether; ++v) {
        const uint32_t from = i + v * kLanes;
        if (from >= left) break;
        // Unfinished values are written, too, and overwritten later.
        alignas(64) uint32_t now[kLanes];
        Store(now, values[v]);
        const uint32_t here = left - from < kLanes ? left - from : kLanes;
        for (uint32_t k = 0; k < here; ++k) out[place[from + k]] = now[k];
        const Mask16 outside = Below(largest, values[v]) & Below(Load(lane), Broadcast(here));
        CompressStore(walking + stay, outside, values[v]);
        stay += CompressStore(place + stay, outside, places[v]);
      }
    }
    left = stay;
  }
}

void Permute(PhiloxKey key, uint32_t epoch, uint32_t n, uint32_t first, uint32_t count,
             uint32_t* out) {
  const Network network{key, CounterOf(Purpose::kPermutation, epoch, 0, 0, 0, 0),
                        PermutationHalfBits(n)};
  for (uint32_t done = 0; done < count; done += kChunk) {
    const uint32_t size = count - done < kChunk ? count - done : kChunk;
    PermuteChunk(network, n, first + done, size, out + done);
  }
}

}  // namespace

const PermuteLoops kPermuteLoops = {Permute};

}  // namespace gnnd::GNND_SET
