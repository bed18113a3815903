#include "core/prepare/timed_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/support/graphs.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::TempFolder;
using test::WriteNpy;

constexpr uint32_t kUsers = 40;
constexpr uint32_t kItems = 9000;

// Users who bought items, on disk: half a million edges, more than are written at once.
struct Stored {
  TempFolder folder;
  Schema schema;
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> indices;
  std::vector<int64_t> edge_times;
  std::vector<int64_t> user_times;

  Stored() {
    std::mt19937_64 generator(test::RandomSeed(5));
    for (uint32_t v = 0; v < kItems; ++v) {
      for (uint64_t left = generator() % 120; left > 0; --left) {
        indices.push_back(static_cast<int32_t>(generator() % kUsers));
        edge_times.push_back(static_cast<int64_t>(generator() % 50));
      }
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
    for (uint32_t u = 0; u < kUsers; ++u) {
      user_times.push_back(static_cast<int64_t>(generator() % 50));
    }
    schema.types = {{"user", kUsers}, {"item", kItems}};
    schema.relations = {{0, "bought", 1, indices.size()}};
    const std::string edges = folder / FolderOf(schema, schema.relations[0]);
    std::filesystem::create_directories(edges);
    WriteNpy(edges + "indptr.npy", indptr);
    WriteNpy(edges + "indices.npy", indices);
    WriteNpy(folder / "edge_times.npy", edge_times);
    WriteNpy(folder / "user_times.npy", user_times);
    std::filesystem::create_directories(folder / "out");
  }

  TimedRowsOptions options() const {
    return {folder.path(), schema, 0, folder / "edge_times.npy", "", folder / "out"};
  }

  // What the files hold for these times.
  std::vector<std::pair<int64_t, uint32_t>> Expected(const std::vector<int64_t>& times) const {
    std::vector<std::pair<int64_t, uint32_t>> all;
    for (size_t e = 0; e < indices.size(); ++e) {
      all.emplace_back(times[e], static_cast<uint32_t>(indices[e]));
    }
    for (uint32_t v = 0; v < kItems; ++v) {
      std::sort(all.begin() + indptr[v], all.begin() + indptr[v + 1]);
    }
    return all;
  }

  std::vector<std::pair<int64_t, uint32_t>> Written() const {
    const NpyArray sources = test::OpenNpy(folder / "out/indices.npy");
    const NpyArray times = test::OpenNpy(folder / "out/times.npy");
    REQUIRE(sources.Expect({NpyType::kUint32}, {indices.size()}).ok());
    REQUIRE(times.Expect({NpyType::kInt64}, {indices.size()}).ok());
    std::vector<std::pair<int64_t, uint32_t>> all;
    for (size_t e = 0; e < indices.size(); ++e) {
      all.emplace_back(times.values<int64_t>()[e], sources.values<uint32_t>()[e]);
    }
    return all;
  }
};

TEST_CASE("rows are written by time, at equal times by source") {
  const Stored stored;
  REQUIRE(WriteTimedRows(stored.options()).ok());
  CHECK(stored.Written() == stored.Expected(stored.edge_times));
}

TEST_CASE("an edge comes with its source, and with the later of both where both have times") {
  const Stored stored;
  std::vector<int64_t> of_sources;
  std::vector<int64_t> later;
  for (size_t e = 0; e < stored.indices.size(); ++e) {
    of_sources.push_back(stored.user_times[static_cast<size_t>(stored.indices[e])]);
    later.push_back(std::max(of_sources[e], stored.edge_times[e]));
  }
  TimedRowsOptions options = stored.options();
  options.source_times = stored.folder / "user_times.npy";
  REQUIRE(WriteTimedRows(options).ok());
  CHECK(stored.Written() == stored.Expected(later));
  options.edge_times = "";
  REQUIRE(WriteTimedRows(options).ok());
  CHECK(stored.Written() == stored.Expected(of_sources));
}

TEST_CASE("rows whose times are not there are refused, and nothing is written") {
  const Stored stored;
  TimedRowsOptions options = stored.options();
  const auto code = [&] { return WriteTimedRows(options).code(); };
  options.edge_times = "";
  CHECK(code() == Code::kInvalidArgument);
  options.edge_times = stored.folder / "user_times.npy";  // of another length
  CHECK(code() == Code::kDatasetCorrupt);
  options.edge_times = stored.folder / "none.npy";
  CHECK(code() == Code::kNotFound);
  options = stored.options();
  options.relation = 1;
  CHECK(code() == Code::kInvalidArgument);
  options = stored.options();
  options.schema.types[0].num_nodes = kUsers - 1;  // a row lists the last user
  CHECK(code() == Code::kDatasetCorrupt);
  CHECK(std::filesystem::is_empty(stored.folder / "out"));
}

}  // namespace
}  // namespace gnnd
