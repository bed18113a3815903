#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/base/check.h"
#include "core/base/half.h"
#include "core/base/memfd.h"
#include "core/base/status.h"

// NumPy's .npy files, mapped read-only: format versions 1.0 to 3.0, little-endian, C order, with
// the element types below, of which datasets consist. docs/formats/dataset.md draws the layout.

namespace gnnd {

// NumPy has no bfloat16: its bits are stored as kUint16.
enum class NpyType { kInt32, kUint32, kInt64, kFloat32, kFloat16, kUint16, kUint8 };

// "int32", "uint32", "int64", "float32", "float16", "uint16", "uint8".
std::string_view NameOf(NpyType type);
uint64_t BytesOf(NpyType type);

template <typename T>
struct NpyTypeOf;
template <>
struct NpyTypeOf<int32_t> {
  static constexpr NpyType kType = NpyType::kInt32;
};
template <>
struct NpyTypeOf<uint32_t> {
  static constexpr NpyType kType = NpyType::kUint32;
};
template <>
struct NpyTypeOf<int64_t> {
  static constexpr NpyType kType = NpyType::kInt64;
};
template <>
struct NpyTypeOf<float> {
  static constexpr NpyType kType = NpyType::kFloat32;
};
template <>
struct NpyTypeOf<Half> {
  static constexpr NpyType kType = NpyType::kFloat16;
};
template <>
struct NpyTypeOf<Bfloat16> {
  static constexpr NpyType kType = NpyType::kUint16;
};
template <>
struct NpyTypeOf<uint8_t> {
  static constexpr NpyType kType = NpyType::kUint8;
};

// One mapped array. Move-only; spans taken from it live as long as it does.
class NpyArray {
 public:
  NpyArray() = default;

  // Maps `path` and checks that the file is exactly header + elements, so that no access through
  // values() leaves it. (A file that somebody truncates later still faults: datasets are
  // immutable.) kNotFound: no such file. kIo: it cannot be read. kDatasetCorrupt: it is empty or
  // truncated, has bytes after the array, or is not an array of the supported kind; the message
  // starts with the file's name and says what was expected and what was found.
  static Result<NpyArray> Open(const std::string& path);

  // Ok when the element type is one of `types` and the shape is `shape`; kDatasetCorrupt otherwise.
  Status Expect(std::initializer_list<NpyType> types, std::initializer_list<uint64_t> shape) const;

  const std::string& file() const { return file_; }  // name without folders
  NpyType type() const { return type_; }
  const std::vector<uint64_t>& shape() const { return shape_; }
  uint64_t size() const { return size_; }  // elements
  // Offset of the first element in the file, in bytes.
  uint64_t data_at() const { return data_at_; }

  // The elements in C order. T must be the array's type; int32 may be read as uint32 and back.
  template <typename T>
  std::span<const T> values() const {
    constexpr NpyType kWanted = NpyTypeOf<T>::kType;
    const auto is_32_bit_int = [](NpyType type) {
      return type == NpyType::kInt32 || type == NpyType::kUint32;
    };
    GNND_CHECK(kWanted == type_ || (is_32_bit_int(kWanted) && is_32_bit_int(type_)));
    return {reinterpret_cast<const T*>(mapping_.data() + data_at_), size_};
  }

 private:
  Mapping mapping_;
  std::string file_;
  NpyType type_ = NpyType::kFloat32;
  std::vector<uint64_t> shape_;
  uint64_t size_ = 0;
  uint64_t data_at_ = 0;
};

// The bytes that precede the elements in a version 1.0 file of this type and shape; a multiple of
// `alignment` (itself one of 64, at most 4096).
std::string NpyHeader(NpyType type, std::span<const uint64_t> shape, uint64_t alignment = 64);

}  // namespace gnnd
