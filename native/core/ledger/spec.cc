#include <algorithm>
#include <limits>

#include "core/base/failpoint.h"
#include "core/draw/philox.h"
#include "core/ledger/segment.h"

// Checks of a segment's spec.

namespace gnnd {
namespace {

// Half of what an x86-64 process can address; a kernel that allows less says so at mmap.
constexpr uint64_t kMaxSegmentBytes = uint64_t{1} << 46;
constexpr uint64_t kMaxFloats = uint64_t{1} << 40;
constexpr uint32_t kMaxGroup = 1U << 20;
constexpr uint32_t kMaxStaleness = 1024;
constexpr uint64_t kMaxBatches = uint64_t{1} << 32;

Status Invalid(const std::string& field, const std::string& why) {
  return Status(Code::kInvalidArgument, field + ": " + why);
}

Status CheckRange(const std::string& field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return Status::Ok();
  return Invalid(field, "must be " + std::to_string(least) + " to " + std::to_string(most) +
                            ", is " + std::to_string(value));
}

Status CheckEpochs(const SegmentSpec& spec) {
  GNND_TRY(CheckRange("epochs", spec.epochs, 1, kEvaluationEpoch));
  if (spec.first_epoch == kTrialEpoch) {
    if (spec.epochs != 1) return Invalid("epochs", "a trial has exactly one");
    return Status::Ok();
  }
  return CheckRange("first_epoch", spec.first_epoch, 0, kEvaluationEpoch - spec.epochs);
}

Status CheckEarlyStop(const SegmentSpec& spec) {
  const EarlyStop& rule = spec.early_stop;
  GNND_TRY(CheckRange("eval_chunks", spec.eval_chunks, 0, kMaxEvalChunks));
  GNND_TRY(CheckRange("chunk_counts", spec.chunk_counts, 0, kMaxChunkCounts));
  GNND_TRY(CheckRange("kept_bytes", spec.kept_bytes, 0, kMaxSegmentBytes));
  if (rule.patience > 0 && (spec.eval_chunks == 0 || spec.evaluate_every == 0)) {
    return Invalid("early_stop.patience", "needs evaluations before the end");
  }
  if (!(rule.min_delta >= 0 && rule.min_delta <= kMaxMinDelta)) {
    return Invalid("early_stop.min_delta",
                   "must be in [0, 1e12], is " + std::to_string(rule.min_delta));
  }
  return Status::Ok();
}

Status CheckBatches(const SegmentSpec& spec) {
  GNND_TRY(CheckRange("batches_per_epoch", spec.batches_per_epoch, 1, kMaxBatches));
  GNND_TRY(CheckRange("batch_size", spec.batch_size, 1, kMaxBatches));
  GNND_TRY(
      CheckRange("train_nodes", spec.train_nodes, 1, std::numeric_limits<uint64_t>::max() / 2));
  const uint64_t batches = (spec.train_nodes + spec.batch_size - 1) / spec.batch_size;
  if (batches != spec.batches_per_epoch) {
    return Invalid("batches_per_epoch", std::to_string(spec.train_nodes) + " seeds in batches of " +
                                            std::to_string(spec.batch_size) + " make " +
                                            std::to_string(batches) + ", not " +
                                            std::to_string(spec.batches_per_epoch));
  }
  return Status::Ok();
}

Status CheckSizes(const SegmentSpec& spec) {
  GNND_TRY(CheckRange("parameter_floats", spec.parameter_floats, 1, kMaxFloats));
  GNND_TRY(CheckRange("optimizer_floats", spec.optimizer_floats, 0, kMaxFloats));
  GNND_TRY(CheckRange("slot_bytes", spec.slot_bytes, 1, kMaxSegmentBytes));
  GNND_TRY(CheckRange("queue_max_bytes", spec.queue_max_bytes, 1,
                      std::numeric_limits<uint64_t>::max() / 2));
  if (spec.registered_bytes > RoundUp(spec.slot_bytes, kPageBytes)) {
    return Invalid("registered_bytes", std::to_string(spec.registered_bytes) +
                                           " are more than a slot's " +
                                           std::to_string(spec.slot_bytes));
  }
  // As floating point first: the exact sum might wrap.
  const double ring = (1.0 + spec.staleness) * spec.group;
  const double buffers = spec.staleness + 4.0 + ring;
  const double optimizer_buffers = spec.staleness + 2.0;  // or fewer
  const double bytes =
      4.0 * static_cast<double>(spec.parameter_floats) * buffers +
      4.0 * static_cast<double>(spec.optimizer_floats) * optimizer_buffers +
      static_cast<double>(spec.num_slots) * (static_cast<double>(spec.slot_bytes) + kPageBytes) +
      static_cast<double>(spec.eval_chunks) * spec.chunk_counts * sizeof(uint64_t) +
      static_cast<double>(spec.kept_bytes);
  if (bytes > static_cast<double>(kMaxSegmentBytes)) {
    return Invalid("num_slots", std::to_string(spec.num_slots) + " slots of " +
                                    std::to_string(spec.slot_bytes) +
                                    " bytes beside the parameters do not fit an address space");
  }
  const double registered = static_cast<double>(spec.num_slots) *
                            static_cast<double>(RoundUp(spec.registered_bytes, kPageBytes));
  if (registered > static_cast<double>(spec.queue_max_bytes)) {
    return Invalid("registered_bytes",
                   std::to_string(spec.registered_bytes) + " of each of " +
                       std::to_string(spec.num_slots) +
                       " slots are more than queue_max_bytes; fewer slots or a larger budget");
  }
  return Status::Ok();
}

Status CheckLocality(const SegmentSpec& spec) {
  GNND_TRY(CheckRange("locality.scale", spec.locality.scale, kScaleOne, kScaleMost));
  return CheckRange("locality.adapts", spec.locality.adapts, 0, 1);
}

Status CheckHistory(const SegmentSpec& spec) {
  const HistoryConfig& history = spec.history;
  if (history.bytes == 0) return Status::Ok();
  GNND_TRY(CheckRange("history.bytes", history.bytes, 1, kMaxSegmentBytes));
  GNND_TRY(CheckRange("history.row_bytes", history.row_bytes, 1, 1U << 24));
  GNND_TRY(CheckRange("history.levels", history.levels, 1, 32));
  GNND_TRY(CheckRange("history.num_nodes", history.num_nodes, 1, UINT32_MAX - 1));
  GNND_TRY(CheckRange("history.cache_rows", history.cache_rows, 0, history.num_nodes));
  if (history.cache_rows > 0) {
    GNND_TRY(CheckRange("history.feature_bytes", history.feature_bytes, 1,
                        kMaxSegmentBytes / history.num_nodes));
  }
  // A batch sees the embeddings of the version that it is computed on, and no note may be
  // overwritten before it is carried over.
  GNND_TRY(CheckRange("staleness", spec.staleness, 0, 0));
  const double notes = 2.0 * static_cast<double>(history.bytes) * spec.group;
  if (notes <= static_cast<double>(kMaxSegmentBytes)) return Status::Ok();
  return Invalid("history.bytes", std::to_string(history.bytes) + " for each of " +
                                      std::to_string(spec.group) +
                                      " batches of a step do not fit an address space");
}

}  // namespace

Status ValidateSpec(const SegmentSpec& spec) {
  GNND_TRY(CheckBatches(spec));
  GNND_TRY(CheckEpochs(spec));
  GNND_TRY(CheckEarlyStop(spec));
  GNND_TRY(CheckRange("group", spec.group, 1, kMaxGroup));
  GNND_TRY(CheckRange("staleness", spec.staleness, 0, kMaxStaleness));
  // A group is committed as a whole, and only commits free slots: with fewer slots than its batches
  // the head group could never be complete.
  if (spec.num_slots < spec.group && !GNND_BROKEN("slots-hold-a-group")) {
    return Invalid("num_slots", "must be at least group (" + std::to_string(spec.group) + "), is " +
                                    std::to_string(spec.num_slots));
  }
  GNND_TRY(CheckRange("num_slots", spec.num_slots, 1, kMaxBatches));
  GNND_TRY(CheckHistory(spec));
  GNND_TRY(CheckLocality(spec));
  GNND_TRY(CheckRange("num_devices", spec.num_devices, 1, kMaxDevices));
  GNND_TRY(CheckRange("max_executors", spec.max_executors, 1, 1U << 20));
  return CheckSizes(spec);
}

uint64_t DefaultSlotCount(uint64_t group, uint64_t staleness, uint64_t num_devices,
                          uint64_t batches_per_epoch, uint64_t queue_max_bytes,
                          uint64_t record_bytes) {
  const uint64_t least = group * (staleness + 1) + num_devices;
  const uint64_t affordable = record_bytes == 0 ? 0 : queue_max_bytes / record_bytes;
  return std::max(least, std::min(affordable, batches_per_epoch));
}

}  // namespace gnnd
