#pragma once

#include <cstdint>

#include "core/vec/dispatch.h"

// Keyed dropout. Whether an element survives depends on (random seed, epoch, batch, layer, node,
// column) alone: column c of a node's row takes word c % 4 of Philox block c / 4 under
// Purpose::kDropout, with the layer as the hop. It survives when UnitDraw(word) >= p. So a node has
// one mask row per layer of a batch, wherever and in whatever order the rows are computed.

namespace gnnd {

// What the masks of one layer of one batch depend on. Layer l masks the input of layer l: 0 is for
// input features, l >= 1 for the output of layer l - 1.
struct DropoutKey {
  uint64_t random_seed = 0;
  uint32_t epoch = 0;
  uint32_t batch = 0;
  uint32_t layer = 0;
};

// An operation in place: rows[r][c] = survives(nodes[r], c) ? scale * rows[r][c] : 0, where with
// `relu` elements <= 0 do not survive either. A NaN is kept by the latter (it must reach the loss).
template <typename T>
struct DropoutRows {
  DropoutKey key;
  const uint32_t* nodes = nullptr;  // global ids
  T* rows = nullptr;
  uint64_t stride = 0;
  uint32_t columns = 0;
  uint64_t threshold = 0;  // a word survives when >= threshold; 0 = all do
  T scale = T{1};
  bool relu = false;
};

// The threshold of DropoutRows for dropout probability `p` in [0, 1): exactly UnitDraw(word) >= p.
uint64_t DropoutThreshold(float p);

// Rows [begin, end) of the operation, with the best variant this machine has.
void RunDropout(const DropoutRows<float>& op, uint32_t begin, uint32_t end);
void RunDropout(const DropoutRows<double>& op, uint32_t begin, uint32_t end);

struct DropoutLoops {
  // Where the threshold is not 0.
  void (*run)(const DropoutRows<float>& op, uint32_t begin, uint32_t end);
};
GNND_DECLARE_LOOPS(DropoutLoops, kDropoutLoops);

// With an instruction set, which the machine must have.
const DropoutLoops& DropoutFor(InstructionSet set);

}  // namespace gnnd
