#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/graph/npy.h"
#include "core/prepare/propagate.h"
#include "test/support/graphs.h"
#include "test/support/npy_files.h"

// Propagations for inference: of all nodes, and by another dataset's moments.

namespace gnnd {
namespace {

using test::TempFolder;

constexpr uint32_t kNodes = 600;
constexpr uint32_t kColumns = 21;

struct Stored {
  TempFolder folder;
  Dataset dataset;

  explicit Stored(float scale) {
    const test::Graph graph = test::RandomGraph(5, kNodes, 12);
    test::TinyDataset tiny;
    tiny.indptr.assign(graph.indptr.begin(), graph.indptr.end());
    tiny.indices.assign(graph.indices.begin(), graph.indices.end());
    tiny.num_features = kColumns;
    for (uint32_t i = 0; i < kNodes * kColumns; ++i) {
      tiny.features.push_back(scale * static_cast<float>(i * 7919 % 2003) / 1000);
    }
    for (uint32_t v = 0; v < kNodes; ++v) {
      tiny.labels.push_back(v % 4 == 3 ? -1 : static_cast<int32_t>(v % 3));
      if (v % 4 == 0) tiny.train.push_back(v);
      if (v % 4 == 1) tiny.val.push_back(v);
      if (v % 4 == 2) tiny.test.push_back(v);
    }
    tiny.WriteTo(folder);
    Result<Dataset> opened = Dataset::Open(folder.path(), tiny.counts());
    REQUIRE(opened.ok());
    dataset = std::move(*opened);
  }
};

PropagationPlan Plan(bool all_nodes) {
  PropagationPlan plan;
  plan.operators = {{.kind = OperatorKind::kSymmetric}, {.kind = OperatorKind::kPpr, .terms = 3}};
  plan.hops = 2;
  plan.standardize = true;
  plan.all_nodes = all_nodes;
  return plan;
}

Status Run(const Stored& stored, const TempFolder& out, bool all_nodes,
           const std::string& moments_from = "", uint64_t columns = 0) {
  PropagateOptions options;
  options.plan = Plan(all_nodes);
  options.folder = out.path();
  options.moments_from = moments_from;
  options.columns = columns;
  PropagateProgress progress;
  return Propagate(stored.dataset, options, &progress).status();
}

std::vector<float> RowsIn(const TempFolder& out, uint32_t op, uint32_t hop) {
  const NpyArray array = std::move(*NpyArray::Open(out / RowFile(op, hop)));
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

TEST_CASE(
    "propagate: rows of all nodes are in the order of ids, and equal those of labelled ones") {
  const Stored stored(1);
  const TempFolder all;
  const TempFolder labelled;
  REQUIRE(Run(stored, all, true, "", 8).ok());
  REQUIRE(Run(stored, labelled, false).ok());
  const auto sizes = SizesOf(stored.dataset.counts(), Plan(true), uint64_t{1} << 30, 0);
  CHECK(sizes->rows == kNodes);
  const NpyArray nodes = std::move(*NpyArray::Open(labelled / "nodes.npy"));
  const NpyArray ids = std::move(*NpyArray::Open(all / "nodes.npy"));
  for (uint32_t v = 0; v < kNodes; ++v) CHECK(ids.values<uint32_t>()[v] == v);
  for (uint32_t op = 0; op < 2; ++op) {
    for (uint32_t hop = 0; hop <= 2; ++hop) {
      if (op == 1 && hop == 0) continue;
      const std::vector<float> every = RowsIn(all, op, hop);
      const std::vector<float> some = RowsIn(labelled, op, hop);
      REQUIRE(every.size() == kNodes * kColumns);
      for (uint64_t row = 0; row < nodes.size(); ++row) {
        const uint64_t node = nodes.values<uint32_t>()[row];
        CHECK(std::equal(some.begin() + static_cast<int64_t>(row * kColumns),
                         some.begin() + static_cast<int64_t>((row + 1) * kColumns),
                         every.begin() + static_cast<int64_t>(node * kColumns)));
      }
    }
  }
}

TEST_CASE("propagate: given moments take the place of the dataset's own") {
  const Stored trained(1);
  const Stored other(2);
  const TempFolder own;
  const TempFolder by_others;
  const TempFolder by_its_own;
  REQUIRE(Run(trained, own, false).ok());
  REQUIRE(Run(other, by_others, true, own.path(), 8).ok());
  REQUIRE(Run(other, by_its_own, true).ok());
  // Twice the features, by the moments of the once: x' = (2 x - m) / s = 2 (x - m) / s + m / s.
  const std::vector<float> found = RowsIn(by_others, 0, 1);
  const std::vector<float> standard = RowsIn(by_its_own, 0, 1);
  CHECK(found != standard);
  const TempFolder once;
  REQUIRE(Run(trained, once, true).ok());
  const std::vector<float> wanted = RowsIn(once, 0, 1);
  std::vector<double> moments(2 * kColumns);
  std::FILE* const file = std::fopen((own / MomentsFile(0, 1)).c_str(), "rb");
  REQUIRE(file != nullptr);
  CHECK(std::fread(moments.data(), sizeof(double), moments.size(), file) == moments.size());
  std::fclose(file);
  for (uint64_t i = 0; i < found.size(); ++i) {
    const double shift = moments[i % kColumns] / moments[kColumns + i % kColumns];
    CHECK(found[i] == doctest::Approx(2 * wanted[i] + shift).epsilon(1e-4));
  }
  const TempFolder nothing;
  const TempFolder out;
  CHECK(Run(other, out, true, nothing.path()).code() == Code::kDatasetCorrupt);
}

}  // namespace
}  // namespace gnnd
