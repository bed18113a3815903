#include "core/graph/validate.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "test/support/halves.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::PathOfSix;
using test::TempFolder;
using test::TinyDataset;
using test::WriteNpy;

// "file: message" of every problem of the dataset as it lies in `folder`.
std::vector<std::string> ProblemsIn(const TempFolder& folder, const DatasetCounts& counts) {
  const DatasetValidation validation = Validate(folder.path(), counts);
  CHECK(validation.ok() == validation.problems.empty());
  CHECK(validation.num_problems == validation.problems.size());
  std::vector<std::string> lines;
  for (const DatasetProblem& problem : validation.problems) {
    lines.push_back(problem.file + ": " + problem.message);
  }
  return lines;
}

// The problems of PathOfSix after `change`.
template <typename Change>
std::vector<std::string> ProblemsAfter(const Change& change) {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  change(&tiny);
  tiny.WriteTo(folder);
  return ProblemsIn(folder, tiny.counts());
}

using Lines = std::vector<std::string>;

TEST_CASE("validate: a good dataset has no problem, with or without edge weights") {
  CHECK(ProblemsAfter([](TinyDataset*) {}) == Lines{});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->edge_weights.clear(); }) == Lines{});
}

TEST_CASE("validate: indptr must start at 0, not decrease and end at the edges") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indptr[0] = -1; }) ==
        Lines{"indptr.npy: must start at 0, found -1 at index 0"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indptr[3] = 2; }) ==
        Lines{"indptr.npy: must not decrease, found 2 at index 3 after 3"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indptr = {0, 3, 2, 5, 4, 9, 10}; }) ==
        Lines{"indptr.npy: must not decrease, found 2 at index 2 after 3 and 1 more"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indptr[6] = 9; }) ==
        Lines{"indptr.npy: must end at the 10 edges, found 9 at index 6"});
}

TEST_CASE("validate: indices must be nodes, shown as the file's type writes them") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indices[3] = 6; }) ==
        Lines{"indices.npy: must be below the 6 nodes, found 6 at index 3"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->indices[2] = tiny->indices[9] = -7; }) ==
        Lines{"indices.npy: must be below the 6 nodes, found -7 at index 2 and 1 more"});
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  WriteNpy<uint32_t>(folder / "indices.npy", {1, 0, 2, 1, 3, 2, 4, 3, 5, 0xFFFFFFFF});
  CHECK(ProblemsIn(folder, tiny.counts()) ==
        Lines{"indices.npy: must be below the 6 nodes, found 4294967295 at index 9"});
}

TEST_CASE("validate: features must be finite") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(ProblemsAfter([=](TinyDataset* tiny) { tiny->features[7] = -nan; }) ==
        Lines{"features.npy: must be finite, found nan at row 3, column 1"});
  CHECK(ProblemsAfter([=](TinyDataset* tiny) { tiny->features[0] = tiny->features[11] = -inf; }) ==
        Lines{"features.npy: must be finite, found -inf at row 0, column 0 and 1 more"});
}

TEST_CASE("validate: labels must be classes or -1") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->labels[3] = 3; }) ==
        Lines{"labels.npy: must be -1 or below the 3 classes, found 3 at index 3"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->labels[5] = -2; }) ==
        Lines{"labels.npy: must be -1 or below the 3 classes, found -2 at index 5"});
}

TEST_CASE("validate: a split holds labelled nodes, ascending, each once") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->test = {6}; }) ==
        Lines{"test.npy: must be node ids from 0 to 5, found 6 at index 0"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->train = {-1, 0}; }) ==
        Lines{"train.npy: must be node ids from 0 to 5, found -1 at index 0"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->val = {3, 1}; }) ==
        Lines{"val.npy: must ascend, found 1 at index 1 after 3"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->val = {1, 3, 3, 3}; }) ==
        Lines{"val.npy: must not repeat a node (a mask is of type bool), found 3 at index 2 and 1 "
              "more"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->test = {4, 5}; }) ==
        Lines{"test.npy: must be nodes with a label, found 5 at index 1"});
}

// The problems of `tiny` after `change`.
template <typename Change>
Lines ProblemsOf(TinyDataset tiny, const Change& change) {
  const TempFolder folder;
  change(&tiny);
  tiny.WriteTo(folder);
  return ProblemsIn(folder, tiny.counts());
}

TEST_CASE("validate: of several labels each is 0, 1 or not known, and a split knows one of each") {
  const TinyDataset good = test::PathWithLabels();
  CHECK(ProblemsOf(good, [](TinyDataset*) {}) == Lines{});
  CHECK(
      ProblemsOf(good, [](TinyDataset* tiny) { tiny->label_bits[5] = tiny->label_bits[6] = 2; }) ==
      Lines{"labels.npy: must be 0, 1 or 255 for not known, found 2 at row 2, column 1 and 1 "
            "more"});
  CHECK(ProblemsOf(good, [](TinyDataset* tiny) { tiny->test = {4, 5}; }) ==
        Lines{"test.npy: must be nodes of which a label is known, found 5 at index 1"});
}

TEST_CASE("validate: targets are finite or not known, and a split knows one of each node") {
  const TinyDataset good = test::PathWithTargets();
  CHECK(ProblemsOf(good, [](TinyDataset*) {}) == Lines{});
  CHECK(ProblemsOf(good, [](TinyDataset* tiny) { tiny->targets[7] = -INFINITY; }) ==
        Lines{"labels.npy: must be finite, or nan for not known, found -inf at row 3, column 1"});
  CHECK(ProblemsOf(good, [](TinyDataset* tiny) { tiny->val = {1, 3, 5}; }) ==
        Lines{"val.npy: must be nodes of which a target is known, found 5 at index 2"});
}

TEST_CASE("validate: splits must share no node, in whatever order they are") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->val = {0, 1, 2, 3}; }) ==
        Lines{"val.npy: must share no node with train.npy, found 0 at index 0 and 1 more"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->test = {2, 3, 4}; }) ==
        Lines{"test.npy: must share no node with train.npy, found 2 at index 0",
              "test.npy: must share no node with val.npy, found 3 at index 1"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->train = {4, 0, 2}; }) ==
        Lines{"train.npy: must ascend, found 0 at index 1 after 4",
              "test.npy: must share no node with train.npy, found 4 at index 0"});
}

TEST_CASE("validate: edge weights must be finite, not negative and one for each edge") {
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->edge_weights[1] = -0.5F; }) ==
        Lines{"edge_weights.npy: must be finite and not negative, found -0.5 at index 1"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->edge_weights[9] = std::nanf(""); }) ==
        Lines{"edge_weights.npy: must be finite and not negative, found nan at index 9"});
  CHECK(ProblemsAfter([](TinyDataset* tiny) { tiny->edge_weights.pop_back(); }) ==
        Lines{"edge_weights.npy: expected float32 (10,), found float32 (9,)"});
}

TEST_CASE("validate: all problems of all files are found at once") {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  tiny.indptr[3] = 2;
  tiny.labels[0] = 9;
  tiny.WriteTo(folder);
  std::filesystem::remove(folder / "indices.npy");
  std::filesystem::resize_file(folder / "features.npy", 130);
  WriteNpy<int32_t>(folder / "train.npy", {0, 2});
  std::filesystem::resize_file(folder / "test.npy", 0);
  CHECK(ProblemsIn(folder, tiny.counts()) ==
        Lines{"indices.npy: no such file",
              "features.npy: truncated: float32 (6, 2) takes 48 bytes, found 2",
              "train.npy: expected int64 (2,), found int32 (2,)",
              "test.npy: the file is empty, expected a .npy array",
              "indptr.npy: must not decrease, found 2 at index 3 after 3",
              "labels.npy: must be -1 or below the 3 classes, found 9 at index 0"});
}

TEST_CASE("validate: counts that cannot be are a problem of dataset.json") {
  DatasetCounts counts = PathOfSix().counts();
  counts.num_features = 0;
  const TempFolder folder;
  const Lines found = ProblemsIn(folder, counts);
  REQUIRE(found.size() == 1);
  CHECK(found[0].starts_with("dataset.json: num_features is 0, expected 1 to "));
}

TEST_CASE("validate: a graph without labels has no class, and no node of one") {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  tiny.labels.assign(6, -1);
  tiny.train.clear();
  tiny.val.clear();
  tiny.test.clear();
  tiny.WriteTo(folder);
  DatasetCounts counts = tiny.counts();
  counts.num_classes = 0;
  CHECK(ProblemsIn(folder, counts) == Lines{});
  tiny.labels[2] = 0;
  tiny.WriteTo(folder);
  CHECK(ProblemsIn(folder, counts) ==
        Lines{"labels.npy: must be -1 or below the 0 classes, found 0 at index 2"});
}

TEST_CASE("validate: offenders are counted across ranges of a long array") {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  tiny.num_features = uint64_t{1} << 20;  // 6 rows of 4 MiB: two ranges
  tiny.features.assign(6 * tiny.num_features, 1.0F);
  tiny.features[4 * tiny.num_features + 5] = INFINITY;
  tiny.features.back() = INFINITY;
  tiny.WriteTo(folder);
  CHECK(ProblemsIn(folder, tiny.counts()) ==
        Lines{"features.npy: must be finite, found inf at row 4, column 5 and 1 more"});
}

TEST_CASE("validate: values of float16 must be finite, too") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  DatasetCounts counts = tiny.counts();
  counts.feature_type = FeatureType::kFloat16;
  std::vector<Half> features = test::RandomHalves(12, 2);
  features[1] = Half{0x7BFF};  // 65504, the largest
  test::WriteNpy(folder / "features.npy", features, {6, 2});
  CHECK(ProblemsIn(folder, counts) == Lines{});
  features[3] = Half{0xFC00};
  features[9] = Half{0x7C01};
  test::WriteNpy(folder / "features.npy", features, {6, 2});
  CHECK(ProblemsIn(folder, counts) ==
        Lines{"features.npy: must be finite, found -inf at row 1, column 1 and 1 more"});
  CHECK(ProblemsIn(folder, tiny.counts()) ==
        Lines{"features.npy: expected float32 (6, 2), found float16 (6, 2)"});
}

TEST_CASE("validate: order is checked across ranges of a long array") {
  constexpr uint64_t kRangeStart = uint64_t{1} << 21;  // 16 MiB of int64
  TinyDataset tiny;
  tiny.num_features = 1;
  tiny.labels.assign(kRangeStart + 2, 0);
  tiny.features.assign(tiny.labels.size(), 0.0F);
  tiny.indptr.assign(tiny.labels.size() + 1, 0);
  tiny.indptr[kRangeStart - 1] = 1;
  const TempFolder folder;
  tiny.WriteTo(folder);
  CHECK(ProblemsIn(folder, tiny.counts()) ==
        Lines{"indptr.npy: must not decrease, found 0 at index 2097152 after 1"});
}

// Three papers with two features and a label each, two authors with nothing: who wrote what.
struct Library {
  TempFolder folder;
  Schema schema;

  Library() {
    NodeType author;
    author.name = "author";
    author.num_nodes = 2;
    NodeType paper;
    paper.name = "paper";
    paper.num_nodes = 3;
    paper.num_features = 2;
    paper.labelled = true;
    paper.num_classes = 2;
    paper.train = paper.val = paper.test = 1;
    schema = {{author, paper}, {{0, "writes", 1, 4}}};
    std::filesystem::create_directories(folder / "nodes/paper");
    std::filesystem::create_directories(folder / "edges/author__writes__paper");
    WriteNpy<float>(folder / "nodes/paper/features.npy", {1, 2, 3, 4, 5, 6}, {3, 2});
    WriteNpy<int32_t>(folder / "nodes/paper/labels.npy", {0, 1, 1});
    WriteNpy<int64_t>(folder / "nodes/paper/train.npy", {0});
    WriteNpy<int64_t>(folder / "nodes/paper/val.npy", {1});
    WriteNpy<int64_t>(folder / "nodes/paper/test.npy", {2});
    WriteNpy<int64_t>(Edges("indptr"), {0, 1, 2, 4});
    WriteNpy<int32_t>(Edges("indices"), {0, 1, 0, 1});
  }

  std::string Edges(const std::string& name) const {
    return folder / ("edges/author__writes__paper/" + name + ".npy");
  }

  Lines Problems() const {
    Lines lines;
    for (const DatasetProblem& problem : Validate(folder.path(), schema).problems) {
      lines.push_back(problem.file + ": " + problem.message);
    }
    return lines;
  }
};

TEST_CASE("validate: of several types each has its own files and counts") {
  Library library;
  CHECK(library.Problems() == Lines{});
  WriteNpy<int32_t>(library.Edges("indices"), {0, 1, 0, 2});
  WriteNpy<int32_t>(library.folder / "nodes/paper/labels.npy", {0, 2, 1});
  CHECK(library.Problems() ==
        Lines{"nodes/paper/labels.npy: must be -1 or below the 2 classes, found 2 at index 1",
              "edges/author__writes__paper/indices.npy: must be below the 2 nodes of author, found "
              "2 at index 3"});
  WriteNpy<int64_t>(library.Edges("indptr"), {0, 1, 2});
  std::filesystem::remove(library.folder / "nodes/paper/labels.npy");
  const Lines found = library.Problems();
  REQUIRE(found.size() == 3);
  CHECK(found[0].starts_with("nodes/paper/labels.npy: "));
  CHECK(found[1] ==
        "edges/author__writes__paper/indptr.npy: expected int64 (4,), found int64 (3,)");
}

TEST_CASE("validate: rows of a relation ascend, each source once, where rows are known") {
  Library library;
  WriteNpy<int32_t>(library.Edges("indices"), {0, 1, 1, 1});
  const Lines twice = {
      "edges/author__writes__paper/indices.npy: must ascend within a row, each source once, found "
      "1 at index 3 after 1"};
  CHECK(library.Problems() == twice);
  WriteNpy<int64_t>(library.Edges("indptr"), {0, 2, 1, 4});
  CHECK(library.Problems() ==
        Lines{"edges/author__writes__paper/indptr.npy: must not decrease, found 1 at index 2 after "
              "2"});
}

TEST_CASE("validate: a schema that no graph can have is a problem of dataset.json") {
  Library library;
  library.schema.relations[0].destination = 2;
  CHECK(library.Problems() == Lines{"dataset.json: relation writes is between no types"});
  library.schema.types[0].num_nodes = 0;
  CHECK(library.Problems() ==
        Lines{"dataset.json: type author: num_nodes is 0, expected 1 to 4294967294"});
  library.schema.types.clear();
  CHECK(library.Problems() == Lines{"dataset.json: 0 types, expected 1 to 64"});
}

}  // namespace
}  // namespace gnnd
