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

// History in training (FreshGNN, PVLDB 17(6)): samples are pruned by it, layers read its rows in
// place of computing them, and gradients say what it keeps. It lies in the host's memory, and so
// samples are pruned there: a device is sent what is left, with the rows that were found, and sends
// back computed rows and gradients of kept levels.

namespace gnnd {

// One batch after the other: BringTo, Prune, Merge of each kept level in forward, Update.
class TrainerHistory {
 public:
  // Null where nothing is kept. `stream`: what computes, where that is no processor; null.
  // kShmAllocationFailed.
  static Result<std::unique_ptr<TrainerHistory>> Of(const HistoryUse& use, const RowTable& features,
                                                    TrainStream* stream);

  // A store of these; its cache lies in this history's memory, filled in, where the config says so,
  // and the store must not be used after this object. Errors: those of HistoryCache::Create and
  // FeatureStore::Create.
  Result<FeatureStore> MakeStore(FeatureStore::Options options);

  // To the history that the batch at this point sees, and `store` to what its cache has by then.
  Status BringTo(const BatchPoint& point, FeatureStore* store);

  // The batch's sample without what is stored (prune.h); this object's until the next call.
  const Sample& Prune(const Sample& sample, HistoryReport* report);

  bool keeps(uint32_t level) const { return pruner_.keeps(level); }
  const LevelRows& rows(uint32_t level) const { return pruner_.rows(level); }

  // The rows of a kept level as the layer above reads them, [computed + stored, columns]: those
  // that the layer computed, without dropout, between those that are stored. No gradient goes into
  // stored rows; the norms of all rows' gradients are noted in backward.
  at::Tensor Merge(uint32_t level, const at::Tensor& computed, Workspace* workspace);

  // Of rows of so many columns, as they are kept.
  at::ScalarType RowType(uint32_t columns) const;

  // After backward: notes which computed rows are stored and which stored ones forgotten.
  HistoryUpdate Update();

 private:
  friend class MergeFunction;

  TrainerHistory(const HistoryUse& use, const RowTable& features, TrainStream* stream);

  // Of one kept level of the batch at hand.
  struct Level {
    std::vector<uint32_t> row;  // of each row: its number among the computed ones
    std::vector<uint8_t> is_stored;
    std::vector<float> norms;  // empty until backward
    at::Tensor computed;
    // Of a device's; here until its stream has run.
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
