#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/prefetch.h"
#include "core/vec/dispatch.h"

// Copies many rows past the caches, which a result that does not fit into them only empties: each
// of its lines would first be read from memory. Every instruction set copies the same bytes.

namespace gnnd {

// Rows of `row_bytes` each, one after another.
struct StreamedRows {
  const std::byte* rows;
  uint64_t row_bytes;
};

struct StreamLoops {
  // Copies rows[nodes[i]] to `out`, one behind the other, and orders the copies before what this
  // thread stores next. REQUIRES: CanStream(row_bytes, out).
  void (*gather)(const StreamedRows& table, const uint32_t* nodes, uint64_t count,
                 PrefetchLevel level, std::byte* out);
};
GNND_DECLARE_LOOPS(StreamLoops, kStreamLoops);

// Bytes that are stored at a time, at least, in which rows and the result have to be whole.
constexpr uint64_t kStreamBytes = 16;

inline bool CanStream(uint64_t row_bytes, const std::byte* out) {
  return row_bytes > 0 && row_bytes % kStreamBytes == 0 &&
         reinterpret_cast<uintptr_t>(out) % kStreamBytes == 0;
}

// Lines of a row that are asked for ahead of its copy. From this size on the processor itself
// follows a row (core/graph/features.cc).
constexpr uint64_t kFollowedRowBytes = 1024;

}  // namespace gnnd
