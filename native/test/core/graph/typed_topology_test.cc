#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/topology.h"
#include "test/support/fake_registrar.h"
#include "test/support/typed_files.h"

namespace gnnd {
namespace {

using test::RandomTypedGraph;
using test::TempFolder;
using test::TypedFiles;
using test::TypedGraph;

TypedFiles Small() { return TypedFiles::Of(RandomTypedGraph(4, {30, 50, 20}, 5, 6)); }

// A dataset in a folder of its own.
struct Opened {
  explicit Opened(const TypedFiles& files) {
    files.WriteTo(folder);
    Result<TypedDataset> opened = TypedDataset::Open(folder.path(), files.schema());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    dataset = std::move(*opened);
  }
  TempFolder folder;
  TypedDataset dataset;
};

void CheckSame(const GraphView& graph, const GraphView& expected) {
  CHECK(graph.num_nodes == expected.num_nodes);
  REQUIRE(graph.relations.size() == expected.relations.size());
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    CAPTURE(r);
    CHECK(graph.relations[r].src_type == expected.relations[r].src_type);
    CHECK(graph.relations[r].dst_type == expected.relations[r].dst_type);
    CHECK(std::ranges::equal(graph.relations[r].rows.indptr, expected.relations[r].rows.indptr));
    CHECK(std::ranges::equal(graph.relations[r].rows.indices, expected.relations[r].rows.indices));
    CHECK(graph.relations[r].rows.alias.empty());
    CHECK(graph.relations[r].rows.edge_weight.empty());
  }
}

TEST_CASE("a topology of several types comes back through a descriptor as it was in the files") {
  const uint64_t first = test::RandomSeed(1);
  for (uint64_t seed = first; seed < first + 6; ++seed) {
    INFO("GNND_SEED=", seed);
    std::vector<uint32_t> num_nodes;
    for (uint32_t t = 0; t < 1 + seed % 4; ++t) {
      num_nodes.push_back(static_cast<uint32_t>(1 + seed * 997 % 3000 + 100 * t));
    }
    const auto relations = static_cast<uint32_t>(seed % 6);
    const TypedFiles files =
        TypedFiles::Of(RandomTypedGraph(seed, num_nodes, relations, seed % 2 == 0 ? 5 : 400));
    const Opened opened(files);
    const Result<UniqueFd> fd = CreateTopology(opened.dataset);
    REQUIRE_MESSAGE(fd.ok(), fd.status().message());
    const Result<Topology> topology = Topology::Attach(fd->get(), opened.dataset);
    REQUIRE_MESSAGE(topology.ok(), topology.status().message());
    CheckSame(topology->graph(), files.graph.view());
    CHECK(topology->bytes() % (uint64_t{2} << 20) == 0);
    for (const RelationView& relation : topology->graph().relations) {
      CHECK(reinterpret_cast<uintptr_t>(relation.rows.indptr.data()) % 64 == 0);
      CHECK(reinterpret_cast<uintptr_t>(relation.rows.indices.data()) % 64 == 0);
    }
  }
}

TEST_CASE("a topology of as many types and relations as there may be") {
  const TypedFiles files = TypedFiles::Of(
      RandomTypedGraph(3, std::vector<uint32_t>(Schema::kMaxTypes, 20), Schema::kMaxRelations, 3));
  const Opened opened(files);
  for (const TopologyPlace place : {TopologyPlace::kMemory, TopologyPlace::kFile}) {
    const Result<UniqueFd> fd = CreateTopology(opened.dataset, {place});
    REQUIRE_MESSAGE(fd.ok(), fd.status().message());
    const Result<Topology> topology = Topology::Attach(fd->get(), opened.dataset);
    REQUIRE_MESSAGE(topology.ok(), topology.status().message());
    CheckSame(topology->graph(), files.graph.view());
  }
}

TEST_CASE("relations may stay in their files, checked as well, and nothing is copied") {
  const TypedFiles files = Small();
  const Opened opened(files);
  const Result<UniqueFd> fd = CreateTopology(opened.dataset, {TopologyPlace::kFile});
  REQUIRE_MESSAGE(fd.ok(), fd.status().message());
  const Result<Topology> topology = Topology::Attach(fd->get(), opened.dataset);
  REQUIRE_MESSAGE(topology.ok(), topology.status().message());
  CHECK(topology->place() == TopologyPlace::kFile);
  CHECK(topology->bytes() == 0);
  CheckSame(topology->graph(), files.graph.view());
  for (uint32_t r = 0; r < files.graph.relations.size(); ++r) {
    CHECK(topology->graph().relations[r].rows.indices.data() ==
          opened.dataset.topology(r).indices.data());
  }
  TypedFiles broken = files;
  broken.graph.relations[1].rows.indices[3] = 50;
  const Opened bad(broken);
  CHECK(CreateTopology(bad.dataset, {TopologyPlace::kFile}).status().code() ==
        Code::kDatasetCorrupt);
}

TEST_CASE("broken relations and splits are refused with file, place and value") {
  const auto refusal = [](auto change) {
    TypedFiles files = Small();
    change(&files);
    const Opened opened(files);
    const Status status = CreateTopology(opened.dataset).status();
    CHECK(status.code() == Code::kDatasetCorrupt);
    return status.message();
  };
  const TypedFiles files = Small();
  // A relation between two types of different sizes, from the larger one.
  const auto& relations = files.graph.relations;
  const auto at = std::ranges::find_if(relations, [&files](const TypedGraph::Relation& relation) {
    return files.graph.num_nodes[relation.src_type] < 50 && relation.rows.indices.size() > 5;
  });
  REQUIRE(at != relations.end());
  const auto r = static_cast<size_t>(at - relations.begin());
  const Schema schema = files.schema();
  const std::string folder = FolderOf(schema, schema.relations[r]);
  const std::string source = test::Numbered('t', at->src_type);
  const std::string count = std::to_string(files.graph.num_nodes[at->src_type]);
  CHECK(refusal([&](TypedFiles* f) { f->graph.relations[r].rows.indices[4] = std::stoi(count); }) ==
        folder + "indices.npy: must be below the " + count + " nodes of " + source + ", found " +
            count + " at index 4");
  CHECK(refusal([&](TypedFiles* f) { f->graph.relations[r].rows.indptr[0] = 1; }) ==
        folder + "indptr.npy: must start at 0, found 1 at index 0");
  CHECK(refusal([&](TypedFiles* f) {
          f->graph.relations[r].rows.indptr[2] = ~uint64_t{0};
        }).starts_with(folder + "indptr.npy: must not decrease from"));
  CHECK(refusal([&](TypedFiles* f) {
          ++f->graph.relations[r].rows.indptr.back();
        }).starts_with(folder + "indptr.npy: must end at the "));
  CHECK(refusal([](TypedFiles* f) { f->train[1] = 30; }) ==
        "nodes/t0/train.npy: must be ascending ids below the 30 nodes, found 30 at index 1");
  CHECK(refusal([](TypedFiles* f) { f->val[0] = -1; }) ==
        "nodes/t0/val.npy: must be ascending ids below the 30 nodes, found -1 at index 0");
  CHECK(refusal([](TypedFiles* f) {
          f->test[1] = f->test[0];
        }).starts_with("nodes/t0/test.npy: must be ascending ids"));
}

// Attaches the bytes of a good topology in a new memfd, changed by `change`.
template <typename Change>
Status RefusalAfter(const Change& change) {
  const Opened opened(Small());
  const Result<UniqueFd> good = CreateTopology(opened.dataset);
  REQUIRE(good.ok());
  const Result<Mapping> from = Mapping::Map(good->get(), false);
  REQUIRE(from.ok());
  const Result<UniqueFd> copy = CreateMemfd("gnnd-test", from->size());
  REQUIRE(copy.ok());
  {
    const Result<Mapping> to = Mapping::Map(copy->get(), true);
    REQUIRE(to.ok());
    std::memcpy(to->data(), from->data(), from->size());
    auto* header = reinterpret_cast<TopologyHeader*>(to->data());
    change(header, reinterpret_cast<TopologyRelation*>(header + 1));
  }
  REQUIRE(SealReadOnly(copy->get()).ok());
  return Topology::Attach(copy->get(), opened.dataset).status();
}

TEST_CASE("tables that do not fit their memfd are not attached") {
  using Header = TopologyHeader;
  using Table = TopologyRelation;
  CHECK(RefusalAfter([](Header*, Table*) {}).ok());
  const auto refused = [](const auto& change) {
    const Status status = RefusalAfter(change);
    CHECK(status.code() == Code::kShmCorrupted);
    return status.message() == "topology: sizes do not fit its 2097152 bytes";
  };
  for (const uint32_t wrong : {0U, 1U, 2U, 4U, 65U, ~0U}) {
    CAPTURE(wrong);
    CHECK(refused([=](Header* h, Table*) { h->num_types = wrong; }));
  }
  for (const uint32_t wrong : {0U, 4U, 6U, 257U, ~0U}) {
    CAPTURE(wrong);
    CHECK(refused([=](Header* h, Table*) { h->num_relations = wrong; }));
  }
  CHECK(refused([](Header* h, Table*) { h->reserved[3] = 1; }));
  CHECK(refused([](Header*, Table* t) { t[4].src_type = 3; }));
  CHECK(refused([](Header*, Table* t) { t[4].dst_type = ~0U; }));
  CHECK(refused([](Header*, Table* t) { t[2].num_edges = ~uint64_t{0}; }));
  CHECK(refused([](Header*, Table* t) { t[3].indptr_at += 64; }));
  CHECK(refused([](Header*, Table* t) { t[3].indices_at = 0; }));
  CHECK(refused([](Header*, Table* t) { t[3].alias_at = 64; }));
  const auto other_source = [](Header*, Table* t) { t[0].src_type = (t[0].src_type + 1) % 3; };
  CHECK(RefusalAfter(other_source).message() ==
        "topology: it has other types or relations than the dataset");
}

TEST_CASE("a topology is attached by whoever has its types and relations") {
  const Opened opened(Small());
  const Opened larger(TypedFiles::Of(RandomTypedGraph(4, {30, 50, 21}, 5, 6)));
  const test::TinyDataset tiny = test::PathOfSix();
  const TempFolder folder;
  tiny.WriteTo(folder);
  const Result<Dataset> flat = Dataset::Open(folder.path(), tiny.counts());
  REQUIRE(flat.ok());
  for (const TopologyPlace place : {TopologyPlace::kMemory, TopologyPlace::kFile}) {
    const Result<UniqueFd> fd = CreateTopology(opened.dataset, {place});
    REQUIRE(fd.ok());
    CHECK(Topology::Attach(fd->get(), opened.dataset).ok());
    CHECK(Topology::Attach(fd->get(), larger.dataset).status().code() == Code::kShmCorrupted);
    CHECK(Topology::Attach(fd->get(), *flat).status().code() == Code::kShmCorrupted);
    const Result<UniqueFd> of_flat = CreateTopology(*flat, {place});
    REQUIRE(of_flat.ok());
    CHECK(Topology::Attach(of_flat->get(), opened.dataset).status().code() == Code::kShmCorrupted);
  }
}

TEST_CASE("relations have no alias tables, and devices may register them") {
  const TypedFiles files = Small();
  const Opened opened(files);
  const Status alias = CreateTopology(opened.dataset, {TopologyPlace::kMemory, true}).status();
  CHECK(alias.code() == Code::kInvalidArgument);
  CHECK(alias.message().ends_with("has no edge weights"));
  const Result<UniqueFd> fd = CreateTopology(opened.dataset, {TopologyPlace::kRegistered});
  REQUIRE(fd.ok());
  test::FakeRegistrar device;
  const Registrar hook = device.hook();
  const Result<Topology> topology = Topology::Attach(fd->get(), opened.dataset, &hook);
  REQUIRE_MESSAGE(topology.ok(), topology.status().message());
  CHECK(topology->registered_bytes() == topology->bytes());
  CheckSame(topology->graph(), files.graph.view());
}

}  // namespace
}  // namespace gnnd
