#include "core/kernels/attention.h"

namespace gnnd {
namespace {

template <typename T>
void DropRow(const AttentionRows<T>& op, const DrawStream& stream, uint32_t node,
             uint64_t threshold, uint32_t r, T* weight) {
  const uint32_t edges = op.indptr[r + 1] - op.indptr[r];
  PhiloxWords words{};
  uint64_t draw = 0;
  for (uint64_t position = 0; position <= edges; ++position) {
    const uint64_t slot = position == 0 ? r : op.num_dst + op.indptr[r] + position - 1;
    for (uint32_t h = 0; h < op.heads; ++h, ++draw) {
      if (draw % 4 == 0) words = LongRowWords(stream, node, draw / 4);
      const uint64_t at = h * op.stride() + slot;
      weight[at] = words.word[draw % 4] >= threshold ? op.weight_scale * op.alpha[at] : T{0};
    }
  }
}

}  // namespace

template <typename T>
void DropAttention(const AttentionRows<T>& op, const DropoutKey& key, const uint32_t* nodes,
                   uint64_t threshold, uint32_t begin, uint32_t end, T* weight) {
  const DrawStream stream = DropoutStream(key, Purpose::kAttentionDropout);
  for (uint32_t r = begin; r < end; ++r) DropRow(op, stream, nodes[r], threshold, r, weight);
}

template void DropAttention(const AttentionRows<float>&, const DropoutKey&, const uint32_t*,
                            uint64_t, uint32_t, uint32_t, float*);
template void DropAttention(const AttentionRows<double>&, const DropoutKey&, const uint32_t*,
                            uint64_t, uint32_t, uint32_t, double*);

}  // namespace gnnd
