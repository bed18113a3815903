#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/graph/npy.h"

// The results of an inference: arrays in .npy files, written chunk by chunk by any number of
// Trainers, and a journal of the chunks that are done. A chunk is a pure function of the job, so a
// repeated chunk writes the same bytes to the same place, and a chunk in the journal is never
// repeated, not even by a later attempt.
//
// In the folder: chunks.bin, the journal; in out/ the arrays, which only become a result once all
// chunks are done (src/work/inference.ts renames `out`).

namespace gnnd {

// One entry of the journal. All zero: the chunk is not done.
struct ChunkMark {
  uint32_t rows_and_one = 0;  // rows that the chunk computed, plus one
  uint32_t times = 0;         // how often it was computed whole: more than 1 would be a bug
};

// An array that chunks fill, in a file of its name.
struct ChunkArray {
  std::string name;
  NpyType type = NpyType::kFloat32;
  std::vector<uint64_t> shape{};  // rows first

  uint64_t row_bytes() const;
};

// Every Trainer has one; used by one thread. All Trainers open the files, which have their final
// size from the first moment on, so their order does not matter.
class ChunkFiles {
 public:
  // kIo, kDiskFull.
  static Result<ChunkFiles> Open(const std::string& folder, std::span<const ChunkArray> arrays);

  // Rows of a chunk that is done; none if it must be computed. `word` is as in the ledger.
  Result<std::optional<uint64_t>> Done(uint32_t word) const;

  // Writes rows of one of the arrays, counted in their order, from row `first` on.
  Status WriteRows(size_t array, uint64_t first, std::span<const std::byte> rows) const;

  // Marks a computed chunk. Its rows, and the content of `scratch` (< 0: nothing), reach the disk
  // before the mark.
  Status Finish(uint32_t word, uint64_t rows, int scratch) const;

  // One chunk of an inference: `compute` fills the result in, unless the journal has the chunk.
  struct Chunk {
    uint32_t word = 0;  // as in the ledger
    int scratch = -1;   // as in Finish
  };
  template <typename Compute>
  Status Once(const EvalTask& task, const Chunk& chunk, EvalResult* result,
              const Compute& compute) const {
    const auto [word, scratch] = chunk;
    const std::optional<uint64_t> done = GNND_VALUE(Done(word));
    if (done) {
      *result = EvalResult{};
      result->rows = *done;
      if (task.report != nullptr) task.report->was_done = true;
      return Status::Ok();
    }
    GNND_TRY(compute());
    return Finish(word, result->rows, scratch);
  }

 private:
  struct File {
    UniqueFd fd;
    std::string path;
    uint64_t data_at = 0;  // offset of the first row, after the header
    uint64_t row_bytes = 0;
  };
  static Status OpenFile(const std::string& path, const std::string& header, uint64_t bytes,
                         File* file);

  File journal_;
  std::vector<File> files_;
};

// Writes node ids as int64 of `shape` unless the file exists: it appears whole.
Status WriteIdsOnce(const std::string& path, std::span<const uint64_t> shape,
                    std::span<const uint32_t> ids);

}  // namespace gnnd
