#include "core/ledger/segment.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/draw/philox.h"
#include "core/image/image.h"
#include "core/ledger/batches.h"
#include "core/ledger/executor_log.h"
#include "core/ledger/row_shares.h"

namespace gnnd {
namespace {

SegmentSpec SmallSpec() {
  SegmentSpec spec;
  spec.batches_per_epoch = 5;
  spec.epochs = 2;
  spec.group = 2;
  spec.staleness = 1;
  spec.num_slots = 5;
  spec.slot_bytes = 10'000;
  spec.queue_max_bytes = 1'000'000;
  spec.parameter_floats = 20;
  spec.optimizer_floats = 40;
  spec.num_devices = 2;
  spec.max_executors = 3;
  spec.batch_size = 10;
  spec.train_nodes = 48;
  return spec;
}

Segment Make(const SegmentSpec& spec) {
  Result<UniqueFd> fd = Segment::Create(spec);
  REQUIRE(fd.ok());
  Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
  REQUIRE(segment.ok());
  return std::move(*segment);
}

// Changes the header's bytes, then tries to attach.
template <typename Change>
Status AttachAfter(Change change) {
  Result<UniqueFd> fd = Segment::Create(SmallSpec());
  REQUIRE(fd.ok());
  {
    Result<Mapping> mapping = Mapping::Map(fd->get(), true);
    REQUIRE(mapping.ok());
    change(reinterpret_cast<SegmentHeader*>(mapping->data()));
  }
  return Segment::Attach(fd->get(), Access::kReadWrite).status();
}

}  // namespace

TEST_CASE("a specification that cannot be is refused with the name of its field") {
  using Change = void (*)(SegmentSpec&);
  const std::pair<const char*, Change> cases[] = {
      {"batches_per_epoch", [](SegmentSpec& s) { s.batches_per_epoch = 0; }},
      {"batches_per_epoch", [](SegmentSpec& s) { s.train_nodes = 51; }},
      {"batch_size", [](SegmentSpec& s) { s.batch_size = 0; }},
      {"train_nodes", [](SegmentSpec& s) { s.train_nodes = 0; }},
      {"epochs", [](SegmentSpec& s) { s.epochs = 0; }},
      {"epochs", [](SegmentSpec& s) { s.first_epoch = kTrialEpoch; }},
      {"first_epoch", [](SegmentSpec& s) { s.first_epoch = kTrialEpoch - 1; }},
      {"group", [](SegmentSpec& s) { s.group = 0; }},
      {"num_slots", [](SegmentSpec& s) { s.num_slots = 1; }},
      {"num_slots",
       [](SegmentSpec& s) {
         s.num_slots = uint64_t{1} << 20;
         s.slot_bytes = uint64_t{1} << 30;
       }},
      {"slot_bytes", [](SegmentSpec& s) { s.slot_bytes = 0; }},
      {"queue_max_bytes", [](SegmentSpec& s) { s.queue_max_bytes = 0; }},
      {"parameter_floats", [](SegmentSpec& s) { s.parameter_floats = 0; }},
      {"num_devices", [](SegmentSpec& s) { s.num_devices = kMaxDevices + 1; }},
      {"max_executors", [](SegmentSpec& s) { s.max_executors = 0; }},
      {"chunk_counts", [](SegmentSpec& s) { s.chunk_counts = kMaxChunkCounts + 1; }},
      {"kept_bytes", [](SegmentSpec& s) { s.kept_bytes = uint64_t{1} << 50; }},
      {"early_stop.patience",
       [](SegmentSpec& s) {
         s.early_stop.patience = 1;
         s.evaluate_every = 0;
         s.eval_chunks = 1;
       }},
      {"early_stop.min_delta", [](SegmentSpec& s) { s.early_stop.min_delta = -1; }},
      {"early_stop.min_delta", [](SegmentSpec& s) { s.early_stop.min_delta = std::nan(""); }},
  };
  for (const auto& [field, change] : cases) {
    SegmentSpec spec = SmallSpec();
    change(spec);
    const Status status = ValidateSpec(spec);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK_MESSAGE(status.message().rfind(field, 0) == 0, status.message());
    CHECK(Segment::Create(spec).status().code() == Code::kInvalidArgument);
  }
  CHECK(ValidateSpec(SmallSpec()).ok());
}

TEST_CASE(
    "the default number of slots covers S + 1 groups and the devices, and grows with the budget") {
  CHECK(DefaultSlotCount(3, 2, 4, 100, 0, 0) == 13);
  CHECK(DefaultSlotCount(1, 0, 2, 100, 1000, 0) == 3);
  CHECK(DefaultSlotCount(1, 0, 2, 100, 1000, 20) == 50);
  CHECK(DefaultSlotCount(1, 0, 2, 100, 1'000'000, 20) == 100);  // an epoch is enough
  CHECK(DefaultSlotCount(3, 2, 4, 5, 1'000'000, 1) == 13);
}

TEST_CASE("a segment is as large as its slots, and takes only the memory that is touched") {
  SegmentSpec spec = SmallSpec();
  spec.slot_bytes = uint64_t{1} << 33;  // 8 GiB each
  Segment segment = Make(spec);
  std::span<std::byte> last = segment.slot(4);
  CHECK(last.size() == spec.slot_bytes);
  last.front() = std::byte{1};
  last.back() = std::byte{2};
  CHECK(segment.slot(3).back() == std::byte{0});
}

TEST_CASE("foreign, truncated and contradictory segments are refused with the reason") {
  const auto message = [](auto change) { return AttachAfter(change).message(); };
  CHECK(AttachAfter([](SegmentHeader*) {}).ok());
  CHECK(message([](SegmentHeader* h) { h->magic = 0; }).find("magic") != std::string::npos);
  CHECK(message([](SegmentHeader* h) { h->build_id[0] = '?'; }).find("build") != std::string::npos);
  CHECK(message([](SegmentHeader* h) { ++h->total_bytes; }).find("bytes") != std::string::npos);
  CHECK(message([](SegmentHeader* h) { ++h->config.num_slots; }).find("contradict") !=
        std::string::npos);
  CHECK(message([](SegmentHeader* h) { h->config.group = 0; }).find("contradict") !=
        std::string::npos);
  const int small = memfd_create("small", MFD_CLOEXEC);
  REQUIRE(ftruncate(small, 64) == 0);
  const Status status = Segment::Attach(small, Access::kReadWrite).status();
  CHECK(status.code() == Code::kShmCorrupted);
  CHECK(Segment::Attach(-1, Access::kReadWrite).status().code() == Code::kIo);
  close(small);
}

TEST_CASE("executor rows and incarnations are handed out once and never again") {
  Segment segment = Make(SmallSpec());
  const Result<ExecutorId> first = segment.RegisterExecutor(Role::kSampler, 0);
  const Result<ExecutorId> second = segment.RegisterExecutor(Role::kTrainer, 1);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  CHECK(first->row != second->row);
  CHECK(first->incarnation != second->incarnation);
  REQUIRE(segment.Reclaim(first->incarnation).ok());
  const Result<ExecutorId> third = segment.RegisterExecutor(Role::kSampler, 0);
  REQUIRE(third.ok());
  CHECK(third->row == 2);
  CHECK(third->incarnation > second->incarnation);
  CHECK(segment.RegisterExecutor(Role::kSampler, 0).status().code() == Code::kInvalidArgument);
  CHECK(segment.RegisterExecutor(Role::kSampler, 2).status().code() == Code::kInvalidArgument);
  CHECK(segment.Reclaim(99).status().code() == Code::kInvalidArgument);
  const SegmentSnapshot snapshot = segment.Snapshot();
  CHECK(snapshot.executors.size() == 3);
  CHECK(snapshot.executors[0].phase == Phase::kReaped);
  CHECK(snapshot.executors[1].role == Role::kTrainer);
}

TEST_CASE("reclaiming frees what the dead one held, once, and counts it as an attempt") {
  Segment segment = Make(SmallSpec());
  const ExecutorId sampler = *segment.RegisterExecutor(Role::kSampler, 0);
  const ExecutorId trainer = *segment.RegisterExecutor(Role::kTrainer, 1);
  Batches samples(segment, sampler);
  Batches trains(segment, trainer);
  REQUIRE(samples.Claim() == uint64_t{0});
  REQUIRE(samples.Publish(0, 100).ok());
  REQUIRE(samples.Claim() == uint64_t{1});
  REQUIRE(trains.Take(Batches::Which::kAny) == uint64_t{0});
  const Result<ReclaimReport> report = segment.Reclaim(sampler.incarnation);
  REQUIRE(report.ok());
  CHECK(report->claimed == 1);
  CHECK(report->taken == 0);
  CHECK(segment.Reclaim(sampler.incarnation)->claimed == 0);
  CHECK(segment.Reclaim(trainer.incarnation)->taken == 1);
  const SegmentSnapshot snapshot = segment.Snapshot();
  CHECK(snapshot.states[static_cast<uint32_t>(BatchState::kPending)] == 4);
  CHECK(snapshot.queue_depth == 1);
  CHECK(snapshot.queue_bytes == 100);
  CHECK(snapshot.reclaimed == 2);
  CHECK(LedgerWord::Unpack(segment.ledger(0).load()).attempt == 1);
  CHECK(LedgerWord::Unpack(segment.ledger(1).load()).attempt == 1);
}

TEST_CASE("the first reason of an abort stays") {
  Segment segment = Make(SmallSpec());
  CHECK(segment.AbortStatus().ok());
  segment.Abort(Code::kNumericDivergence, "loss is not finite");
  segment.Abort(Code::kInternal, std::string(1000, 'x'));
  CHECK(segment.AbortStatus().code() == Code::kAborted);
  CHECK(segment.AbortStatus().message() == "loss is not finite");
  const SegmentSnapshot snapshot = segment.Snapshot();
  CHECK(snapshot.aborted);
  CHECK(snapshot.abort_code == Code::kNumericDivergence);
}

TEST_CASE("an abort message longer than its place is cut, not overrun") {
  Segment segment = Make(SmallSpec());
  segment.Abort(Code::kInternal, std::string(1000, 'x'));
  CHECK(segment.AbortStatus().message() == std::string(kAbortMessageBytes - 1, 'x'));
}

TEST_CASE("durations land in the bucket of their bound, and the median is that of the last 64") {
  Segment segment = Make(SmallSpec());
  const ExecutorId id = *segment.RegisterExecutor(Role::kTrainer, 0);
  ExecutorLog log(segment, id);
  log.AddStage(Stage::kTrain, 500'000);  // its bound is inclusive
  log.AddStage(Stage::kTrain, 500'001);
  log.AddStage(Stage::kTrain, 40'000'000'000);  // beyond the last bound
  for (int i = 0; i < 64; ++i) log.AddStage(Stage::kExtract, 1'000'000'000);
  for (int i = 0; i < 64; ++i) log.AddStage(Stage::kExtract, static_cast<uint64_t>(i));
  log.AddWait(WaitSide::kDequeue, 100'000'000'000);
  log.Add(Counter::kEdges, 3);
  log.Add(Counter::kEdges, 4);
  log.Progress(static_cast<uint32_t>(Stage::kTrain), kTrialEpoch, 4'000'000'000U);
  const ExecutorSnapshot row = segment.Snapshot().executors.at(0);
  const StageSnapshot& train = row.stages[static_cast<uint32_t>(Stage::kTrain)];
  CHECK(train.buckets[0] == 1);
  CHECK(train.buckets[1] == 1);
  CHECK(train.buckets[kNumStageBuckets - 1] == 1);
  CHECK(train.count == 3);
  CHECK(train.busy_ns == 40'001'000'001);
  CHECK(row.stages[static_cast<uint32_t>(Stage::kExtract)].median_ns == 32);
  CHECK(row.waits[static_cast<uint32_t>(WaitSide::kDequeue)].buckets[kNumWaitBuckets - 2] == 1);
  CHECK(row.counters[static_cast<uint32_t>(Counter::kEdges)] == 7);
  CHECK(row.activity == static_cast<uint32_t>(Stage::kTrain));
  CHECK(row.epoch == kTrialEpoch);
  CHECK(row.batch == 4'000'000'000U);
}

TEST_CASE("a batch limit shortens the epoch, and the last batch of the full epoch keeps its size") {
  SegmentSpec spec = SmallSpec();
  CHECK(Make(spec).SeedsOfBatch(3) == 10);
  CHECK(Make(spec).SeedsOfBatch(4) == 8);
  spec.batch_limit = 3;
  CHECK(Make(spec).shape().batches_per_epoch == 3);
  CHECK(Make(spec).SeedsOfBatch(2) == 10);
}

TEST_CASE("parameters cannot be copied before there are any, nor into a wrong size") {
  Segment segment = Make(SmallSpec());
  std::vector<float> right(20);
  std::vector<float> wrong(21);
  CHECK(segment.CopyLastParameters(right).status().code() == Code::kNotFound);
  CHECK(segment.CopyBestParameters(right).status().code() == Code::kNotFound);
  CHECK(segment.CopyLastParameters(wrong).status().code() == Code::kInvalidArgument);
}

TEST_CASE("the ledger digest notices a batch lost, repeated or swapped") {
  const uint64_t right = ExpectedLedgerDigest(3, 3);
  const auto fold = [](std::vector<uint64_t> order) {
    uint64_t digest = 0;
    for (const uint64_t index : order) digest = FoldLedgerDigest(digest, 3, index);
    return digest;
  };
  CHECK(fold({0, 1, 2}) == right);
  CHECK(fold({0, 2}) != right);
  CHECK(fold({0, 2, 1}) != right);
  CHECK(fold({0, 1, 1}) != right);
  CHECK(fold({0, 1, 2, 2}) != right);
  CHECK(ExpectedLedgerDigest(4, 3) != right);
}

TEST_CASE("a segment of one step that is taken already has only its evaluation left") {
  SegmentSpec spec = SmallSpec();
  spec.batches_per_epoch = 1;
  spec.epochs = 1;
  spec.group = 1;
  spec.num_slots = 1;
  spec.staleness = 0;
  spec.batch_size = 1;
  spec.train_nodes = 1;
  spec.optimizer_floats = 0;
  spec.eval_chunks = 7;
  Segment segment = Make(spec);
  std::vector<float> parameters(20);
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<float>(i);
  CHECK(segment.BeginTrained(std::vector<float>(19)).code() == Code::kInvalidArgument);
  CHECK(!segment.OpenRun());
  REQUIRE(segment.BeginTrained(parameters).ok());
  CHECK(segment.TrainingDone());
  CHECK(!segment.Complete());
  const auto run = segment.OpenRun();
  REQUIRE(run);
  CHECK((run->number == 0 && run->nodes == EvalNodes::kValidation && !run->is_best));
  const std::span<const float> given = segment.ParametersOf(*run);
  CHECK(std::vector<float>(given.begin(), given.end()) == parameters);
  // Nothing is to be claimed or taken.
  CHECK(segment.ClaimEnd(segment.Version()) == segment.shape().TotalBatches());
  CHECK(segment.shape().CommittedBatches(segment.Version()) == 1);
  CHECK(Make(SmallSpec()).BeginTrained(parameters).code() == Code::kInvalidArgument);
}

TEST_CASE("a new segment begins with the parameters that it is given") {
  Segment segment = Make(SmallSpec());
  std::vector<float> given(segment.parameter_floats());
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i);
  CHECK(BeginWith(segment, std::vector<float>(given.size() + 1)).code() == Code::kInvalidArgument);
  CHECK(segment.header().parameters_ready.load() == 0);
  REQUIRE(BeginWith(segment, given).ok());
  CHECK(segment.header().parameters_ready.load() == 1);
  CHECK(segment.Version() == 0);
  const std::span<const float> first = segment.parameters(0);
  CHECK(std::vector<float>(first.begin(), first.end()) == given);
}

TEST_CASE("what a device shares is its Trainer's, until the daemon has reaped it") {
  Segment segment = Make(SmallSpec());
  const ExecutorId first = *segment.RegisterExecutor(Role::kTrainer, 1);
  const RowShares shares(segment);
  CHECK(shares.OwnerOf(1) == 0);
  CHECK(!shares.Of(1).has_value());
  SharedRows rows{first.incarnation, 4096, {}};
  for (uint8_t k = 0; k < sizeof rows.handle.bytes; ++k) rows.handle.bytes[k] = k;
  shares.Publish(1, rows);
  REQUIRE(shares.Of(1).has_value());
  CHECK(shares.Of(1)->owner == first.incarnation);
  CHECK(shares.Of(1)->bytes == 4096);
  CHECK(std::memcmp(shares.Of(1)->handle.bytes, rows.handle.bytes, sizeof rows.handle) == 0);
  CHECK(shares.OwnerOf(0) == 0);
  // Another one's death, or a withdrawal that comes late, takes nothing away.
  const ExecutorId other = *segment.RegisterExecutor(Role::kTrainer, 1);
  REQUIRE(segment.Reclaim(other.incarnation).ok());
  CHECK(shares.OwnerOf(1) == first.incarnation);
  REQUIRE(segment.Reclaim(first.incarnation).ok());
  CHECK(shares.OwnerOf(1) == 0);
  rows.owner = (*segment.RegisterExecutor(Role::kTrainer, 1)).incarnation;
  shares.Publish(1, rows);
  shares.Withdraw(1, first.incarnation);
  CHECK(shares.OwnerOf(1) == rows.owner);
  shares.Withdraw(1, rows.owner);
  CHECK(!shares.Of(1).has_value());
}

}  // namespace gnnd
