#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/feature/feature_store.h"
#include "core/feature/history_cache.h"
#include "core/graph/row_table.h"
#include "core/history/job_history.h"
#include "core/history/prune.h"
#include "train/layers/history_use.h"
#include "train/ops/device_stream.h"
#include "train/ops/ops.h"
#include "train/ops/workspace.h"

// History in training (FreshGNN, PVLDB 17(6)): it prunes samples, layers read its rows instead of
// computing them, and gradients decide which rows it keeps. It lies in the host's memory, so
// pruning runs there: a device receives the pruned sample with the rows that were found, and
// returns computed rows and gradients of kept levels.

namespace gnnd {

class TrainerHistory;

// What a Trainer keeps of its batches: nothing, unless it is a TrainerHistory. Called batch by
// batch: BringTo, Prune, Merge of each kept level in forward, Update.
class BatchHistory {
 public:
  // Follows `use`. `stream` is the device's stream, or null if the processor computes.
  // kShmAllocationFailed.
  static Result<std::unique_ptr<BatchHistory>> Of(const HistoryUse& use, const RowTable& features,
                                                  TrainStream* stream);
  virtual ~BatchHistory() = default;

  // The history that layers read and merge; null if nothing is kept.
  virtual TrainerHistory* kept() { return nullptr; }

  // Makes a store with these options; if the config says so, its cache lies in this history's
  // memory, already filled, and the store must not outlive this object. Errors: those of
  // HistoryCache::Create and FeatureStore::Create.
  virtual Result<FeatureStore> MakeStore(FeatureStore::Options options) {
    return FeatureStore::Create(options);
  }

  // Brings the history, and the cache of `store`, to the version that this point's batch sees.
  virtual Status BringTo(const BatchPoint&, FeatureStore*) { return Status::Ok(); }

  // Prunes the batch's sample (prune.h); the result is valid until the next call.
  virtual const Sample& Prune(const Sample& sample, HistoryReport*) { return sample; }

  // Called after backward: says which computed rows are stored and which stored ones forgotten.
  virtual HistoryUpdate Update() { return {}; }
};

class TrainerHistory final : public BatchHistory {
 public:
  TrainerHistory* kept() override { return this; }
  Result<FeatureStore> MakeStore(FeatureStore::Options options) override;
  Status BringTo(const BatchPoint& point, FeatureStore* store) override;
  const Sample& Prune(const Sample& sample, HistoryReport* report) override;
  HistoryUpdate Update() override;

  bool keeps(uint32_t level) const { return pruner_.keeps(level); }
  const LevelRows& rows(uint32_t level) const { return pruner_.rows(level); }

  // Returns the rows of a kept level as the layer above reads them, [computed + stored, columns]:
  // computed ones, without dropout, and stored ones, which get no gradient. Backward notes the
  // norms of all rows' gradients.
  at::Tensor Merge(uint32_t level, const at::Tensor& computed, Workspace* workspace);

  // The type in which rows with this many columns are kept.
  at::ScalarType RowType(uint32_t columns) const;

 private:
  friend class BatchHistory;
  friend class MergeFunction;

  TrainerHistory(const HistoryUse& use, const RowTable& features, TrainStream* stream);

  // State of one kept level of the present batch.
  struct Level {
    std::vector<uint32_t> row;  // for each row its number among the computed ones
    std::vector<uint8_t> is_stored;
    std::vector<float> norms;  // empty until backward
    at::Tensor computed;
    // For a device; kept until its stream has run.
    std::vector<uint32_t> computed_at;
    std::vector<uint32_t> stored_at;
    std::vector<std::byte> stored_rows;
    std::vector<std::byte> computed_rows;
    std::vector<std::byte> grad_rows;
  };
  void SetBorder(FeatureStore* store) const;
  const std::byte* ComputedRows(const Level& level) const;

  at::Tensor MergeOnHost(uint32_t level, const at::Tensor& computed, Workspace* workspace) const;
  at::Tensor SplitOnHost(uint32_t level, const at::Tensor& grad, Workspace* workspace);
  at::Tensor MergeOnDevice(uint32_t level, const at::Tensor& computed, Workspace* workspace);
  at::Tensor SplitOnDevice(uint32_t level, const at::Tensor& grad, Workspace* workspace);
  void NoteNorms();
  HistoryVerdict Judge(uint32_t level) const;
  void Compare(uint32_t level, HistoryUpdate* update) const;

  HistoryUse use_;
  TrainStream* stream_;  // null: the processor computes
  JobHistory history_;
  HistoryCache cache_;
  Pruner pruner_;
  BatchPoint point_;
  uint32_t num_seeds_ = 0;
  Level levels_[kMaxHops];
  uint64_t bring_ns_ = 0;
};

}  // namespace gnnd
