#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/prepare/propagation.h"

// The files of a propagation on their way to the disk. Each appears whole or not at all, so that
// what is there is the journal: whoever goes on after a kill makes what is missing.

namespace gnnd {

// body(begin, end) for ranges of at most `grain` that make up [0, count), on that many threads; in
// no order. The first failure is answered, and no range begins after it.
Status ForRanges(uint32_t threads, uint64_t count, uint64_t grain,
                 const std::function<Status(uint64_t begin, uint64_t end)>& body);

// Writes float32 rows in a row type. `rows` is called with ranges of `row_count` rows, in order,
// and fills out[rows, columns]. kDatasetCorrupt when float16 lacks a number.
struct RowSource {
  uint64_t row_count = 0;
  uint64_t columns = 0;
  std::function<void(uint64_t begin, uint64_t end, float* out)> rows;
};
Status WriteRows(const RowSource& source, RowType type, const std::string& header,
                 const std::string& path, uint32_t threads);

// A file of whole rows from files of some of their columns, in order, each without a header.
struct RowPart {
  std::string path;
  uint64_t row_bytes;
};
Status JoinParts(std::span<const RowPart> parts, uint64_t row_count, const std::string& header,
                 const std::string& path);

// Of rows of that type.
std::string RowHeader(RowType type, uint64_t row_count, uint64_t columns);

// Whether a file of exactly that size is there; one of another size is removed.
bool IsThere(const std::string& path, uint64_t bytes);

struct DigestedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string sha256;
};

// Reads `folder`/`name`. kIo.
Result<DigestedFile> DigestFile(const std::string& folder, const std::string& name);

}  // namespace gnnd
