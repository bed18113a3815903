#include "core/ledger/batches.h"

#include <algorithm>
#include <climits>
#include <string>

#include "core/base/clock.h"
#include "core/base/failpoint.h"
#include "core/ledger/news.h"

namespace gnnd {
namespace {

constexpr auto kBatchWord = LedgerTrace::Word::kBatch;

void RaiseTo(std::atomic<uint64_t>& word, uint64_t value, std::memory_order order) {
  uint64_t old = word.load(std::memory_order_relaxed);
  while (old < value && !word.compare_exchange_weak(old, value, order, std::memory_order_relaxed)) {
  }
}

}  // namespace

uint32_t OwnerOf(const Segment& segment, ExecutorId id) {
  // The broken rule: a respawned executor gets an old owner's number.
  if (GNND_BROKEN("owner-is-incarnation")) {
    return segment.executor(id.row).device.load(std::memory_order_relaxed) + 1;
  }
  return id.incarnation;
}

uint64_t QueueBytes(const Segment& segment) {
  const JobShape& shape = segment.shape();
  const uint64_t version = segment.Version();
  const uint64_t end =
      std::min(segment.queue().claim_frontier.value.load(std::memory_order_acquire),
               segment.ClaimEnd(version));
  uint64_t bytes = segment.PrefixBytes();
  for (uint64_t b = shape.CommittedBatches(version); b < end; ++b) {
    const uint64_t word = segment.ledger(shape.IndexOfBatch(b)).load(std::memory_order_acquire);
    const BatchState state =
        LedgerWord::OfBatch(word, shape.EpochOfBatch(b), shape.born_ready).state;
    if (state == BatchState::kPending || state == BatchState::kCommitted) continue;
    bytes += segment.slot_entry(shape.SlotOf(b)).bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

Batches::Batches(Segment& segment, ExecutorId id)
    : segment_(segment), shape_(segment.shape()), owner_(OwnerOf(segment, id)) {}

LedgerWord Batches::EntryOf(uint64_t batch) const {
  GNND_VISIT();
  // Acquire: pairs with the release of the executor whose transition is seen.
  const uint64_t word = segment_.ledger(shape_.IndexOfBatch(batch)).load(std::memory_order_acquire);
  return LedgerWord::OfBatch(word, shape_.EpochOfBatch(batch), shape_.born_ready);
}

uint64_t Batches::Frontier() const {
  // Batches that are born READY are never claimed: all that may be claimed may be taken.
  if (shape_.born_ready) return segment_.ClaimEnd(segment_.Version());
  // Acquire: pairs with the raise in Reserve, which comes before the batch's publication.
  return segment_.queue().claim_frontier.value.load(std::memory_order_acquire);
}

std::optional<uint64_t> Batches::FirstPending() {
  if (shape_.born_ready) return std::nullopt;
  // Reads the count of reclaims first: a later reclaim wakes us, and then it is seen.
  const uint64_t reclaims = segment_.header().reclaims.value.load(std::memory_order_acquire);
  const uint64_t version = segment_.Version();
  const uint64_t head = shape_.CommittedBatches(version);
  if (reclaims != reclaims_seen_) cursor_ = head;
  reclaims_seen_ = reclaims;
  cursor_ = std::max(cursor_, head);
  uint64_t end = segment_.ClaimEnd(version);
  if (GNND_BROKEN("slot-window") && version < shape_.TotalGroups()) {
    end = (shape_.EpochOfGroup(version) + 1) * shape_.batches_per_epoch;
  }
  while (cursor_ < end && EntryOf(cursor_).state != BatchState::kPending) ++cursor_;
  if (cursor_ >= end) return std::nullopt;
  return cursor_;
}

bool Batches::RoomFor(uint64_t batch) {
  const bool head_group = shape_.GroupOfBatch(batch) <= segment_.Version();
  if (head_group && !GNND_BROKEN("head-group-exempt")) return true;
  const uint64_t wanted = segment_.queue().largest_counted.value.load(std::memory_order_relaxed);
  return account_.Bytes(segment_) + wanted <= segment_.config().queue_max_bytes;
}

bool Batches::Claimable() {
  const std::optional<uint64_t> batch = FirstPending();
  return batch.has_value() && RoomFor(*batch);
}

std::optional<uint64_t> Batches::Claim() {
  while (true) {
    const std::optional<uint64_t> batch = FirstPending();
    if (!batch) return std::nullopt;
    if (!RoomFor(*batch) && !GNND_BROKEN("room-before-claim")) return std::nullopt;
    std::atomic<uint64_t>& word = segment_.ledger(shape_.IndexOfBatch(*batch));
    uint64_t old = word.load(std::memory_order_acquire);
    const LedgerWord entry = LedgerWord::InEpoch(old, shape_.EpochOfBatch(*batch));
    if (entry.state != BatchState::kPending) continue;
    const uint64_t mine = entry.With(BatchState::kClaimed, owner_).Pack();
    // Acquire: the slot's readers are done (their hand-in, the commit, our look at the version).
    // Release: pairs with the daemon's look at who owns what.
    if (!segment_.trace().Exchange(kBatchWord, shape_.IndexOfBatch(*batch), owner_, word, old,
                                   mine)) {
      continue;  // another Sampler was faster
    }
    GNND_FAILPOINT("claim.after");
    Reserve(*batch);
    // A step wakes as many Samplers as it frees slots. If it frees room for more, or a woken
    // Sampler had other things to do, each Sampler that claims wakes the next.
    EventWord& event = segment_.queue().sampler_event.word;
    if (event.anybody_sleeps() && Claimable() && !GNND_BROKEN("claim-wakes-next")) {
      event.Notify(kNewsBatch, 1);
    }
    GNND_FAILPOINT("claim.after_wake");
    return batch;
  }
}

void Batches::Reserve(uint64_t batch) {
  QueueHeader& queue = segment_.queue();
  segment_.slot_entry(shape_.SlotOf(batch))
      .bytes.store(queue.largest_counted.value.load(std::memory_order_relaxed),
                   std::memory_order_relaxed);
  // Raised before publishing: whoever finds the batch READY looks this far (pairs with Frontier).
  RaiseTo(queue.claim_frontier.value, batch + 1, std::memory_order_release);
  BeginEpoch(batch);
}

void Batches::BeginEpoch(uint64_t batch) {
  std::atomic<uint64_t>& start = segment_.epoch_start(shape_.EpochOfBatch(batch));
  uint64_t never = 0;
  if (start.load(std::memory_order_relaxed) != 0) return;
  start.compare_exchange_strong(never, MonotonicNs(), std::memory_order_relaxed);
}

Status LeaveEntry(const Segment& segment, const EntryPlace& place, uint32_t owner, BatchState from,
                  BatchState to, const char* what) {
  std::atomic<uint64_t>& word = place.kind == LedgerTrace::Word::kBatch
                                    ? segment.ledger(place.index)
                                    : segment.eval_word(static_cast<uint32_t>(place.index));
  uint64_t old = word.load(std::memory_order_relaxed);
  const LedgerWord entry = LedgerWord::InEpoch(old, place.epoch);
  // Release: what this owner wrote; pairs with the acquire of whoever sees `to`.
  if (entry.state != from || entry.owner != owner ||
      !segment.trace().Exchange(place.kind, place.index, owner, word, old,
                                entry.With(to, 0).Pack())) {
    return Status(Code::kInternal, std::string(what) + ": the ledger says that it is not ours; " +
                                       "a living owner was taken for dead");
  }
  return Status::Ok();
}

Status Batches::Leave(uint64_t batch, BatchState from, BatchState to, const char* what) {
  return LeaveEntry(segment_, {kBatchWord, shape_.IndexOfBatch(batch), shape_.EpochOfBatch(batch)},
                    owner_, from, to, what);
}

Status Batches::Publish(uint64_t batch, uint64_t payload_bytes, uint64_t extent_bytes) {
  QueueHeader& queue = segment_.queue();
  SlotEntry& slot = segment_.slot_entry(shape_.SlotOf(batch));
  const uint64_t counted = segment_.BeyondPrefix(payload_bytes, extent_bytes);
  slot.bytes.store(counted, std::memory_order_relaxed);
  RaiseTo(queue.largest_counted.value, counted, std::memory_order_relaxed);
  RaiseTo(slot.peak_bytes, payload_bytes, std::memory_order_relaxed);
  RaiseTo(queue.largest_record.value, payload_bytes, std::memory_order_relaxed);
  queue.published.value.fetch_add(1, std::memory_order_relaxed);
  queue.published_bytes.value.fetch_add(payload_bytes, std::memory_order_relaxed);
  GNND_FAILPOINT("publish.before");
  GNND_TRY(Leave(batch, BatchState::kClaimed, BatchState::kReady, "publishing a batch"));
  GNND_FAILPOINT("publish.before_wake");
  Announce(batch);
  return Status::Ok();
}

void Batches::Announce(uint64_t batch) {
  QueueHeader& queue = segment_.queue();
  queue.standby_event.word.Notify(kNewsBatch);
  // After the batch is READY, as a step sees it that makes it due now (AnnounceStep).
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (queue.trainer_event.word.Notify(kNewsBatch, 1) > 0) return;
  GNND_FAILPOINT("announce.nobody");
  // Every Trainer computes or holds a batch. If all hold later ones, one must give its own back.
  if (Due(batch) && !GNND_BROKEN("ready-wakes-holders")) queue.trainer_event.word.Notify(kNewsDue);
}

void Batches::AnnounceStep(uint64_t version) {
  if (version % shape_.GroupsPerEpoch() == 0) return segment_.WakeAll();
  QueueHeader& queue = segment_.queue();
  const auto freed = static_cast<int>(std::min<uint64_t>(shape_.group, INT_MAX));
  queue.sampler_event.word.Notify(kNewsLend);
  if (!GNND_BROKEN("step-wakes-samplers")) queue.sampler_event.word.Notify(kNewsBatch, freed);
  GNND_FAILPOINT("step.before_trainers");
  queue.standby_event.word.Notify(kNewsBatch);
  if (!GNND_BROKEN("step-wakes-holders")) {
    queue.trainer_event.word.Notify(NewsOfGroup(version + shape_.staleness));
  }
  // Reads the version before the look, as in Announce: one of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::optional<uint64_t> ready = FirstReady();
  if (ready && Due(*ready) && !GNND_BROKEN("step-wakes-for-ready")) Announce(*ready);
}

std::optional<uint64_t> Batches::FirstReady() const {
  const uint64_t end = Frontier();
  for (uint64_t b = shape_.CommittedBatches(segment_.Version()); b < end; ++b) {
    if (EntryOf(b).state == BatchState::kReady) return b;
  }
  return std::nullopt;
}

std::optional<uint64_t> Batches::Take(Which which) {
  const uint64_t end = Frontier();
  for (uint64_t b = shape_.CommittedBatches(segment_.Version()); b < end; ++b) {
    GNND_VISIT();
    std::atomic<uint64_t>& word = segment_.ledger(shape_.IndexOfBatch(b));
    uint64_t old = word.load(std::memory_order_acquire);
    const LedgerWord entry = LedgerWord::OfBatch(old, shape_.EpochOfBatch(b), shape_.born_ready);
    if (entry.state != BatchState::kReady) continue;
    if (which == Which::kDueOnly && !Due(b)) return std::nullopt;  // nor are later ones
    const uint64_t mine = entry.With(BatchState::kTaken, owner_).Pack();
    // Acquire: the record (Publish). Release: pairs with the daemon's look at who owns what.
    if (segment_.trace().Exchange(kBatchWord, shape_.IndexOfBatch(b), owner_, word, old, mine)) {
      if (shape_.born_ready) BeginEpoch(b);
      GNND_FAILPOINT("take.after");
      return b;
    }
  }
  return std::nullopt;
}

Status Batches::GiveBack(uint64_t batch) {
  GNND_FAILPOINT("give_back.before");
  GNND_TRY(Leave(batch, BatchState::kTaken, BatchState::kReady, "giving back a batch"));
  GNND_FAILPOINT("give_back.before_wake");
  Announce(batch);
  return Status::Ok();
}

Status Batches::MarkTrained(uint64_t batch) {
  GNND_FAILPOINT("hand_in.before");
  GNND_TRY(Leave(batch, BatchState::kTaken, BatchState::kTrained, "handing in a gradient"));
  GNND_FAILPOINT("hand_in.after");
  return Status::Ok();
}

bool Batches::Due(uint64_t batch) const {
  const uint64_t version = segment_.Version();
  const uint64_t epoch = shape_.EpochOfBatch(batch);
  if (version < shape_.RequiredVersion(shape_.GroupOfBatch(batch)) && !GNND_BROKEN("due-version")) {
    return false;
  }
  if (epoch == 0 || GNND_BROKEN("evaluation-barrier")) return true;
  if (!segment_.EvaluationCommitted(epoch - 1)) return false;
  return epoch < segment_.EpochsToTrain() || GNND_BROKEN("stop-ends-training");
}

bool Batches::ReadyBelow(uint64_t batch) const {
  for (uint64_t b = shape_.CommittedBatches(segment_.Version()); b < batch; ++b) {
    if (EntryOf(b).state == BatchState::kReady) return true;
  }
  return false;
}

bool Batches::ClaimableBelow(uint64_t batch) {
  const std::optional<uint64_t> pending = FirstPending();
  return pending.has_value() && *pending < batch && RoomFor(*pending);
}

bool Batches::DueBatchReady() const {
  const std::optional<uint64_t> ready = FirstReady();
  return ready.has_value() && Due(*ready);
}

uint64_t Batches::Depth(uint64_t most) const {
  const uint64_t end = Frontier();
  uint64_t depth = 0;
  for (uint64_t b = shape_.CommittedBatches(segment_.Version()); b < end && depth < most; ++b) {
    if (EntryOf(b).state == BatchState::kReady) ++depth;
  }
  return depth;
}

bool Batches::HeadGroupTrained(uint64_t version) {
  if (version >= shape_.TotalGroups()) return false;
  const uint64_t end = shape_.FirstBatch(version + 1);
  trained_to_ = std::max(trained_to_, shape_.FirstBatch(version));
  while (trained_to_ < end && EntryOf(trained_to_).state == BatchState::kTrained) ++trained_to_;
  return trained_to_ >= end;
}

bool Batches::Drained() {
  const uint64_t version = segment_.Version();
  if (HeadGroupTrained(version) || DueBatchReady()) return false;
  const uint64_t end = Frontier();
  for (uint64_t b = shape_.CommittedBatches(version); b < end; ++b) {
    const BatchState state = EntryOf(b).state;
    if (state == BatchState::kClaimed || state == BatchState::kTaken) return false;
  }
  return true;
}

}  // namespace gnnd
