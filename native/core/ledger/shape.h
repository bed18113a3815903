#pragma once

#include <algorithm>
#include <cstdint>

// The arithmetic of a job's progress: pure functions of the frozen shape and of one number, the
// *version* (committed groups), from which the state of the job follows.
//
// Here batches b, groups g and epochs e are numbered over the whole job, from 0:
// b = e * M + index in the epoch; groups never span epochs, so an epoch has ceil(M / G) of them.

namespace gnnd {

struct JobShape {
  uint64_t batches_per_epoch;  // M
  uint64_t epochs;
  uint64_t group;      // G, batches averaged by one step
  uint64_t staleness;  // S
  uint64_t num_slots;
  bool born_ready = false;  // batches are rows: no Sampler makes them, and they have no record

  uint64_t GroupsPerEpoch() const { return (batches_per_epoch + group - 1) / group; }
  uint64_t TotalGroups() const { return epochs * GroupsPerEpoch(); }
  uint64_t TotalBatches() const { return epochs * batches_per_epoch; }

  uint64_t EpochOfBatch(uint64_t batch) const { return batch / batches_per_epoch; }
  uint64_t IndexOfBatch(uint64_t batch) const { return batch % batches_per_epoch; }
  uint64_t GroupOfBatch(uint64_t batch) const {
    return EpochOfBatch(batch) * GroupsPerEpoch() + IndexOfBatch(batch) / group;
  }
  uint64_t EpochOfGroup(uint64_t g) const { return g / GroupsPerEpoch(); }
  // The first batch of group g; FirstBatch(g + 1) is its end, also across epochs.
  uint64_t FirstBatch(uint64_t g) const {
    return EpochOfGroup(g) * batches_per_epoch + (g % GroupsPerEpoch()) * group;
  }
  uint64_t CommittedBatches(uint64_t version) const { return FirstBatch(version); }

  // Number of batches in the group whose commit made this version; 0 for version 0.
  uint32_t BatchesBefore(uint64_t version) const {
    return version == 0 ? 0 : static_cast<uint32_t>(FirstBatch(version) - FirstBatch(version - 1));
  }

  // The version on which group g is computed: a fixed delay of S groups that restarts with each
  // epoch, and exactly this version, not a bound.
  uint64_t RequiredVersion(uint64_t g) const {
    const uint64_t first = EpochOfGroup(g) * GroupsPerEpoch();
    return std::max(first, g >= staleness ? g - staleness : 0);
  }

  // Batches from CommittedBatches(version) up to here (exclusive) may be claimed: their slots are
  // free, and their epoch is open, because all batches of the one before are committed.
  uint64_t ClaimEnd(uint64_t version) const {
    if (version >= TotalGroups()) return TotalBatches();
    const uint64_t epoch_end = (EpochOfGroup(version) + 1) * batches_per_epoch;
    return std::min(CommittedBatches(version) + num_slots, epoch_end);
  }

  uint64_t SlotOf(uint64_t batch) const { return batch % num_slots; }
  uint64_t ParameterBuffers() const { return staleness + 2; }
  uint64_t ParameterBuffer(uint64_t version) const { return version % ParameterBuffers(); }
  uint64_t RingEntries() const { return (staleness + 1) * group; }
  // The ring entry of a batch's gradient until its group is committed: fixed by its number alone.
  uint64_t RingEntry(uint64_t batch) const {
    const uint64_t g = GroupOfBatch(batch);
    return (g % (staleness + 1)) * group + (batch - FirstBatch(g));
  }
};

}  // namespace gnnd
