#include "core/graph/features.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "test/support/halves.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::ReadFile;
using test::TempFolder;
using test::WriteNpy;

constexpr unsigned kSeed = 20260719;

std::vector<float> RandomTable(uint64_t rows, uint64_t dim) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal(3.0F, 100.0F);
  std::vector<float> table(rows * dim);
  for (float& value : table) value = normal(random);
  return table;
}

size_t FilesIn(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

// Column by column, as the definition says.
std::vector<float> NaiveStandardized(const std::vector<float>& table, uint64_t dim) {
  const uint64_t rows = table.size() / dim;
  std::vector<float> result(table.size());
  for (uint64_t c = 0; c < dim; ++c) {
    double sum = 0;
    for (uint64_t r = 0; r < rows; ++r) sum += static_cast<double>(table[r * dim + c]);
    const double mean = sum / static_cast<double>(rows);
    double squares = 0;
    for (uint64_t r = 0; r < rows; ++r) {
      const double distance = static_cast<double>(table[r * dim + c]) - mean;
      squares += distance * distance;
    }
    const double std = std::sqrt(squares / static_cast<double>(rows));
    for (uint64_t r = 0; r < rows; ++r) {
      const double distance = static_cast<double>(table[r * dim + c]) - mean;
      result[r * dim + c] = static_cast<float>(distance / (std + 1e-12));
    }
  }
  return result;
}

TEST_CASE("standardize: equals a column-wise float64 computation, bit for bit") {
  for (const auto& [rows, dim] : {std::pair<uint64_t, uint64_t>{1, 1}, {7, 3}, {5000, 129}}) {
    const TempFolder folder;
    const std::vector<float> table = RandomTable(rows, dim);
    WriteNpy(folder / "in.npy", table, {rows, dim});
    const Status status = StandardizeFeatures(folder / "in.npy", folder / "out.npy");
    REQUIRE_MESSAGE(status.ok(), status.message());
    CHECK(ReadFile(folder / "out.npy") ==
          test::NpyBytes(NaiveStandardized(table, dim), {rows, dim}));
    CHECK(FilesIn(folder) == 3);
    CHECK(ReadFile(folder / "out.npy.moments").size() == 2 * dim * sizeof(double));
  }
}

TEST_CASE("standardize: float16 gives the float32 file of the same values") {
  const TempFolder folder;
  const std::vector<Half> halves = test::RandomHalves(5000 * 129, 3);
  WriteNpy(folder / "half.npy", halves, {5000, 129});
  WriteNpy(folder / "float.npy", test::Widened(halves), {5000, 129});
  REQUIRE(StandardizeFeatures(folder / "half.npy", folder / "from_half.npy").ok());
  REQUIRE(StandardizeFeatures(folder / "float.npy", folder / "from_float.npy").ok());
  CHECK(ReadFile(folder / "from_half.npy") == ReadFile(folder / "from_float.npy"));
}

TEST_CASE("standardize: a constant column becomes zero, others get mean 0 and deviation 1") {
  const TempFolder folder;
  WriteNpy<float>(folder / "in.npy", {5, 1, 5, 2, 5, 3, 5, 4}, {4, 2});
  REQUIRE(StandardizeFeatures(folder / "in.npy", folder / "out.npy").ok());
  const Result<NpyArray> out = NpyArray::Open(folder / "out.npy");
  REQUIRE(out.ok());
  const auto values = out->values<float>();
  const float step = static_cast<float>(0.5 / (std::sqrt(1.25) + 1e-12));
  const std::vector<float> expected = {0, -3 * step, 0, -step, 0, step, 0, 3 * step};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]));
}

TEST_CASE("standardize: says by which means and divisors it did") {
  const TempFolder folder;
  WriteNpy(folder / "in.npy", std::vector<float>{1, 5, 3, 5, 8, 5}, {3, 2});
  REQUIRE(StandardizeFeatures(folder / "in.npy", folder / "out.npy").ok());
  const std::string bytes = ReadFile(folder / "out.npy.moments");
  std::vector<double> moments(4);
  REQUIRE(bytes.size() == moments.size() * sizeof(double));
  std::memcpy(moments.data(), bytes.data(), bytes.size());
  CHECK(moments[0] == 4);
  CHECK(moments[1] == 5);
  CHECK(moments[2] == doctest::Approx(std::sqrt(26.0 / 3)));
  CHECK(moments[3] == 1e-12);
}

TEST_CASE("standardize: replaces an older output") {
  const TempFolder folder;
  WriteNpy<float>(folder / "in.npy", {1, 3}, {2, 1});
  test::WriteFile(folder / "out.npy", "older");
  REQUIRE(StandardizeFeatures(folder / "in.npy", folder / "out.npy").ok());
  CHECK(ReadFile(folder / "out.npy") == test::NpyBytes<float>({-1, 1}, {2, 1}));
}

TEST_CASE("standardize: names the column of a value that is not finite, and writes nothing") {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const TempFolder folder;
    WriteNpy<float>(folder / "in.npy", {1, 2, 3, bad}, {2, 2});
    const Status status = StandardizeFeatures(folder / "in.npy", folder / "out.npy");
    CHECK(status.code() == Code::kDatasetCorrupt);
    CHECK(status.message() == "in.npy: column 1 holds a value that is not finite");
    CHECK(FilesIn(folder) == 1);
  }
}

TEST_CASE("standardize: refuses what is no matrix of floats") {
  const TempFolder folder;
  CHECK(StandardizeFeatures(folder / "in.npy", folder / "out.npy").code() == Code::kNotFound);
  WriteNpy<int32_t>(folder / "in.npy", {1, 2}, {2, 1});
  CHECK(StandardizeFeatures(folder / "in.npy", folder / "out.npy").code() == Code::kDatasetCorrupt);
  WriteNpy<float>(folder / "in.npy", {1, 2});
  CHECK(StandardizeFeatures(folder / "in.npy", folder / "out.npy").code() == Code::kDatasetCorrupt);
  WriteNpy<float>(folder / "in.npy", {}, {0, 2});
  CHECK(StandardizeFeatures(folder / "in.npy", folder / "out.npy").code() == Code::kDatasetCorrupt);
}

TEST_CASE("standardize: a file system that refuses gives its reason and leaves nothing behind") {
  const TempFolder folder;
  const std::vector<float> table = RandomTable(4096, 128);  // 2 MiB
  WriteNpy(folder / "in.npy", table, {4096, 128});
  const Status no_folder = StandardizeFeatures(folder / "in.npy", folder / "none/out.npy");
  CHECK(no_folder.code() == Code::kIo);
  CHECK(no_folder.message().find("No such file or directory") != std::string::npos);

  // A limit on file sizes stops the writing in its middle, as a full disk would.
  struct rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit small{1500000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Status full = StandardizeFeatures(folder / "in.npy", folder / "out.npy");
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(full.code() == Code::kIo);
  CHECK_MESSAGE(full.message().find("File too large") != std::string::npos, full.message());
  CHECK(FilesIn(folder) == 1);
}

TEST_CASE("gather: equals the naive copy for every row size around lines and the 1 KiB border") {
  constexpr uint64_t kRows = 300;
  std::mt19937 random(kSeed);
  for (const uint64_t dim : {1, 3, 15, 16, 17, 100, 128, 255, 256, 257, 1433}) {
    const std::vector<float> table = RandomTable(kRows, dim);
    for (const uint64_t wanted : {0, 1, 2, 3, 8, 9, 1000}) {
      CAPTURE(dim);
      CAPTURE(wanted);
      std::vector<uint32_t> rows(wanted);
      for (uint32_t& row : rows) row = static_cast<uint32_t>(random() % kRows);
      if (wanted > 2) rows[1] = kRows - 1;
      std::vector<float> expected(wanted * dim);
      for (uint64_t i = 0; i < wanted; ++i) {
        std::copy_n(table.begin() + static_cast<int64_t>(rows[i] * dim), dim,
                    expected.begin() + static_cast<int64_t>(i * dim));
      }
      for (const PrefetchLevel prefetch : {PrefetchLevel::kL1, PrefetchLevel::kL2}) {
        std::vector<float> out(wanted * dim, -1.0F);
        GatherRows(RowTable(table, dim), rows, out, prefetch);
        CHECK(out == expected);
      }
    }
  }
}

TEST_CASE("gather: rows of float16 come out as their float32 values, or as they are") {
  constexpr uint64_t kRows = 300;
  std::mt19937 random(kSeed);
  for (const uint64_t dim : {1, 3, 15, 16, 17, 100, 256, 511, 512, 513, 1433}) {
    const std::vector<Half> table = test::RandomHalves(kRows * dim, dim);
    const std::vector<float> widened = test::Widened(table);
    for (const uint64_t wanted : {0, 1, 3, 9, 1000}) {
      CAPTURE(dim);
      CAPTURE(wanted);
      std::vector<uint32_t> rows(wanted);
      for (uint32_t& row : rows) row = static_cast<uint32_t>(random() % kRows);
      if (wanted > 2) rows[1] = kRows - 1;
      std::vector<float> out(wanted * dim, -1.0F);
      std::vector<float> expected(wanted * dim);
      std::vector<Half> copy(wanted * dim);
      GatherRows(RowTable(widened, dim), rows, expected);
      GatherRows(RowTable(table, dim), rows, out);
      CHECK(out == expected);
      CopyRows(RowTable(table, dim), rows, reinterpret_cast<std::byte*>(copy.data()));
      CHECK(test::Widened(copy) == expected);
    }
  }
}

}  // namespace
}  // namespace gnnd
