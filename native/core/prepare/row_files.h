#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/prepare/propagation.h"

// Writes the files of a propagation. Each appears whole or not at all, so that the files themselves
// are the journal: after a kill, the next run makes the missing ones.

namespace gnnd {

// Calls body(begin, end) for ranges of at most `grain` that make up [0, count), on `threads`
// threads, in any order. Returns the first failure; no range begins after it.
Status ForRanges(uint32_t threads, uint64_t count, uint64_t grain,
                 const std::function<Status(uint64_t begin, uint64_t end)>& body);

// Float32 rows to be written. Several threads call `rows` for ranges within `row_count`; it fills
// out[rows, columns].
struct RowSource {
  uint64_t row_count = 0;
  uint64_t columns = 0;
  std::function<void(uint64_t begin, uint64_t end, float* out)> rows;
};
Status WriteRows(const RowSource& source, RowType type, const std::string& header,
                 const std::string& path, uint32_t threads);

// Joins files of some columns each, in order and without headers, into a file of whole rows.
struct RowPart {
  std::string path;
  uint64_t row_bytes;
};
Status JoinParts(std::span<const RowPart> parts, uint64_t row_count, const std::string& header,
                 const std::string& path);

// The .npy header of a file with rows of that type.
std::string RowHeader(RowType type, uint64_t row_count, uint64_t columns);

// Whether the file exists with exactly this size; one of another size is removed.
bool IsThere(const std::string& path, uint64_t bytes);

struct DigestedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

// Hashes `folder`/`name`. kIo.
Result<DigestedFile> DigestFile(const std::string& folder, const std::string& name);

}  // namespace gnnd
