#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/half.h"

// Feature rows in memory, in the element type of their file. Computations widen them to float32 on
// the way (GatherRows, RunSpmm), which is exact: the type of a file decides how many bytes move,
// and no bit of a result.

namespace gnnd {

enum class FeatureType : uint32_t { kFloat32 = 0, kFloat16 = 1 };

constexpr uint64_t BytesOf(FeatureType type) {
  return type == FeatureType::kFloat16 ? sizeof(Half) : sizeof(float);
}

// [num_rows, dim], row-major. Borrows the elements.
class RowTable {
 public:
  RowTable() = default;
  // `values` must be whole rows.
  RowTable(std::span<const float> values, uint64_t dim)
      : RowTable(FeatureType::kFloat32, std::as_bytes(values), dim) {}
  RowTable(std::span<const Half> values, uint64_t dim)
      : RowTable(FeatureType::kFloat16, std::as_bytes(values), dim) {}
  RowTable(FeatureType type, std::span<const std::byte> bytes, uint64_t dim)
      : data_(bytes.data()), dim_(dim), type_(type) {
    GNND_CHECK(dim > 0 && bytes.size() % row_bytes() == 0);
    num_rows_ = bytes.size() / row_bytes();
  }

  FeatureType type() const { return type_; }
  uint64_t num_rows() const { return num_rows_; }
  uint64_t dim() const { return dim_; }
  uint64_t row_bytes() const { return dim_ * BytesOf(type_); }
  std::span<const std::byte> bytes() const { return {data_, num_rows_ * row_bytes()}; }
  const std::byte* row(uint64_t at) const { return data_ + at * row_bytes(); }

  // The elements; T (float or Half) must be their type.
  template <typename T>
  std::span<const T> values() const {
    constexpr bool kIsHalf = std::is_same_v<T, Half>;
    static_assert(kIsHalf || std::is_same_v<T, float>);
    GNND_CHECK((type_ == FeatureType::kFloat16) == kIsHalf);
    return {reinterpret_cast<const T*>(data_), num_rows_ * dim_};
  }

  // Calls visit(elements), with a span of float or of Half.
  template <typename Visit>
  decltype(auto) Visited(const Visit& visit) const {
    if (type_ == FeatureType::kFloat16) return visit(values<Half>());
    return visit(values<float>());
  }

 private:
  const std::byte* data_ = nullptr;
  uint64_t num_rows_ = 0;
  uint64_t dim_ = 0;
  FeatureType type_ = FeatureType::kFloat32;
};

}  // namespace gnnd
