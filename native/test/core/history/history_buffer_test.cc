#include "core/history/history_buffer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "test/support/sampling.h"

namespace gnnd {
namespace {

using Rows = std::vector<uint32_t>;

TEST_CASE("history keeps the rows of the smallest gradients, ties by the lower row") {
  const std::vector<float> norms = {5, 1, 3, 3, 2, 3};
  const std::vector<uint8_t> hits = {1, 0, 0, 1, 1, 0};
  // The order is 1 4 2 3 5 0.
  HistoryVerdict verdict = JudgeByGradient(norms, hits, 0.5);
  CHECK(verdict.admitted == Rows{1, 2});
  CHECK(verdict.evicted == Rows{0, 3});
  verdict = JudgeByGradient(norms, hits, 1);
  CHECK(verdict.admitted == Rows{1, 2, 5});
  CHECK(verdict.evicted.empty());
  verdict = JudgeByGradient(norms, hits, 0);
  CHECK(verdict.admitted.empty());
  CHECK(verdict.evicted == Rows{0, 3, 4});
  CHECK(JudgeByGradient({}, {}, 0.9).admitted.empty());
}

TEST_CASE("history keeps exactly the share that was asked for, and never what is no number") {
  std::vector<float> norms(100);
  for (uint32_t row = 0; row < 100; ++row) norms[row] = static_cast<float>((row * 37) % 100);
  const std::vector<uint8_t> hits(100, 0);
  for (const uint32_t percent : {1U, 7U, 29U, 57U, 58U, 90U, 99U}) {
    CHECK(JudgeByGradient(norms, hits, percent / 100.0).admitted.size() == percent);
  }
  CHECK(JudgeByGradient(std::vector<float>(7, 1.0F), std::vector<uint8_t>(7, 0), 0.9)
            .admitted.size() == 6);
  norms[3] = std::numeric_limits<float>::quiet_NaN();
  const Rows kept = JudgeByGradient(norms, hits, 0.99).admitted;
  CHECK(std::find(kept.begin(), kept.end(), 3U) == kept.end());
}

TEST_CASE("the scale of a loss changes nothing of what history keeps") {
  const uint64_t seed = test::RandomSeed(31);
  CAPTURE(seed);
  std::mt19937_64 generator(seed);
  std::vector<float> norms(1000);
  std::vector<uint8_t> hits(1000);
  for (float& norm : norms) norm = static_cast<float>(generator() % 10'000) / 64;
  for (uint8_t& hit : hits) hit = generator() % 2 == 0;
  const HistoryVerdict verdict = JudgeByGradient(norms, hits, 0.9);
  for (float& norm : norms) norm = std::ldexp(norm, 12);
  const HistoryVerdict scaled = JudgeByGradient(norms, hits, 0.9);
  CHECK(scaled.admitted == verdict.admitted);
  CHECK(scaled.evicted == verdict.evicted);
}

void Write(HistoryBuffer* buffer, uint32_t place, uint64_t value) {
  std::memcpy(buffer->embedding_to_write(place).data(), &value, sizeof value);
}

uint64_t Read(const HistoryBuffer& buffer, uint32_t place) {
  uint64_t value = 0;
  std::memcpy(&value, buffer.embedding(place).data(), sizeof value);
  return value;
}

HistoryShape Small() {
  HistoryShape shape;
  shape.bytes = 500;
  shape.embedding_bytes = 16;
  shape.feature_rows = 20;
  shape.feature_bytes = 48;
  shape.num_nodes = 100;
  shape.t_stale = 3;
  return shape;
}

TEST_CASE("an embedding is found while it is at most t_stale versions old") {
  HistoryBuffer buffer(Small());
  const Rows nodes = {7, 3};
  const Rows places = buffer.Store(0, nodes, 10);
  REQUIRE(places.size() == 2);
  for (uint64_t version = 10; version <= 13; ++version) {
    CHECK(buffer.Find(0, 7, version) == places[0]);
    CHECK(buffer.Find(0, 3, version) == places[1]);
  }
  CHECK(!buffer.Find(0, 7, 14).has_value());
  CHECK(!buffer.Find(0, 8, 10).has_value());
  buffer.Evict(0, 7);
  CHECK(!buffer.Find(0, 7, 10).has_value());
  CHECK(buffer.Find(0, 3, 10) == places[1]);
}

TEST_CASE("with a staleness of 0, or no room, nothing is stored and no feature given up") {
  for (const bool is_small : {false, true}) {
    HistoryShape shape = Small();
    if (is_small) {
      shape.bytes = 15;
    } else {
      shape.t_stale = 0;
    }
    HistoryBuffer buffer(shape);
    CHECK(buffer.features() == 20);
    const Rows nodes = {1, 2};
    CHECK(buffer.Store(0, nodes, 0).empty());
    CHECK(!buffer.Find(0, 1, 0).has_value());
    CHECK(buffer.features() == 20);
  }
  HistoryShape none = Small();
  none.bytes = 0;
  none.feature_rows = 0;
  HistoryBuffer empty(none);
  CHECK(empty.features() == 0);
  const Rows nodes = {1};
  CHECK(empty.Store(0, nodes, 0).empty());
}

TEST_CASE("before its first version history stores nothing and takes no feature's place") {
  HistoryShape shape = Small();
  shape.start_version = 5;
  HistoryBuffer buffer(shape);
  const Rows nodes = {1, 2};
  for (uint64_t version = 0; version < 5; ++version) {
    CHECK(buffer.Store(0, nodes, version).empty());
    CHECK(!buffer.Find(0, 1, version).has_value());
  }
  CHECK(buffer.features() == 20);
  CHECK(buffer.Store(0, nodes, 5).size() == 2);
  CHECK(buffer.Find(0, 1, 5).has_value());
}

// Wherever feature rows begin within their slack.
void CheckGivingWay(uint64_t skew) {
  CAPTURE(skew);
  HistoryBuffer buffer(Small());
  std::byte* const features = buffer.features_at(skew);
  std::memset(features, 0, 20 * 48);
  for (uint64_t rank = 0; rank < buffer.features(); ++rank) {
    std::memcpy(features + rank * 48, &rank, sizeof rank);
  }
  uint64_t before = buffer.features();
  for (uint32_t node = 0; node < 40; ++node) {
    const Rows one = {node};
    for (const uint32_t place : buffer.Store(0, one, 1)) {
      std::memset(buffer.embedding_to_write(place).data(), 0xFF, 16);
    }
    CHECK(buffer.features() <= before);
    before = buffer.features();
    CHECK(buffer.embedding_places() * 16 + buffer.features() * 48 <= 960);
    for (uint64_t rank = 0; rank < buffer.features(); ++rank) {
      uint64_t found[6];
      std::memcpy(found, features + rank * 48, sizeof found);
      CHECK(found[0] == rank);
      CHECK(std::count(found + 1, found + 6, 0U) == 5);
    }
  }
  // 31 places; nine more began again, over what was still fresh.
  CHECK(buffer.embedding_places() == 31);
  CHECK(buffer.features() == 9);  // (960 - 31 * 16) / 48
  CHECK(buffer.overwritten() == 9);
  CHECK(!buffer.Find(0, 8, 1).has_value());
  CHECK(buffer.Find(0, 9, 1).has_value());
}

TEST_CASE("features give way from the coldest, and those that stay keep their rows") {
  for (const uint64_t skew : {0U, 1U, 47U, 4095U}) CheckGivingWay(skew);
}

TEST_CASE("embeddings may take the place of every feature, and have their own beside them") {
  HistoryShape shape = Small();
  shape.bytes = 2000;  // more than 960
  HistoryBuffer buffer(shape);
  CHECK(HistoryBuffer::MostPlaces(shape) == 125);
  uint64_t border = 20;
  for (uint32_t node = 0; node < 100; ++node) {
    buffer.Store(0, Rows{node}, 1);
    border = std::min<uint64_t>(20, (2000 - (node + 1) * 16) / 48);
    CHECK(buffer.features() == border);
  }
  buffer.Store(0, Rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
               1);
  buffer.Store(0, Rows{21, 22, 23, 24, 25}, 1);
  CHECK(buffer.embedding_places() == 125);
  CHECK(buffer.features() == 0);
  // Whatever features are there, places are those without.
  shape.feature_rows = 0;
  CHECK(HistoryBuffer::MostPlaces(shape) == 125);
  CHECK(HistoryBuffer(shape).features() == 0);
}

TEST_CASE("places are used again each t_stale versions, before features give way") {
  HistoryBuffer buffer(Small());
  for (uint64_t version = 0; version < 60; ++version) {
    const Rows nodes = {static_cast<uint32_t>(version), static_cast<uint32_t>(version) + 1};
    buffer.Store(0, nodes, version);
  }
  CHECK(buffer.embedding_places() == 6);  // two a version, three versions
  CHECK(buffer.features() == 18);         // (960 - 6 * 16) / 48
}

// The expected content: the last value and version of each (level, node), without evicted ones.
struct Model {
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> stored;  // value, version
};

TEST_CASE("whatever is stored and evicted, what is found is the last that was stored") {
  const uint64_t first_seed = test::RandomSeed(32);
  for (uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 generator(seed);
    HistoryShape shape;
    shape.bytes = generator() % 4000;
    shape.embedding_bytes = static_cast<uint32_t>(8 + generator() % 60);
    shape.feature_bytes = static_cast<uint32_t>(1 + generator() % 90);
    shape.feature_rows = generator() % 60;
    shape.levels = static_cast<uint32_t>(1 + generator() % 3);
    shape.num_nodes = 60;
    shape.t_stale = generator() % 5 == 0 ? kNoStale : 1 + generator() % 6;
    HistoryBuffer buffer(shape);
    Model model;
    uint64_t value = 0;
    uint64_t version = 0;
    uint64_t found = 0;
    for (uint32_t step = 0; step < 200; ++step) {
      version += generator() % 2;
      const auto level = static_cast<uint32_t>(generator() % shape.levels);
      std::set<uint32_t> nodes;
      for (uint64_t i = generator() % 20; i > 0; --i) {
        nodes.insert(static_cast<uint32_t>(generator() % 60));
      }
      const Rows chosen(nodes.begin(), nodes.end());
      const Rows places = buffer.Store(level, chosen, version);
      CHECK(std::set<uint32_t>(places.begin(), places.end()).size() == places.size());
      for (size_t i = 0; i < places.size(); ++i) {
        Write(&buffer, places[i], ++value);
        model.stored[{level, chosen[i]}] = {value, version};
      }
      const auto gone = static_cast<uint32_t>(generator() % 60);
      buffer.Evict(level, gone);
      model.stored.erase({level, gone});
      const uint64_t embeddings =
          buffer.embedding_places() * HistoryBuffer::Pitch(shape.embedding_bytes);
      const uint64_t features = buffer.features() * shape.feature_bytes;
      const uint64_t budget =
          std::max(shape.bytes, shape.feature_rows * uint64_t{shape.feature_bytes});
      CHECK(embeddings <= shape.bytes);
      CHECK(embeddings + features <= budget);
      // No more rows are given up than necessary.
      const bool is_whole = buffer.features() == shape.feature_rows;
      CHECK((is_whole || embeddings + features + shape.feature_bytes > budget));
      for (uint32_t of = 0; of < shape.levels; ++of) {
        for (uint32_t node = 0; node < 60; ++node) {
          const std::optional<uint32_t> place = buffer.Find(of, node, version);
          if (!place.has_value()) continue;
          ++found;
          const auto last = model.stored.find({of, node});
          REQUIRE(last != model.stored.end());
          CHECK(Read(buffer, *place) == last->second.first);
          CHECK(version - last->second.second <= shape.t_stale);
        }
      }
      // Embeddings that were just stored are found.
      for (size_t i = 0; i < places.size(); ++i) {
        if (chosen[i] != gone) CHECK(buffer.Find(level, chosen[i], version) == places[i]);
      }
    }
    CHECK((found > 0 || buffer.embedding_places() == 0));
  }
}

}  // namespace
}  // namespace gnnd
