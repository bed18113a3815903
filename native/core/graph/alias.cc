#include "core/graph/alias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace gnnd {
namespace {

constexpr uint32_t kFull = std::numeric_limits<uint32_t>::max();

uint32_t ThresholdOf(uint64_t units, uint64_t slot_units) {
  if (units == 0) return 0;
  __extension__ using Wide = unsigned __int128;
  const auto threshold = static_cast<uint32_t>((static_cast<Wide>(units) << 32) / slot_units);
  return std::max(threshold, uint32_t{1});
}

}  // namespace

void AliasBuilder::Build(std::span<const float> weights, AliasEntry* row) {
  constexpr double kScale = 0x1p31;
  GNND_CHECK(weights.size() < std::numeric_limits<uint32_t>::max());
  const auto size = static_cast<uint32_t>(weights.size());
  if (size == 0) return;
  const double largest = *std::max_element(weights.begin(), weights.end());
  if (largest == 0) {
    for (uint32_t i = 0; i < size; ++i) row[i] = {0, i};
    return;
  }
  units_.resize(size);
  uint64_t total = 0;  // below 2^63
  for (uint32_t i = 0; i < size; ++i) {
    const auto q = static_cast<uint64_t>(std::floor(weights[i] / largest * kScale));
    units_[i] = weights[i] > 0 ? std::max(q, uint64_t{1}) : 0;
    total += units_[i];
  }
  small_.clear();
  large_.clear();
  const auto place = [&](uint32_t i) {
    if (units_[i] == total) {
      row[i] = {kFull, i};
    } else {
      (units_[i] < total ? small_ : large_).push_back(i);
    }
  };
  for (uint32_t i = 0; i < size; ++i) {
    units_[i] *= size;
    place(i);
  }
  while (!small_.empty()) {
    const uint32_t under = small_.back();
    const uint32_t over = large_.back();  // sums are exact: a small entry leaves a large one
    small_.pop_back();
    large_.pop_back();
    row[under] = {ThresholdOf(units_[under], total), over};
    units_[over] -= total - units_[under];
    place(over);
  }
}

}  // namespace gnnd
