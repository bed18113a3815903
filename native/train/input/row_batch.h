#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/draw/batch_key.h"
#include "core/draw/row_order.h"
#include "core/feature/row_reader.h"
#include "train/input/row_files.h"
#include "train/input/rows_options.h"
#include "train/layers/model.h"
#include "train/ops/workspace.h"

namespace gnnd {

// The input of a Trainer over rows, which its parts borrow.
struct RowInput {
  RowInput(const RowsOptions& given, RowFiles opened)
      : options(given), files(std::move(opened)), model(given.model) {}

  RowsOptions options;
  RowFiles files;
  std::vector<float> weights;  // memory of files.targets.weights
  Model model;
};

// The rows of one batch in the host's memory.
struct RowBuffer {
  explicit RowBuffer(const TrainDevice& where) : memory(where) {}

  // Starts a batch that has the rows of these runs; they are not read yet.
  void Begin(const BatchKey& of, std::span<const RowRun> its_runs);

  BatchKey key{};
  std::vector<RowRun> runs;
  std::vector<uint32_t> rows;  // the rows of the runs, one after the other
  std::vector<uint32_t> nodes;
  TargetRows targets;
  Workspace memory;
  std::vector<at::Tensor> tokens;  // views of `memory`, each [rows, columns]
};

// Says which rows a batch has, from its key alone. Used by one thread.
class RowBatchOrder {
 public:
  explicit RowBatchOrder(const RowsOptions& options) : options_(options) {}

  BatchKey KeyOf(uint32_t epoch, uint32_t batch) const {
    return {options_.random_seed, epoch, batch};
  }
  void RunsOf(const BatchKey& key, std::vector<RowRun>* runs);

  // Guesses the batches that this Trainer gets after one: Trainers take turns, so the distance
  // between its last two batches is a guess at the next.
  NextRuns After(const BatchKey& key);

 private:
  uint64_t BatchesPerEpoch() const {
    return (options_.train + options_.batch_size - 1) / options_.batch_size;
  }

  const RowsOptions& options_;
  std::vector<uint32_t> permuted_;
  uint64_t last_place_ = 0;  // number of the last batch, counted over all epochs
  uint64_t stride_ = 1;
};

// Reads rows of each token from files and widens them to float32, on the calling thread's team.
class RowBatchReader {
 public:
  explicit RowBatchReader(const RowInput& input);

  // Reads the buffer's rows.
  Status Read(RowBuffer* buffer, const NextRuns& next) const;
  // Reads a buffer of one run in stretches that fit the memory for reading.
  Status ReadInStretches(RowBuffer* buffer) const;
  // Reads nodes and targets alone.
  void ReadTargets(RowBuffer* buffer) const;

  uint64_t num_tokens() const { return input_.files.tokens->num_tokens(); }
  uint64_t row_bytes() const { return input_.files.tokens->row_bytes(); }
  uint64_t memory_bytes() const { return input_.files.tokens->memory_bytes(); }

 private:
  void Begin(RowBuffer* buffer) const;
  void CopyStaged(RowBuffer* buffer, uint64_t at, uint64_t count) const;

  const RowInput& input_;
  const bool draws_;  // whether dropout needs the nodes of rows
};

}  // namespace gnnd
