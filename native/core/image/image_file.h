#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/huge_array.h"
#include "core/base/status.h"

namespace gnnd {

// The bytes of an image.
struct ImageBytes {
  HugeArray<std::byte> memory;
  uint64_t size = 0;
};

// Reads a file without further checks. kNotFound; kIo; kDatasetCorrupt if it is no regular file or
// shorter than `least_bytes`; kInvalidArgument if it is longer than `most_bytes`.
Result<ImageBytes> ReadImageFile(const std::string& path, uint64_t least_bytes,
                                 uint64_t most_bytes);

}  // namespace gnnd
