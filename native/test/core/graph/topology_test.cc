#include "core/graph/topology.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/alias.h"
#include "test/support/fake_registrar.h"
#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::PathOfSix;
using test::TempFolder;
using test::TinyDataset;

Result<UniqueFd> TopologyOf(const TinyDataset& tiny) {
  const TempFolder folder;
  tiny.WriteTo(folder);
  const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE_MESSAGE(dataset.ok(), dataset.status().message());
  return CreateTopology(*dataset);
}

// A graph whose topology takes several huge pages: row v holds v + 1 ... v + degree (mod nodes).
TinyDataset RingOf(uint32_t nodes, uint32_t degree) {
  TinyDataset tiny = PathOfSix();
  tiny.indptr.clear();
  tiny.indices.clear();
  tiny.edge_weights.clear();
  for (uint32_t v = 0; v < nodes; ++v) {
    tiny.indptr.push_back(static_cast<int64_t>(tiny.indices.size()));
    for (uint32_t d = 1; d <= degree; ++d) {
      tiny.indices.push_back(static_cast<int32_t>((v + d) % nodes));
    }
  }
  tiny.indptr.push_back(static_cast<int64_t>(tiny.indices.size()));
  tiny.labels.assign(nodes, 0);
  tiny.features.assign(nodes * tiny.num_features, 0.0F);
  return tiny;
}

void CheckSame(const TopologyView& view, const TinyDataset& tiny) {
  CHECK(view.num_nodes() == tiny.labels.size());
  CHECK(view.num_edges() == tiny.indices.size());
  CHECK(std::ranges::equal(view.indptr, tiny.indptr,
                           [](uint64_t a, int64_t b) { return a == static_cast<uint64_t>(b); }));
  CHECK(std::ranges::equal(view.indices, tiny.indices,
                           [](uint32_t a, int32_t b) { return a == static_cast<uint32_t>(b); }));
}

TEST_CASE("alias tables lie beside the topology when they are asked for") {
  const TempFolder folder;
  const TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE(dataset.ok());
  const Result<UniqueFd> fd = CreateTopology(*dataset, {.alias = true});
  REQUIRE_MESSAGE(fd.ok(), fd.status().message());
  const Result<Topology> topology = Topology::Attach(fd->get(), Dataset());
  REQUIRE_MESSAGE(topology.ok(), topology.status().message());
  CheckSame(topology->view(), tiny);
  REQUIRE(topology->view().alias.size() == tiny.edge_weights.size());
  AliasBuilder builder;
  for (size_t v = 0; v + 1 < tiny.indptr.size(); ++v) {
    const auto begin = static_cast<size_t>(tiny.indptr[v]);
    const auto row = std::span(tiny.edge_weights)
                         .subspan(begin, static_cast<size_t>(tiny.indptr[v + 1]) - begin);
    std::vector<AliasEntry> expected(row.size());
    builder.Build(row, expected.data());
    for (size_t i = 0; i < row.size(); ++i) {
      CHECK(topology->view().alias[begin + i].threshold == expected[i].threshold);
      CHECK(topology->view().alias[begin + i].alias == expected[i].alias);
    }
  }
}

TEST_CASE("alias tables need edge weights that are finite and not negative") {
  const auto refused = [](const TinyDataset& tiny) {
    const TempFolder folder;
    tiny.WriteTo(folder);
    const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
    REQUIRE(dataset.ok());
    return CreateTopology(*dataset, {.alias = true}).status();
  };
  TinyDataset tiny = PathOfSix();
  for (const float bad : {-1.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    tiny.edge_weights[3] = bad;
    const Status status = refused(tiny);
    CHECK(status.code() == Code::kDatasetCorrupt);
    CHECK(status.message().find("at index 3") != std::string::npos);
  }
  tiny.edge_weights.clear();
  CHECK(refused(tiny).code() == Code::kInvalidArgument);
}

// How the memfd of one type and relation begins.
struct FlatTables {
  TopologyHeader header;
  TopologyRelation relation;
  uint64_t num_nodes;
};

// Attaches the bytes of a good topology in a new memfd of `bytes`, changed by `change`, sealed when
// `sealed`.
template <typename Change>
Status RefusalAfter(const Change& change, bool sealed = true, uint64_t bytes = 2 << 20) {
  const Result<UniqueFd> good = TopologyOf(PathOfSix());
  REQUIRE(good.ok());
  const Result<Mapping> from = Mapping::Map(good->get(), false);
  REQUIRE(from.ok());
  const Result<UniqueFd> copy = CreateMemfd("gnnd-test", bytes);
  REQUIRE(copy.ok());
  {
    const Result<Mapping> to = Mapping::Map(copy->get(), true);
    REQUIRE(to.ok());
    std::memcpy(to->data(), from->data(), from->size());
    change(reinterpret_cast<FlatTables*>(to->data()));
  }
  if (sealed) REQUIRE(SealReadOnly(copy->get()).ok());
  return Topology::Attach(copy->get(), Dataset()).status();
}

TEST_CASE("topology: comes back through a descriptor as it was in the files") {
  for (const TinyDataset& tiny : {PathOfSix(), RingOf(1000, 700), RingOf(65537, 8)}) {
    const Result<UniqueFd> fd = TopologyOf(tiny);
    REQUIRE_MESSAGE(fd.ok(), fd.status().message());
    const Result<Topology> topology = Topology::Attach(fd->get(), Dataset());
    REQUIRE_MESSAGE(topology.ok(), topology.status().message());
    CheckSame(topology->view(), tiny);
    CHECK(topology->bytes() % (uint64_t{2} << 20) == 0);
    CHECK(topology->huge_bytes() <= topology->bytes());
    CHECK(reinterpret_cast<uintptr_t>(topology->view().indptr.data()) % 64 == 0);
    CHECK(reinterpret_cast<uintptr_t>(topology->view().indices.data()) % 64 == 0);
  }
}

TEST_CASE("topology: a graph without edges has one") {
  TinyDataset tiny = PathOfSix();
  tiny.indices.clear();
  tiny.edge_weights.clear();
  tiny.indptr.assign(7, 0);
  const Result<UniqueFd> fd = TopologyOf(tiny);
  REQUIRE_MESSAGE(fd.ok(), fd.status().message());
  const Result<Topology> topology = Topology::Attach(fd->get(), Dataset());
  REQUIRE(topology.ok());
  CheckSame(topology->view(), tiny);
}

TEST_CASE("topology: a mapping outlives the descriptor and moves with its object") {
  const TinyDataset tiny = PathOfSix();
  Result<UniqueFd> fd = TopologyOf(tiny);
  REQUIRE(fd.ok());
  Result<Topology> first = Topology::Attach(fd->get(), Dataset());
  Result<Topology> second = Topology::Attach(fd->get(), Dataset());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  close(fd->Release());
  const Topology moved = std::move(*first);
  CheckSame(moved.view(), tiny);
  CheckSame(second->view(), tiny);
}

TEST_CASE("topology: nobody can write, resize or unseal it") {
  const Result<UniqueFd> fd = TopologyOf(PathOfSix());
  REQUIRE(fd.ok());
  const char byte = 1;
  CHECK(pwrite(fd->get(), &byte, 1, 0) == -1);
  CHECK(errno == EPERM);
  CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0) == MAP_FAILED);
  CHECK(ftruncate(fd->get(), 0) == -1);
  CHECK(ftruncate(fd->get(), 1 << 30) == -1);
  CHECK(fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
  CHECK(fcntl(fd->get(), F_ADD_SEALS, F_SEAL_WRITE) == -1);
}

TEST_CASE("topology: one that devices register is protected in each mapping, not sealed") {
  const TinyDataset tiny = RingOf(1000, 700);
  const TempFolder folder;
  tiny.WriteTo(folder);
  const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE(dataset.ok());
  const Result<UniqueFd> fd = CreateTopology(*dataset, {TopologyPlace::kRegistered});
  REQUIRE(fd.ok());
  test::FakeRegistrar device;
  const Registrar hook = device.hook();
  {
    const Result<Topology> topology = Topology::Attach(fd->get(), Dataset(), &hook);
    REQUIRE_MESSAGE(topology.ok(), topology.status().message());
    CheckSame(topology->view(), tiny);
    CHECK(topology->place() == TopologyPlace::kRegistered);
    CHECK(topology->registered_bytes() == topology->bytes());
    CHECK(device.bytes() == topology->bytes());
    CHECK_FALSE(test::IsWritable(topology->view().indptr.data()));
    CHECK_FALSE(test::IsWritable(topology->view().indices.data()));
  }
  CHECK(device.ranges.empty());
  // A process without a device maps it read-only at once.
  const Result<Topology> plain = Topology::Attach(fd->get(), Dataset());
  REQUIRE(plain.ok());
  CheckSame(plain->view(), tiny);
  CHECK_FALSE(test::IsWritable(plain->view().indptr.data()));
  CHECK(ftruncate(fd->get(), 0) == -1);
  // A device that refuses, and a topology that cannot be registered, are no errors.
  device.refuses_after = 0;
  const Result<Topology> refused = Topology::Attach(fd->get(), Dataset(), &hook);
  REQUIRE(refused.ok());
  CHECK(refused->registered_bytes() == 0);
  CHECK_FALSE(refused->registration_status().ok());
  CHECK_FALSE(test::IsWritable(refused->view().indptr.data()));
  const Result<UniqueFd> sealed = CreateTopology(*dataset);
  REQUIRE(sealed.ok());
  const Result<Topology> resident = Topology::Attach(sealed->get(), Dataset(), &hook);
  REQUIRE(resident.ok());
  CHECK(resident->registration_status().ok());
  CHECK(resident->registered_bytes() == 0);
}

TEST_CASE("topology: broken graphs are refused with file, place and value") {
  const auto refusal = [](auto change) {
    TinyDataset tiny = PathOfSix();
    change(&tiny);
    const Status status = TopologyOf(tiny).status();
    CHECK(status.code() == Code::kDatasetCorrupt);
    return status.message();
  };
  CHECK(refusal([](TinyDataset* tiny) { tiny->indptr[0] = 1; }) ==
        "indptr.npy: must start at 0, found 1 at index 0");
  CHECK(refusal([](TinyDataset* tiny) { tiny->indptr[3] = 2; }) ==
        "indptr.npy: must not decrease from 3, found 2 at index 3");
  CHECK(refusal([](TinyDataset* tiny) { tiny->indptr[6] = 11; }) ==
        "indptr.npy: must end at the 10 edges, found 11 at index 6");
  CHECK(refusal([](TinyDataset* tiny) { tiny->indices[4] = 6; }) ==
        "indices.npy: must be below the 6 nodes, found 6 at index 4");
  CHECK(refusal([](TinyDataset* tiny) { tiny->indices[9] = -1; }) ==
        "indices.npy: must be below the 6 nodes, found 4294967295 at index 9");
}

TEST_CASE("topology: splits that leave the graph or repeat a node are refused as its rows are") {
  const auto refusal = [](auto change) {
    TinyDataset tiny = PathOfSix();
    change(&tiny);
    const Status status = TopologyOf(tiny).status();
    CHECK(status.code() == Code::kDatasetCorrupt);
    return status.message();
  };
  CHECK(refusal([](TinyDataset* tiny) { tiny->train[1] = 6; }) ==
        "train.npy: must be ascending ids below the 6 nodes, found 6 at index 1");
  CHECK(refusal([](TinyDataset* tiny) { tiny->val[0] = -1; }) ==
        "val.npy: must be ascending ids below the 6 nodes, found -1 at index 0");
  CHECK(refusal([](TinyDataset* tiny) { tiny->test = {4, 4}; }) ==
        "test.npy: must be ascending ids below the 6 nodes, found 4 at index 1");
}

TEST_CASE("topology: an offender is found in whatever chunk it lies") {
  TinyDataset tiny = RingOf(50000, 7);
  tiny.indices[300001] = 50000;
  CHECK(TopologyOf(tiny).status().message() ==
        "indices.npy: must be below the 50000 nodes, found 50000 at index 300001");
  tiny = RingOf(50000, 7);
  tiny.indptr[32768] = 0;  // the first of a chunk, against the last of the one before
  CHECK(TopologyOf(tiny).status().message() ==
        "indptr.npy: must not decrease from 229369, found 0 at index 32768");
}

TEST_CASE("topology: what is no sealed topology is not attached") {
  CHECK(RefusalAfter([](FlatTables*) {}).ok());
  const auto message = [](const Status& status) {
    CHECK(status.code() == Code::kShmCorrupted);
    return status.message();
  };
  CHECK(message(RefusalAfter([](FlatTables*) {}, false)) == "topology: not a sealed memfd");
  CHECK(message(Topology::Attach(-1, Dataset()).status()) == "topology: not a sealed memfd");
  CHECK(message(RefusalAfter([](FlatTables* tables) { tables->header.magic ^= 1; })) ==
        "topology: wrong magic");
  CHECK(message(RefusalAfter([](FlatTables* tables) { tables->header.version = 1; })) ==
        "topology: version 1, expected 2");
  const std::string sizes = "topology: sizes do not fit its 2097152 bytes";
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{1} << 61, ~uint64_t{0}}) {
    CAPTURE(wrong);
    CHECK(message(RefusalAfter([=](FlatTables* h) { h->num_nodes = wrong; })) == sizes);
    CHECK(message(RefusalAfter([=](FlatTables* h) { h->header.bytes = wrong; })) == sizes);
    CHECK(message(RefusalAfter([=](FlatTables* h) { h->relation.indptr_at = wrong; })) == sizes);
    CHECK(message(RefusalAfter([=](FlatTables* h) { h->relation.indices_at = wrong; })) == sizes);
  }
  CHECK(message(RefusalAfter([](FlatTables* h) { h->relation.num_edges = 1U << 30; })) == sizes);
  // A header that is right in itself, in a memfd of another size.
  const std::string longer = "topology: sizes do not fit its 4194304 bytes";
  CHECK(message(RefusalAfter([](FlatTables*) {}, true, 4 << 20)) == longer);
  const auto larger_graph = [](FlatTables* h) {
    h->relation.num_edges = 1U << 20;
    h->header.bytes = 6 << 20;
  };
  CHECK(message(RefusalAfter(larger_graph, true, 4 << 20)) == longer);
  // Five nodes take as many 64-byte lines as six: only the rows tell.
  CHECK(message(RefusalAfter([](FlatTables* h) { h->num_nodes = 5; })) ==
        "topology: its rows do not cover its edges");
}

TEST_CASE("a topology may stay in its files: the same rows, checked as well, nothing copied") {
  const TempFolder folder;
  TinyDataset tiny = PathOfSix();
  tiny.WriteTo(folder);
  const Result<Dataset> dataset = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE(dataset.ok());
  const Result<UniqueFd> fd = CreateTopology(*dataset, {.place = TopologyPlace::kFile});
  REQUIRE_MESSAGE(fd.ok(), fd.status().message());
  const Result<Topology> topology = Topology::Attach(fd->get(), *dataset);
  REQUIRE_MESSAGE(topology.ok(), topology.status().message());
  CHECK(topology->place() == TopologyPlace::kFile);
  CheckSame(topology->view(), tiny);
  CHECK(static_cast<const void*>(topology->view().indices.data()) ==
        static_cast<const void*>(dataset->indices().data()));
  CHECK(topology->bytes() == 0);

  CHECK(CreateTopology(*dataset, {TopologyPlace::kFile, true}).status().code() ==
        Code::kInvalidArgument);
  const TempFolder other;
  TinyDataset larger = RingOf(10, 2);
  larger.WriteTo(other);
  const Result<Dataset> larger_dataset = Dataset::Open(other.path(), larger.counts());
  REQUIRE(larger_dataset.ok());
  CHECK(Topology::Attach(fd->get(), *larger_dataset).status().message() ==
        "topology: it is that of other files");

  const TempFolder broken;
  tiny.indices[3] = 6;
  tiny.WriteTo(broken);
  const Result<Dataset> corrupt = Dataset::Open(broken.path(), tiny.counts());
  REQUIRE(corrupt.ok());
  CHECK(CreateTopology(*corrupt, {.place = TopologyPlace::kFile}).status().message() ==
        "indices.npy: must be below the 6 nodes, found 6 at index 3");
}

}  // namespace
}  // namespace gnnd
