#pragma once

#include "core/base/bfloat16.h"
#include "core/base/half.h"
#include "cuda/dev.h"

// Elements of rows in memory, and computing with them.

namespace gnnd::cuda {

GNND_DEVICE float LoadAs(const float* from) { return *from; }
GNND_DEVICE double LoadAs(const double* from) { return *from; }
GNND_DEVICE float LoadAs(const Half* from) { return ToFloat(*from); }
GNND_DEVICE float LoadAs(const Bfloat16* from) { return ToFloat(*from); }

// Loads a value that nobody changes while the kernel runs.
GNND_DEVICE float LoadConstAs(const float* from) { return LoadConst(from); }
GNND_DEVICE double LoadConstAs(const double* from) { return LoadConst(from); }
GNND_DEVICE float LoadConstAs(const Half* from) {
  return ToFloat(static_cast<Half>(LoadConst(reinterpret_cast<const uint16_t*>(from))));
}
GNND_DEVICE float LoadConstAs(const Bfloat16* from) {
  return ToFloat(static_cast<Bfloat16>(LoadConst(reinterpret_cast<const uint16_t*>(from))));
}

GNND_DEVICE void StoreAs(float* to, float value) { *to = value; }
GNND_DEVICE void StoreAs(double* to, double value) { *to = value; }
GNND_DEVICE void StoreAs(Bfloat16* to, float value) { *to = ToBfloat16(value); }

}  // namespace gnnd::cuda
