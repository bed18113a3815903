#include "core/history/job_history.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "test/support/sampling.h"

namespace gnnd {
namespace {

constexpr uint32_t kGroup = 3;

HistoryConfig Config() {
  HistoryConfig config;
  config.bytes = 64 * 32;  // 64 places
  config.t_stale = 4;
  config.row_bytes = 24;
  config.levels = 2;
  config.num_nodes = 200;
  return config;
}

// Memory of a shared history, and copies of it.
struct Memory {
  explicit Memory(const HistoryConfig& of, uint32_t group = kGroup)
      : config(of), of_group(group), mapping(AnonymousOrThrow(JobHistory::BytesOf(of, group))) {
    JobHistory::Init(mapping.data());
  }
  Memory(const Memory& other) : Memory(other.config, other.of_group) {
    std::memcpy(mapping.data(), other.mapping.data(), mapping.size());
  }
  JobHistory Open() const { return JobHistory(config, of_group, mapping.data()); }

  HistoryConfig config;
  uint32_t of_group;
  Mapping mapping;
};

// A note whose rows say which version, level and node they are of.
class Note {
 public:
  Note(uint64_t version, std::vector<HistoryNote::Entry> admitted,
       std::vector<HistoryNote::Entry> evicted = {}) {
    note_.admitted = std::move(admitted);
    note_.evicted = std::move(evicted);
    for (const HistoryNote::Entry& entry : note_.admitted) {
      rows_.push_back({version, entry.level, entry.node});
    }
    for (const auto& row : rows_) {
      note_.rows.push_back(reinterpret_cast<const std::byte*>(row.data()));
    }
  }
  const HistoryNote& get() const { return note_; }

 private:
  std::vector<std::array<uint64_t, 3>> rows_;
  HistoryNote note_;
};

void Write(JobHistory* history, uint64_t version, uint32_t place, const Note& note) {
  history->Write(version, place, note.get());
}

bool Finds(const JobHistory& history, uint32_t level, uint32_t node, uint64_t version) {
  const std::optional<uint32_t> place = history.buffer().Find(level, node, version);
  if (!place) return false;
  uint64_t row[3];
  std::memcpy(row, history.buffer().embedding(*place).data(), sizeof row);
  CHECK(row[1] == level);
  CHECK(row[2] == node);
  return true;
}

TEST_CASE("what batches of a step store counts once their step is committed") {
  const Memory memory(Config());
  JobHistory history = memory.Open();
  REQUIRE(history.BringTo(0, 0).ok());
  Write(&history, 0, 0, Note(0, {{0, 7}, {1, 7}}));
  Write(&history, 0, 1, Note(0, {{0, 9}}));
  CHECK(!Finds(history, 0, 7, 0));
  // Another Trainer, which has only seen the memory.
  JobHistory other = memory.Open();
  REQUIRE(other.BringTo(1, 2).ok());
  CHECK(Finds(other, 0, 7, 1));
  CHECK(Finds(other, 1, 7, 1));
  CHECK(Finds(other, 0, 9, 1));
  CHECK(!Finds(other, 1, 9, 1));
  Write(&other, 1, 0, Note(1, {}, {{0, 7}}));
  REQUIRE(history.BringTo(1, 2).ok());
  CHECK(Finds(history, 0, 7, 1));
  REQUIRE(history.BringTo(2, 1).ok());
  CHECK(!Finds(history, 0, 7, 2));
  CHECK(Finds(history, 1, 7, 2));
}

TEST_CASE("a batch that left nothing, or a version that was left out, is an error") {
  const Memory memory(Config());
  JobHistory history = memory.Open();
  Write(&history, 0, 0, Note(0, {{0, 1}}));
  CHECK(history.BringTo(1, 2).code() == Code::kInternal);
  Write(&history, 0, 1, Note(0, {{0, 2}}));
  CHECK(history.BringTo(2, 2).code() == Code::kInternal);
  CHECK(history.BringTo(1, 2).ok());
  CHECK(Finds(history, 0, 1, 1));
}

TEST_CASE("a note that is written again replaces the first") {
  const Memory memory(Config());
  JobHistory history = memory.Open();
  Write(&history, 0, 0, Note(0, {{0, 1}, {0, 2}}));
  Write(&history, 0, 0, Note(0, {{0, 3}}));
  REQUIRE(history.BringTo(1, 1).ok());
  CHECK(!Finds(history, 0, 1, 1));
  CHECK(Finds(history, 0, 3, 1));
}

struct Drawn {
  std::vector<Note> notes;  // one a batch
};

// Notes that Trainers could write: what is evicted is there, what is admitted is not.
Drawn Draw(std::mt19937_64* random, const JobHistory& history, uint64_t version) {
  Drawn drawn;
  const uint64_t batches = 1 + (*random)() % kGroup;
  for (uint64_t b = 0; b < batches; ++b) {
    std::vector<HistoryNote::Entry> admitted;
    std::vector<HistoryNote::Entry> evicted;
    for (uint32_t level = 0; level < 2; ++level) {
      for (uint32_t node = 0; node < 200; ++node) {
        if ((*random)() % 12 != 0) continue;
        const bool is_there = history.buffer().Find(level, node, version).has_value();
        if (is_there) evicted.push_back({level, node});
        if (!is_there) admitted.push_back({level, node});
      }
    }
    drawn.notes.emplace_back(version, std::move(admitted), std::move(evicted));
  }
  return drawn;
}

// All embeddings that can be found, with the versions of their rows.
std::map<std::pair<uint32_t, uint32_t>, uint64_t> Contents(const JobHistory& history,
                                                           uint64_t version) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> contents;
  for (uint32_t level = 0; level < 2; ++level) {
    for (uint32_t node = 0; node < 200; ++node) {
      if (!Finds(history, level, node, version)) continue;
      uint64_t of = 0;
      const uint32_t place = *history.buffer().Find(level, node, version);
      std::memcpy(&of, history.buffer().embedding(place).data(), sizeof of);
      CHECK(version - of <= history.buffer().shape().t_stale);
      contents[{level, node}] = of;
    }
  }
  return contents;
}

TEST_CASE("who dies while a step is carried over changes nothing, wherever it was") {
  const uint64_t seed = test::RandomSeed(41);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Memory memory(Config());
  uint64_t found = 0;
  for (uint64_t version = 0; version < 30; ++version) {
    JobHistory history = memory.Open();
    const Drawn drawn = Draw(&random, history, version);
    const auto batches = static_cast<uint32_t>(drawn.notes.size());
    for (uint32_t b = 0; b < batches; ++b) Write(&history, version, b, drawn.notes[b]);
    // Everything is carried over, and then nobody knows of it: the header is the one before.
    const Memory interrupted(memory);
    REQUIRE(interrupted.Open().BringTo(version + 1, batches).ok());
    std::memcpy(interrupted.mapping.data(), memory.mapping.data(), kPageBytes);
    JobHistory again = interrupted.Open();
    REQUIRE(again.BringTo(version + 1, batches).ok());
    REQUIRE(history.BringTo(version + 1, batches).ok());
    const auto contents = Contents(history, version + 1);
    CHECK(Contents(again, version + 1) == contents);
    CHECK(again.buffer().state().head == history.buffer().state().head);
    found += contents.size();
  }
  CHECK(found > 0);
}

// ---- cached feature rows ----------------------------------------------------------------------

constexpr uint32_t kCached = 90;
constexpr uint64_t kSkew = 4;

HistoryConfig WithCache() {
  HistoryConfig config = Config();
  config.feature_bytes = 20;
  config.cache_rows = kCached;
  return config;
}

std::array<uint32_t, 5> FeatureOf(uint64_t rank) {
  const auto value = static_cast<uint32_t>(rank * 7 + 1);
  return {value, ~value, value * 3, value * 5, value};
}

void ReadRanks(uint64_t begin, uint64_t end, std::byte* to) {
  for (uint64_t rank = begin; rank < end; ++rank) {
    const auto row = FeatureOf(rank);
    std::memcpy(to + (rank - begin) * sizeof row, row.data(), sizeof row);
  }
}

void CheckFeatures(JobHistory* history) {
  uint64_t wrong = 0;
  for (uint64_t rank = 0; rank < history->features(); ++rank) {
    const auto row = FeatureOf(rank);
    const std::byte* at = history->features_at(kSkew) + rank * sizeof row;
    wrong += std::memcmp(at, row.data(), sizeof row) == 0 ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("cached features are filled in once, by whoever is there, and are all there then") {
  const Memory memory(WithCache());
  JobHistory history = memory.Open();
  CHECK(history.features() == 0);
  JobHistory other = memory.Open();
  uint64_t read = 0;
  // Another one is faster.
  REQUIRE(history
              .FillFeatures(kSkew,
                            [&](uint64_t begin, uint64_t end, std::byte* to) {
                              CHECK(begin == 0);
                              REQUIRE(other.FillFeatures(kSkew, ReadRanks).ok());
                              read += end - begin;
                              std::memset(to, 0xEE, (end - begin) * 20);
                            })
              .ok());
  CHECK(read == kCached);
  CHECK(history.features() == kCached);
  CheckFeatures(&history);
  // Nothing is left to do.
  const auto never = [](uint64_t, uint64_t, std::byte*) { FAIL("read again"); };
  CHECK(memory.Open().FillFeatures(kSkew, never).ok());
  CHECK(memory.Open().FillFeatures(kSkew + 1, never).code() == Code::kInternal);
}

TEST_CASE("cached features give way to embeddings, change none of them, and survive deaths") {
  const uint64_t seed = test::RandomSeed(43);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Memory memory(WithCache());
  const Memory plain(Config());
  uint64_t border = kCached;
  for (uint64_t version = 0; version < 30; ++version) {
    JobHistory history = memory.Open();
    JobHistory without = plain.Open();
    // The first versions have no features yet.
    if (version == 2) REQUIRE(history.FillFeatures(kSkew, ReadRanks).ok());
    const Drawn drawn = Draw(&random, history, version);
    const auto batches = static_cast<uint32_t>(drawn.notes.size());
    for (uint32_t b = 0; b < batches; ++b) {
      Write(&history, version, b, drawn.notes[b]);
      Write(&without, version, b, drawn.notes[b]);
    }
    // Somebody carries all of it over and dies before it counts. Then a Trainer joins.
    const Memory interrupted(memory);
    REQUIRE(interrupted.Open().BringTo(version + 1, batches).ok());
    std::memcpy(interrupted.mapping.data(), memory.mapping.data(), kPageBytes);
    JobHistory again = interrupted.Open();
    REQUIRE(again.FillFeatures(kSkew, ReadRanks).ok());
    REQUIRE(again.BringTo(version + 1, batches).ok());
    CheckFeatures(&again);
    REQUIRE(history.BringTo(version + 1, batches).ok());
    REQUIRE(without.BringTo(version + 1, batches).ok());
    CheckFeatures(&history);
    const auto contents = Contents(without, version + 1);
    CHECK(Contents(history, version + 1) == contents);
    CHECK(Contents(again, version + 1) == contents);
    CHECK(history.buffer().state() == without.buffer().state());
    if (version >= 2) {
      CHECK(history.features() <= border);
      border = history.features();
      CHECK(border ==
            std::min<uint64_t>(kCached, (64 * 32 - history.buffer().embedding_places() * 32) / 20));
    }
  }
  // Embeddings may take all of the 2048 bytes.
  CHECK(border < kCached / 2);
}

TEST_CASE("a history goes on from what was saved as if nothing had happened") {
  const uint64_t seed = test::RandomSeed(42);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  auto memory = std::make_unique<Memory>(Config());
  for (uint64_t version = 0; version < 40; ++version) {
    JobHistory history = memory->Open();
    const Drawn drawn = Draw(&random, history, version);
    const auto batches = static_cast<uint32_t>(drawn.notes.size());
    for (uint32_t b = 0; b < batches; ++b) Write(&history, version, b, drawn.notes[b]);
    REQUIRE(history.BringTo(version + 1, batches).ok());
    CheckFeatures(&history);
    std::vector<std::byte> saved(history.SavedBytes());
    CHECK(saved.size() <= JobHistory::MostSavedBytes(Config()));
    history.Save(saved.data());
    // Whatever is cached beside it, then and now.
    auto fresh = std::make_unique<Memory>(version % 2 == 0 ? WithCache() : Config());
    JobHistory restored = fresh->Open();
    REQUIRE(restored.Restore(saved, version + 1));
    if (version % 2 == 0) REQUIRE(restored.FillFeatures(kSkew, ReadRanks).ok());
    CheckFeatures(&restored);
    CHECK(restored.buffer().state() == history.buffer().state());
    CHECK(Contents(restored, version + 1) == Contents(history, version + 1));
    // Bytes that contradict themselves are refused, and nothing is changed.
    std::vector<std::byte> damaged = saved;
    damaged[0] = std::byte{0xFF};
    JobHistory refused = fresh->Open();
    CHECK(!refused.Restore(damaged, version + 1));
    CHECK(!refused.Restore(std::span(saved).first(saved.size() - 1), version + 1));
    CHECK(Contents(refused, version + 1) == Contents(history, version + 1));
    memory = std::move(fresh);
  }
}

TEST_CASE("of more embeddings than there are places the first are kept") {
  const Memory memory(Config());
  JobHistory history = memory.Open();
  std::vector<HistoryNote::Entry> many;
  for (uint32_t node = 0; node < 100; ++node) many.push_back({0, node});
  Write(&history, 0, 0, Note(0, many));
  REQUIRE(history.BringTo(1, 1).ok());
  CHECK(Finds(history, 0, 0, 1));
  CHECK(Finds(history, 0, 63, 1));
  CHECK(!Finds(history, 0, 64, 1));
}

TEST_CASE("a history of a Trainer's own counts with its next batch") {
  JobHistory history(Config());
  CHECK(history.is_private());
  Write(&history, 5, 0, Note(5, {{0, 1}}));
  CHECK(!Finds(history, 0, 1, 5));
  history.BringUp();
  CHECK(Finds(history, 0, 1, 5));
  history.BringUp();
  CHECK(Finds(history, 0, 1, 9));
  CHECK(!Finds(history, 0, 1, 10));
}

}  // namespace
}  // namespace gnnd
