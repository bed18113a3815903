#include "core/executor/lender.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "job_harness.h"
#include "test/core/reader/reader_library.h"
#include "test/support/npy_files.h"

// A job that lends batches, and its readers through gnnd_reader.so, as a user's process has it.

namespace gnnd::test {
namespace {

// The batch's nodes; its edges are those that FakeSampleWork makes.
std::vector<int64_t> Copied(TestReader& reader, const GnndBatch& batch) {
  std::vector<int64_t> nodes(batch.num_nodes);
  std::vector<int64_t> edges(2 * batch.num_edges, -1);
  GnndArrays arrays{};
  arrays.nodes = nodes.data();
  arrays.edges = edges.data();
  CHECK(reader.Copy(arrays) == 0);
  for (uint64_t e = 0; e < batch.num_edges; ++e) {
    CHECK(edges[e] == static_cast<int64_t>(batch.num_seeds + e));
    CHECK(edges[batch.num_edges + e] == 0);
  }
  return nodes;
}

struct LendingJob {
  explicit LendingJob(uint32_t samplers, const std::string& name, uint32_t first_epoch = 0)
      : socket("gnnd-test-" + name + "-" + std::to_string(getpid())),
        segment(MakeSegment(first_epoch)) {
    WriteFile(folder / "features.npy", NpyBytes<float>({1, 2, 3, 4}, {2, 2}));
    LenderOptions options;
    options.socket = socket;
    options.features_path = folder / "features.npy";
    options.patience = std::chrono::seconds(10);
    // The Trainer is registered first, in row 0.
    auto made = Lender::Create(segment, ExecutorId{0, 1}, options);
    REQUIRE(made.ok());
    lender = std::move(*made);
    crew = std::make_unique<ThreadCrew>(segment);
    crew->AddTrainerOf(Role::kTrainer, 0, *lender);
    for (uint32_t s = 0; s < samplers; ++s) crew->AddSampler(s + 1);
  }

  static FakeJob Facts() {
    FakeJob job;
    job.batches = 11;
    job.epochs = 3;
    job.evaluates = false;
    job.num_slots = 4;
    return job;
  }

  Segment MakeSegment(uint32_t first_epoch) const {
    SegmentSpec spec = facts.Spec();
    spec.first_epoch = first_epoch;
    const Result<UniqueFd> fd = Segment::Create(spec);
    REQUIRE(fd.ok());
    Result<Segment> made = Segment::Attach(fd->get(), Access::kReadWrite);
    REQUIRE(made.ok());
    return std::move(*made);
  }

  TempFolder folder;
  const std::string socket;
  FakeJob facts = Facts();
  Segment segment;
  std::unique_ptr<Lender> lender;
  std::unique_ptr<ThreadCrew> crew;
};

std::vector<int64_t> NodesOf(const LendingJob& job, const GnndBatch& batch) {
  const std::vector<uint32_t> nodes =
      FakeNodes(static_cast<uint32_t>(batch.epoch), static_cast<uint32_t>(batch.index),
                job.segment.SeedsOfBatch(batch.index));
  return {nodes.begin(), nodes.end()};
}

}  // namespace

TEST_CASE("a reader gets every batch once and in order, from any number of Samplers") {
  const ReaderLibrary library;
  for (const uint32_t samplers : {1U, 2U, 4U}) {
    LendingJob job(samplers, "all");
    TestReader reader(library, job.socket, 0, 1);
    REQUIRE_MESSAGE(reader.joined(), reader.why);
    for (uint64_t b = 0; b < job.facts.epochs * job.facts.batches; ++b) {
      GnndBatch batch;
      REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
      CHECK(batch.epoch == b / job.facts.batches);
      CHECK(batch.index == b % job.facts.batches);
      CHECK(Copied(reader, batch) == NodesOf(job, batch));
      reader.Return();
    }
    REQUIRE(job.crew->Finish());
    CHECK(job.crew->AllEnded(LoopEnd::kComplete));
    CHECK(EveryBatchOnce(job.segment));
  }
}

TEST_CASE("batches are dealt to several readers by their numbers") {
  const ReaderLibrary library;
  LendingJob job(2, "ranks");
  TestReader first(library, job.socket, 0, 2);
  TestReader second(library, job.socket, 1, 2);
  REQUIRE(first.joined());
  REQUIRE(second.joined());
  for (uint64_t b = 0; b < job.facts.epochs * job.facts.batches; ++b) {
    TestReader& reader = b % 2 == 0 ? first : second;
    GnndBatch batch;
    REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
    CHECK(batch.epoch * job.facts.batches + batch.index == b);
    CHECK(Copied(reader, batch) == NodesOf(job, batch));
    reader.Return();
  }
  REQUIRE(job.crew->Finish());
}

TEST_CASE("ranks have their batches at the same time, and return them in any order") {
  const ReaderLibrary library;
  LendingJob job(2, "together");
  TestReader first(library, job.socket, 0, 2);
  TestReader second(library, job.socket, 1, 2);
  REQUIRE(first.joined());
  REQUIRE(second.joined());
  const uint64_t batches = job.facts.epochs * job.facts.batches;
  for (uint64_t b = 0; b < batches; b += 2) {
    GnndBatch even;
    GnndBatch odd;
    REQUIRE(first.Next(&even) == GNND_READER_BATCH);
    // An epoch's last batch is lent alone: the next epoch opens when it is handed in.
    const bool alone = (b + 1) % job.facts.batches == 0 || b + 1 == batches;
    if (alone) {
      CHECK(Copied(first, even) == NodesOf(job, even));
      first.Return();
      if (b + 1 == batches) break;
      REQUIRE(second.Next(&odd) == GNND_READER_BATCH);
      CHECK(Copied(second, odd) == NodesOf(job, odd));
      second.Return();
      continue;
    }
    REQUIRE(second.Next(&odd) == GNND_READER_BATCH);
    CHECK(even.epoch * job.facts.batches + even.index == b);
    CHECK(odd.epoch * job.facts.batches + odd.index == b + 1);
    CHECK(Copied(second, odd) == NodesOf(job, odd));
    second.Return();
    CHECK(Copied(first, even) == NodesOf(job, even));
    first.Return();
  }
  REQUIRE(job.crew->Finish());
  CHECK(EveryBatchOnce(job.segment));
}

TEST_CASE("a rank that has gone leaves the others the batches before its own") {
  using std::chrono::milliseconds;
  const ReaderLibrary library;
  // The later a reader goes, the surer was its next batch offered, which it leaves unread.
  for (const milliseconds wait : {milliseconds(0), milliseconds(500)}) {
    LendingJob job(2, "left" + std::to_string(wait.count()));
    TestReader first(library, job.socket, 0, 2);
    TestReader second(library, job.socket, 1, 2);
    REQUIRE(first.joined());
    REQUIRE(second.joined());
    GnndBatch batch;
    REQUIRE(first.Next(&batch) == GNND_READER_BATCH);
    REQUIRE(second.Next(&batch) == GNND_READER_BATCH);
    std::this_thread::sleep_for(wait);
    first.Return();
    first.Close();
    CHECK(Copied(second, batch) == NodesOf(job, batch));
    std::this_thread::sleep_for(wait);
    CHECK(job.segment.AbortStatus().ok());
    second.Return();
    CHECK_FALSE(job.crew->Finish());
    CHECK(job.segment.AbortStatus().message() == "a reader has gone");
  }
}

TEST_CASE("a job that begins with a later epoch deals as the one before it") {
  const ReaderLibrary library;
  LendingJob job(2, "later", 1);
  TestReader first(library, job.socket, 0, 2);
  TestReader second(library, job.socket, 1, 2);
  REQUIRE(first.joined());
  REQUIRE(second.joined());
  // Epoch 1 begins with batch 11, which is odd.
  for (uint64_t index = 0; index < 4; ++index) {
    TestReader& reader = (job.facts.batches + index) % 2 == 0 ? first : second;
    GnndBatch batch;
    REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
    CHECK(batch.epoch == 1);
    CHECK(batch.index == index);
    reader.Return();
  }
}

TEST_CASE("a rank that is taken, and another number of readers, are refused") {
  const ReaderLibrary library;
  LendingJob job(1, "refused");
  TestReader first(library, job.socket, 0, 2);
  REQUIRE(first.joined());
  CHECK_FALSE(TestReader(library, job.socket, 0, 2).joined());
  CHECK_FALSE(TestReader(library, job.socket, 1, 3).joined());
}

TEST_CASE("a job ends with its reader") {
  const ReaderLibrary library;
  LendingJob job(2, "gone");
  TestReader reader(library, job.socket, 0, 1);
  REQUIRE(reader.joined());
  GnndBatch batch;
  REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
  reader.Close();
  CHECK_FALSE(job.crew->Finish());
  CHECK(job.segment.AbortStatus().message() == "a reader has gone");
  CHECK(job.crew->FirstError().ok());
}

TEST_CASE("a batch whose slot waits for its reader is not drawn over") {
  const ReaderLibrary library;
  LendingJob job(4, "slots");
  TestReader reader(library, job.socket, 0, 1);
  REQUIRE(reader.joined());
  GnndBatch batch;
  REQUIRE(reader.Next(&batch) == GNND_READER_BATCH);
  // Samplers fill every slot that is free, and then wait.
  CHECK(Eventually([&] { return job.segment.Snapshot().queue_depth + 1 == job.facts.num_slots; }));
  CHECK(Copied(reader, batch) == NodesOf(job, batch));
}

}  // namespace gnnd::test
