#include "core/image/image.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "job_harness.h"
#include "test/support/npy_files.h"
#ifndef __SANITIZE_THREAD__
#include "process_crew.h"
#endif

// Images of jobs: whoever goes on from one ends like who was never interrupted.

namespace gnnd::test {
namespace {

// In memory where there is such a place: hundreds of small files are synced here.
class ImageFolder : public TempFolder {
 public:
  ImageFolder() : TempFolder(Place()) {}

 private:
  static std::filesystem::path Place() {
    const std::filesystem::path memory = "/dev/shm";
    return access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
  }
};

const std::string kOwner = "01J0000000000000000000JOB1";

Result<ImageFacts> Write(const Segment& segment, const TempFolder& folder) {
  return WriteImage(segment, folder.path(), kOwner);
}
Result<ImageFacts> Load(Segment& segment, const std::string& path) {
  return LoadImage(segment, path, kOwner);
}

std::vector<FakeJob> Jobs() {
  FakeJob plain;
  FakeJob grouped;
  grouped.group = 3;
  grouped.staleness = 2;
  FakeJob delayed;
  delayed.staleness = 2;
  FakeJob predicted = grouped;
  predicted.compensation = StalenessCompensation::kPredict;
  FakeJob stopping;
  stopping.epochs = 9;
  stopping.staleness = 1;
  FakeJob seldom;
  seldom.epochs = 5;
  seldom.every_epochs = 3;
  FakeJob rows = delayed;
  rows.born_ready = true;
  return {plain, grouped, delayed, predicted, StoppingEarly(stopping, {2, 0}), seldom, rows};
}

// The same job for other executors: what decides no bits may differ.
FakeJob OnOthers(FakeJob job, uint32_t devices) {
  job.devices = devices;
  job.num_slots = job.group + devices;
  job.low_water = 2;
  return job;
}

void AddSamplers(ThreadCrew& crew, const FakeJob& job, uint32_t count) {
  for (uint32_t device = 0; device < count && !job.born_ready; ++device) crew.AddSampler(device);
}

uint64_t BatchesTrained(const Segment& segment) {
  uint64_t sum = 0;
  for (const ExecutorSnapshot& executor : segment.Snapshot().executors) {
    sum += executor.counters[static_cast<uint32_t>(Counter::kBatchesTrained)];
  }
  return sum;
}

// Whether each epoch's record shows each batch once, whoever trained it.
bool EveryBatchCounted(const Segment& segment) {
  for (uint32_t e = 0; e < segment.EpochsToTrain(); ++e) {
    const EpochReport report = segment.ReportEpoch(e);
    if (!report.complete || report.batches != segment.config().batches_per_epoch ||
        report.sums.items != segment.config().train_nodes ||
        report.ledger_digest != ExpectedLedgerDigest(report.epoch, report.batches)) {
      return false;
    }
  }
  return true;
}

// Goes on from an image, with so many Samplers and Trainers, each on a device of its own.
void GoOn(const FakeJob& job, const std::string& path, uint32_t samplers, uint32_t trainers) {
  const NoDeadlines none;
  Segment segment = MakeSegment(OnOthers(job, samplers + trainers));
  const Result<ImageFacts> facts = Load(segment, path);
  REQUIRE(facts.ok());
  INFO("from version ", facts->version, " with ", samplers, " + ", trainers);
  CHECK(facts->build_id == kBuildId);
  CHECK(segment.Version() == facts->version);
  ThreadCrew crew(segment);
  AddSamplers(crew, job, samplers);
  for (uint32_t i = 0; i < trainers; ++i) crew.AddTrainer(Role::kTrainer, samplers + i);
  REQUIRE(crew.Finish());
  const Outcome expected = Expected(job);
  CHECK(OutcomeOf(segment) == expected);
  CHECK(EveryBatchCounted(segment));
  CHECK(BatchesTrained(segment) == expected.loss_sums.size() * job.batches - facts->batches);
  CHECK(crew.torn() == 0);
}

// Runs a job whose Trainers write images as they go: before each batch, and in each evaluation.
std::map<uint64_t, std::string> ImagesOf(const FakeJob& job, const TempFolder& folder) {
  Segment segment = MakeSegment(job);
  std::mutex mutex;
  std::map<uint64_t, std::string> images;  // by version; of an evaluation at 1000 and more
  const auto write = [&](uint64_t offset) {
    const std::lock_guard lock(mutex);
    const Result<ImageFacts> facts = Write(segment, folder);
    GNND_CHECK(facts.ok());
    // One of an evaluation has the name of the one before it.
    const std::string path = facts->path + "." + std::to_string(offset);
    std::filesystem::rename(facts->path, path);
    images[offset + facts->version] = path;
  };
  ThreadCrew crew(segment);
  AddSamplers(crew, job, 2);
  for (const uint32_t device : {2U, 3U, 4U}) {
    crew.AddTrainer(Role::kTrainer, device, [&](FakeTrainWork& work) {
      work.before_gradient = [&](uint32_t, uint32_t) { write(0); };
      work.during_evaluation = [&](const EvalTask& task, const Alive&) {
        write(1000 * (1 + static_cast<uint64_t>(task.run.nodes) + (task.run.is_best ? 1 : 0)));
      };
    });
  }
  GNND_CHECK(crew.Finish());
  CHECK(OutcomeOf(segment) == Expected(job));
  return images;
}

// An image in the middle of a job's second epoch.
std::string WriteMiddle(const FakeJob& job, const TempFolder& folder) {
  Segment segment = MakeSegment(job);
  std::string path;
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
      if (epoch != 1 || batch != 4) return;
      const Result<ImageFacts> facts = Write(segment, folder);
      GNND_CHECK(facts.ok());
      path = facts->path;
    };
  });
  REQUIRE(crew.Finish());
  return path;
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// With the digest that fits, so that what is refused is refused for its content.
void WriteWithDigest(const std::string& path, std::string bytes) {
  const size_t at = bytes.size() - sizeof(Sha256Digest);
  const Sha256Digest digest = Sha256().Add(std::as_bytes(std::span(bytes.data(), at))).Finish();
  std::memcpy(bytes.data() + at, digest.data(), digest.size());
  WriteFile(path, bytes);
}

Status LoadInto(const FakeJob& job, const std::string& path) {
  Segment segment = MakeSegment(job);
  const Status status = Load(segment, path).status();
  // Nothing of a refused image is left.
  if (!status.ok()) {
    CHECK(segment.Version() == 0);
    CHECK(segment.header().parameters_ready.load() == 0);
    CHECK(segment.parameters(0)[0] == 0);
  }
  return status;
}

bool Mentions(const Status& status, const std::string& text) {
  return status.message().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a job that goes on from an image ends like one that was never interrupted") {
  for (const FakeJob& job : Jobs()) {
    INFO("G=", job.group, " S=", job.staleness, " every ", job.every_epochs, " epochs, rows ",
         job.born_ready, " predicts ", job.compensation == StalenessCompensation::kPredict);
    const ImageFolder folder;
    const std::map<uint64_t, std::string> images = ImagesOf(job, folder);
    REQUIRE(images.size() > 5);
    CHECK(images.at(0) == folder / "epoch-00000000-batch-0000000000.image.0");
    for (const auto& [version, path] : images) {
      GoOn(job, path, 1, 1);
      GoOn(job, path, 2, 3);
    }
  }
}

TEST_CASE("a job goes on in time-sharing, and from an image of a job that went on") {
  FakeJob job;
  job.staleness = 1;
  job.epochs = 4;
  const ImageFolder folder;
  const std::string first = WriteMiddle(job, folder);
  const FakeJob alone = OnOthers(job, 1);
  std::string second;
  {
    Segment segment = MakeSegment(alone);
    REQUIRE(Load(segment, first).ok());
    segment.SetStandby(StandbyPolicy::kAlways, true);
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kStandby, 0, [&](FakeTrainWork& work) {
      work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
        if (epoch == 2 && batch == 3) second = Write(segment, folder)->path;
      };
    });
    REQUIRE(crew.Finish());
    CHECK(OutcomeOf(segment) == Expected(job));
    CHECK(crew.collisions() == 0);
  }
  GoOn(job, second, 2, 2);
}

TEST_CASE("the epoch in progress keeps its start, and those that ended their times") {
  const FakeJob job;
  const ImageFolder folder;
  const std::string path = WriteMiddle(job, folder);
  Segment segment = MakeSegment(job);
  REQUIRE(Load(segment, path).ok());
  const EpochReport first = segment.ReportEpoch(0);
  CHECK(first.complete);
  CHECK(first.start_ns > 0);
  CHECK(first.end_ns >= first.start_ns);
  CHECK(first.end_ns <= MonotonicNs());
  REQUIRE(first.evaluation);
  CHECK(first.evaluation->end_ns >= first.end_ns);
  const EpochReport second = segment.ReportEpoch(1);
  CHECK(second.start_ns > 0);
  CHECK(second.start_ns >= first.end_ns);
  CHECK(second.start_ns <= MonotonicNs());
  CHECK(second.batches > 0);
  CHECK(second.batches < job.batches);
}

TEST_CASE("an image whose bytes are not what was written is refused") {
  const FakeJob job;
  const ImageFolder folder;
  const std::string good = WriteMiddle(job, folder);
  REQUIRE(LoadInto(job, good).ok());
  const std::string bytes = BytesOf(good);
  const std::string bad = folder / "bad";
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    WriteFile(bad, flipped);
    CHECK(LoadInto(job, bad).code() == Code::kDatasetCorrupt);
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{255}, size_t{300}, bytes.size() - 1}) {
    WriteFile(bad, bytes.substr(0, size));
    CHECK(LoadInto(job, bad).code() == Code::kDatasetCorrupt);
  }
  WriteFile(bad, bytes + "x");
  CHECK_FALSE(LoadInto(job, bad).ok());
  CHECK(LoadInto(job, folder / "nothing").code() == Code::kNotFound);
  CHECK(LoadInto(job, folder.path()).code() == Code::kDatasetCorrupt);
  const std::string fifo = folder / "fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(LoadInto(job, fifo).code() == Code::kDatasetCorrupt);
}

TEST_CASE("an image that contradicts itself is refused, whatever its digest says") {
  const FakeJob job;
  const ImageFolder folder;
  const std::string good = WriteMiddle(job, folder);
  const std::string bytes = BytesOf(good);
  const std::string bad = folder / "bad";
  // docs/formats/image.md: version, evaluation, epochs, copies of parameters, optimizer and best.
  constexpr size_t kVersionAt = 208;
  // The only entry's best epoch, the buffer that holds it, and the reference for early stopping.
  const size_t entry_at = bytes.size() - sizeof(Sha256Digest) - 16 - sizeof(EpochEntry);
  const std::pair<size_t, uint64_t> changes[] = {
      {8, uint64_t{336} << 32 | (kImageFormat + 1)},
      {kVersionAt, job.batches * job.epochs + 1},
      {kVersionAt, 0},
      {kVersionAt + 8, ~uint64_t{0}},
      {kVersionAt + 8, 0},
      {kVersionAt + 24, 2},
      {kVersionAt + 32, 0},
      {kVersionAt + 32, ~uint64_t{0}},
      {kVersionAt + 40, 3},
      {kVersionAt + 48, 0},
      {entry_at + offsetof(EpochEntry, best_epoch), 7},
      {entry_at + offsetof(EpochEntry, best_buffer), 2},
      {entry_at + offsetof(EpochEntry, stop_reference), 9},
  };
  for (const auto& [at, value] : changes) {
    INFO("at ", at);
    std::string changed = bytes;
    std::memcpy(changed.data() + at, &value, sizeof value);
    WriteWithDigest(bad, changed);
    CHECK(LoadInto(job, bad).code() == Code::kDatasetCorrupt);
    if (at == 8) CHECK(Mentions(LoadInto(job, bad), "another version of gnnd (format 3;"));
  }
  WriteWithDigest(bad, bytes);
  CHECK(LoadInto(job, bad).ok());
}

TEST_CASE("an image of another job is refused with the field that tells") {
  FakeJob job;
  job.staleness = 2;
  const ImageFolder folder;
  const std::string path = WriteMiddle(job, folder);
  const auto refused = [&](const std::function<void(FakeJob&)>& change, const char* field) {
    INFO(std::string(field));
    FakeJob other = job;
    change(other);
    const Status status = LoadInto(other, path);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(Mentions(status, field));
  };
  refused([](FakeJob& other) { ++other.batches; }, "batches_per_epoch");
  refused([](FakeJob& other) { ++other.epochs; }, "epochs");
  refused([](FakeJob& other) { ++other.group; }, "group");
  refused([](FakeJob& other) { ++other.staleness; }, "staleness");
  refused([](FakeJob& other) { other.compensation = StalenessCompensation::kPredict; },
          "compensation");
  refused([](FakeJob& other) { other.born_ready = true; }, "born_ready");
  refused([](FakeJob& other) { other.evaluates = false; }, "evaluates");
  refused([](FakeJob& other) { other.every_epochs = 2; }, "evaluate_every");
  refused([](FakeJob& other) { other.early_stop.patience = 2; }, "early_stop.patience");
  refused([](FakeJob& other) { other.early_stop.min_delta = 0.5; }, "early_stop.min_delta");
}

TEST_CASE("an image of a job with another name is refused") {
  const FakeJob job;
  const ImageFolder folder;
  const std::string path = WriteMiddle(job, folder);
  Segment segment = MakeSegment(job);
  const Status status = LoadImage(segment, path, "another").status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(Mentions(status, "owner is " + kOwner));
  CHECK(WriteImage(segment, folder.path(), std::string(64, 'x')).status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("an image of another build is loaded, and says so") {
  const FakeJob job;
  const ImageFolder folder;
  const std::string path = WriteMiddle(job, folder);
  std::string bytes = BytesOf(path);
  bytes.replace(16, 5, "other");
  WriteWithDigest(path, bytes);
  Segment segment = MakeSegment(job);
  const Result<ImageFacts> facts = Load(segment, path);
  REQUIRE(facts.ok());
  CHECK(facts->build_id.substr(0, 5) == "other");
  CHECK(facts->bytes == bytes.size());
}

TEST_CASE("no image before there are parameters, nor into a segment that somebody works on") {
  const FakeJob job;
  const ImageFolder folder;
  Segment segment = MakeSegment(job);
  CHECK(Write(segment, folder).status().code() == Code::kNotFound);
  const std::string path = WriteMiddle(job, folder);
  REQUIRE(segment.RegisterExecutor(Role::kTrainer, 0).ok());
  CHECK(Load(segment, path).status().code() == Code::kInvalidArgument);
  CHECK(segment.Version() == 0);
}

TEST_CASE("an image that cannot be written leaves nothing, and the job goes on") {
  const FakeJob job;
  const ImageFolder folder;
  Segment segment = MakeSegment(job);
  ThreadCrew crew(segment);
  crew.AddSampler(0);
  Status status;
  crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
    work.before_gradient = [&](uint32_t epoch, uint32_t batch) {
      if (epoch == 1 && batch == 0) {
        status = WriteImage(segment, folder / "none", kOwner).status();
      }
    };
  });
  REQUIRE(crew.Finish());
  CHECK(status.code() == Code::kIo);
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(OutcomeOf(segment) == Expected(job));
}

#ifndef __SANITIZE_THREAD__

TEST_CASE("nothing is committed while an image is copied; else it is torn") {
  for (const char* rule : {"", "image-under-mutex"}) {
    INFO(std::string(rule));
    FakeJob job;
    job.batches = 300;
    job.epochs = 1;
    const ImageFolder folder;
    Segment segment = MakeSegment(job);
    std::atomic<bool> armed{false};
    ThreadCrew crew(segment);
    crew.AddSampler(0);
    crew.AddTrainer(Role::kTrainer, 1, [&](FakeTrainWork& work) {
      work.before_gradient = [&](uint32_t, uint32_t batch) {
        if (batch == 20) Eventually([&] { return armed.load(); });
      };
    });
    REQUIRE(Eventually([&] { return segment.Version() == 20; }));
    failpoint::Break(rule);
    failpoint::Arm("image.between", 1, [&] {
      Eventually([&] { return segment.Version() >= 25; }, std::chrono::milliseconds(300));
    });
    armed = true;
    const Result<ImageFacts> facts = Write(segment, folder);
    failpoint::Arm("", 0);
    failpoint::Break("");
    REQUIRE(facts.ok());
    REQUIRE(crew.Finish());
    CHECK(OutcomeOf(segment) == Expected(job));
    Segment next = MakeSegment(job);
    REQUIRE(Load(next, facts->path).ok());
    ThreadCrew others(next);
    others.AddSampler(0);
    others.AddTrainer(Role::kTrainer, 1);
    REQUIRE(others.Finish());
    CHECK((OutcomeOf(next) == Expected(job)) == (std::string(rule).empty()));
  }
}

TEST_CASE("who is killed while it writes an image takes nothing along") {
  FakeJob job;
  job.staleness = 1;
  job.batches = 40;
  // Shared with the children: whether the Trainer may pass the second epoch's first batch.
  auto* gate = static_cast<std::atomic<bool>*>(
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  REQUIRE(gate != MAP_FAILED);
  const ImageFolder folder;
  const std::string before = WriteMiddle(job, folder);
  for (const char* point :
       {"image.locked", "image.between", "image.copied", "image.written", "image.committed"}) {
    INFO(std::string(point));
    const ImageFolder written;
    gate->store(false);
    Segment segment = MakeSegment(job);
    ProcessCrew crew(segment);
    crew.Start(ChildPlan{Role::kSampler, 0});
    crew.Start({Role::kTrainer, 1, "", 1, false, [&](Segment&, FakeSampleWork*, FakeTrainWork* w) {
                  w->before_gradient = [gate](uint32_t epoch, uint32_t batch) {
                    if (epoch == 1 && batch == 20) Eventually([gate] { return gate->load(); });
                  };
                }});
    REQUIRE(Eventually([&] { return segment.Version() > job.batches; }));
    const pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
      failpoint::Arm(point, 1);
      gate->store(true);
      static_cast<void>(Write(segment, written));
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(writer, &status, 0) == writer);
    CHECK(WIFSIGNALED(status));
    gate->store(true);
    REQUIRE(crew.Supervise());
    CHECK(crew.failures() == 0);
    CHECK(OutcomeOf(segment) == Expected(job));
    // All of it or nothing, whatever lies beside it.
    std::vector<std::string> images;
    for (const auto& entry : std::filesystem::directory_iterator(written.path())) {
      if (entry.path().extension() == ".image") images.push_back(entry.path());
    }
    CHECK(images.size() == (std::string(point) == "image.committed" ? 1 : 0));
    GoOn(job, images.empty() ? before : images[0], 1, 2);
  }
  munmap(gate, kPageBytes);
}

#endif

}  // namespace gnnd::test
