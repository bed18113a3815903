#pragma once

#include <cstdint>

#include "core/base/bfloat16.h"
#include "core/draw/dropout.h"
#include "core/vec/dispatch.h"

namespace gnnd {

// Dropout of a hidden layer (core/draw/dropout.h), in place: rows[r][c] = survives(nodes[r], c) ?
// scale * rows[r][c] : 0; with `relu`, elements <= 0 do not survive either. ReLU keeps a NaN (it
// must reach the loss). Rows in bfloat16 are scaled in float32 and rounded once.
template <typename T, typename Scale = T>
struct DropoutRows {
  DropoutKey key;
  const uint32_t* nodes = nullptr;  // global ids
  T* rows = nullptr;
  uint64_t stride = 0;
  uint32_t columns = 0;
  uint64_t threshold = 0;  // from DropoutThreshold
  Scale scale = Scale{1};
  bool relu = false;
};
using DropoutBfloat16 = DropoutRows<Bfloat16, float>;

// Runs rows [begin, end) of the operation, with the best variant for this machine.
void RunDropout(const DropoutRows<float>& op, uint32_t begin, uint32_t end);
void RunDropout(const DropoutRows<double>& op, uint32_t begin, uint32_t end);
void RunDropout(const DropoutBfloat16& op, uint32_t begin, uint32_t end);

struct DropoutLoops {
  // REQUIRES: threshold > 0.
  void (*run)(const DropoutRows<float>& op, uint32_t begin, uint32_t end);
  void (*run_bfloat16)(const DropoutBfloat16& op, uint32_t begin, uint32_t end);
};
GNND_DECLARE_LOOPS(DropoutLoops, kDropoutLoops);

}  // namespace gnnd
