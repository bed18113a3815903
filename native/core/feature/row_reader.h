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

// Rows of propagated features (docs/formats/propagation.md), as batches want them: from wherever
// they lie, the same floats.

namespace gnnd {

enum class RowTier : uint32_t {
  kHost = 0,    // mapped files: the page cache
  kDisk = 1,    // read past it, batches ahead
  kDevice = 2,  // a Trainer's device holds them; who has none reads them as kHost
};

struct RowReaderOptions {
  std::vector<std::string> paths;  // of the tokens' files, each of [rows, columns]
  uint64_t rows = 0;
  uint64_t columns = 0;
  RowTier tier = RowTier::kHost;
  // Of kDisk: what one Stage asks for at most, for which memory is set aside.
  uint64_t most_rows = 0;
  uint64_t most_runs = 0;
  ReadWay way = ReadWay::kUring;  // and what tests want of reads: as BulkReader::Options
  std::function<int64_t(ReadWay, const BulkRead&, int64_t)> answer;
};

// The runs that will be wanted `ahead` calls after the present one (from 1); left empty: nobody
// knows. A guess: rows that are staged are never others than those that are asked for.
using NextRuns = std::function<void(uint32_t ahead, std::vector<RowRun>* runs)>;

class RowReader {
 public:
  virtual ~RowReader() = default;

  // The rows of these runs, one after the other, can be copied from now on, until the next call.
  // Errors are those of BulkReader::Read. One thread at a time.
  virtual Status Stage(std::span<const RowRun> runs, const NextRuns& next) = 0;

  // out[i] = staged row begin + i of a token, widened to float32, for begin + i < end. Any threads.
  virtual void Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const = 0;

  uint32_t num_tokens() const { return num_tokens_; }
  uint64_t row_bytes() const { return row_bytes_; }  // as they are stored
  // What is set aside for rows that are read ahead.
  virtual uint64_t memory_bytes() const { return 0; }
  // For people: how rows are read at the moment.
  virtual std::string Describe() const = 0;

 protected:
  RowReader(uint32_t num_tokens, uint64_t row_bytes)
      : num_tokens_(num_tokens), row_bytes_(row_bytes) {}

 private:
  uint32_t num_tokens_;
  uint64_t row_bytes_;
};

}  // namespace gnnd
