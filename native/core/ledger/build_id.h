#pragma once

#include <cstdint>

namespace gnnd {

inline constexpr uint32_t kBuildIdBytes = 48;

// A digest, in hexadecimal, of all sources and options that decide bits; made by the build
// (native/cmake/build_id.cmake). Zero-terminated.
extern const char kBuildId[kBuildIdBytes];

}  // namespace gnnd
