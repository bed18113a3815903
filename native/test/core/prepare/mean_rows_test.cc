#include "core/prepare/mean_rows.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "core/graph/features.h"
#include "core/graph/npy.h"
#include "test/support/graphs.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::ReadFile;
using test::TempFolder;
using test::WriteNpy;

constexpr uint32_t kAuthors = 90;
constexpr uint32_t kPapers = 60'000;  // more rows than one write has, for each of two threads
constexpr uint32_t kColumns = 21;     // no multiple of a vector

// Papers, which have no features, and their authors, who have; half of the papers have none.
struct Stored {
  TempFolder folder;
  Schema schema;
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> indices;
  std::vector<float> features;

  Stored() {
    std::mt19937_64 generator(test::RandomSeed(5));
    for (uint32_t v = 0; v < kPapers; ++v) {
      const uint64_t degree = generator() % 2 == 0 ? 0 : generator() % 9;
      for (uint64_t e = 0; e < degree; ++e) {
        indices.push_back(static_cast<int32_t>(generator() % kAuthors));
      }
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
    for (uint32_t i = 0; i < kAuthors * kColumns; ++i) {
      features.push_back(static_cast<float>(generator() % 4001) / 512.0F - 3.0F);
    }
    schema.types = {{"author", kAuthors, kColumns}, {"paper", kPapers}};
    schema.relations = {{1, "written_by", 0, 0}, {0, "writes", 1, indices.size()}};
    const std::string edges = folder / FolderOf(schema, schema.relations[1]);
    std::filesystem::create_directories(edges);
    std::filesystem::create_directories(folder / FolderOf(schema.types[0]));
    WriteNpy(edges + "indptr.npy", indptr);
    WriteNpy(edges + "indices.npy", indices);
    WriteNpy(AuthorRows(), features, {kAuthors, kColumns});
  }

  std::string AuthorRows() const { return folder / "nodes/author/features.npy"; }

  MeanRowsOptions options(uint32_t threads = 1) const {
    return {folder.path(), schema, 1, "", folder / "mean.npy", threads};
  }

  std::vector<float> Reference(const std::vector<float>& rows) const {
    std::vector<float> means(uint64_t{kPapers} * kColumns);
    for (uint32_t v = 0; v < kPapers; ++v) {
      for (uint32_t c = 0; c < kColumns; ++c) {
        double sum = 0;
        for (int64_t e = indptr[v]; e < indptr[v + 1]; ++e) {
          sum += rows[static_cast<uint64_t>(indices[e]) * kColumns + c];
        }
        const auto degree = static_cast<double>(indptr[v + 1] - indptr[v]);
        means[uint64_t{v} * kColumns + c] = degree == 0 ? 0.0F : static_cast<float>(sum / degree);
      }
    }
    return means;
  }
};

std::vector<float> RowsOf(const std::string& path) {
  const NpyArray array = test::OpenNpy(path);
  REQUIRE(array.Expect({NpyType::kFloat32}, {kPapers, kColumns}).ok());
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE("a node's row is the mean of its in-neighbours' on any number of threads") {
  const Stored stored;
  REQUIRE(WriteMeanRows(stored.options()).ok());
  CHECK(RowsOf(stored.folder / "mean.npy") == stored.Reference(stored.features));
  const std::string bytes = ReadFile(stored.folder / "mean.npy");
  for (const uint32_t threads : {2, 3}) {
    REQUIRE(WriteMeanRows(stored.options(threads)).ok());
    CHECK(ReadFile(stored.folder / "mean.npy") == bytes);
  }
}

TEST_CASE("means of float16 rows are those of the same values in float32") {
  const Stored stored;
  std::vector<Half> halves;
  std::vector<float> widened;
  for (const float value : stored.features) {
    halves.push_back(ToHalf(value));
    widened.push_back(ToFloat(halves.back()));
  }
  WriteNpy(stored.AuthorRows(), halves, {kAuthors, kColumns});
  REQUIRE(WriteMeanRows(stored.options(2)).ok());
  CHECK(RowsOf(stored.folder / "mean.npy") == stored.Reference(widened));
}

TEST_CASE("means are of the rows that are named, as of a type's standardised ones") {
  const Stored stored;
  const std::string standardised = stored.folder / "standardised.npy";
  REQUIRE(StandardizeFeatures(stored.AuthorRows(), standardised).ok());
  MeanRowsOptions options = stored.options();
  options.source_rows = standardised;
  REQUIRE(WriteMeanRows(options).ok());
  const NpyArray rows = test::OpenNpy(standardised);
  const auto values = rows.values<float>();
  CHECK(RowsOf(options.output) == stored.Reference({values.begin(), values.end()}));
}

TEST_CASE("mean rows that cannot be are refused, and nothing is written") {
  const Stored stored;
  MeanRowsOptions options = stored.options();
  const auto code = [&] { return WriteMeanRows(options).code(); };
  options.relation = 2;
  CHECK(code() == Code::kInvalidArgument);
  options = stored.options(0);
  CHECK(code() == Code::kInvalidArgument);
  options = stored.options();
  options.source_rows = stored.folder / "none.npy";
  CHECK(code() == Code::kNotFound);
  WriteNpy(options.source_rows, std::vector<float>(kAuthors));
  CHECK(code() == Code::kDatasetCorrupt);
  WriteNpy(options.source_rows, std::vector<float>(kAuthors + 1), {kAuthors + 1, 1});
  CHECK(code() == Code::kDatasetCorrupt);
  options = stored.options();
  options.schema.types[0].num_nodes = kAuthors - 1;
  WriteNpy(stored.AuthorRows(), std::vector<float>(kAuthors - 1), {kAuthors - 1, 1});
  CHECK(code() == Code::kDatasetCorrupt);  // a row lists the last author
  CHECK(!std::filesystem::exists(options.output));
}

}  // namespace
}  // namespace gnnd
