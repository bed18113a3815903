#include "core/prepare/job_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

#include "core/graph/topology.h"
#include "test/support/typed_files.h"

namespace gnnd {
namespace {

struct RowCase {
  const char* name;
  ModelType type;
  ModelVariant variant;
};

constexpr RowCase kRowCases[] = {
    {"SGC", ModelType::kSgc, ModelVariant::kNone},
    {"SIGN", ModelType::kSign, ModelVariant::kFused},
    {"SIGN by hops", ModelType::kSign, ModelVariant::kConcat},
    {"HOGA", ModelType::kHoga, ModelVariant::kGated},
    {"HOGA of 2024", ModelType::kHoga, ModelVariant::kDac24},
};

JobMemoryShape RowShape(const RowCase& row) {
  JobMemoryShape shape;
  shape.counts.num_nodes = 10000;
  shape.counts.val = 10;
  shape.counts.test = 20;
  shape.model.type = row.type;
  shape.model.variant = row.variant;
  shape.model.num_layers = 3;
  shape.model.hidden_dim = 256;
  shape.model.in_dim = 128;
  shape.model.out_dim = 3;
  shape.model.num_operators = 1;
  shape.model.num_hops = 2;
  shape.batch_size = 1000;
  shape.parameter_floats = 500;
  return shape;
}

TEST_CASE("job memory: the work on rows is two batches, an evaluation, and the tensors of one") {
  const uint64_t rows = (2 * 1000 + 20) * 128;
  const uint64_t tensors = 3 * 1000 * (128 + 4 * 3) / 2;
  CHECK(MemoryOf(RowShape(kRowCases[0])).row_work_bytes ==
        4 * (rows + tensors + 2 * 500) + (16 << 20));
}

TEST_CASE("job memory: the work on rows grows with what makes it more") {
  for (const RowCase& row : kRowCases) {
    CAPTURE(row.name);
    const auto work_of = [&](auto change) {
      JobMemoryShape shape = RowShape(row);
      change(shape);
      const JobMemory memory = MemoryOf(shape);
      return std::pair(memory.row_work_bytes, memory.row_device_bytes);
    };
    const auto least = work_of([](JobMemoryShape&) {});
    const auto grows = [&](auto change) {
      const auto more = work_of(change);
      CHECK(more.first > least.first);
      CHECK(more.second >= least.second);
    };
    grows([](JobMemoryShape& shape) { shape.batch_size = 2000; });
    grows([](JobMemoryShape& shape) { shape.model.in_dim = 256; });
    grows([](JobMemoryShape& shape) { shape.model.input_dropout = 0.1F; });
    // A chunk of an evaluation has 4,096 rows at most, four times a batch.
    grows([](JobMemoryShape& shape) { shape.counts.val = 5000; });
    CHECK(work_of([](JobMemoryShape& shape) { shape.counts.test = 50'000; }) ==
          work_of([](JobMemoryShape& shape) { shape.counts.val = 5000; }));
    if (row.type == ModelType::kSgc) continue;
    grows([](JobMemoryShape& shape) { shape.model.num_layers = 4; });
    grows([](JobMemoryShape& shape) { shape.model.num_hops = 3; });
  }
}

TEST_CASE("job memory: batches that are read ahead and chunks count the tokens that are read") {
  JobMemoryShape shape = RowShape(kRowCases[1]);
  shape.row_value_bytes = 2;
  // Hop 0 and two hops of one operator.
  CHECK(MemoryOf(shape).row_staged_bytes == 4 * 1000 * 3 * 128 * 2);
  CHECK(MemoryOf(shape).row_chunk_bytes == 4096 * 3 * 128 * 4);
  shape.model.type = ModelType::kSgc;
  CHECK(MemoryOf(shape).row_chunk_bytes == 4096 * 128 * 4);
}

TEST_CASE("job memory: a Sampler on a device has the topology, numbers and its batches in hand") {
  JobMemoryShape shape;
  shape.counts.num_nodes = 1000;
  shape.counts.num_edges = 5000;
  shape.slot_bytes = 1 << 20;
  const JobMemory plain = MemoryOf(shape);
  CHECK(plain.topology_bytes == 8 * 1001 + 4 * 5000);
  CHECK(plain.sampler_device_bytes ==
        plain.topology_bytes + 8 * 1000 + 2 * 3 * (1 << 20) + (1 << 20));
  shape.alias = true;
  CHECK(MemoryOf(shape).sampler_device_bytes - plain.sampler_device_bytes == 8 * 5000);
}

TEST_CASE("job memory: history keeps a row narrow where the layer gives it so") {
  ModelSpec spec;
  spec.hidden_dim = 64;
  CHECK(HistoryRowBytes(spec, Precision::kFloat32) == 256);
  CHECK(HistoryRowBytes(spec, Precision::kBfloat16) == 128);
  spec.normalization = Normalization::kLayer;
  CHECK(HistoryRowBytes(spec, Precision::kBfloat16) == 256);
  spec.normalization = Normalization::kNone;
  spec.type = ModelType::kGat;
  CHECK(HistoryRowBytes(spec, Precision::kBfloat16) == 256);
}

TEST_CASE("a topology of several relations takes what was said, and at most a huge page more") {
  const test::TempFolder folder;
  const test::TypedFiles files =
      test::TypedFiles::Of(test::RandomTypedGraph(2, {90'000, 40'000, 70'000}, 6, 30));
  files.WriteTo(folder);
  const Result<TypedDataset> dataset = TypedDataset::Open(folder.path(), files.schema());
  REQUIRE(dataset.ok());
  const Result<UniqueFd> fd = CreateTopology(*dataset);
  REQUIRE(fd.ok());
  const Result<Topology> topology = Topology::Attach(fd->get(), *dataset);
  REQUIRE(topology.ok());
  const uint64_t said = TopologyBytes(files.schema());
  CHECK(said > uint64_t{8} << 20);
  CHECK(topology->bytes() >= said);
  // Tables, and up to 64 bytes before each array, come to little beside the last page.
  CHECK(topology->bytes() <= said + (uint64_t{2} << 20) + 4096);
}

}  // namespace
}  // namespace gnnd
