#include "core/executor/predictions.h"

#include <cstring>

#include "core/kernels/loss.h"

namespace gnnd {
namespace {

template <typename T>
void Put(T value, std::vector<std::byte>* to) {
  const size_t at = to->size();
  to->resize(at + sizeof(value));
  std::memcpy(to->data() + at, &value, sizeof(value));
}

}  // namespace

NpyType Predictions::type() const {
  if (task_ == Task::kMultiLabel) return NpyType::kUint8;
  return task_ == Task::kRegression ? NpyType::kFloat32 : NpyType::kInt64;
}

std::vector<uint64_t> Predictions::ShapeOf(uint64_t nodes) const {
  if (task_ == Task::kClassification) return {nodes};
  return {nodes, outputs_};
}

uint64_t Predictions::bytes_per_node() const {
  return BytesOf(type()) * (task_ == Task::kClassification ? 1 : outputs_);
}

void Predictions::Append(std::span<const float> outputs, std::vector<std::byte>* to) const {
  for (size_t at = 0; at < outputs.size(); at += outputs_) {
    const auto row = outputs.subspan(at, outputs_);
    if (task_ == Task::kClassification) {
      Put(static_cast<int64_t>(ArgMax(row)), to);
      continue;
    }
    for (const float output : row) {
      if (task_ == Task::kRegression) Put(output, to);
      if (task_ == Task::kMultiLabel) Put(static_cast<uint8_t>(output > 0 ? 1 : 0), to);
    }
  }
}

}  // namespace gnnd
