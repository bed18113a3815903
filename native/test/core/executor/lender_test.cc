#include "core/executor/lender.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "job_harness.h"
#include "reader/gnnd_reader.h"
#include "test/support/npy_files.h"

// A job that lends batches, and its readers through gnnd_reader.so, as a user's process has it.

namespace gnnd::test {
namespace {

// The functions of gnnd_reader.so.
struct ReaderLibrary {
  ReaderLibrary() {
    const auto binary = std::filesystem::read_symlink("/proc/self/exe");
    handle = dlopen((binary.parent_path() / "gnnd_reader.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string why = handle == nullptr ? dlerror() : "";
    REQUIRE(why == "");
  }
  template <typename Function>
  Function* Of(const char* name) const {
    auto* found = reinterpret_cast<Function*>(dlsym(handle, name));
    const bool is_there = found != nullptr;
    REQUIRE(is_there);
    return found;
  }

  void* handle;
};

class TestReader {
 public:
  TestReader(const ReaderLibrary& library, const std::string& socket, uint32_t rank, uint32_t world)
      : library_(library) {
    char error[256] = "";
    const auto open = library.Of<decltype(gnnd_reader_open)>("gnnd_reader_open");
    reader_ = open(socket.c_str(), rank, world, 2, error, sizeof error);
    why = error;
  }
  ~TestReader() { Close(); }
  TestReader(const TestReader&) = delete;
  TestReader& operator=(const TestReader&) = delete;

  bool joined() const { return reader_ != nullptr; }
  void Close() {
    if (joined()) library_.Of<decltype(gnnd_reader_close)>("gnnd_reader_close")(reader_);
    reader_ = nullptr;
  }

  int Next(GnndBatch* batch) {
    return library_.Of<decltype(gnnd_reader_next)>("gnnd_reader_next")(reader_, 10'000, batch);
  }

  // The batch's nodes; its edges are those that FakeSampleWork makes.
  std::vector<int64_t> Copied(const GnndBatch& batch) {
    std::vector<int64_t> nodes(batch.num_nodes);
    std::vector<int64_t> edges(2 * batch.num_edges, -1);
    GnndArrays arrays{};
    arrays.nodes = nodes.data();
    arrays.edges = edges.data();
    CHECK(library_.Of<decltype(gnnd_reader_copy)>("gnnd_reader_copy")(reader_, &arrays) == 0);
    for (uint64_t e = 0; e < batch.num_edges; ++e) {
      CHECK(edges[e] == static_cast<int64_t>(batch.num_seeds + e));
      CHECK(edges[batch.num_edges + e] == 0);
    }
    return nodes;
  }

  void Return() {
    CHECK(library_.Of<decltype(gnnd_reader_return)>("gnnd_reader_return")(reader_) == 0);
  }

  std::string why;

 private:
  const ReaderLibrary& library_;
  GnndReader* reader_ = nullptr;
};

struct LendingJob {
  explicit LendingJob(uint32_t samplers, const std::string& name)
      : socket("gnnd-test-" + name + "-" + std::to_string(getpid())) {
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

  TempFolder folder;
  const std::string socket;
  FakeJob facts = Facts();
  Segment segment = MakeSegment(facts);
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
      CHECK(reader.Copied(batch) == NodesOf(job, batch));
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
    CHECK(reader.Copied(batch) == NodesOf(job, batch));
    reader.Return();
  }
  REQUIRE(job.crew->Finish());
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
  CHECK(reader.Copied(batch) == NodesOf(job, batch));
}

}  // namespace gnnd::test
