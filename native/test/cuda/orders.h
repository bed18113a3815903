#pragma once

#include <cstdint>

#include "cuda/shim/shim.h"

namespace gnnd::test {

// run(order) in the plain order, 0, and in shuffled ones with other poison; in fewer under
// sanitizers, which are slow. A race shows to ThreadSanitizer in any order.
template <typename Run>
void InOrders(const Run& run) {
#if defined(__SANITIZE_THREAD__)
  constexpr uint32_t kOrders = 1;
#elif defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kOrders = 2;
#else
  constexpr uint32_t kOrders = 3;
#endif
  for (uint32_t order = 0; order < kOrders; ++order) {
    const auto poison = static_cast<uint8_t>(order == 1 ? 0x5A : 0xA5);
    shim::SetOptions({.shuffled = order > 0, .random_seed = order + 1, .poison = poison});
    run(order);
  }
  shim::SetOptions({});
}

}  // namespace gnnd::test
