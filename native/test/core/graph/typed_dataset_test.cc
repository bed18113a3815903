#include "core/graph/typed_dataset.h"

#include <algorithm>
#include <string>
#include <vector>

#include "test/support/halves.h"
#include "test/support/typed_files.h"

namespace gnnd {
namespace {

using test::RandomTypedGraph;
using test::TempFolder;
using test::TypedFiles;
using test::WriteNpy;

TEST_CASE("a dataset of several types opens with every array in its place") {
  const TempFolder folder;
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(4, {30, 50, 20}, 5, 6));
  files.WriteTo(folder);
  const Result<TypedDataset> dataset = TypedDataset::Open(folder.path(), files.schema());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->num_types() == 3);
  CHECK(dataset->num_relations() == 5);
  CHECK(dataset->total_nodes() == 100);
  CHECK(dataset->num_classes() == 4);
  for (uint32_t t = 0; t < 2; ++t) {
    CAPTURE(t);
    CHECK(dataset->rows(t).num_rows() == files.graph.num_nodes[t]);
    CHECK(dataset->rows(t).dim() == files.widths[t]);
    CHECK(std::ranges::equal(dataset->rows(t).values<float>(), files.FeaturesOf(t)));
  }
  CHECK(dataset->rows(2).num_rows() == 0);
  CHECK(dataset->rows(2).dim() == 0);
  CHECK(std::ranges::equal(dataset->labels(), files.labels));
  CHECK(dataset->label_bits().empty());
  CHECK(dataset->targets().empty());
  CHECK(std::ranges::equal(dataset->train(), files.train));
  CHECK(std::ranges::equal(dataset->val(), files.val));
  CHECK(std::ranges::equal(dataset->test(), files.test));
  const GraphView graph = dataset->graph();
  const GraphView expected = files.graph.view();
  CHECK(graph.num_nodes == expected.num_nodes);
  REQUIRE(graph.relations.size() == expected.relations.size());
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    CAPTURE(r);
    CHECK(graph.relations[r].src_type == expected.relations[r].src_type);
    CHECK(graph.relations[r].dst_type == expected.relations[r].dst_type);
    CHECK(std::ranges::equal(graph.relations[r].rows.indptr, expected.relations[r].rows.indptr));
    CHECK(std::ranges::equal(graph.relations[r].rows.indices, expected.relations[r].rows.indices));
  }
}

TEST_CASE("a job takes some of the types and relations, and rows from derived files") {
  const TempFolder folder;
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(4, {30, 50, 20}, 5, 6));
  files.WriteTo(folder);
  // Type 1 alone and first, without labels.
  Schema schema = files.schema();
  std::swap(schema.types[0], schema.types[1]);
  schema.types.pop_back();
  schema.relations.clear();
  WriteNpy(folder / "rows.npy", std::vector<float>(50 * 7, 2.0F), {50, 7});
  Result<TypedDataset> dataset =
      TypedDataset::Open(folder.path(), schema, {folder / "rows.npy", ""});
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->rows(0).dim() == 7);
  CHECK(dataset->rows(1).dim() == 3);
  CHECK(dataset->labels().empty());
  CHECK(dataset->train().empty());
  CHECK(dataset->graph().relations.empty());
  // Halves keep their type.
  WriteNpy(folder / "rows.npy", std::vector<Half>(50 * 2), {50, 2});
  dataset = TypedDataset::Open(folder.path(), schema, {folder / "rows.npy", ""});
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->rows(0).type() == FeatureType::kFloat16);
}

TEST_CASE("a dataset of several types is refused by the file that does not fit") {
  const auto refusal = [](auto change, const std::vector<std::string>& type_rows = {}) {
    const TempFolder folder;
    TypedFiles files = TypedFiles::Of(RandomTypedGraph(4, {30, 50, 20}, 5, 6));
    files.WriteTo(folder);
    Schema schema = files.schema();
    change(folder, &schema);
    const Status status = TypedDataset::Open(folder.path(), schema, type_rows).status();
    CHECK_FALSE(status.ok());
    return status;
  };
  const auto nothing = [](const TempFolder&, Schema*) {};
  CHECK(refusal([](const TempFolder&, Schema* s) { s->types[1].num_nodes = 51; }).message() ==
        "features.npy: expected float32 (51, 4), found float32 (50, 4)");
  CHECK(refusal([](const TempFolder&, Schema* s) { ++s->relations[0].num_edges; }).code() ==
        Code::kDatasetCorrupt);
  CHECK(refusal([](const TempFolder&, Schema* s) { s->types[0].val = 3; }).code() ==
        Code::kDatasetCorrupt);
  CHECK(refusal([](const TempFolder&, Schema* s) { s->relations[2].source = 3; }).code() ==
        Code::kInvalidArgument);
  CHECK(refusal([](const TempFolder&, Schema* s) { s->types[2].name = "other"; }).code() ==
        Code::kNotFound);
  CHECK(refusal(nothing, {"", ""}).message() == "input rows of 2 types, expected 3");
  CHECK(refusal(nothing, {"/nowhere.npy", "", ""}).code() == Code::kNotFound);
  const auto narrow = [](const TempFolder& folder, Schema* schema) {
    WriteNpy(folder / "nodes/t1/features.npy", std::vector<float>(50), {50, 1});
    schema->types[1].num_features = 2;
  };
  CHECK(refusal(narrow).code() == Code::kDatasetCorrupt);
}

TEST_CASE("derived rows are those of a type's nodes, and have columns") {
  const TempFolder folder;
  const TypedFiles files = TypedFiles::Of(RandomTypedGraph(4, {30, 50}, 2, 6));
  files.WriteTo(folder);
  const std::string path = folder / "rows.npy";
  const auto refused = [&] {
    return TypedDataset::Open(folder.path(), files.schema(), {"", path}).status().code();
  };
  WriteNpy(path, std::vector<float>(49 * 2), {49, 2});
  CHECK(refused() == Code::kDatasetCorrupt);
  WriteNpy(path, std::vector<float>(50));
  CHECK(refused() == Code::kDatasetCorrupt);
  WriteNpy(path, std::vector<int32_t>(100), {50, 2});
  CHECK(refused() == Code::kDatasetCorrupt);
  WriteNpy(path, std::vector<float>(100), {50, 2});
  CHECK(refused() == Code::kOk);
}

}  // namespace
}  // namespace gnnd
