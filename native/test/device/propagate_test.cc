#include "core/prepare/propagate.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/prepare/device_product.h"
#include "test/device/support.h"
#include "test/support/graphs.h"
#include "test/support/npy_files.h"

// Propagation by a device's kernels: the files of the host's cores, bit for bit.

namespace gnnd {
namespace {

using test::Get;
using test::SimPlugin;
using test::TempFolder;

constexpr uint32_t kNodes = 600;
constexpr uint32_t kColumns = 21;

struct Stored {
  TempFolder folder;
  Dataset dataset;

  Stored() {
    const test::Graph graph = test::RandomGraph(11, kNodes, 30);
    test::TinyDataset tiny;
    tiny.indptr.assign(graph.indptr.begin(), graph.indptr.end());
    tiny.indices.assign(graph.indices.begin(), graph.indices.end());
    tiny.num_features = kColumns;
    std::mt19937_64 generator(3);
    for (uint32_t i = 0; i < kNodes * kColumns; ++i) {
      tiny.features.push_back(static_cast<float>(generator() % 2001) / 1000.0F - 1.0F);
    }
    for (uint32_t v = 0; v < kNodes; ++v) {
      tiny.labels.push_back(static_cast<int32_t>(v % 3));
      if (v % 4 == 0) tiny.train.push_back(v);
      if (v % 4 == 1) tiny.val.push_back(v);
      if (v % 4 == 2) tiny.test.push_back(v);
    }
    tiny.WriteTo(folder);
    dataset = Get(Dataset::Open(folder.path(), tiny.counts()));
  }
};

const PropagationPlan kPlan = {
    .operators = {{.kind = OperatorKind::kSymmetric, .self_loops = true},
                  {.kind = OperatorKind::kRow, .self_loops = false},
                  {.kind = OperatorKind::kHeat, .self_loops = true, .time = 1.5, .terms = 4}},
    .hops = 2,
    .standardize = true};

struct Made {
  PropagateReport report;
  std::map<std::string, std::string> digests;
  std::vector<std::string> left;  // why the device was
};

Made Run(const Stored& stored, const std::string& folder, const PropagateDevice& device,
         uint64_t columns = 0, const PropagateProbe& probe = {}) {
  Made made;
  PropagateOptions options;
  options.plan = kPlan;
  options.folder = folder;
  options.columns = columns;
  options.threads = 2;
  options.device = device;
  options.edges_per_state = 1;
  options.left_device = [&made](const Status& why) { made.left.push_back(why.message()); };
  PropagateProgress progress;
  made.report = Get(Propagate(stored.dataset, options, &progress, probe));
  CHECK(progress.done == progress.total);
  for (const DigestedFile& file : made.report.files) made.digests[file.name] = file.sha256;
  return made;
}

Made Run(const Stored& stored, const PropagateDevice& device, uint64_t columns = 0) {
  const TempFolder out;
  return Run(stored, out.path(), device, columns);
}

}  // namespace

TEST_CASE("device propagation: the files of the host's cores, whatever room there is") {
  const Stored stored;
  const Made expected = Run(stored, PropagateDevice{});
  CHECK(expected.report.device_edge_columns == 0);
  const SimPlugin plugin({});
  for (const uint64_t columns : {0, 5}) {
    // The budgets hold all; some columns in parts; one column, and rows of a few edges at a time.
    for (const uint64_t budget : {1U << 24, 60'000U, 16'000U, 6'000U}) {
      CAPTURE(columns);
      CAPTURE(budget);
      const Made made = Run(stored, {(*plugin).path(), budget}, columns);
      CHECK(made.digests == expected.digests);
      CHECK(made.left == std::vector<std::string>());
      CHECK(made.report.device_problem.empty());
      CHECK(made.report.edge_columns == expected.report.edge_columns);
      CHECK(made.report.device_edge_columns == expected.report.edge_columns);
    }
  }
}

TEST_CASE("device propagation: a device without room leaves it to the cores, and says so") {
  const Stored stored;
  const Made expected = Run(stored, PropagateDevice{});
  const SimPlugin plugin({});
  const Made made = Run(stored, {(*plugin).path(), 2'000});
  CHECK(made.digests == expected.digests);
  CHECK(made.report.device_edge_columns == 0);
  REQUIRE(made.left.size() == 1);
  CHECK(made.left[0].find("no room in") != std::string::npos);
  const Made none = Run(stored, {"/nowhere/gnnd_sim.so", 0});
  CHECK(none.digests == expected.digests);
  CHECK(none.left.size() == 1);
}

TEST_CASE("device propagation: a device that fails anywhere leaves the rest to the cores") {
  const Stored stored;
  const Made expected = Run(stored, PropagateDevice{});
  for (const char* const fault : {"memory:1", "memory:2", "launch:1", "launch:23", "lost:40"}) {
    CAPTURE(fault);
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
    const Made made = Run(stored, {(*plugin).path(), 60'000});
    CHECK(made.digests == expected.digests);
    CHECK(made.left.size() == 1);
    CHECK(made.report.edge_columns == expected.report.edge_columns);
    CHECK(made.report.device_edge_columns < made.report.edge_columns);
  }
}

TEST_CASE("device propagation: what was killed goes on, on cores or on a device") {
  const Stored stored;
  const Made expected = Run(stored, PropagateDevice{});
  const SimPlugin plugin({});
  const PropagateDevice device{(*plugin).path(), 60'000};
  struct Killed {};
  for (const int kill_at : {1, 4, 9}) {
    CAPTURE(kill_at);
    const TempFolder out;
    int met = 0;
    const auto kill = [&](const char* point) {
      if (std::string(point) == "state" && ++met == kill_at) throw Killed();
    };
    CHECK_THROWS_AS(Run(stored, out.path(), device, 5, kill), Killed);
    const Made made = Run(stored, out.path(), kill_at == 4 ? PropagateDevice{} : device, 5);
    CHECK(made.digests == expected.digests);
    CHECK(made.report.edge_columns < expected.report.edge_columns);
  }
}

TEST_CASE("device propagation: sizes of a product are within the room") {
  // nodes, edges, degree, columns
  const auto sizes = [](uint64_t room) { return ProductSizesOf(room, 1000, 50'000, 400, 64); };
  const uint64_t all = 4 * (1000 * 64 + 1001 + 50'000 + 1000 + 64'000) + 5 * 256;
  CHECK(sizes(all)->columns == 64);
  CHECK(sizes(all)->part_bytes >= 4 * (50'000 + 64'000));
  for (uint64_t room = 8'000; room < all; room += 7'777) {
    const Result<ProductSizes> found = sizes(room);
    REQUIRE(found.ok());
    CHECK(4000 * found->columns + found->part_bytes <= room);
    CHECK(found->part_bytes >= 4 * (400 + 2 + 1 + found->columns));
  }
  CHECK(sizes(5'000).status().code() == Code::kDeviceMemory);
}

}  // namespace gnnd
