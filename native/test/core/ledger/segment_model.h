#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "core/ledger/shape.h"

// The segment's rules (docs/formats/segment.md) as an abstract model, for explore.h: what executors
// may do is one step at a time, in any order, and any of them may be stopped at any point, killed,
// reaped, reclaimed from and started again. Memory is sequentially consistent, a wait is a step
// that is not possible yet, records have sizes of 1 and 2, and one chunk makes an evaluation.

namespace gnnd::test {

struct ModelJob {
  JobShape shape;  // at most kMaxBatches batches, kMaxSlots slots, ring entries and buffers
  uint32_t bytes = 8;
  uint32_t samplers = 2;
  uint32_t depth = 2;     // claims that a Sampler may hold
  uint32_t trainers = 2;  // the first may be a standby
  bool standby = false;   // on the first Sampler's device
  bool ahead = false;     // Trainers take one ahead while they compute
  uint32_t deaths = 1;    // at most 2
  std::string dropped;    // rule that nobody keeps
};

class SegmentModel {
 public:
  static constexpr uint32_t kMaxBatches = 6;
  static constexpr uint32_t kMaxPlaces = 4;  // slots, ring entries, parameter buffers
  static constexpr uint32_t kMaxSamplers = 2;
  static constexpr uint32_t kMaxProcesses = 5;

  enum BatchState : uint8_t { kPending, kClaimed, kReady, kTaken, kTrained };
  enum Life : uint8_t { kRuns, kStopped, kReaped, kGone };
  enum Doing : uint8_t { kNothing, kLooked, kComputes, kEvaluates, kApplies };
  enum Turn : uint8_t { kStandbyHolds = 1, kStandbyPresent = 2, kSamplerGone = 4 };

  struct Process {
    uint8_t life;
    uint8_t starts;   // how often it was started again
    uint8_t hand[2];  // batch + 1; of a Sampler in the order of starts, of a Trainer: held, ahead
    uint8_t doing;
    uint8_t owed;  // 1 + starts of the one whose batches are to be reclaimed
  };
  struct Place {    // a slot with its record, or a ring entry with its gradient
    uint8_t batch;  // + 1
    uint8_t is;     // slot: 1 = complete; ring: version + 1 that it was computed on
  };
  struct State {
    uint8_t version;
    uint8_t evaluated;   // epochs
    uint8_t eval_owner;  // OwnerOf, 0 = nobody
    uint8_t deaths;
    uint8_t largest;  // record published
    uint8_t turn;
    uint8_t lock;                // 1 + process
    uint8_t batch[kMaxBatches];  // BatchState * 16 + owner
    uint8_t bytes[kMaxPlaces];   // size of each slot's content
    Place slot[kMaxPlaces];
    Place ring[kMaxPlaces];
    uint8_t buffer[kMaxPlaces];  // version + 1; 0 = torn
    Process process[kMaxProcesses];
  };
  using Emit = std::function<void(const char* step, const State& next, const char* violation)>;

  explicit SegmentModel(const ModelJob& job) : job_(job), shape_(job.shape) {}

  State Initial() const;
  void Next(const State& state, const Emit& emit) const;
  bool Ends(const State& state) const {
    return state.version == shape_.TotalGroups() && state.evaluated == shape_.epochs;
  }

 private:
  struct At;  // a state, a process, and where its steps go

  bool Keeps(const char* rule) const { return job_.dropped != rule; }
  bool IsSampler(uint32_t p) const { return p < job_.samplers; }
  bool IsStandby(uint32_t p) const { return job_.standby && p == job_.samplers; }
  uint8_t OwnerOf(uint32_t p, uint32_t starts) const {
    return static_cast<uint8_t>(1 + p +
                                (Keeps("owner-is-incarnation") ? kMaxProcesses * starts : 0));
  }
  uint8_t SizeOf(uint64_t batch) const { return static_cast<uint8_t>(1 + batch % 2); }

  // Properties of a state.
  uint64_t Head(const State& s) const { return shape_.CommittedBatches(s.version); }
  uint64_t ClaimEnd(const State& s) const;
  uint64_t FirstIn(const State& s, BatchState state, uint64_t end) const;
  bool RoomFor(const State& s, uint64_t batch) const;
  bool Claimable(const State& s) const;
  bool EvalOpen(const State& s) const;
  bool Due(const State& s, uint64_t batch) const;
  bool HeadTrained(const State& s) const;
  bool TrainingDone(const State& s) const { return s.version == shape_.TotalGroups(); }
  bool SamplerHolds(const State& s, uint32_t p) const {
    return !job_.standby || p != 0 || (s.turn & kStandbyHolds) == 0;
  }
  bool MustYield(const State& s) const;
  // Whether another one of its kind is left.
  bool IsOneOfSeveral(const State& s, uint32_t p) const;

  void SamplerSteps(const At& at) const;
  void Claim(const At& at) const;
  void Finish(const At& at) const;
  void TrainerSteps(const At& at) const;
  void Look(const At& at) const;
  void Hold(const At& at) const;
  void Take(const At& at, const char* step, uint32_t hand) const;
  void EndCompute(const At& at) const;
  void Apply(const At& at) const;
  void DaemonSteps(const At& at) const;
  void Replace(const At& at) const;
  void Reclaim(const At& at) const;
  const char* ReadsRight(const State& s, uint64_t batch) const;

  ModelJob job_;
  JobShape shape_;
};

}  // namespace gnnd::test
