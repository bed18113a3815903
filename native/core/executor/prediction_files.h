#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/executor/prediction_place.h"
#include "core/executor/row_outputs.h"
#include "core/executor/train_work.h"
#include "core/graph/dataset.h"

// The results of an inference: rows of its nodes in .npy files, written chunk by chunk by any
// number of Trainers, and a journal of the chunks that are done. A chunk is a pure function of the
// job, so a repeated chunk writes the same bytes to the same place, and a chunk in the journal is
// never repeated, not even by a later attempt.
//
// In the folder: chunks.bin, the journal; in out/ nodes.npy and a file for each output
// (row_outputs.h), which only become a result once all chunks are done (src/work/inference.ts
// renames `out`).

namespace gnnd {

// One entry of the journal. All zero: the chunk is not done.
struct ChunkMark {
  uint32_t rows_and_one = 0;  // rows that the chunk computed, plus one
  uint32_t times = 0;         // how often it was computed whole: more than 1 would be a bug
};

// Every Trainer has one; used by one thread. All Trainers open the files, which have their final
// size from the first moment on, so their order does not matter.
class PredictionFiles {
 public:
  // `nodes`: ascending and distinct. If they are all of the graph's, nodes.npy is not written. kIo,
  // kDiskFull.
  struct Nodes {
    std::span<const uint32_t> nodes{};
    bool are_all = false;
  };
  static Result<PredictionFiles> Open(const PredictionPlace& place, const Nodes& targets,
                                      RowOutputs outputs);

  // The layers whose rows it takes, ascending.
  const std::vector<uint32_t>& layers() const { return layers_; }

  // Rows of a chunk that is done; none if it must be computed. `word` is as in the ledger.
  Result<std::optional<uint64_t>> Done(uint32_t word) const;

  // Writes what the outputs make of rows [first, first + rows.size() / their width) of a layer.
  // kNumericDivergence when a number is not finite.
  Status Write(uint32_t layer, uint64_t first, std::span<const float> rows);

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
  };
  struct OutputFile {
    std::unique_ptr<RowOutput> output;
    File file;
  };
  PredictionFiles() = default;
  static Status OpenFile(const std::string& path, const std::string& header, uint64_t bytes,
                         File* file);

  std::vector<uint32_t> layers_;
  File journal_;
  std::vector<OutputFile> outputs_;
  std::vector<std::byte> made_;  // of one output, at a time
};

}  // namespace gnnd
