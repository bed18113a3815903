#include "core/draw/row_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace gnnd {
namespace {

constexpr uint32_t kSizes[] = {1, 2, 7, 64, 100, 101, 4097};
constexpr uint32_t kChunks[] = {1, 2, 3, 64, 100, 5000};

// Batches of `batch` rows, each as its rows.
std::vector<std::vector<uint32_t>> BatchesOf(const RowOrder& order, uint32_t batch) {
  std::vector<std::vector<uint32_t>> batches;
  for (uint32_t begin = 0; begin < order.rows; begin += batch) {
    const uint32_t end = begin + std::min(batch, order.rows - begin);
    std::vector<uint32_t>& rows = batches.emplace_back();
    for (uint32_t at = begin; at < end;) {
      const RowRun run = RowRunAt(order, at, end);
      REQUIRE(run.count > 0);
      for (uint32_t i = 0; i < run.count; ++i) rows.push_back(run.first + i);
      at += run.count;
    }
    CHECK(rows.size() == end - begin);
  }
  return batches;
}

std::vector<uint32_t> RowsOf(const RowOrder& order, uint32_t batch) {
  std::vector<uint32_t> rows;
  for (const auto& each : BatchesOf(order, batch))
    rows.insert(rows.end(), each.begin(), each.end());
  return rows;
}

}  // namespace

TEST_CASE("permutation: PositionOfIndex undoes PermutedIndex") {
  for (const uint32_t n : kSizes) {
    for (uint32_t position = 0; position < n; ++position) {
      const uint32_t value = PermutedIndex(KeyOf(9), 3, n, position);
      CHECK(PositionOfIndex(KeyOf(9), 3, n, value) == position);
    }
  }
}

TEST_CASE("row order: every row once an epoch, whatever batch and chunk") {
  for (const uint32_t rows : kSizes) {
    for (const uint32_t chunk : kChunks) {
      const RowOrder order = RowOrderOf(KeyOf(5), 2, rows, chunk);
      const std::vector<uint32_t> whole = RowsOf(order, rows);
      const std::set<uint32_t> distinct(whole.begin(), whole.end());
      CHECK(distinct.size() == rows);
      CHECK(*distinct.rbegin() == rows - 1);
      for (const uint32_t batch : {1U, 5U, 64U}) CHECK(RowsOf(order, batch) == whole);
    }
  }
}

TEST_CASE("row order: chunks of one row are the permutation of rows") {
  const RowOrder order = RowOrderOf(KeyOf(5), 7, 1000, 1);
  const std::vector<uint32_t> rows = RowsOf(order, 64);
  for (uint32_t at = 0; at < 1000; ++at) CHECK(rows[at] == PermutedIndex(KeyOf(5), 7, 1000, at));
}

TEST_CASE("row order: with chunks as large as batches only their order changes") {
  std::set<std::vector<uint32_t>> first;
  for (uint32_t epoch = 0; epoch < 4; ++epoch) {
    const auto batches = BatchesOf(RowOrderOf(KeyOf(1), epoch, 1024, 64), 64);
    const std::set<std::vector<uint32_t>> distinct(batches.begin(), batches.end());
    if (epoch == 0) first = distinct;
    CHECK(distinct == first);
    for (const auto& batch : batches) {
      CHECK(batch.front() % 64 == 0);
      CHECK(std::is_sorted(batch.begin(), batch.end()));
    }
  }
  CHECK(BatchesOf(RowOrderOf(KeyOf(1), 0, 1024, 64), 64) !=
        BatchesOf(RowOrderOf(KeyOf(1), 1, 1024, 64), 64));
}

TEST_CASE("row order: the short chunk is not always last") {
  std::set<uint32_t> places;
  for (uint32_t epoch = 0; epoch < 50; ++epoch) {
    places.insert(RowOrderOf(KeyOf(1), epoch, 1030, 64).short_at);
  }
  CHECK(places.size() > 5);
}

}  // namespace gnnd
