#include "cuda/elements.cuh"
#include "cuda/groups.cuh"
#include "cuda/operators.h"

// Training's operators over rows and edges, except sums over edges, dropout and attention, as in
// train/ops/cpu_operators.cc.

namespace gnnd::cuda {
namespace {

// One thread per destination adds in the order of its edges.
GNND_KERNEL ScalesOfRows(MeanScalesTask task) {
  for (uint64_t d = GridThread(); d < task.num_dst; d += GridThreads()) {
    const uint32_t begin = task.indptr[d];
    const uint32_t end = task.indptr[d + 1];
    float sum = task.weight == nullptr ? static_cast<float>(end - begin) : 0.0F;
    for (uint32_t e = begin; task.weight != nullptr && e < end; ++e) sum += task.weight[e];
    const float scale = sum > 0.0F ? 1.0F / sum : 0.0F;
    task.scale[d] = scale;
    for (uint32_t e = begin; task.scaled != nullptr && e < end; ++e) {
      task.scaled[e] = scale * task.weight[e];
    }
  }
}

template <typename From, typename To>
GNND_KERNEL ConvertAll(const From* from, uint64_t count, To* to) {
  for (uint64_t i = GridThread(); i < count; i += GridThreads()) StoreAs(to + i, LoadAs(from + i));
}

template <typename T>
struct ElementsOfRows {
  const T* rows;
  uint64_t columns;

  GNND_DEVICE float At(uint64_t row, uint64_t column) const {
    return LoadAs(rows + row * columns + column);
  }
};

}  // namespace

void MeanScales(const Queue& queue, const MeanScalesTask& task) {
  LaunchFor(queue, task.num_dst, ScalesOfRows, task);
}

void Convert(const Queue& queue, const float* from, uint64_t count, Bfloat16* to) {
  LaunchFor(queue, count, ConvertAll<float, Bfloat16>, from, count, to);
}
void Convert(const Queue& queue, const Bfloat16* from, uint64_t count, float* to) {
  LaunchFor(queue, count, ConvertAll<Bfloat16, float>, from, count, to);
}
void Convert(const Queue& queue, const Half* from, uint64_t count, float* to) {
  LaunchFor(queue, count, ConvertAll<Half, float>, from, count, to);
}
void Convert(const Queue& queue, const Half* from, uint64_t count, Bfloat16* to) {
  LaunchFor(queue, count, ConvertAll<Half, Bfloat16>, from, count, to);
}

uint64_t SumFloats(uint64_t rows, uint64_t columns) { return GroupsOf(rows) * columns; }

void SumRows(const Queue& queue, const float* rows, uint32_t count, uint64_t columns,
             float* partial, float* out) {
  SumRowsInGroups(queue, ElementsOfRows<float>{rows, columns}, count, columns, partial, out);
}
void SumRows(const Queue& queue, const Bfloat16* rows, uint32_t count, uint64_t columns,
             float* partial, float* out) {
  SumRowsInGroups(queue, ElementsOfRows<Bfloat16>{rows, columns}, count, columns, partial, out);
}

}  // namespace gnnd::cuda
