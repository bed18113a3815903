#include "core/ledger/shape.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/ledger/ledger.h"

namespace gnnd {

TEST_CASE("groups tile each epoch, and the last one may be short") {
  const JobShape shape{7, 2, 3, 1, 4};
  CHECK(shape.GroupsPerEpoch() == 3);
  CHECK(shape.TotalGroups() == 6);
  CHECK(shape.FirstBatch(2) == 6);
  CHECK(shape.FirstBatch(3) == 7);  // not 9: groups never span epochs
  CHECK(shape.FirstBatch(6) == 14);
  for (uint64_t g = 0; g < shape.TotalGroups(); ++g) {
    for (uint64_t b = shape.FirstBatch(g); b < shape.FirstBatch(g + 1); ++b) {
      CHECK(shape.GroupOfBatch(b) == g);
    }
  }
}

TEST_CASE("the delay is S groups and restarts with each epoch") {
  const JobShape shape{10, 2, 2, 2, 4};  // 5 groups an epoch
  const uint64_t required[] = {0, 0, 0, 1, 2, 5, 5, 5, 6, 7};
  for (uint64_t g = 0; g < 10; ++g) CHECK(shape.RequiredVersion(g) == required[g]);
}

TEST_CASE(
    "no two batches that may be in flight together share a ring entry or a version's buffer") {
  for (uint64_t staleness = 0; staleness < 4; ++staleness) {
    for (uint64_t group = 1; group < 5; ++group) {
      const JobShape shape{11, 3, group, staleness, group};
      for (uint64_t version = 0; version < shape.TotalGroups(); ++version) {
        // Groups that may be computed before `version` is overtaken: those whose delay it
        // satisfies.
        std::vector<bool> used(shape.RingEntries());
        for (uint64_t g = version; g < shape.TotalGroups(); ++g) {
          if (shape.RequiredVersion(g) > version) break;
          // The buffer it reads is not the one that the next steps up to its own write.
          for (uint64_t next = version + 1; next <= g; ++next) {
            CHECK(shape.ParameterBuffer(next) != shape.ParameterBuffer(shape.RequiredVersion(g)));
          }
          for (uint64_t b = shape.FirstBatch(g); b < shape.FirstBatch(g + 1); ++b) {
            CHECK_FALSE(used[shape.RingEntry(b)]);
            used[shape.RingEntry(b)] = true;
          }
        }
      }
    }
  }
}

TEST_CASE("batches may be claimed up to the free slots, within the epoch that is open") {
  const JobShape shape{7, 2, 1, 0, 3};
  CHECK(shape.ClaimEnd(0) == 3);
  CHECK(shape.ClaimEnd(3) == 6);
  CHECK(shape.ClaimEnd(5) == 7);
  CHECK(shape.ClaimEnd(6) == 7);  // epoch 1 opens when all of epoch 0 is committed
  CHECK(shape.ClaimEnd(7) == 10);
  CHECK(shape.ClaimEnd(14) == 14);
}

TEST_CASE("a ledger word keeps its four fields, and a zeroed one is PENDING in epoch 0") {
  const LedgerWord word{BatchState::kTaken, kMaxAttempt, kMaxSegmentEpochs - 1, kMaxIncarnation};
  const LedgerWord same = LedgerWord::Unpack(word.Pack());
  CHECK(same.state == word.state);
  CHECK(same.attempt == word.attempt);
  CHECK(same.epoch == word.epoch);
  CHECK(same.owner == word.owner);
  CHECK(LedgerWord::InEpoch(0, 0).state == BatchState::kPending);
}

TEST_CASE("an earlier epoch's word reads as PENDING, a later one's as COMMITTED") {
  const uint64_t word = LedgerWord{BatchState::kTrained, 2, 5, 0}.Pack();
  CHECK(LedgerWord::InEpoch(word, 5).state == BatchState::kTrained);
  CHECK(LedgerWord::InEpoch(word, 6).state == BatchState::kPending);
  CHECK(LedgerWord::InEpoch(word, 6).attempt == 0);
  CHECK(LedgerWord::InEpoch(word, 4).state == BatchState::kCommitted);
}

TEST_CASE("attempts count reclaims and saturate") {
  LedgerWord word{BatchState::kClaimed, 0, 1, 9};
  word = word.Reclaimed(BatchState::kPending);
  CHECK(word.attempt == 1);
  CHECK(word.owner == 0);
  word.attempt = kMaxAttempt;
  CHECK(word.Reclaimed(BatchState::kReady).attempt == kMaxAttempt);
}

}  // namespace gnnd
