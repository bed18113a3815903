#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/bulk_reader.h"
#include "core/base/status.h"
#include "core/draw/row_order.h"

// Rows of propagated features (docs/formats/propagation.md), read for batches: wherever the rows
// lie, the floats are the same.

namespace gnnd {

enum class RowTier : uint32_t {
  kHost = 0,    // mapped files: the page cache
  kDisk = 1,    // files read past the page cache, batches ahead
  kDevice = 2,  // a Trainer's device memory; without such a device, they are read as kHost
};

struct RowReaderOptions {
  std::vector<std::string> paths;  // one file per token, each [rows, columns]
  uint64_t rows = 0;
  uint64_t columns = 0;
  RowTier tier = RowTier::kHost;
  // For kDisk: the most that one Stage asks for, which sizes the memory.
  uint64_t most_rows = 0;
  uint64_t most_runs = 0;
  ReadWay way = ReadWay::kUring;  // this and `answer` as in BulkReader::Options
  std::function<int64_t(ReadWay, const BulkRead&, int64_t)> answer;
};

// Gives the runs expected `ahead` calls after the present one (from 1); empty: unknown. This is
// only a guess: Stage always provides the runs that it is asked for.
using NextRuns = std::function<void(uint32_t ahead, std::vector<RowRun>* runs)>;

class RowReader {
 public:
  virtual ~RowReader() = default;

  // Makes the rows of these runs, one after the other, available to Copy until the next call.
  // Errors are those of BulkReader::Read. One thread at a time.
  virtual Status Stage(std::span<const RowRun> runs, const NextRuns& next) = 0;

  // Sets out[i] = staged row begin + i of a token, as float32, for begin + i < end. Thread-safe.
  virtual void Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const = 0;

  uint32_t num_tokens() const { return num_tokens_; }
  uint64_t row_bytes() const { return row_bytes_; }  // in the stored type
  // Memory reserved for rows that are read ahead.
  virtual uint64_t memory_bytes() const { return 0; }
  // Describes for people how rows are read at the moment.
  virtual std::string Describe() const = 0;

 protected:
  RowReader(uint32_t num_tokens, uint64_t row_bytes)
      : num_tokens_(num_tokens), row_bytes_(row_bytes) {}

 private:
  uint32_t num_tokens_;
  uint64_t row_bytes_;
};

}  // namespace gnnd
