#if defined(__x86_64__)

#include "train/attention_simd.h"

namespace gnnd {

void AttentionAvx2(const AttentionRows<float>& op, AttentionPass pass, uint32_t begin,
                   uint32_t end) {
  RunPass(op, pass, begin, end);
}

}  // namespace gnnd

#endif
