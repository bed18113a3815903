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

// What a file holds, checked no further. kNotFound; kIo; kDatasetCorrupt for what is no file or
// shorter than `least_bytes`; kInvalidArgument for one of more than `most_bytes`.
Result<ImageBytes> ReadImageFile(const std::string& path, uint64_t least_bytes,
                                 uint64_t most_bytes);

}  // namespace gnnd
