#include "segment_model.h"

namespace gnnd::test {
namespace {

constexpr uint8_t Word(SegmentModel::BatchState state, uint8_t owner) {
  return static_cast<uint8_t>(state * 16 + owner);
}
SegmentModel::BatchState StateOf(uint8_t word) {
  return static_cast<SegmentModel::BatchState>(word / 16);
}
uint8_t HandOf(uint64_t batch) { return static_cast<uint8_t>(batch + 1); }

}  // namespace

struct SegmentModel::At {
  const State& state;
  uint32_t p;
  const Emit& emit;

  const Process& process() const { return state.process[p]; }
};

SegmentModel::State SegmentModel::Initial() const {
  State state{};
  state.buffer[0] = 1;
  if (job_.standby) state.turn = kStandbyPresent;
  return state;
}

void SegmentModel::Next(const State& state, const Emit& emit) const {
  for (uint32_t p = 0; p < job_.samplers + job_.trainers; ++p) {
    const At at{state, p, emit};
    if (state.process[p].life == kRuns) {
      if (IsSampler(p)) {
        SamplerSteps(at);
      } else {
        TrainerSteps(at);
      }
    }
    DaemonSteps(at);
  }
}

// ---- what is to be seen ---------------------------------------------------------------------

uint64_t SegmentModel::ClaimEnd(const State& s) const {
  if (!Keeps("slot-window") && s.version < shape_.TotalGroups()) {
    return (shape_.EpochOfGroup(s.version) + 1) * shape_.batches_per_epoch;
  }
  return shape_.ClaimEnd(s.version);
}

uint64_t SegmentModel::FirstIn(const State& s, BatchState state, uint64_t end) const {
  uint64_t b = Head(s);
  while (b < end && StateOf(s.batch[b]) != state) ++b;
  return b;
}

bool SegmentModel::RoomFor(const State& s, uint64_t batch) const {
  if (shape_.GroupOfBatch(batch) <= s.version && Keeps("head-group-exempt")) return true;
  uint32_t bytes = s.largest;
  for (uint64_t b = Head(s); b < ClaimEnd(s); ++b) {
    if (StateOf(s.batch[b]) != kPending && b != batch) bytes += s.bytes[shape_.SlotOf(b)];
  }
  return bytes <= job_.bytes;
}

bool SegmentModel::Claimable(const State& s) const {
  const uint64_t end = ClaimEnd(s);
  const uint64_t batch = FirstIn(s, kPending, end);
  return batch < end && RoomFor(s, batch);
}

bool SegmentModel::EvalOpen(const State& s) const {
  return s.version > 0 && s.version % shape_.GroupsPerEpoch() == 0 &&
         s.version / shape_.GroupsPerEpoch() > s.evaluated;
}

bool SegmentModel::Due(const State& s, uint64_t batch) const {
  if (Keeps("due-version") && s.version < shape_.RequiredVersion(shape_.GroupOfBatch(batch))) {
    return false;
  }
  return s.evaluated >= shape_.EpochOfBatch(batch) || !Keeps("evaluation-barrier");
}

bool SegmentModel::HeadTrained(const State& s) const {
  if (TrainingDone(s)) return false;
  for (uint64_t b = Head(s); b < shape_.FirstBatch(s.version + 1u); ++b) {
    if (StateOf(s.batch[b]) != kTrained) return false;
  }
  return true;
}

// Before a take (trainer_loop.cc): with standby Trainers always on and a low-water mark of one.
bool SegmentModel::MustYield(const State& s) const {
  if ((s.turn & kSamplerGone) != 0 || !Claimable(s)) return false;
  const uint64_t end = shape_.TotalBatches();
  const uint64_t ready = FirstIn(s, kReady, end);
  uint32_t depth = 0;
  for (uint64_t b = ready; b < end; ++b) depth += StateOf(s.batch[b]) == kReady;
  return depth <= 1 || !Due(s, ready);
}

// ---- Sampler --------------------------------------------------------------------------------

void SegmentModel::SamplerSteps(const At& at) const {
  const State& s = at.state;
  const Process& me = at.process();
  const uint32_t held = (me.hand[0] != 0) + (me.hand[1] != 0);
  const bool may = SamplerHolds(s, at.p) || !Keeps("turn-holder-changes");
  const uint64_t end = ClaimEnd(s);
  const bool room =
      Claimable(s) || (!Keeps("room-before-claim") && FirstIn(s, kPending, end) < end);
  // Claims as far as it can, else finishes what was started first, else waits or lends its device.
  if (!TrainingDone(s) && may && held < job_.depth && room) return Claim(at);
  if (held == job_.depth || (held > 0 && Keeps("waits-empty-handed"))) Finish(at);
  if (held > 0 && Keeps("lends-empty-handed")) return;
  if (!job_.standby || at.p != 0 || held == job_.depth) return;
  State next = s;
  if (TrainingDone(s)) {
    next.turn |= kSamplerGone | kStandbyHolds;
    if (next.turn != s.turn) at.emit("leaves", next, nullptr);
  } else if (may && SamplerHolds(s, at.p) && (s.turn & kStandbyPresent) != 0) {
    next.turn |= kStandbyHolds;
    at.emit("lends", next, nullptr);
  }
}

void SegmentModel::Claim(const At& at) const {
  State next = at.state;
  const uint64_t batch = FirstIn(next, kPending, ClaimEnd(next));
  const uint64_t slot = shape_.SlotOf(batch);
  Process& me = next.process[at.p];
  next.batch[batch] = Word(kClaimed, OwnerOf(at.p, me.starts));
  next.bytes[slot] = next.largest;
  next.slot[slot] = {HandOf(batch), 0};
  me.hand[me.hand[0] == 0 ? 0 : 1] = HandOf(batch);
  // The device is used from here on until the record is complete.
  const bool both = job_.standby && at.p == 0 && next.process[job_.samplers].life != kReaped &&
                    (next.process[job_.samplers].doing == kComputes ||
                     next.process[job_.samplers].doing == kEvaluates);
  at.emit("claims", next, both ? "a Sampler and a standby use the device at once" : nullptr);
}

void SegmentModel::Finish(const At& at) const {
  State next = at.state;
  Process& me = next.process[at.p];
  const uint64_t batch = me.hand[0] - 1u;
  const uint64_t slot = shape_.SlotOf(batch);
  if (!Keeps("room-before-claim") && !RoomFor(next, batch)) return;
  me.hand[0] = me.hand[1];
  me.hand[1] = 0;
  next.slot[slot] = {HandOf(batch), 1};
  if (next.batch[batch] != Word(kClaimed, OwnerOf(at.p, me.starts))) {
    // Publishing finds that we were taken for dead; the slot is written already.
    me.life = kStopped;
    at.emit("finishes what is not its own", next, nullptr);
    return;
  }
  next.bytes[slot] = SizeOf(batch);
  next.largest = std::max(next.largest, SizeOf(batch));
  next.batch[batch] = Word(kReady, 0);
  at.emit("publishes", next, nullptr);
}

// ---- Trainer --------------------------------------------------------------------------------

void SegmentModel::TrainerSteps(const At& at) const {
  const State& s = at.state;
  State next = s;
  Process& me = next.process[at.p];
  switch (me.doing) {
    case kComputes:
      if (job_.ahead && me.hand[1] == 0) Take(at, "takes ahead", 1);
      return EndCompute(at);
    case kEvaluates: {
      me.doing = kNothing;
      next.eval_owner = 0;
      ++next.evaluated;
      const uint64_t version = next.evaluated * shape_.GroupsPerEpoch();
      const bool torn = s.buffer[shape_.ParameterBuffer(version)] != version + 1;
      return at.emit("evaluates", next, torn ? "an evaluation of torn parameters" : nullptr);
    }
    case kApplies:
      me.doing = kNothing;
      next.lock = 0;
      ++next.version;
      next.buffer[shape_.ParameterBuffer(next.version)] = static_cast<uint8_t>(next.version + 1);
      return at.emit("commits", next, nullptr);
    case kLooked:
      // The batch that it saw may be over.
      me.doing = kNothing;
      return Take({next, at.p, at.emit}, "takes", 0);
    default:
      break;
  }
  Apply(at);
  if (me.hand[0] != 0) return Hold(at);
  if (!IsStandby(at.p) || (s.turn & kStandbyHolds) != 0) Look(at);
}

void SegmentModel::Apply(const At& at) const {
  const State& s = at.state;
  if (s.lock != 0 || !HeadTrained(s)) return;
  State next = s;
  const char* violation = nullptr;
  for (uint64_t b = Head(s); b < shape_.FirstBatch(s.version + 1u); ++b) {
    const Place& entry = s.ring[shape_.RingEntry(b)];
    const uint64_t version = shape_.RequiredVersion(shape_.GroupOfBatch(b));
    if (entry.batch != HandOf(b)) violation = "a gradient of another batch is applied";
    if (entry.is != version + 1) violation = "a gradient on another version is applied";
  }
  next.lock = static_cast<uint8_t>(at.p + 1);
  next.process[at.p].doing = kApplies;
  next.buffer[shape_.ParameterBuffer(s.version + 1u)] = 0;
  at.emit("applies", next, violation);
}

void SegmentModel::Look(const At& at) const {
  const State& s = at.state;
  if (IsStandby(at.p) && MustYield(s)) {
    State next = s;
    next.turn &= static_cast<uint8_t>(~kStandbyHolds);
    return at.emit("yields", next, nullptr);
  }
  if (EvalOpen(s)) {
    if (s.eval_owner != 0) return;
    State next = s;
    next.eval_owner = OwnerOf(at.p, at.process().starts);
    next.process[at.p].doing = kEvaluates;
    const bool both =
        IsStandby(at.p) && next.process[0].hand[0] != 0 && next.process[0].life == kRuns;
    return at.emit("begins to evaluate", next,
                   both ? "a Sampler and a standby use the device at once" : nullptr);
  }
  if (FirstIn(s, kReady, shape_.TotalBatches()) == shape_.TotalBatches()) return;
  State next = s;
  next.process[at.p].doing = kLooked;
  at.emit("looks", next, nullptr);
}

void SegmentModel::Take(const At& at, const char* step, uint32_t hand) const {
  State next = at.state;
  const uint64_t batch = FirstIn(next, kReady, shape_.TotalBatches());
  if (batch == shape_.TotalBatches()) {
    if (hand == 0) at.emit("finds nothing", next, nullptr);
    return;
  }
  Process& me = next.process[at.p];
  next.batch[batch] = Word(kTaken, OwnerOf(at.p, me.starts));
  me.hand[hand] = HandOf(batch);
  at.emit(step, next, nullptr);
}

void SegmentModel::Hold(const At& at) const {
  const State& s = at.state;
  State next = s;
  Process& me = next.process[at.p];
  const uint64_t batch = me.hand[0] - 1u;
  if (Due(s, batch)) {
    me.doing = kComputes;
    const char* violation = ReadsRight(s, batch);
    if (IsStandby(at.p) && s.process[0].hand[0] != 0 && s.process[0].life == kRuns) {
      violation = "a Sampler and a standby use the device at once";
    }
    return at.emit("computes", next, violation);
  }
  const bool lower = FirstIn(s, kReady, batch) < batch && Keeps("give-back-for-lower");
  const bool evaluation = EvalOpen(s) && Keeps("give-back-for-evaluation");
  const uint64_t pending = FirstIn(s, kPending, batch);
  const bool claimable = IsStandby(at.p) && (s.turn & kSamplerGone) == 0 && pending < batch &&
                         RoomFor(s, pending) && Keeps("standby-gives-back-turn");
  if (!lower && !evaluation && !claimable) return;
  next.batch[batch] = Word(kReady, 0);
  me.hand[0] = 0;
  if (!lower && !evaluation) next.turn &= static_cast<uint8_t>(~kStandbyHolds);
  at.emit("gives back", next, nullptr);
}

const char* SegmentModel::ReadsRight(const State& s, uint64_t batch) const {
  const Place& slot = s.slot[shape_.SlotOf(batch)];
  if (slot.batch != HandOf(batch) || slot.is != 1)
    return "a record is overwritten while it is read";
  const uint64_t version = shape_.RequiredVersion(shape_.GroupOfBatch(batch));
  if (s.buffer[shape_.ParameterBuffer(version)] != version + 1) return "torn parameters are read";
  return nullptr;
}

void SegmentModel::EndCompute(const At& at) const {
  State next = at.state;
  Process& me = next.process[at.p];
  const uint64_t batch = me.hand[0] - 1u;
  const char* violation = ReadsRight(next, batch);
  const uint64_t version = shape_.RequiredVersion(shape_.GroupOfBatch(batch));
  next.ring[shape_.RingEntry(batch)] = {HandOf(batch), static_cast<uint8_t>(version + 1)};
  me.hand[0] = me.hand[1];
  me.hand[1] = 0;
  me.doing = kNothing;
  if (next.batch[batch] != Word(kTaken, OwnerOf(at.p, me.starts))) {
    me.life = kStopped;
    at.emit("hands in what is not its own", next, violation);
    return;
  }
  next.batch[batch] = Word(kTrained, 0);
  at.emit("hands in", next, violation);
}

// ---- the daemon, and death ------------------------------------------------------------------

void SegmentModel::DaemonSteps(const At& at) const {
  const State& s = at.state;
  const Process& it = at.process();
  State next = s;
  Process& me = next.process[at.p];
  if (it.life == kRuns && s.deaths < job_.deaths && !Ends(s)) {
    ++next.deaths;
    me.life = kStopped;
    at.emit("is stopped", next, nullptr);
    next = s;
  }
  if (it.life == kStopped && it.owed == 0) {
    // Killed and waited for. The mutex is robust: it is free then.
    me.owed = static_cast<uint8_t>(1 + it.starts);
    me.life = kReaped;
    me.hand[0] = me.hand[1] = me.doing = 0;
    if (s.lock == at.p + 1) next.lock = 0;
    at.emit("is killed and reaped", next, nullptr);
    next = s;
    if (!Keeps("reap-before-reclaim")) {
      me.owed = static_cast<uint8_t>(1 + it.starts);
      Reclaim({next, at.p, at.emit});
      next = s;
      me.life = kRuns;
      at.emit("wakes up", next, nullptr);
      next = s;
    }
  }
  if (it.owed != 0) Reclaim(at);
  // A dead standby's turn is repaired before another standby comes.
  if (it.life == kReaped && (it.owed == 0 || !IsStandby(at.p))) Replace(at);
}

bool SegmentModel::IsOneOfSeveral(const State& s, uint32_t p) const {
  const uint32_t first = IsSampler(p) ? 0 : job_.samplers;
  const uint32_t end = IsSampler(p) ? job_.samplers : job_.samplers + job_.trainers;
  uint32_t others = 0;
  for (uint32_t q = first; q < end; ++q) others += q != p && s.process[q].life != kGone;
  return others > 0;
}

// Another one comes in its place, or none.
void SegmentModel::Replace(const At& at) const {
  State next = at.state;
  Process& me = next.process[at.p];
  me.life = kRuns;
  ++me.starts;
  if (IsStandby(at.p)) {
    next.turn |= kStandbyPresent;
    if ((next.turn & kSamplerGone) != 0) next.turn |= kStandbyHolds;
  }
  at.emit("is started again", next, nullptr);
  if (at.process().owed != 0 || !IsOneOfSeveral(at.state, at.p)) return;
  next = at.state;
  me.life = kGone;
  if (job_.standby && at.p == 0 && Keeps("gone-sampler-leaves-turn")) {
    next.turn |= kSamplerGone | kStandbyHolds;
  }
  at.emit("is given up", next, nullptr);
}

void SegmentModel::Reclaim(const At& at) const {
  State next = at.state;
  Process& me = next.process[at.p];
  const uint8_t owner = OwnerOf(at.p, me.owed - 1u);
  const bool stolen = me.life == kRuns && owner == OwnerOf(at.p, me.starts);
  for (uint64_t b = 0; b < shape_.TotalBatches(); ++b) {
    if (next.batch[b] == Word(kClaimed, owner)) {
      next.batch[b] = Word(kPending, 0);
      if (!Keeps("reclaim-takes-both")) break;
    }
    if (next.batch[b] == Word(kTaken, owner)) next.batch[b] = Word(kReady, 0);
  }
  if (next.eval_owner == owner) next.eval_owner = 0;
  if (IsStandby(at.p) && Keeps("turn-repair")) {
    next.turn &= static_cast<uint8_t>(~kStandbyPresent);
    if ((next.turn & kSamplerGone) == 0) next.turn &= static_cast<uint8_t>(~kStandbyHolds);
  }
  me.owed = 0;
  const bool lost = stolen && (me.hand[0] != 0 || me.doing == kEvaluates);
  at.emit("is reclaimed from", next, lost ? "a successor's batches are reclaimed" : nullptr);
}

}  // namespace gnnd::test
