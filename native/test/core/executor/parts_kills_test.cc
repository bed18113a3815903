// Not under ThreadSanitizer, which sees nothing across processes.
#ifndef __SANITIZE_THREAD__

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/base/failpoint.h"
#include "core/executor/prediction_files.h"
#include "core/history/job_history.h"
#include "core/ledger/row_shares.h"
#include "job_harness.h"

// A SIGKILL at every named point of what Trainers share beside the ledger: the history of hidden
// rows, the files of an inference, the entries of rows that devices share. Then the next process.

namespace gnnd::test {
namespace {

// Runs `work` in a child that dies at the nth visit of a point; how it ended.
struct End {
  bool was_killed;
  int code;
};
End InChild(const char* point, int nth, const std::function<int()>& work) {
  const pid_t pid = fork();
  GNND_CHECK(pid >= 0);
  if (pid == 0) {
    failpoint::Arm(point, nth);
    _exit(work());
  }
  int status = 0;
  GNND_CHECK(waitpid(pid, &status, 0) == pid);
  return {WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
          WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

// ---- the history ------------------------------------------------------------------------------

constexpr uint32_t kGroup = 2;
constexpr uint64_t kVersions = 5;

HistoryConfig SmallHistory() {
  HistoryConfig config;
  config.bytes = 24 * 32;
  config.t_stale = 4;
  config.row_bytes = 24;
  config.levels = 2;
  config.num_nodes = 40;
  return config;
}

struct SharedHistory {
  SharedHistory() {
    const uint64_t bytes = JobHistory::BytesOf(config, kGroup);
    fd = std::move(*CreateMemfd("gnnd-test-history", bytes));
    mapping = std::move(*Mapping::Map(fd.get(), true));
    JobHistory::Init(mapping.data());
  }
  JobHistory Open() const { return JobHistory(config, kGroup, mapping.data()); }

  HistoryConfig config = SmallHistory();
  UniqueFd fd;
  Mapping mapping;
};

// What a batch changes: more nodes than there are places, in the end; rows that say whose they are.
void WriteNote(JobHistory* history, uint64_t version, uint32_t place) {
  HistoryNote note;
  std::vector<std::array<uint64_t, 3>> rows;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto node = static_cast<uint32_t>((version * 11 + place * 5 + i * 3) % 40);
    note.admitted.push_back({i / 2, node});
    rows.push_back({version, i / 2, node});
  }
  if (version > 1) note.evicted.push_back({0, static_cast<uint32_t>((version - 1) * 11 % 40)});
  for (const auto& row : rows) note.rows.push_back(reinterpret_cast<const std::byte*>(row.data()));
  history->Write(version, place, note);
}

// As a Trainer: both batches of each step, each seen with the history of its version.
int TrainFrom(const SharedHistory& shared, uint64_t first) {
  JobHistory history = shared.Open();
  for (uint64_t version = first; version <= kVersions; ++version) {
    if (!history.BringTo(version, version == 0 ? 0 : kGroup).ok()) return 1;
    if (version == kVersions) return 0;
    for (uint32_t place = 0; place < kGroup; ++place) WriteNote(&history, version, place);
  }
  return 0;
}

// What everybody who comes later sees.
std::vector<std::byte> SavedOf(const SharedHistory& shared) {
  JobHistory history = shared.Open();
  REQUIRE(history.BringTo(kVersions, kGroup).ok());
  std::vector<std::byte> saved(history.SavedBytes());
  history.Save(saved.data());
  // A count for people, of what was stored over: what a dead one had stored over is gone by then.
  HistoryState state;
  std::memcpy(&state, saved.data(), sizeof state);
  state.overwritten = 0;
  std::memcpy(saved.data(), &state, sizeof state);
  return saved;
}

constexpr const char* kHistoryPoints[] = {
    "history.noting",  "history.before_note", "history.after_note", "history.carrying",
    "history.carried", "history.moved",       "history.brought",
};

// Dies at the nth visit of a point; another one begins with the step whose commit was not seen, for
// every step that this may be. Whether all ends are that of a straight line.
bool SurvivesKill(const char* point, int nth, const char* rule, bool* was_killed) {
  const SharedHistory straight;
  if (TrainFrom(straight, 0) != 0) return false;
  const std::vector<std::byte> expected = SavedOf(straight);
  const SharedHistory shared;
  const End end = InChild(point, nth, [&] {
    failpoint::Break(rule);
    return TrainFrom(shared, 0);
  });
  *was_killed = end.was_killed;
  // Where it stood: versions that it had brought the history to, and that one it was at.
  for (uint64_t first = 0; first <= kVersions; ++first) {
    const End next = InChild("", 1, [&] {
      failpoint::Break(rule);
      return TrainFrom(shared, first);
    });
    if (next.code == 0) return SavedOf(shared) == expected;
  }
  return false;
}

// ---- predictions --------------------------------------------------------------------------------

constexpr uint32_t kClasses = 3;
constexpr uint32_t kChunks = 4;
constexpr uint32_t kRowsOfChunk = 5;

// The first output, and all of them as their probabilities.
class FirstOutput final : public PredictionRule {
 public:
  NpyType predicted_type() const override { return NpyType::kFloat32; }
  bool predicts_columns() const override { return false; }
  void Predict(std::span<const float> outputs, std::vector<std::byte>* to) const override {
    AppendElement(outputs[0], to);
  }
  void Probabilities(std::span<const float> outputs, std::span<float> shares) const override {
    std::ranges::copy(outputs, shares.begin());
  }
};

std::vector<float> LogitsOf(uint32_t chunk) {
  std::vector<float> logits(size_t{kRowsOfChunk} * kClasses);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((chunk * 31 + i * 7) % 17) * 0.25F;
  }
  return logits;
}

int PredictInto(const std::string& folder) {
  static const FirstOutput kRule;
  std::vector<uint32_t> nodes(kChunks * kRowsOfChunk);
  for (uint32_t v = 0; v < nodes.size(); ++v) nodes[v] = 2 * v;
  const uint32_t widths[] = {2, kClasses};
  const PredictionPlace place{folder,
                              {{OutputKind::kPredictions, 1},
                               {OutputKind::kLogits, 1},
                               {OutputKind::kProbabilities, 1},
                               {OutputKind::kEmbeddings, 0}}};
  auto outputs = OutputsOf(place.outputs, kRule, widths);
  if (!outputs.ok()) return 3;
  Result<PredictionFiles> files = PredictionFiles::Open(place, {nodes, false}, std::move(*outputs));
  if (!files.ok()) return 1;
  for (uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    EvalResult result{};
    const Status done = files->Once(EvalTask{}, {chunk, -1}, &result, [&] {
      result.rows = kRowsOfChunk;
      const uint64_t first = uint64_t{chunk} * kRowsOfChunk;
      const std::vector<float> hidden(kRowsOfChunk * widths[0], static_cast<float>(chunk));
      GNND_TRY(files->Write(0, first, hidden));
      return files->Write(1, first, LogitsOf(chunk));
    });
    if (!done.ok() || result.rows != kRowsOfChunk) return 2;
  }
  return 0;
}

class PredictionFolder {
 public:
  PredictionFolder() {
    std::string name = std::filesystem::temp_directory_path() / "gnnd-predict-XXXXXX";
    GNND_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
    std::filesystem::create_directory(path_ + "/out");
  }
  ~PredictionFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  std::string Bytes(const char* name) const {
    std::ifstream file(path_ + '/' + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<ChunkMark> Marks() const {
    const std::string bytes = Bytes("chunks.bin");
    std::vector<ChunkMark> marks(bytes.size() / sizeof(ChunkMark));
    if (!marks.empty()) {
      std::memcpy(marks.data(), bytes.data(), marks.size() * sizeof(ChunkMark));
    }
    return marks;
  }

 private:
  std::string path_;
};

// ---- shares -------------------------------------------------------------------------------------

// An entry all of whose parts say whose it is.
SharedRows EntryOf(uint32_t owner) {
  SharedRows rows{owner, uint64_t{owner} * 4096, {}};
  std::memset(rows.handle.bytes, static_cast<int>(owner), sizeof rows.handle.bytes);
  return rows;
}

// Whether what is read, if anything is, is one entry.
bool IsWhole(const std::optional<SharedRows>& read) {
  if (!read) return true;
  const SharedRows expected = EntryOf(read->owner);
  return read->bytes == expected.bytes &&
         std::memcmp(read->handle.bytes, expected.handle.bytes, sizeof expected.handle) == 0;
}

// A Trainer publishes and withdraws and dies at a point; then the daemon, and the next Trainer.
// Whether readers see whole entries all the time, and the last one in the end.
bool SharesSurvive(const char* point, int nth, const char* rule) {
  failpoint::Break(rule);
  Segment segment = MakeSegment(FakeJob{});
  const RowShares shares(segment);
  const uint32_t first = (*segment.RegisterExecutor(Role::kTrainer, 0)).incarnation;
  const End end = InChild(point, nth, [&] {
    shares.Publish(0, EntryOf(first));
    shares.Withdraw(0, first);
    return 0;
  });
  bool good = end.was_killed && IsWhole(shares.Of(0));
  if (!segment.Reclaim(first).ok()) good = false;
  good = good && shares.OwnerOf(0) == 0;
  const uint32_t second = (*segment.RegisterExecutor(Role::kTrainer, 0)).incarnation;
  shares.Publish(0, EntryOf(second));
  // Its predecessor's withdrawal, told once more: the daemon's look at a row that is reaped
  // already.
  shares.Withdraw(0, first);
  good = good && shares.OwnerOf(0) == second && IsWhole(shares.Of(0));
  failpoint::Break("");
  return good;
}

}  // namespace

TEST_CASE(
    "a Trainer killed while it notes or carries over history leaves the history of its step") {
  int kills = 0;
  for (const char* point : kHistoryPoints) {
    for (const int nth : {1, 2, 5, 8}) {
      INFO(std::string(point), ":", nth);
      bool was_killed = false;
      CHECK(SurvivesKill(point, nth, "", &was_killed));
      CHECK((was_killed || nth > 5));
      kills += was_killed ? 1 : 0;
    }
  }
  CHECK(kills >= 24);
}

TEST_CASE("history that counts as carried over before it is loses what its Trainer died with") {
  int torn = 0;
  for (const char* point : kHistoryPoints) {
    for (const int nth : {1, 2, 5, 8}) {
      bool was_killed = false;
      torn += SurvivesKill(point, nth, "history-carries-first", &was_killed) ? 0 : 1;
    }
  }
  CHECK(torn > 0);
}

TEST_CASE("a Trainer goes on where another one died, from the state that it left") {
  for (const char* rule : {"", "history-from-the-point"}) {
    const SharedHistory straight;
    REQUIRE(TrainFrom(straight, 0) == 0);
    const SharedHistory shared;
    JobHistory lives = shared.Open();
    REQUIRE(lives.BringTo(0, 0).ok());
    for (uint32_t place = 0; place < kGroup; ++place) WriteNote(&lives, 0, place);
    const End end = InChild("history.moved", 1, [&] {
      JobHistory dies = shared.Open();
      return dies.BringTo(1, kGroup).ok() ? 0 : 1;
    });
    CHECK(end.was_killed);
    failpoint::Break(rule);
    CHECK(lives.BringTo(1, kGroup).ok());
    failpoint::Break("");
    REQUIRE(TrainFrom(shared, 1) == 0);
    CHECK((SavedOf(shared) == SavedOf(straight)) == std::string(rule).empty());
  }
}

TEST_CASE("an inference killed at any point of a chunk is done once more, and is the same") {
  const PredictionFolder straight;
  REQUIRE(PredictInto(straight.path()) == 0);
  for (const char* point : {"predict.writing", "predict.before_mark", "predict.after_mark"}) {
    for (const int nth : {1, 2, 4}) {
      INFO(std::string(point), ":", nth);
      const PredictionFolder folder;
      CHECK(InChild(point, nth, [&] { return PredictInto(folder.path()); }).was_killed);
      // What is marked is whole: another one would not look at it again.
      const auto marked = static_cast<int>(folder.Marks().size());
      CHECK(marked == (std::string(point) == "predict.after_mark" ? nth : nth - 1));
      REQUIRE(PredictInto(folder.path()) == 0);
      for (const char* name : {"out/predictions.npy", "out/logits.npy", "out/probabilities.npy",
                               "out/embeddings.npy", "out/nodes.npy"}) {
        CHECK(folder.Bytes(name) == straight.Bytes(name));
      }
      for (const ChunkMark& mark : folder.Marks()) CHECK(mark.times == 1);
      CHECK(folder.Marks().size() == kChunks);
    }
  }
}

TEST_CASE("a Trainer killed while it shares its rows, or takes them back, leaves a whole entry") {
  for (const char* point : {"share.writing", "share.before_owner", "share.after_owner",
                            "share.before_withdraw", "share.after_withdraw"}) {
    for (const int nth : {1, 4}) {
      if (nth > 1 && std::string(point) != "share.writing") continue;
      INFO(std::string(point), ":", nth);
      CHECK(SharesSurvive(point, nth, ""));
    }
  }
}

TEST_CASE("an entry is torn, or lost, without any of its rules") {
  CHECK_FALSE(SharesSurvive("share.writing", 4, "share-owner-last"));
  CHECK_FALSE(SharesSurvive("share.after_owner", 1, "share-withdraws-own"));
  // Its owner changes while it is read.
  for (const char* rule : {"", "share-looks-again"}) {
    Segment segment = MakeSegment(FakeJob{});
    const RowShares shares(segment);
    shares.Publish(0, EntryOf(1));
    failpoint::Arm("share.reading", 3, [&] {
      shares.Withdraw(0, 1);
      shares.Publish(0, EntryOf(2));
    });
    failpoint::Break(rule);
    const std::optional<SharedRows> read = shares.Of(0);
    failpoint::Break("");
    failpoint::Arm("", 0);
    CHECK(IsWhole(read) == (std::string(rule).empty()));
  }
}

}  // namespace gnnd::test

#endif
