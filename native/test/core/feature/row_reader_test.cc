#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/feature/open_rows.h"
#include "core/graph/npy.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::TempFolder;

constexpr uint32_t kRows = 4099;
constexpr uint64_t kColumns = 37;  // rows begin anywhere in a page
constexpr uint32_t kTokens = 3;
constexpr uint32_t kBatch = 500;
constexpr ReadWay kWays[] = {ReadWay::kUring, ReadWay::kDirect, ReadWay::kBuffered};

template <typename T>
T ValueOf(uint64_t at) {
  if constexpr (sizeof(T) == sizeof(float)) return static_cast<float>(at % 60013);
  return static_cast<T>(at % 0x7000);  // bits of a finite number
}

template <typename T>
struct Files {
  Files() {
    const uint64_t shape[] = {kRows, kColumns};
    for (uint32_t token = 0; token < kTokens; ++token) {
      std::vector<T> values;
      for (uint64_t i = 0; i < kRows * kColumns; ++i) {
        values.push_back(ValueOf<T>(i * (token + 1) + token));
      }
      std::string bytes = NpyHeader(NpyTypeOf<T>::kType, shape, kPageBytes);
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
      options.paths.push_back(folder / (std::to_string(token) + ".npy"));
      test::WriteFile(options.paths.back(), bytes);
    }
    options.rows = kRows;
    options.columns = kColumns;
    options.most_rows = kBatch;
    options.most_runs = kBatch;
  }

  std::unique_ptr<RowReader> Open(RowTier tier) {
    options.tier = tier;
    Result<std::unique_ptr<RowReader>> reader = OpenRows(options);
    REQUIRE_MESSAGE(reader.ok(), reader.status().message());
    return std::move(*reader);
  }

  TempFolder folder;
  RowReaderOptions options;
};

using Runs = std::vector<RowRun>;

// The runs of batch `batch` of an endless order of chunks.
Runs RunsOf(uint64_t batch, uint32_t chunk) {
  const uint32_t per_epoch = (kRows + kBatch - 1) / kBatch;
  const RowOrder order =
      RowOrderOf(KeyOf(3), static_cast<uint32_t>(batch / per_epoch), kRows, chunk);
  const auto begin = static_cast<uint32_t>(batch % per_epoch) * kBatch;
  const uint32_t end = std::min(begin + kBatch, kRows);
  Runs runs;
  for (uint32_t at = begin; at < end; at += runs.back().count) {
    runs.push_back(RowRunAt(order, at, end));
  }
  return runs;
}

std::vector<float> Staged(const RowReader& reader, const Runs& runs) {
  uint32_t rows = 0;
  for (const RowRun& run : runs) rows += run.count;
  std::vector<float> all(kTokens * rows * kColumns, -1);
  for (uint32_t token = 0; token < kTokens; ++token) {
    // Copies in two parts, as two threads would.
    float* const out = all.data() + token * rows * kColumns;
    reader.Copy(token, 0, rows / 3, out);
    reader.Copy(token, rows / 3, rows, out + rows / 3 * kColumns);
  }
  return all;
}

template <typename T>
void EveryTierGivesTheSame() {
  for (const uint32_t chunk : {1U, 7U, 50U, 500U}) {
    for (const ReadWay way : kWays) {
      CAPTURE(chunk);
      Files<T> files;
      files.options.way = way;
      const std::unique_ptr<RowReader> mapped = files.Open(RowTier::kHost);
      const std::unique_ptr<RowReader> disk = files.Open(RowTier::kDisk);
      // Right guesses, guesses of every other batch, wrong ones, and none.
      for (const uint64_t guess : {1U, 2U, 1000U, 0U}) {
        for (uint64_t batch = 0; batch < 11; ++batch) {
          const Runs runs = RunsOf(batch, chunk);
          REQUIRE(mapped->Stage(runs, {}).ok());
          REQUIRE(disk->Stage(runs,
                              [&](uint32_t ahead, Runs* next) {
                                if (guess > 0) *next = RunsOf(batch + ahead * guess, chunk);
                              })
                      .ok());
          const std::vector<float> expected = Staged(*mapped, runs);
          CHECK(std::memcmp(Staged(*disk, runs).data(), expected.data(),
                            expected.size() * sizeof(float)) == 0);
        }
      }
    }
  }
}

TEST_CASE("rows: every tier and every way of reading give the same floats") {
  EveryTierGivesTheSame<float>();
  EveryTierGivesTheSame<Half>();
  EveryTierGivesTheSame<Bfloat16>();
}

TEST_CASE("rows: mapped ones are those of the files") {
  Files<float> files;
  const std::unique_ptr<RowReader> reader = files.Open(RowTier::kHost);
  const Runs runs = {{4090, 9}, {0, 2}};
  REQUIRE(reader->Stage(runs, {}).ok());
  const std::vector<float> rows = Staged(*reader, runs);
  const uint64_t row = 4098 * kColumns;
  for (uint64_t c = 0; c < kColumns; ++c) {
    CHECK(rows[(11 + 8) * kColumns + c] == ValueOf<float>((row + c) * 2 + 1));
    CHECK(rows[10 * kColumns + c] == ValueOf<float>(kColumns + c));
  }
}

// Every slot holds poison until its last byte was read: whoever looks too early sees it.
TEST_CASE("rows: none is given out before it was read, and none is overwritten while it is used") {
  Files<float> files;
  std::atomic<uint32_t> reads = 0;
  files.options.answer = [&](ReadWay, const BulkRead& read, int64_t) -> int64_t {
    std::memset(read.to, 0xFF, read.bytes);
    if (reads.fetch_add(1) % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;  // nothing was read: it is read again, over the poison
  };
  const std::unique_ptr<RowReader> mapped = files.Open(RowTier::kHost);
  const std::unique_ptr<RowReader> disk = files.Open(RowTier::kDisk);
  std::mt19937 random(1);
  uint64_t batch = 0;
  for (int step = 0; step < 60; ++step) {
    batch = random() % 4 == 0 ? random() % 30 : batch + 1;  // now and then somewhere else
    const Runs runs = RunsOf(batch, 50);
    REQUIRE(
        disk->Stage(runs, [&](uint32_t ahead, Runs* next) { *next = RunsOf(batch + ahead, 50); })
            .ok());
    // The readers work on what comes next meanwhile.
    if (step % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    REQUIRE(mapped->Stage(runs, {}).ok());
    CHECK(Staged(*disk, runs) == Staged(*mapped, runs));
  }
}

TEST_CASE(
    "rows: from disk each is read once where guesses are right, in memory that does not grow") {
  Files<float> files;
  std::atomic<uint64_t> bytes = 0;
  files.options.answer = [&](ReadWay, const BulkRead& read, int64_t result) {
    bytes += read.bytes;
    return result;
  };
  const std::unique_ptr<RowReader> disk = files.Open(RowTier::kDisk);
  const uint64_t memory = disk->memory_bytes();
  constexpr uint64_t kBatches = 45;  // five epochs
  uint64_t asked = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    const Runs runs = RunsOf(batch, kBatch);
    for (const RowRun& run : runs) asked += kTokens * run.count * kColumns * sizeof(float);
    REQUIRE(disk->Stage(runs,
                        [&](uint32_t ahead, Runs* next) {
                          if (batch + ahead < kBatches) *next = RunsOf(batch + ahead, kBatch);
                        })
                .ok());
  }
  // A run begins and ends within pages.
  CHECK(bytes.load() >= asked);
  CHECK(bytes.load() <= asked + kBatches * 2 * kTokens * 2 * kPageBytes);
  CHECK(disk->memory_bytes() == memory);
  CHECK(memory >= 2 * kTokens * kBatch * kColumns * sizeof(float));
}

// The work that the loader's stages save in an epoch: calls that reach the disk, and bytes read
// beyond the rows.
TEST_CASE("rows: longer chunks take fewer reads and waste fewer bytes; mapped rows take none") {
  struct Work {
    uint64_t reads = 0;
    uint64_t bytes = 0;
  };
  const auto of_epoch = [](RowTier tier, uint32_t chunk) {
    Files<float> files;
    std::atomic<uint64_t> reads = 0;
    std::atomic<uint64_t> bytes = 0;
    files.options.answer = [&](ReadWay, const BulkRead& read, int64_t result) {
      ++reads;
      bytes += read.bytes;
      return result;
    };
    const std::unique_ptr<RowReader> reader = files.Open(tier);
    for (uint64_t batch = 0; batch * kBatch < kRows; ++batch) {
      REQUIRE(reader->Stage(RunsOf(batch, chunk), {}).ok());
    }
    return Work{reads, bytes};
  };
  const uint64_t rows_bytes = kTokens * kRows * kColumns * sizeof(float);
  Work before;
  for (const uint32_t chunk : {1U, 50U, 250U, 500U}) {
    CAPTURE(chunk);
    const Work work = of_epoch(RowTier::kDisk, chunk);
    // A run is one read of each hop; batches and the short chunk cut some in two.
    const uint64_t runs = (kRows + chunk - 1) / chunk + (chunk == 1 ? 0 : 10);
    CHECK(work.reads <= kTokens * runs);
    CHECK(work.reads >= kTokens * kRows / chunk);
    CHECK(work.bytes >= rows_bytes);
    CHECK(work.bytes <= rows_bytes + work.reads * 2 * kPageBytes);
    if (chunk > 1) {
      CHECK(3 * work.reads < 2 * before.reads);
      CHECK(3 * (work.bytes - rows_bytes) < 2 * (before.bytes - rows_bytes));
    }
    before = work;
  }
  CHECK(of_epoch(RowTier::kHost, 1).reads == 0);
}

TEST_CASE("rows: what comes next is read while the present ones are in use") {
  Files<float> files;
  std::atomic<uint32_t> reads = 0;
  files.options.answer = [&](ReadWay, const BulkRead&, int64_t result) {
    ++reads;
    return result;
  };
  const std::unique_ptr<RowReader> disk = files.Open(RowTier::kDisk);
  const Runs runs = {{0, kBatch}};
  REQUIRE(disk->Stage(runs, [&](uint32_t ahead, Runs* next) { *next = {{ahead * kBatch, kBatch}}; })
              .ok());
  // Nobody asks again; the three other reads come by themselves.
  while (reads < 4 * kTokens) std::this_thread::yield();
  const std::vector<float> rows = Staged(*disk, runs);
  CHECK(rows[kColumns] == ValueOf<float>(kColumns));
}

TEST_CASE("rows: an error is of the rows that were asked for, and not of those that were guessed") {
  Files<float> files;
  std::atomic<bool> broken = true;
  files.options.answer = [&](ReadWay, const BulkRead& read, int64_t result) {
    return broken && read.offset >= 130 * kPageBytes ? int64_t{-EIO} : result;
  };
  const std::unique_ptr<RowReader> disk = files.Open(RowTier::kDisk);
  const Runs front = {{0, kBatch}};
  const Runs back = {{kRows - kBatch, kBatch}};
  const auto guess_back = [&](uint32_t ahead, Runs* next) {
    if (ahead == 1) *next = back;
  };
  REQUIRE(disk->Stage(front, guess_back).ok());
  REQUIRE(disk->Stage(front, guess_back).ok());
  const Status failed = disk->Stage(back, {});
  CHECK(failed.code() == Code::kIo);
  CHECK(failed.message().find(".npy at byte") != std::string::npos);
  broken = false;
  REQUIRE(disk->Stage(back, {}).ok());
  const std::unique_ptr<RowReader> mapped = files.Open(RowTier::kHost);
  REQUIRE(mapped->Stage(back, {}).ok());
  CHECK(Staged(*disk, back) == Staged(*mapped, back));
}

TEST_CASE("rows: files that are no such matrices are refused by name") {
  Files<float> files;
  files.options.columns = kColumns + 1;
  CHECK(OpenRows(files.options).status().code() == Code::kDatasetCorrupt);
  files.options.columns = kColumns;
  REQUIRE(truncate(files.options.paths[1].c_str(), 9000) == 0);
  const Status cut = OpenRows(files.options).status();
  CHECK(cut.code() == Code::kDatasetCorrupt);
  CHECK(cut.message().find("1.npy") == 0);
}

}  // namespace
}  // namespace gnnd
