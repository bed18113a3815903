#include "core/vec/convert.h"
#include "core/vec/vec.h"

namespace gnnd::GNND_SET {
namespace {

template <typename From, typename To>
void ConvertAll(const From* from, uint64_t count, To* to) {
  uint64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(to + i, Load(from + i));
  if (i == count) return;
  const Tail tail = TailOf(static_cast<uint32_t>(count - i));
  Store(to + i, Load(from + i, tail), tail);
}

}  // namespace

const ConvertLoops kConvertLoops = {ConvertAll<Half, float>, ConvertAll<Bfloat16, float>,
                                    ConvertAll<float, Bfloat16>, ConvertAll<Half, Bfloat16>};

}  // namespace gnnd::GNND_SET
