#include "core/feature/favoured.h"

#include <doctest/doctest.h>

#include <vector>

#include "test/support/graphs.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

// The running example of Song and Jiang: edges 0-1, 1-2, 1-3, 2-3, 2-4, 2-5, a loop on every node.
test::Graph Example() {
  test::Graph graph;
  graph.AddRow({0, 1});
  graph.AddRow({0, 1, 2, 3});
  graph.AddRow({1, 2, 3, 4, 5});
  graph.AddRow({1, 2, 3});
  graph.AddRow({2, 4});
  graph.AddRow({2, 5});
  return graph;
}

TEST_CASE("paths into the placed set are the paper's, and so are the favoured nodes") {
  const test::Graph graph = Example();
  const std::vector<double> v1 = {0, 1, 1, 1, 1, 0};
  const std::vector<double> v2 = LongerPaths(graph.view(), v1);
  CHECK(v2 == std::vector<double>{1, 3, 4, 3, 2, 1});
  CHECK(LongerPaths(graph.view(), v2) == std::vector<double>{4, 11, 13, 10, 6, 5});
  const std::vector<uint32_t> placed = {3, 1, 4, 2};
  using Sets = std::vector<std::vector<uint32_t>>;
  CHECK(FavouredSets(graph.view(), placed, 2, 3) == Sets{{1, 2, 3, 4}, {2, 1, 3}});
  CHECK(FavouredSets(graph.view(), placed, 3, 100) ==
        Sets{{1, 2, 3, 4}, {2, 1, 3, 4, 0, 5}, {2, 1, 3, 4, 5, 0}});
}

TEST_CASE("nodes that lead nowhere into the placed set are not favoured") {
  test::Graph graph;  // 0 lists 1, 1 lists 2, 2 nobody
  graph.AddRow({1});
  graph.AddRow({2});
  graph.AddRow({});
  const std::vector<uint32_t> placed = {2};
  using Sets = std::vector<std::vector<uint32_t>>;
  CHECK(FavouredSets(graph.view(), placed, 4, 8) == Sets{{2}, {1}, {0}, {}});
  CHECK(FavouredSets(graph.view(), {}, 2, 8) == Sets{{}, {}});
}

TEST_CASE("a file says of each node which hops favour it, the last hop the rows that are held") {
  const test::Graph graph = Example();
  const std::vector<uint32_t> placed = {3, 1, 4, 2};
  const std::vector<uint8_t> hops = FavouredHops(graph.view(), placed, 2, 3);
  CHECK(hops == std::vector<uint8_t>{0, 3, 3, 3, 2, 0});
  const test::TempFolder folder;
  REQUIRE(WriteFavoured(hops, folder / "favoured.npy").ok());
  const Result<FavouredMap> map = FavouredMap::Open(folder / "favoured.npy", 6);
  REQUIRE(map.ok());
  CHECK(std::vector<uint8_t>(map->hops().begin(), map->hops().end()) == hops);
  CHECK(FavouredMap::Open(folder / "favoured.npy", 9).status().code() == Code::kDatasetCorrupt);
  CHECK(FavouredMap::Open(folder / "none.npy", 6).status().code() == Code::kNotFound);
  CHECK(FavouredMap().hops().empty());
}

}  // namespace
}  // namespace gnnd
