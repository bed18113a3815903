#include "core/batch/record.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "test/support/graphs.h"
#include "test/support/sampling.h"

namespace gnnd {
namespace {

// A weighted two-hop record, of which tests change one field.
class RecordToBreak {
 public:
  explicit RecordToBreak(Expansion expansion = Expansion::kAll)
      : graph_(test::RandomGraph(8, 300, 30)),
        sampler_(graph_.view(), OptionsOf(expansion), 20, DetectInstructionSet()) {
    sampler_.Sample({1, 2, 3}, test::RandomNodes(9, 300, 20));
    tables = OwnTables(sampler_.slot());
  }

  // The error that Open gives with the tables as changed; the slot is as before afterwards.
  std::string ErrorOf(const RecordTables& changed, bool deep = false) {
    std::vector<std::byte> slot = sampler_.slot();
    test::CopyTables(changed, slot);
    return ErrorOf(slot, deep);
  }
  static std::string ErrorOf(std::span<const std::byte> slot, bool deep) {
    const Result<Sample> sample = OpenRecord(slot, deep);
    if (sample.ok()) return "";
    CHECK(sample.status().code() == Code::kShmCorrupted);
    return sample.status().message();
  }
  // The slot with element `index` of the section at `at` set to `value`.
  std::vector<std::byte> WithWord(uint64_t at, uint64_t index, uint32_t value) {
    std::vector<std::byte> slot = sampler_.slot();
    std::memcpy(slot.data() + at + index * sizeof value, &value, sizeof value);
    return slot;
  }
  const std::vector<std::byte>& slot() const { return sampler_.slot(); }

  RecordTables tables;

 private:
  static SamplerOptions OptionsOf(Expansion expansion) {
    SamplerOptions options{.fanouts = {4, 6}, .weights = EdgeWeights::kGcn};
    options.expansion = expansion;
    return options;
  }

  test::Graph graph_;
  test::SamplerUnderTest sampler_;
};

TEST_CASE("a sampler's record opens and says what it holds") {
  RecordToBreak record;
  const Result<Sample> sample = OpenRecord(record.slot(), true);
  REQUIRE(sample.ok());
  CHECK(sample->key().random_seed == 1);
  CHECK(sample->key().epoch == 2);
  CHECK(sample->key().batch == 3);
  CHECK(sample->num_hops() == 2);
  CHECK(sample->num_seeds() == 20);
  CHECK(sample->nodes().size() == record.tables.nodes[0].num_nodes);
  CHECK(sample->kind() == SampleKind::kBlocks);
  CHECK(sample->homogeneous());
  CHECK(sample->block(0).num_src == sample->block(1).num_dst);
  CHECK(sample->num_edges() == sample->block(0).src.size() + sample->block(1).src.size());
  CHECK(record.tables.header.payload_bytes <= record.tables.header.extent_bytes);
}

TEST_CASE("a corrupted header field is refused") {
  RecordToBreak record;
  REQUIRE(record.ErrorOf(record.tables).empty());
  const auto refused = [&record](const std::string& field, const auto& change) {
    CAPTURE(field);
    RecordTables changed = record.tables;
    change(changed);
    CHECK_FALSE(record.ErrorOf(changed).empty());
  };
  refused("magic", [](RecordTables& h) { h.header.magic ^= 1; });
  refused("version", [](RecordTables& h) { ++h.header.version; });
  refused("kind", [](RecordTables& h) { h.header.kind = 9; });
  refused("rows with blocks", [](RecordTables& h) { h.header.kind = 2; });
  refused("blocks without any", [](RecordTables& h) { h.header.num_blocks = 0; });
  refused("epoch", [](RecordTables& h) { h.header.epoch = 0x1000000; });
  refused("no types", [](RecordTables& h) { h.header.num_node_types = 0; });
  refused("a type too many", [](RecordTables& h) { h.header.num_node_types = 2; });
  refused("too many types", [](RecordTables& h) { h.header.num_node_types = kMaxNodeTypes + 1; });
  refused("fewer blocks", [](RecordTables& h) { h.header.num_blocks = 1; });
  refused("more blocks", [](RecordTables& h) { h.header.num_blocks = 3; });
  refused("too many blocks", [](RecordTables& h) { h.header.num_blocks = kMaxBlocks + 1; });
  refused("a block too many", [](RecordTables& h) {
    h.blocks.push_back(h.blocks[1]);
    ++h.header.num_blocks;
  });
  refused("no seeds", [](RecordTables& h) { h.nodes[0].num_seeds = 0; });
  refused("num_seeds", [](RecordTables& h) { ++h.nodes[0].num_seeds; });
  refused("num_nodes", [](RecordTables& h) { --h.nodes[0].num_nodes; });
  refused("width of global ids", [](RecordTables& h) { h.nodes[0].id_bytes = 8; });
  refused("reserved", [](RecordTables& h) { h.header.reserved = 1; });
  refused("reserved of nodes", [](RecordTables& h) { h.nodes[0].reserved = 1; });
  refused("nodes_at unaligned", [](RecordTables& h) { h.nodes[0].nodes_at += 4; });
  refused("nodes_at in the header", [](RecordTables& h) { h.nodes[0].nodes_at = 0; });
  refused("nodes_at outside", [](RecordTables& h) { h.nodes[0].nodes_at = uint64_t{1} << 40; });
  refused("nodes_at wraps", [](RecordTables& h) { h.nodes[0].nodes_at = ~uint64_t{0} << 12; });
  refused("ranks_at", [](RecordTables& h) { h.nodes[0].ranks_at = h.nodes[0].nodes_at; });
  refused("payload_bytes", [](RecordTables& h) { h.header.payload_bytes += 4; });
  refused("extent_bytes", [](RecordTables& h) { h.header.extent_bytes += 4096; });
}

TEST_CASE("a corrupted block field is refused") {
  for (const uint32_t variant : {0U, 1U, 2U, 3U}) {
    const uint32_t hop = variant % 2;
    RecordToBreak record(variant < 2 ? Expansion::kAll : Expansion::kNew);
    CHECK((record.tables.header.shares_rows != 0) == (variant >= 2));
    CAPTURE(variant);
    const auto refused = [&record, hop](const std::string& field, const auto& change) {
      CAPTURE(hop);
      CAPTURE(field);
      RecordTables changed = record.tables;
      change(changed.blocks[hop]);
      CHECK_FALSE(record.ErrorOf(changed).empty());
    };
    refused("num_dst", [](BlockEntry& b) { ++b.num_dst; });
    refused("num_src", [](BlockEntry& b) { ++b.num_src; });
    refused("num_src < num_dst", [](BlockEntry& b) { b.num_src = b.num_dst - 1; });
    refused("num_src > dst + edges",
            [](BlockEntry& b) { b.num_src = b.num_dst + b.num_edges + 1; });
    refused("num_edges", [](BlockEntry& b) { --b.num_edges; });
    refused("hop", [](BlockEntry& b) { ++b.hop; });
    refused("type of destinations", [](BlockEntry& b) { b.dst_type = 1; });
    refused("type of sources", [](BlockEntry& b) { b.src_type = kMaxNodeTypes; });
    refused("width of ids", [](BlockEntry& b) { b.id_bytes = 8; });
    refused("indptr_at", [](BlockEntry& b) { b.indptr_at += 8; });
    refused("indptr_at overlaps", [](BlockEntry& b) { b.indptr_at -= 4096; });
    refused("src_at", [](BlockEntry& b) { b.src_at += 8; });
    refused("src_at overlaps", [](BlockEntry& b) { b.src_at = b.indptr_at; });
    refused("weight_at", [](BlockEntry& b) { b.weight_at += 4; });
    refused("no weight_at", [](BlockEntry& b) { b.weight_at = 0; });
    refused("self_weight_at", [](BlockEntry& b) { b.self_weight_at = uint64_t{1} << 50; });
    refused("no self_weight_at", [](BlockEntry& b) { b.self_weight_at = 0; });
  }
}

TEST_CASE("a slot that is too small, unaligned or empty is refused") {
  RecordToBreak record;
  const std::span<const std::byte> slot = record.slot();
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.first(sizeof(RecordHeader) - 1), false).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.first(record.tables.bytes() - 1), false).empty());
  CHECK_FALSE(
      RecordToBreak::ErrorOf(slot.first(record.tables.header.extent_bytes - 1), false).empty());
  CHECK(RecordToBreak::ErrorOf(slot.first(record.tables.header.extent_bytes), true).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.subspan(4), false).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(std::vector<std::byte>(8192), false).empty());
}

TEST_CASE("indptr must run from zero to the number of edges") {
  RecordToBreak record;
  const BlockEntry& block = record.tables.blocks[1];
  const auto first = record.WithWord(block.indptr_at, 0, 1);
  CHECK_FALSE(RecordToBreak::ErrorOf(first, false).empty());
  const auto last = record.WithWord(block.indptr_at, block.num_dst, block.num_edges + 1);
  CHECK_FALSE(RecordToBreak::ErrorOf(last, false).empty());
}

TEST_CASE("the deep check refuses what the shallow one lets pass") {
  RecordToBreak record;
  const BlockEntry& block = record.tables.blocks[1];
  const auto only_deep = [](const std::vector<std::byte>& slot) {
    CHECK(RecordToBreak::ErrorOf(slot, false).empty());
    CHECK_FALSE(RecordToBreak::ErrorOf(slot, true).empty());
  };
  uint32_t first_node = 0;
  std::memcpy(&first_node, record.slot().data() + record.tables.nodes[0].nodes_at,
              sizeof first_node);
  only_deep(record.WithWord(record.tables.nodes[0].nodes_at, 1, first_node));
  only_deep(record.WithWord(block.src_at, 0, block.num_dst + 1));
}

TEST_CASE("a record without weights shows none") {
  const test::Graph graph = test::RandomGraph(8, 100, 10);
  test::SamplerUnderTest sampler(graph.view(), {.fanouts = {3}, .weights = EdgeWeights::kNone}, 4,
                                 DetectInstructionSet());
  const Sample sample = sampler.Sample({1, 0, 0}, std::vector<uint32_t>{5, 6});
  CHECK(sample.block(0).weight.empty());
  CHECK(sample.block(0).self_weight.empty());
}

// Two types of nodes and three relations, by hand: authors (0) write papers (1), papers cite
// papers, authors know authors. Seeds are two papers.
class TypedRecord {
 public:
  TypedRecord() {
    tables.Begin(SampleKind::kBlocks, {5, 6, 7});
    AddList({70, 71, 72}, 0);
    AddList({10, 11, 12}, 2);
    // Hop 0: of papers 10 and 11.
    AddBlock({0, 0, 1, 0, 2, 2, 3, 4, 0, 0, 0, 0}, {0, 2, 3}, {0, 1, 0});
    AddBlock({0, 1, 1, 1, 2, 3, 1, 4, 0, 0, 0, 0}, {0, 0, 1}, {2});
    // Hop 1: of three papers, among whose authors is a new one, and of two authors.
    AddBlock({1, 0, 1, 0, 3, 3, 1, 4, 0, 0, 0, 0}, {0, 0, 0, 1}, {2});
    AddBlock({1, 2, 0, 0, 2, 3, 1, 4, 0, 0, 0, 0}, {0, 1, 1}, {2});
    WriteTables(&tables, slot());
  }

  std::span<std::byte> slot() { return std::as_writable_bytes(std::span(words_)); }
  std::string ErrorOf(const RecordTables& changed) {
    RecordTables copy = changed;
    WriteTables(&copy, slot());
    const Result<Sample> opened = OpenRecord(slot(), true);
    WriteTables(&tables, slot());
    return opened.ok() ? "" : opened.status().message();
  }

  RecordTables tables;

 private:
  uint64_t Append(const std::vector<uint32_t>& section) {
    const uint64_t at = (words_.size() * 8 + 4095) / 4096 * 4096;
    words_.resize(at / 8 + (section.size() + 1) / 2);
    std::memcpy(slot().data() + at, section.data(), section.size() * 4);
    return at;
  }
  void AddList(const std::vector<uint32_t>& nodes, uint32_t seeds) {
    tables.nodes.push_back({4, static_cast<uint32_t>(nodes.size()), seeds, 0, Append(nodes), 0});
  }
  void AddBlock(BlockEntry block, const std::vector<uint32_t>& indptr,
                const std::vector<uint32_t>& src) {
    block.indptr_at = Append(indptr);
    block.src_at = Append(src);
    tables.blocks.push_back(block);
  }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(512);
};

TEST_CASE("a record has a block for each hop and relation, between nodes of any types") {
  TypedRecord record;
  const Result<Sample> sample = OpenRecord(record.slot(), true);
  REQUIRE_MESSAGE(sample.ok(), sample.status().message());
  CHECK(sample->num_node_types() == 2);
  CHECK(sample->num_blocks() == 4);
  CHECK(sample->num_hops() == 2);
  CHECK_FALSE(sample->homogeneous());
  CHECK(sample->num_edges() == 6);
  CHECK(sample->num_seeds(0) == 0);
  CHECK(sample->num_seeds(1) == 2);
  CHECK(sample->nodes(0)[2] == 72);
  CHECK(sample->nodes(1)[2] == 12);
  const BlockView& wrote = sample->block(2);
  CHECK(wrote.hop == 1);
  CHECK(wrote.relation == 0);
  CHECK(wrote.dst_type == 1);
  CHECK(wrote.src_type == 0);
  CHECK(sample->nodes(wrote.src_type)[wrote.src[0]] == 72);
}

TEST_CASE("blocks of several types are refused where they do not follow from each other") {
  TypedRecord record;
  REQUIRE(record.ErrorOf(record.tables).empty());
  const auto refused = [&record](const std::string& field, const auto& change) {
    CAPTURE(field);
    RecordTables changed = record.tables;
    change(changed.blocks.data());
    CHECK_FALSE(record.ErrorOf(changed).empty());
  };
  refused("a relation twice in a hop", [](BlockEntry* b) { b[1].relation = 0; });
  refused("a hop left out", [](BlockEntry* b) { b[2].hop = b[3].hop = 2; });
  refused("a hop back", [](BlockEntry* b) { b[3].hop = 0; });
  refused("the other type's rows", [](BlockEntry* b) { b[2].dst_type = 0; });
  refused("the other type's sources", [](BlockEntry* b) { b[1].src_type = 0; });
  refused("nodes of its own hop as destinations", [](BlockEntry* b) { ++b[1].num_dst; });
  refused("sources that were known, left out", [](BlockEntry* b) { --b[3].num_src; });
}

TEST_CASE("a record of rows has nodes and no blocks") {
  RecordToBreak record;
  RecordTables tables = record.tables;
  tables.header.kind = static_cast<uint32_t>(SampleKind::kRows);
  tables.header.shares_rows = 0;
  tables.blocks.clear();
  tables.nodes[0].num_nodes = tables.nodes[0].num_seeds;
  std::vector<std::byte> slot = record.slot();
  WriteTables(&tables, slot);
  const Result<Sample> sample = OpenRecord(slot, true);
  REQUIRE_MESSAGE(sample.ok(), sample.status().message());
  CHECK(sample->kind() == SampleKind::kRows);
  CHECK(sample->num_hops() == 0);
  CHECK(sample->nodes().size() == 20);
  CHECK(tables.header.extent_bytes == tables.nodes[0].nodes_at + 80);
  ++tables.nodes[0].num_nodes;  // beside the rows themselves nothing is listed
  WriteTables(&tables, slot);
  CHECK_FALSE(OpenRecord(slot).ok());
}

}  // namespace
}  // namespace gnnd
