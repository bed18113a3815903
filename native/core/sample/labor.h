#pragma once

#include <cstdint>

#include "core/draw/labor.h"
#include "core/vec/dispatch.h"

namespace gnnd {

struct LaborLoops {
  // Copies the ids whose number is below the threshold to `kept`, in order, and returns how many
  // they are. May write kLaborSlack more.
  uint32_t (*filter)(const LaborKeys& keys, uint32_t threshold, const uint32_t* ids, uint32_t size,
                     uint32_t* kept);
};
GNND_DECLARE_LOOPS(LaborLoops, kLaborLoops);
inline constexpr uint32_t kLaborSlack = 16;

}  // namespace gnnd
