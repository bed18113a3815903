#include "core/ledger/layout.h"

namespace gnnd {
namespace {

constexpr uint64_t kLineBytes = 64;

// Hands out consecutive offsets.
class Cursor {
 public:
  uint64_t Take(uint64_t bytes, uint64_t alignment) {
    const uint64_t at = RoundUp(next_, alignment);
    next_ = at + bytes;
    return at;
  }

 private:
  uint64_t next_ = 0;
};

}  // namespace

Layout Layout::Of(const SegmentConfig& config) {
  const uint64_t ring = (uint64_t{config.staleness} + 1) * config.group;
  Layout layout{};
  layout.parameter_stride = RoundUp(config.parameter_floats * sizeof(float), kLineBytes);
  layout.optimizer_stride = RoundUp(config.optimizer_floats * sizeof(float), kLineBytes);
  const bool predicts = config.compensation == StalenessCompensation::kPredict;
  // A prediction reads the optimizer state of its parameters' version, so both live as long.
  layout.optimizer_buffers = predicts ? uint64_t{config.staleness} + 2 : 2;
  Cursor cursor;
  cursor.Take(sizeof(SegmentHeader), kLineBytes);
  layout.epochs_at = cursor.Take(config.epochs * sizeof(EpochEntry), kLineBytes);
  layout.sums_at = cursor.Take(2 * sizeof(EpochSums), kLineBytes);
  const uint64_t device_counts = config.num_devices * sizeof(uint64_t);
  layout.epoch_devices_at = cursor.Take(config.epochs * device_counts, kLineBytes);
  layout.sum_devices_at = cursor.Take(2 * device_counts, kLineBytes);
  layout.eval_ledger_at = cursor.Take(config.eval_chunks * sizeof(uint64_t), kLineBytes);
  layout.chunk_result_stride =
      RoundUp(sizeof(ChunkResult) + config.chunk_counts * sizeof(uint64_t), kLineBytes);
  layout.chunk_results_at =
      cursor.Take(config.eval_chunks * layout.chunk_result_stride, kLineBytes);
  layout.kept_at = cursor.Take(config.kept_bytes, kLineBytes);
  layout.hand_ins_at = cursor.Take(ring * sizeof(HandIn), kLineBytes);
  layout.shares_at = cursor.Take(config.num_devices * sizeof(RowShare), kLineBytes);
  layout.parameters_at =
      cursor.Take((uint64_t{config.staleness} + 2) * layout.parameter_stride, kPageBytes);
  layout.optimizer_at = cursor.Take(layout.optimizer_buffers * layout.optimizer_stride, kPageBytes);
  layout.gradients_at = cursor.Take(ring * layout.parameter_stride, kPageBytes);
  layout.best_at = cursor.Take(2 * layout.parameter_stride, kPageBytes);
  layout.history_at = cursor.Take(JobHistory::BytesOf(config.history, config.group), kPageBytes);
  layout.shared_at = cursor.Take(sizeof(QueueHeader), kPageBytes);
  layout.devices_at = cursor.Take(config.num_devices * sizeof(DeviceEntry), kLineBytes);
  layout.executors_at = cursor.Take(config.max_executors * sizeof(ExecutorRow), kLineBytes);
  layout.starts_at = cursor.Take(config.epochs * sizeof(uint64_t), kLineBytes);
  layout.ledger_at = cursor.Take(config.batches_per_epoch * sizeof(uint64_t), kLineBytes);
  layout.directory_at = cursor.Take(config.num_slots * sizeof(SlotEntry), kLineBytes);
  layout.slots_at = cursor.Take(config.num_slots * config.slot_bytes, kPageBytes);
  layout.total_bytes = layout.slots_at + config.num_slots * config.slot_bytes;
  return layout;
}

}  // namespace gnnd
