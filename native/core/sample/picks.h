#pragma once

#include <cstdint>
#include <vector>

#include "core/base/cpu.h"
#include "core/sample/draw.h"

// Which positions of its row each node draws (draw.h), by two roads with one result: many rows at
// once, a vector lane per row, for small fanouts and degrees; row by row for all others.

namespace gnnd {

// Rows that are drawn together and travel through the sampler as one group.
inline constexpr uint32_t kGroupRows = 16;

// Largest fanout of the road by groups; its work per row grows with the fanout's square.
inline constexpr uint32_t kMaxGroupFanout = 32;

// Draws for kGroupRows rows. In: node ids and degrees (below kTwoWordDegree), both 64-byte aligned,
// fanout <= kMaxGroupFanout. Out: picks[j * kGroupRows + row] is pick j, a position in the row;
// entries j >= degree mean nothing (with replacement: all of a row of degree 0). 64-byte aligned.
using PickGroupFn = void (*)(const DrawStream& stream, const uint32_t* nodes,
                             const uint32_t* degrees, uint32_t fanout, uint32_t* picks);

// The function for an instruction set, which the machine must have.
PickGroupFn PickGroupFor(InstructionSet set, bool replace);

// Draws of a row by group with replacement from an alias table (weighted.h): of the largest fanout.
inline constexpr uint32_t kMaxAliasDraws = kMaxGroupFanout + kMaxGroupFanout / 2;

// Sampling by edge weight, kGroupRows rows at once.
struct AliasKernels {
  // Draws 0 to draws - 1 of rows with these degrees: slots[j * kGroupRows + row] and the word that
  // goes against its threshold. All pointers 64-byte aligned.
  void (*draw)(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
               uint32_t draws, uint32_t* slots, uint32_t* words);
  // Bit r of repeats[j]: picks[j * kGroupRows + r] equals picks[i * kGroupRows + r], an i < j.
  void (*find_repeats)(const uint32_t* picks, uint32_t draws, uint16_t* repeats);
};

AliasKernels AliasKernelsFor(InstructionSet set);

// Draws row by row, any degree and fanout.
class RowPicker {
 public:
  explicit RowPicker(uint32_t max_fanout);

  // Writes `fanout` positions of a row with degree > fanout.
  void Pick(const DrawStream& stream, uint32_t node, uint64_t degree, uint32_t fanout,
            uint64_t* picks);
  // Writes `fanout` positions of a row with degree > 0, with replacement.
  static void PickWithReplacement(const DrawStream& stream, uint32_t node, uint64_t degree,
                                  uint32_t fanout, uint64_t* picks);
  uint64_t bytes() const { return taken_.size() * sizeof(uint64_t); }

 private:
  bool Take(uint64_t position);

  std::vector<uint64_t> taken_;  // open addressing, at most half full; empty between rows
  uint32_t shift_;
};

#if defined(__x86_64__)
void DrawAliasAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                   uint32_t draws, uint32_t* slots, uint32_t* words);
void FindRepeatsAvx2(const uint32_t* picks, uint32_t draws, uint16_t* repeats);
void PickGroupAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                   uint32_t fanout, uint32_t* picks);
void PickGroupReplaceAvx2(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                          uint32_t fanout, uint32_t* picks);
void DrawAliasAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t draws, uint32_t* slots, uint32_t* words);
void FindRepeatsAvx512(const uint32_t* picks, uint32_t draws, uint16_t* repeats);
void PickGroupAvx512(const DrawStream& stream, const uint32_t* nodes, const uint32_t* degrees,
                     uint32_t fanout, uint32_t* picks);
void PickGroupReplaceAvx512(const DrawStream& stream, const uint32_t* nodes,
                            const uint32_t* degrees, uint32_t fanout, uint32_t* picks);
#endif

}  // namespace gnnd
