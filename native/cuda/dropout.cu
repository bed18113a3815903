#include "core/kernels/dropout.h"
#include "cuda/elements.cuh"
#include "cuda/operators.h"

// Keyed dropout: one thread per Philox block, which covers four columns.

namespace gnnd::cuda {
namespace {

GNND_DEVICE bool IsBelowZero(float value) { return value < 0.0F; }
GNND_DEVICE bool IsBelowZero(double value) { return value < 0.0; }
GNND_DEVICE bool IsBelowZero(Bfloat16 value) { return ToFloat(value) < 0.0F; }

// Without dropout, ReLU alone: values below 0 become 0, the rest stays.
template <typename T>
GNND_KERNEL ReluRows(T* rows, uint64_t stride, uint32_t columns, uint32_t begin, uint32_t end) {
  const uint64_t elements = uint64_t{end - begin} * columns;
  for (uint64_t i = GridThread(); i < elements; i += GridThreads()) {
    T* const at = rows + (begin + i / columns) * stride + i % columns;
    if (IsBelowZero(*at)) *at = T{0};
  }
}

template <typename T, typename Scale>
GNND_KERNEL DropRows(DropoutRows<T, Scale> op, uint32_t begin, uint32_t end) {
  const DrawStream stream = DropoutStream(op.key, Purpose::kDropout);
  const uint32_t row_blocks = (op.columns + 3) / 4;
  const uint64_t blocks = uint64_t{end - begin} * row_blocks;
  for (uint64_t i = GridThread(); i < blocks; i += GridThreads()) {
    const uint64_t row = begin + i / row_blocks;
    const auto block = static_cast<uint32_t>(i % row_blocks);
    const PhiloxWords words = RowWords(stream, op.nodes[row], block);
    T* const elements = op.rows + row * op.stride + block * 4;
    GNND_UNROLL
    for (uint32_t k = 0; k < 4; ++k) {
      if (block * 4 + k >= op.columns) continue;
      const Scale value = LoadAs(elements + k);
      // Keeps a NaN, which is not <= 0.
      const bool survives = words.word[k] >= op.threshold && !(op.relu && value <= Scale{0});
      StoreAs(elements + k, survives ? value * op.scale : Scale{0});
    }
  }
}

template <typename T, typename Scale>
GNND_KERNEL SelectScaled(const T* out, const T* grad, uint64_t count, Scale scale, T* grad_in) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) {
    const bool survived = LoadAs(out + i) != Scale{0};
    StoreAs(grad_in + i, survived ? scale * LoadAs(grad + i) : Scale{0});
  }
}

template <typename T, typename Scale>
void Run(const Queue& queue, const DropoutRows<T, Scale>& op, uint32_t begin, uint32_t end) {
  if (op.threshold == 0) {
    if (!op.relu) return;
    LaunchFor(queue, uint64_t{end - begin} * op.columns, ReluRows<T>, op.rows, op.stride,
              op.columns, begin, end);
    return;
  }
  LaunchFor(queue, uint64_t{end - begin} * ((op.columns + 3) / 4), DropRows<T, Scale>, op, begin,
            end);
}

}  // namespace

void RunDropout(const Queue& queue, const DropoutRows<float>& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunDropout(const Queue& queue, const DropoutRows<double>& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}
void RunDropout(const Queue& queue, const DropoutBfloat16& op, uint32_t begin, uint32_t end) {
  Run(queue, op, begin, end);
}

void DropoutGradient(const Queue& queue, const float* out, const float* grad, uint64_t count,
                     float scale, float* grad_in) {
  LaunchFor(queue, count, SelectScaled<float, float>, out, grad, count, scale, grad_in);
}
void DropoutGradient(const Queue& queue, const double* out, const double* grad, uint64_t count,
                     double scale, double* grad_in) {
  LaunchFor(queue, count, SelectScaled<double, double>, out, grad, count, scale, grad_in);
}
void DropoutGradient(const Queue& queue, const Bfloat16* out, const Bfloat16* grad, uint64_t count,
                     float scale, Bfloat16* grad_in) {
  LaunchFor(queue, count, SelectScaled<Bfloat16, float>, out, grad, count, scale, grad_in);
}

}  // namespace gnnd::cuda
