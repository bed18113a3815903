#include <doctest/doctest.h>

#include <limits>
#include <new>
#include <string>

#include "core/base/finite.h"
#include "job_harness.h"

// Numbers that leave the range and memory that is refused: the loop ends with an error that says
// where, and the model keeps its last good version.

namespace gnnd::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Runs the job with one Trainer, prepared so; returns the error it must end with.
Status ErrorOf(Segment& segment, bool prefetch, std::function<void(FakeTrainWork&)> prepare) {
  ThreadCrew crew(segment);
  crew.prefetch = prefetch;
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1, std::move(prepare));
  CHECK_FALSE(crew.Finish());
  return crew.FirstError();
}

}  // namespace

TEST_CASE("finite: a value in any place counts, and only the exponent") {
  std::vector<float> values(10'000, std::numeric_limits<float>::max());
  CHECK(AllFinite(values));
  CHECK(AllFinite({}));
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{4096}, values.size() - 1}) {
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      const float good = values[at];
      values[at] = bad;
      CHECK_FALSE(AllFinite(values));
      values[at] = good;
    }
  }
}

TEST_CASE("a gradient that is not finite names its batch and step, and is never handed in") {
  FakeJob job;
  job.group = 2;  // 7 batches an epoch make 4 steps
  for (const bool evaluates : {false, true}) {
    for (const bool prefetch : {false, true}) {
      job.evaluates = evaluates;
      Segment segment = MakeSegment(job);
      // The job's last batch: no later one and, without an evaluation, nobody else would notice.
      const Status error = ErrorOf(segment, prefetch, [](FakeTrainWork& work) {
        work.after_gradient = [](uint32_t epoch, uint32_t batch, std::span<float> gradient) {
          if (epoch == 2 && batch == 6) gradient[20] = kInfinity;
        };
      });
      CHECK(error.code() == Code::kNumericDivergence);
      CHECK(error.message() == "the gradient is not finite in batch 6 of epoch 2, for step 12");
      CHECK(segment.Version() == 11);
    }
  }
}

TEST_CASE("a step that makes a parameter infinite is not committed") {
  FakeJob job;
  job.evaluates = false;
  Segment segment = MakeSegment(job);
  const Status error = ErrorOf(segment, false, [](FakeTrainWork& work) {
    work.after_apply = [](uint64_t step, std::span<float> parameters) {
      if (step == 21) parameters[3] = -kInfinity;
    };
  });
  CHECK(error.code() == Code::kNumericDivergence);
  CHECK(error.message() == "a parameter is not finite after step 21, in epoch 2");
  CHECK(segment.Version() == 20);
}

TEST_CASE("memory refused to a Trainer's extracting thread is an error of its loop") {
  Segment segment = MakeSegment(FakeJob{});
  const Status error = ErrorOf(segment, true, [](FakeTrainWork& work) {
    work.during_extract = [](uint32_t, uint32_t batch) {
      if (batch == 3) throw std::bad_alloc();
    };
  });
  CHECK(error.code() == Code::kShmAllocationFailed);
}

TEST_CASE("a record with another number of seeds than its batch is refused before it is read") {
  Segment segment = MakeSegment(FakeJob{});
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) > 0; }));
  // A consistent record of batch 0 with one seed fewer: the next node is drawn by nobody.
  RecordTables tables = OwnTables(segment.slot(0));
  BlockEntry& block = tables.blocks[0];
  NodeEntry& list = tables.nodes[0];
  auto* indptr = reinterpret_cast<uint32_t*>(segment.slot(0).data() + block.indptr_at);
  indptr[2] = block.num_edges;
  list.num_seeds = block.num_dst = 2;
  list.num_nodes = block.num_src = list.num_nodes - 1;
  auto* src = reinterpret_cast<uint32_t*>(segment.slot(0).data() + block.src_at);
  for (uint32_t e = 0; e < block.num_edges; ++e) src[e] = 2;
  WriteTables(&tables, segment.slot(0));
  REQUIRE(OpenRecord(segment.slot(0)).ok());
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK_FALSE(crew.Finish());
  CHECK(crew.FirstError().code() == Code::kShmCorrupted);
  CHECK(crew.FirstError().message() == "the record of batch 0 has 2 items, not 3");
}

TEST_CASE("a record of rows is refused with a sentence before it is read") {
  Segment segment = MakeSegment(FakeJob{});
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  REQUIRE(Eventually([&] { return CountIn(segment, BatchState::kReady) > 0; }));
  RecordTables tables = OwnTables(segment.slot(0));
  tables.header.kind = static_cast<uint32_t>(SampleKind::kRows);
  tables.blocks.clear();
  tables.nodes[0].num_nodes = tables.nodes[0].num_seeds;
  WriteTables(&tables, segment.slot(0));
  REQUIRE(OpenRecord(segment.slot(0), true).ok());
  crew.AddTrainer(Role::kTrainer, 1);
  CHECK_FALSE(crew.Finish());
  CHECK(crew.FirstError().code() == Code::kInternal);
  CHECK(crew.FirstError().message() ==
        "the record of batch 0 holds rows, which have no records in this version");
}

}  // namespace gnnd::test
