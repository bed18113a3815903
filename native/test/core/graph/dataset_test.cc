#include "core/graph/dataset.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include "test/support/halves.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::PathOfSix;
using test::TempFolder;
using test::TinyDataset;
using test::WriteNpy;

TEST_CASE("dataset: opens with every array in its place") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->num_nodes() == 6);
  CHECK(dataset->num_edges() == 10);
  CHECK(dataset->num_features() == 2);
  CHECK(dataset->num_classes() == 3);
  CHECK(std::ranges::equal(dataset->indptr(), tiny.indptr));
  CHECK(std::ranges::equal(dataset->indices(), tiny.indices));
  CHECK(std::ranges::equal(dataset->features().values<float>(), tiny.features));
  CHECK(std::ranges::equal(dataset->labels(), tiny.labels));
  CHECK(std::ranges::equal(dataset->train(), tiny.train));
  CHECK(std::ranges::equal(dataset->val(), tiny.val));
  CHECK(std::ranges::equal(dataset->test(), tiny.test));
  CHECK(std::ranges::equal(dataset->edge_weights(), tiny.edge_weights));
}

TEST_CASE("dataset: indices may be uint32, edge weights may be missing, a graph may have no edge") {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  tiny.edge_weights.clear();
  tiny.WriteTo(folder);
  WriteNpy<uint32_t>(folder / "indices.npy", {tiny.indices.begin(), tiny.indices.end()});
  Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(std::ranges::equal(dataset->indices(), tiny.indices));
  CHECK(dataset->edge_weights().empty());

  tiny.indices.clear();
  tiny.indptr.assign(7, 0);
  tiny.WriteTo(folder);
  dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->indices().empty());
}

TEST_CASE("dataset: derived features take the place of the imported ones") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  std::filesystem::remove(folder / "features.npy");
  const std::vector<float> derived(12, 0.125F);
  WriteNpy(folder / "derived.npy", derived, {6, 2});
  const Result<Dataset> dataset =
      Dataset::Open(folder.path(), tiny.counts(), folder / "derived.npy");
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(std::ranges::equal(dataset->features().values<float>(), derived));

  WriteNpy(folder / "derived.npy", derived, {4, 3});
  CHECK(Dataset::Open(folder.path(), tiny.counts(), folder / "derived.npy").status().message() ==
        "derived.npy: expected float32 (6, 2), found float32 (4, 3)");
}

TEST_CASE("dataset: features may be float16, and must be what the counts say") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  const std::vector<Half> halves = test::RandomHalves(12, 1);
  WriteNpy(folder / "features.npy", halves, {6, 2});
  DatasetCounts counts = tiny.counts();
  CHECK(Dataset::Open(folder.path(), counts).status().message() ==
        "features.npy: expected float32 (6, 2), found float16 (6, 2)");
  counts.feature_type = FeatureType::kFloat16;
  const Result<Dataset> dataset = Dataset::Open(folder.path(), counts);
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  const RowTable features = dataset->features();
  CHECK(features.num_rows() == 6);
  CHECK(features.row_bytes() == 4);
  CHECK(std::ranges::equal(features.values<Half>(), halves));

  // Derived features are float32, whatever those of the dataset are.
  WriteNpy(folder / "derived.npy", std::vector<float>(12, 0.5F), {6, 2});
  const Result<Dataset> derived = Dataset::Open(folder.path(), counts, folder / "derived.npy");
  REQUIRE_MESSAGE(derived.ok(), derived.status().message());
  CHECK(derived->features().type() == FeatureType::kFloat32);
}

TEST_CASE("dataset: a node may have labels or targets in place of a class") {
  const TempFolder folder;
  const TinyDataset with_labels = test::PathWithLabels();
  with_labels.WriteTo(folder);
  Result<Dataset> dataset = Dataset::Open(folder.path(), with_labels.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->counts().task == Task::kMultiLabel);
  CHECK(dataset->num_classes() == 2);
  CHECK(std::ranges::equal(dataset->label_bits(), with_labels.label_bits));
  CHECK(dataset->labels().empty());
  CHECK(dataset->targets().empty());

  DatasetCounts counts = with_labels.counts();
  counts.task = Task::kClassification;
  CHECK(Dataset::Open(folder.path(), counts).status().message() ==
        "labels.npy: expected int32 (6,), found uint8 (6, 2)");
  counts.task = Task::kRegression;
  CHECK(Dataset::Open(folder.path(), counts).status().message() ==
        "labels.npy: expected float32 (6, 2), found uint8 (6, 2)");

  const TinyDataset with_targets = test::PathWithTargets();
  with_targets.WriteTo(folder);
  dataset = Dataset::Open(folder.path(), with_targets.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  CHECK(dataset->counts().task == Task::kRegression);
  REQUIRE(dataset->targets().size() == 12);
  CHECK(dataset->targets()[6] == 1e30F);
  CHECK(dataset->targets()[10] != dataset->targets()[10]);
  CHECK(dataset->labels().empty());
  CHECK(dataset->label_bits().empty());
  counts = with_targets.counts();
  counts.num_classes = 3;
  CHECK(Dataset::Open(folder.path(), counts).status().message() ==
        "labels.npy: expected float32 (6, 3), found float32 (6, 2)");
  counts.num_nodes = uint64_t{1} << 31;
  counts.num_classes = uint64_t{1} << 31;
  CHECK(CheckCounts(counts).message().starts_with("num_classes is 2147483648, expected 1 to 2"));
}

TEST_CASE("dataset: a missing folder or file is not found, and named") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  CHECK(Dataset::Open(folder / "none", tiny.counts()).status().code() == Code::kNotFound);
  for (const char* name : {"indptr.npy", "indices.npy", "features.npy", "labels.npy", "train.npy",
                           "val.npy", "test.npy"}) {
    tiny.WriteTo(folder);
    std::filesystem::remove(folder / name);
    const Status status = Dataset::Open(folder.path(), tiny.counts()).status();
    CHECK(status.code() == Code::kNotFound);
    CHECK(status.message() == std::string(name) + ": no such file");
  }
}

TEST_CASE("dataset: a truncated, empty, wrongly typed or wrongly long file is refused by name") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  using Damage = std::function<void(const std::string&)>;
  const std::vector<Damage> damages = {
      [](const std::string& path) {
        std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
      },
      [](const std::string& path) { std::filesystem::resize_file(path, 0); },
      [](const std::string& path) { WriteNpy<int32_t>(path, {1, 2, 3}); },
      [](const std::string& path) { WriteNpy<int64_t>(path, std::vector<int64_t>(99)); },
      [](const std::string& path) { WriteNpy<float>(path, std::vector<float>(6), {3, 2}); }};
  for (const char* name : {"indptr.npy", "indices.npy", "features.npy", "labels.npy", "train.npy",
                           "val.npy", "test.npy", "edge_weights.npy"}) {
    for (const Damage& damage : damages) {
      tiny.WriteTo(folder);
      damage(folder / name);
      const Status status = Dataset::Open(folder.path(), tiny.counts()).status();
      CHECK(status.code() == Code::kDatasetCorrupt);
      CHECK_MESSAGE(status.message().starts_with(std::string(name) + ": "), status.message());
    }
  }
}

TEST_CASE("dataset: counts that no dataset can have are refused before a file is opened") {
  const DatasetCounts good = PathOfSix().counts();
  const std::vector<std::pair<std::string, DatasetCounts>> cases = [&] {
    std::vector<std::pair<std::string, DatasetCounts>> list(9, {"", good});
    list[0].first = "num_nodes", list[0].second.num_nodes = 0;
    list[1].first = "num_nodes", list[1].second.num_nodes = 0xFFFFFFFF;
    list[2].first = "num_edges", list[2].second.num_edges = ~uint64_t{0};
    list[3].first = "num_features", list[3].second.num_features = 0;
    list[4].first = "num_features", list[4].second.num_features = ~uint64_t{0};
    list[5].first = "num_classes", list[5].second.num_classes = 0;
    list[5].second.task = Task::kMultiLabel;
    list[6].first = "split.train", list[6].second.train = 7;
    list[7].first = "split.val", list[7].second.val = 7;
    list[8].first = "split.test", list[8].second.test = 7;
    return list;
  }();
  CHECK(CheckCounts(good).ok());
  // A graph without labels has no classes, but can be predicted on.
  DatasetCounts unlabelled = good;
  unlabelled.num_classes = 0;
  CHECK(CheckCounts(unlabelled).ok());
  for (const auto& [field, counts] : cases) {
    const Status status = Dataset::Open("nowhere", counts).status();
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK_MESSAGE(status.message().starts_with(field + " is "), status.message());
  }
}

}  // namespace
}  // namespace gnnd
