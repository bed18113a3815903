#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/image/image.h"
#include "job_harness.h"
#include "test/support/npy_files.h"

// The scale of favoured neighbours: frozen with an epoch's last step, the same for all Samplers.

namespace gnnd::test {
namespace {

FakeJob Adapting() {
  FakeJob job;
  job.epochs = 6;
  job.group = 2;
  job.staleness = 1;
  job.locality = {kScaleMost, 1};
  return job;
}

// The scales that Samplers were told, by epoch.
class Told {
 public:
  void operator()(const SampleTask& task) {
    const std::lock_guard lock(mutex_);
    scales_.insert({task.epoch, task.scale});
  }
  std::set<std::pair<uint32_t, uint32_t>> scales() const { return scales_; }

 private:
  std::mutex mutex_;
  std::set<std::pair<uint32_t, uint32_t>> scales_;
};

void Run(const FakeJob& job, Segment& segment, uint32_t samplers, uint32_t trainers, Told* told) {
  ThreadCrew crew(segment);
  crew.sees = [told](const SampleTask& task) { (*told)(task); };
  for (uint32_t i = 0; i < samplers; ++i) crew.AddSampler(i);
  for (uint32_t i = 0; i < trainers; ++i) crew.AddTrainer(Role::kTrainer, samplers + i);
  REQUIRE(crew.Finish());
  CHECK(OutcomeOf(segment) == Expected(job));
}

std::set<std::pair<uint32_t, uint32_t>> ScalesOf(const Segment& segment) {
  std::set<std::pair<uint32_t, uint32_t>> scales;
  for (uint32_t e = 0; e < segment.config().epochs; ++e) scales.insert({e, segment.ScaleOf(e)});
  return scales;
}

const std::vector<LocalityScale> kRecorded = {
    {32, 16, false}, {64, 32, false}, {48, 32, false}, {48, 32, true}};

TEST_CASE("an epoch's batches are drawn by the scale that follows from what the ones before took") {
  const FakeJob job = Adapting();
  Segment segment = MakeSegment(job);
  Told told;
  Run(job, segment, 2, 2, &told);
  CHECK(told.scales() == ScalesOf(segment));
  LocalityScale expected;
  for (uint32_t e = 0; e < job.epochs; ++e) {
    const EpochReport report = segment.ReportEpoch(e);
    CHECK(report.scale == expected.scale);
    CHECK(report.train_ns > 0);
    expected = NextScale(expected, report.extract_ns, report.train_ns, kScaleMost);
    CHECK(report.next_scale->scale == expected.scale);
    CHECK(report.next_scale->before == expected.before);
    CHECK(report.next_scale->fixed == expected.fixed);
  }
}

TEST_CASE("a fixed scale is every epoch's, and none is that of nobody favoured") {
  FakeJob job;
  job.locality = {40, 0};
  Segment segment = MakeSegment(job);
  Told told;
  Run(job, segment, 1, 1, &told);
  CHECK(told.scales() == std::set<std::pair<uint32_t, uint32_t>>{{0, 40}, {1, 40}, {2, 40}});
  CHECK(segment.ReportEpoch(1).scale == 40);
  CHECK(MakeSegment(FakeJob()).ScaleOf(2) == kScaleOne);
}

TEST_CASE("epochs that are trained again are followed by the scales that were recorded") {
  const FakeJob job = Adapting();
  for (const uint32_t crew : {1U, 3U}) {
    Segment segment = MakeSegment(job);
    REQUIRE(segment.RecordScales(kRecorded).ok());
    Told told;
    Run(job, segment, crew, crew, &told);
    CHECK(told.scales() == ScalesOf(segment));
    for (uint32_t e = 0; e < kRecorded.size(); ++e) {
      CHECK(segment.ScaleOf(e + 1) == kRecorded[e].scale);
    }
    // A scale that was fixed stays.
    CHECK(segment.ScaleOf(5) == 48);
  }
}

TEST_CASE("a job that goes on from an image draws its epoch by the scale that it began with") {
  const FakeJob job = Adapting();
  const TempFolder folder;
  std::string path;
  {
    Segment segment = MakeSegment(job);
    REQUIRE(segment.RecordScales(kRecorded).ok());
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.during_gradient = [&](uint32_t epoch, uint32_t batch) {
        if (epoch != 3 || batch != 4) return;
        const Result<ImageFacts> facts = WriteImage(segment, folder.path(), "job");
        REQUIRE(facts.ok());
        path = facts->path;
      };
    });
    REQUIRE(crew.Finish());
  }
  Segment segment = MakeSegment(job);
  REQUIRE(LoadImage(segment, path, "job").ok());
  CHECK(segment.ScaleOf(3) == 48);
  Told told;
  Run(job, segment, 2, 1, &told);
  CHECK(told.scales().contains({3, 48}));
  CHECK(segment.ReportEpoch(2).next_scale->scale == 48);
  FakeJob other = job;
  other.locality.scale = 64;
  Segment others = MakeSegment(other);
  CHECK(LoadImage(others, path, "job").status().code() == Code::kInvalidArgument);
}

TEST_CASE("scales that cannot be are refused") {
  FakeJob job = Adapting();
  Segment segment = MakeSegment(job);
  CHECK_FALSE(segment.RecordScales(std::vector<LocalityScale>(7)).ok());
  CHECK_FALSE(segment.RecordScales(std::vector<LocalityScale>{{129, 16, false}}).ok());
  CHECK_FALSE(segment.RecordScales(std::vector<LocalityScale>{{32, 8, false}}).ok());
  CHECK_FALSE(MakeSegment(FakeJob()).RecordScales(kRecorded).ok());
  job.locality.scale = 15;
  CHECK_FALSE(ValidateSpec(job.Spec()).ok());
  job.locality = {129, 0};
  CHECK_FALSE(ValidateSpec(job.Spec()).ok());
}

}  // namespace
}  // namespace gnnd::test
