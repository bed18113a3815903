#include "core/prepare/message_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "core/draw/permutation.h"
#include "core/draw/purpose.h"
#include "core/graph/npy.h"
#include "test/support/links.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;  // source, destination
using test::LinkGraph;
using test::TempFolder;

test::TinyDataset DatasetOf(const LinkGraph& graph, bool weighted) {
  test::TinyDataset tiny;
  const test::Graph& edges = graph.graph;
  tiny.indptr.assign(edges.indptr.begin(), edges.indptr.end());
  tiny.indices.assign(edges.indices.begin(), edges.indices.end());
  const size_t nodes = edges.indptr.size() - 1;
  tiny.features.assign(nodes * 2, 0.5F);
  tiny.labels.assign(nodes, 0);
  tiny.train = {0};
  if (weighted) {
    for (size_t e = 0; e < tiny.indices.size(); ++e) {
      tiny.edge_weights.push_back(static_cast<float>(e));
    }
  }
  return tiny;
}

std::vector<Pair> PairsIn(const std::string& path) {
  const Result<NpyArray> array = NpyArray::Open(path);
  REQUIRE_MESSAGE(array.ok(), array.status().message());
  REQUIRE(array->shape().size() == 2);
  REQUIRE(array->shape()[1] == 2);
  std::vector<Pair> pairs;
  const auto values = array->values<uint32_t>();
  for (size_t i = 0; i < values.size(); i += 2) pairs.emplace_back(values[i], values[i + 1]);
  return pairs;
}

// The lists of links by the definition: each item's place in the permutation.
struct Lists {
  std::vector<Pair> train, val, test;
};

Lists ListsOf(const LinkGraph& graph, const MessageGraphOptions& options) {
  Lists lists;
  const uint32_t items = graph.num_links();
  const auto val = static_cast<uint32_t>(options.validation * items);
  const auto test = static_cast<uint32_t>(options.test * items);
  for (uint32_t item = 0; item < items; ++item) {
    const Pair pair{graph.links[size_t{2} * item], graph.links[size_t{2} * item + 1]};
    const uint32_t place =
        PositionOfIndex(KeyOf(options.random_seed), kLinkSplitEpoch, items, item);
    (place < val ? lists.val : place < val + test ? lists.test : lists.train).push_back(pair);
  }
  return lists;
}

// Edges that are left, row by row, with their numbers in the dataset, which weights hold.
void CheckEdges(const LinkGraph& graph, const std::set<Pair>& gone, const Dataset& made) {
  const TopologyView topology = graph.graph.view();
  size_t at = 0;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      const uint32_t u = topology.indices[e];
      if (gone.contains({u, v}) || (graph.symmetric && gone.contains({v, u}))) continue;
      REQUIRE(at < made.indices().size());
      CHECK(made.indices()[at] == u);
      if (!made.edge_weights().empty()) CHECK(made.edge_weights()[at] == static_cast<float>(e));
      ++at;
    }
    CHECK(made.indptr()[v + 1] == static_cast<int64_t>(at));
  }
  CHECK(at == made.indices().size());
}

void CheckMade(const LinkGraph& graph, const MessageGraphOptions& options, bool weighted) {
  const TempFolder from;
  const TempFolder to;
  const test::TinyDataset tiny = DatasetOf(graph, weighted);
  tiny.WriteTo(from);
  const Result<MessageGraphCounts> counts =
      MakeMessageGraph(from.path(), tiny.counts(), options, to.path());
  REQUIRE_MESSAGE(counts.ok(), counts.status().message());
  CHECK(counts->symmetric == graph.symmetric);
  const Lists lists = ListsOf(graph, options);
  CHECK(PairsIn(to / "links_train.npy") == lists.train);
  CHECK(PairsIn(to / "links_val.npy") == lists.val);
  CHECK(PairsIn(to / "links_test.npy") == lists.test);
  CHECK(counts->train == lists.train.size());
  CHECK(counts->val == lists.val.size());
  CHECK(counts->test == lists.test.size());

  DatasetCounts made_counts = tiny.counts();
  made_counts.num_edges = counts->num_edges;
  made_counts.train = 0;
  const Result<Dataset> made = Dataset::Open(to.path(), made_counts);
  REQUIRE_MESSAGE(made.ok(), made.status().message());
  CHECK(made->edge_weights().empty() == !weighted);
  std::set<Pair> gone(lists.test.begin(), lists.test.end());
  if (!options.keep_validation) gone.insert(lists.val.begin(), lists.val.end());
  CheckEdges(graph, gone, *made);
}

TEST_CASE("a message graph lacks validation and test links, and lists say which is which") {
  for (const bool symmetric : {true, false}) {
    for (const bool weighted : {false, true}) {
      for (const bool keep : {false, true}) {
        CAPTURE(symmetric);
        CAPTURE(weighted);
        CAPTURE(keep);
        const LinkGraph graph = test::RandomLinkGraph(3, 150, 12, symmetric);
        CheckMade(graph, {0.1, 0.2, 7, keep}, weighted);
      }
    }
  }
}

TEST_CASE("another random seed splits otherwise, the same one alike") {
  const LinkGraph graph = test::RandomLinkGraph(4, 200, 12, true);
  const Lists first = ListsOf(graph, {0.1, 0.1, 1});
  CHECK(first.test == ListsOf(graph, {0.1, 0.1, 1}).test);
  CHECK(first.test != ListsOf(graph, {0.1, 0.1, 2}).test);
  CheckMade(graph, {0.1, 0.1, 2}, false);
}

TEST_CASE("a graph that lacks one reverse is directed, and each edge is a link") {
  LinkGraph graph = test::RandomLinkGraph(5, 60, 10, true);
  test::Graph less;
  bool dropped = false;
  const TopologyView all = graph.graph.view();
  for (uint32_t v = 0; v < all.num_nodes(); ++v) {
    std::vector<uint32_t> row(all.indices.begin() + static_cast<int64_t>(all.indptr[v]),
                              all.indices.begin() + static_cast<int64_t>(all.indptr[v + 1]));
    if (!dropped && !row.empty() && row.back() != v) {
      const uint32_t last = row.back();
      while (!row.empty() && row.back() == last) row.pop_back();
      dropped = true;
    }
    less.AddRow(row);
  }
  graph.graph = less;
  graph.symmetric = false;
  graph.links = test::LinksOf(graph.graph.view(), false);
  CheckMade(graph, {0.1, 0.2, 7}, false);
}

TEST_CASE(
    "given lists are taken as they are, with every edge, and what they share with it counted") {
  const TempFolder from;
  const TempFolder to;
  const test::TinyDataset path = test::PathOfSix();
  path.WriteTo(from);
  test::WriteNpy<uint32_t>(from / "links_train.npy", {5, 2, 1, 4, 0, 2}, {3, 2});
  test::WriteNpy<uint32_t>(from / "links_val.npy", {1, 0, 0, 5}, {2, 2});
  test::WriteNpy<uint32_t>(from / "links_test.npy", {3, 4}, {1, 2});
  test::WriteNpy<uint32_t>(from / "links_test_negatives.npy", {0, 1}, {1, 2});
  test::WriteNpy<int32_t>(from / "links_train_labels.npy", {52, 14, 2}, {3});
  test::WriteNpy<float>(from / "links_train_weights.npy", {5.2F, 1.4F, 0.2F}, {3});
  test::WriteNpy<int32_t>(from / "links_val_labels.npy", {10, 5}, {2});
  test::WriteNpy<uint32_t>(from / "links_val_negative_pairs.npy", {0, 3, 1, 5, 0, 2}, {3, 2});
  MessageGraphOptions options;
  options.given = true;
  const auto made = MakeMessageGraph(from.path(), path.counts(), options, to.path());
  REQUIRE_MESSAGE(made.ok(), made.status().message());
  CHECK(made->symmetric);
  CHECK(made->num_edges == 10);
  CHECK(made->train == 3);
  CHECK(made->val == 2);
  CHECK(made->test == 1);
  CHECK(made->overlap == 2);
  CHECK(PairsIn(to / "links_train.npy") == std::vector<Pair>{{0, 2}, {5, 2}, {1, 4}});
  CHECK(PairsIn(to / "links_val.npy") == std::vector<Pair>{{1, 0}, {0, 5}});
  CHECK(PairsIn(to / "links_test_negatives.npy") == std::vector<Pair>{{0, 1}});
  CHECK_FALSE(std::filesystem::exists(to / "links_val_negatives.npy"));
  // What is known of training links goes with them.
  const auto labels = NpyArray::Open(to / "links_train_labels.npy");
  REQUIRE(labels.ok());
  CHECK(std::ranges::equal(labels->values<int32_t>(), std::array{2, 52, 14}));
  CHECK(std::filesystem::exists(to / "links_val_labels.npy"));
  const auto weights = NpyArray::Open(to / "links_train_weights.npy");
  REQUIRE(weights.ok());
  CHECK(std::ranges::equal(weights->values<float>(), std::array{0.2F, 5.2F, 1.4F}));
  CHECK(made->val_pool == 3);
  CHECK(made->test_pool == 0);
  CHECK(PairsIn(to / "links_val_negative_pairs.npy") == std::vector<Pair>{{0, 3}, {1, 5}, {0, 2}});
  DatasetCounts counts = path.counts();
  counts.train = counts.val = counts.test = 0;
  CHECK(Dataset::Open(to.path(), counts).ok());

  test::WriteNpy<uint32_t>(from / "links_val.npy", {1, 6}, {1, 2});
  const TempFolder other;
  const Status beyond =
      MakeMessageGraph(from.path(), path.counts(), options, other.path()).status();
  CHECK(beyond.code() == Code::kDatasetCorrupt);
  CHECK(beyond.message() == "links_val.npy: link 0 names node 6, but the graph has 6");
}

// The pairs of a graph's edges, repeated ones once.
std::set<Pair> EdgesIn(const Dataset& graph) {
  std::set<Pair> edges;
  for (uint32_t v = 0; v < graph.num_nodes(); ++v) {
    const auto begin = static_cast<size_t>(graph.indptr()[v]);
    const auto end = static_cast<size_t>(graph.indptr()[v + 1]);
    const auto row = graph.indices().subspan(begin, end - begin);
    CHECK(std::ranges::is_sorted(row));
    for (const uint32_t u : row) edges.emplace(u, v);
  }
  return edges;
}

// The graph's edges, and those of given validation links that were none: weights of the former are
// 100 and more.
void CheckAdded(bool symmetric, bool ascending) {
  const LinkGraph graph = test::RandomLinkGraph(9, 60, 8, symmetric);
  test::TinyDataset tiny = DatasetOf(graph, true);
  for (float& weight : tiny.edge_weights) weight += 100;
  if (!ascending) {
    for (size_t v = 0; v + 1 < tiny.indptr.size(); ++v) {
      std::reverse(tiny.indices.begin() + tiny.indptr[v],
                   tiny.indices.begin() + tiny.indptr[v + 1]);
    }
  }
  // A link twice, in two directions, one that is an edge, the first row, the last one.
  const uint32_t edge = tiny.indices[0];
  const std::vector<uint32_t> val = {7, 50, 50, 7, 7, 50, edge, 0, 33, 0, 3, 59, 2, 59};
  const std::vector<uint32_t> held = {11, 58, 58, 12};
  const TempFolder from;
  const TempFolder to;
  tiny.WriteTo(from);
  test::WriteNpy<uint32_t>(from / "links_train.npy", {1, 2}, {1, 2});
  test::WriteNpy<uint32_t>(from / "links_val.npy", val, {val.size() / 2, 2});
  test::WriteNpy<uint32_t>(from / "links_test.npy", held, {held.size() / 2, 2});
  MessageGraphOptions options;
  options.given = options.keep_validation = true;
  const auto made = MakeMessageGraph(from.path(), tiny.counts(), options, to.path());
  REQUIRE_MESSAGE(made.ok(), made.status().message());
  CHECK_FALSE(std::filesystem::exists(to / "ascending"));
  DatasetCounts counts = tiny.counts();
  counts.num_edges = made->num_edges;
  counts.train = counts.val = counts.test = 0;
  const Result<Dataset> dataset = Dataset::Open(to.path(), counts);
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());

  const Result<Dataset> before = Dataset::Open(from.path(), tiny.counts());
  REQUIRE(before.ok());
  std::set<Pair> expected;
  for (uint32_t v = 0; v < before->num_nodes(); ++v) {
    for (int64_t e = before->indptr()[v]; e < before->indptr()[v + 1]; ++e) {
      expected.emplace(before->indices()[static_cast<size_t>(e)], v);
    }
  }
  const size_t edges_before = expected.size();
  for (size_t i = 0; i < val.size(); i += 2) {
    expected.emplace(val[i], val[i + 1]);
    if (symmetric) expected.emplace(val[i + 1], val[i]);
  }
  CHECK(EdgesIn(*dataset) == expected);
  CHECK(made->num_edges == tiny.indices.size() + expected.size() - edges_before);
  CHECK_FALSE(EdgesIn(*dataset).contains({11, 58}));
  const auto ones = std::ranges::count(dataset->edge_weights(), 1.0F);
  CHECK(static_cast<size_t>(ones) == expected.size() - edges_before);
}

TEST_CASE("given validation links become edges where they are none, and test links never do") {
  for (const bool symmetric : {true, false}) {
    for (const bool ascending : {true, false}) {
      CAPTURE(symmetric);
      CAPTURE(ascending);
      CheckAdded(symmetric, ascending);
    }
  }
}

TEST_CASE("edges to no node and lists that would be empty are refused") {
  const auto error = [](const test::TinyDataset& tiny, const MessageGraphOptions& options) {
    const TempFolder from;
    const TempFolder to;
    tiny.WriteTo(from);
    const auto made = MakeMessageGraph(from.path(), tiny.counts(), options, to.path());
    REQUIRE(!made.ok());
    return made.status();
  };
  test::TinyDataset path = test::PathOfSix();
  const Status few = error(path, {0.05, 0.1, 0});
  CHECK(few.code() == Code::kInvalidArgument);
  CHECK(few.message().find(
            "of 5 links 5 would be for training, 0 for validation, 0 for the test") == 0);
  CHECK(error(path, {0.6, 0.4, 0}).code() == Code::kInvalidArgument);
  path.indices[1] = 6;
  const Status beyond = error(path, {0.2, 0.2, 0});
  CHECK(beyond.code() == Code::kDatasetCorrupt);
  CHECK(beyond.message().find("row 1 names no node") == 0);
}

TEST_CASE("rows in any order make the graph of rows that ascend, and weights go with their edges") {
  const LinkGraph graph = test::RandomLinkGraph(6, 80, 10, true);
  test::TinyDataset ascending = DatasetOf(graph, false);
  test::TinyDataset falling = ascending;
  for (size_t v = 0; v + 1 < ascending.indptr.size(); ++v) {
    const auto row = falling.indices.begin();
    std::reverse(row + ascending.indptr[v], row + ascending.indptr[v + 1]);
    for (int64_t e = ascending.indptr[v]; e < ascending.indptr[v + 1]; ++e) {
      const auto weight = [&](uint32_t source) { return static_cast<float>(100 * v + source); };
      ascending.edge_weights.push_back(weight(ascending.indices[static_cast<size_t>(e)]));
      falling.edge_weights.push_back(weight(falling.indices[static_cast<size_t>(e)]));
    }
  }
  REQUIRE(falling.indices != ascending.indices);
  for (const bool given : {false, true}) {
    CAPTURE(given);
    const TempFolder from[2];
    const TempFolder to[2];
    const test::TinyDataset* const datasets[] = {&ascending, &falling};
    for (size_t i = 0; i < 2; ++i) {
      datasets[i]->WriteTo(from[i]);
      for (const char* name : {"links_train.npy", "links_val.npy", "links_test.npy"}) {
        if (given) test::WriteNpy<uint32_t>(from[i] / name, {1, 0}, {1, 2});
      }
      MessageGraphOptions options{0.1, 0.2, 7};
      options.given = given;
      const auto made =
          MakeMessageGraph(from[i].path(), datasets[i]->counts(), options, to[i].path());
      REQUIRE_MESSAGE(made.ok(), made.status().message());
      CHECK_FALSE(std::filesystem::exists(to[i] / "ascending"));
    }
    const auto same = [&to]<typename T>(const char* name, T) {
      CAPTURE(name);
      const Result<NpyArray> first = NpyArray::Open(to[0] / name);
      const Result<NpyArray> second = NpyArray::Open(to[1] / name);
      REQUIRE(first.ok());
      REQUIRE(second.ok());
      CHECK(std::ranges::equal(first->values<T>(), second->values<T>()));
    };
    same("indptr.npy", int64_t{});
    same("indices.npy", uint32_t{});
    same("edge_weights.npy", float{});
    same("links_train.npy", uint32_t{});
  }
}

TEST_CASE("walks go along the edges that are left, in place of training links") {
  for (const bool symmetric : {true, false}) {
    CAPTURE(symmetric);
    const LinkGraph graph = test::RandomLinkGraph(3, 60, 8, symmetric);
    const TempFolder from;
    const TempFolder to;
    const test::TinyDataset tiny = DatasetOf(graph, false);
    tiny.WriteTo(from);
    MessageGraphOptions options{0.1, 0.2, 7};
    options.walks = {4, 1, 1, 9};
    const auto made = MakeMessageGraph(from.path(), tiny.counts(), options, to.path());
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    const Lists lists = ListsOf(graph, options);
    CHECK(PairsIn(to / "links_val.npy") == lists.val);
    CHECK(PairsIn(to / "links_test.npy") == lists.test);
    const std::vector<Pair> pairs = PairsIn(to / "links_train.npy");
    CHECK(pairs.size() == made->train);
    // Of one step each: all of them are training links, or their reverses.
    std::set<Pair> train(lists.train.begin(), lists.train.end());
    if (symmetric) {
      for (const auto& [source, v] : lists.train) train.emplace(v, source);
    }
    CHECK(std::ranges::all_of(pairs, [&](const Pair& pair) { return train.contains(pair); }));
    CHECK(std::set<Pair>(pairs.begin(), pairs.end()).size() > train.size() / 3);
  }
}

}  // namespace
}  // namespace gnnd
