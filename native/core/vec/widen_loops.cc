#include "core/vec/vec.h"
#include "core/vec/widen.h"

namespace gnnd::GNND_SET {
namespace {

void WidenAll(const Half* from, uint64_t count, float* to) {
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(to + i, Load(from + i));
  if (i == count) return;
  const Tail tail = TailOf(static_cast<uint32_t>(count - i));
  Store(to + i, Load(from + i, tail), tail);
}

}  // namespace

const WidenLoops kWidenLoops = {WidenAll};

}  // namespace gnnd::GNND_SET
