#include "core/sample/record.h"

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
    std::memcpy(&header, sampler_.slot().data(), sizeof header);
  }

  // The error that Open gives with the header as changed; the slot is as before afterwards.
  std::string ErrorOf(const RecordHeader& changed, bool deep = false) {
    std::vector<std::byte> slot = sampler_.slot();
    std::memcpy(slot.data(), &changed, sizeof changed);
    return ErrorOf(slot, deep);
  }
  static std::string ErrorOf(std::span<const std::byte> slot, bool deep) {
    const Result<RecordView> record = RecordView::Open(slot, deep);
    if (record.ok()) return "";
    CHECK(record.status().code() == Code::kShmCorrupted);
    return record.status().message();
  }
  // The slot with element `index` of the section at `at` set to `value`.
  std::vector<std::byte> WithWord(uint64_t at, uint64_t index, uint32_t value) {
    std::vector<std::byte> slot = sampler_.slot();
    std::memcpy(slot.data() + at + index * sizeof value, &value, sizeof value);
    return slot;
  }
  const std::vector<std::byte>& slot() const { return sampler_.slot(); }

  RecordHeader header{};

 private:
  static SamplerOptions OptionsOf(Expansion expansion) {
    SamplerOptions options{{4, 6}, EdgeWeights::kGcn};
    options.expansion = expansion;
    return options;
  }

  test::Graph graph_;
  test::SamplerUnderTest sampler_;
};

TEST_CASE("a sampler's record opens and says what it holds") {
  RecordToBreak record;
  const Result<RecordView> view = RecordView::Open(record.slot(), true);
  REQUIRE(view.ok());
  CHECK(view->key().random_seed == 1);
  CHECK(view->key().epoch == 2);
  CHECK(view->key().batch == 3);
  CHECK(view->num_hops() == 2);
  CHECK(view->num_seeds() == 20);
  CHECK(view->nodes().size() == record.header.num_nodes);
  CHECK(view->block(0).num_src == view->block(1).num_dst);
  CHECK(view->num_edges() == view->block(0).src.size() + view->block(1).src.size());
  CHECK(view->payload_bytes() <= record.header.extent_bytes);
}

TEST_CASE("a corrupted header field is refused") {
  RecordToBreak record;
  REQUIRE(record.ErrorOf(record.header).empty());
  const auto refused = [&record](const std::string& field, const auto& change) {
    CAPTURE(field);
    RecordHeader changed = record.header;
    change(changed);
    CHECK_FALSE(record.ErrorOf(changed).empty());
  };
  refused("magic", [](RecordHeader& h) { h.magic ^= 1; });
  refused("version", [](RecordHeader& h) { ++h.version; });
  refused("kind", [](RecordHeader& h) { h.kind = 9; });
  refused("epoch", [](RecordHeader& h) { h.epoch = 0x1000000; });
  refused("no hops", [](RecordHeader& h) { h.num_hops = 0; });
  refused("fewer hops", [](RecordHeader& h) { h.num_hops = 1; });
  refused("more hops", [](RecordHeader& h) { h.num_hops = 3; });
  refused("too many hops", [](RecordHeader& h) { h.num_hops = kMaxHops + 1; });
  refused("no seeds", [](RecordHeader& h) { h.num_seeds = 0; });
  refused("num_seeds", [](RecordHeader& h) { ++h.num_seeds; });
  refused("num_nodes", [](RecordHeader& h) { --h.num_nodes; });
  refused("reserved", [](RecordHeader& h) { h.reserved = 1; });
  refused("reserved2", [](RecordHeader& h) { h.reserved2[5] = 1; });
  refused("nodes_at unaligned", [](RecordHeader& h) { h.nodes_at += 4; });
  refused("nodes_at in the header", [](RecordHeader& h) { h.nodes_at = 0; });
  refused("nodes_at outside", [](RecordHeader& h) { h.nodes_at = uint64_t{1} << 40; });
  refused("nodes_at wraps", [](RecordHeader& h) { h.nodes_at = ~uint64_t{0} << 12; });
  refused("payload_bytes", [](RecordHeader& h) { h.payload_bytes += 4; });
  refused("extent_bytes", [](RecordHeader& h) { h.extent_bytes += 4096; });
  refused("a block too many", [](RecordHeader& h) { h.blocks[2] = h.blocks[1]; });
}

TEST_CASE("a corrupted block field is refused") {
  for (const uint32_t variant : {0U, 1U, 2U, 3U}) {
    const uint32_t hop = variant % 2;
    RecordToBreak record(variant < 2 ? Expansion::kAll : Expansion::kNew);
    CHECK(record.header.shares_rows() == (variant >= 2));
    CAPTURE(variant);
    const auto refused = [&record, hop](const std::string& field, const auto& change) {
      CAPTURE(hop);
      CAPTURE(field);
      RecordHeader changed = record.header;
      change(changed.blocks[hop]);
      CHECK_FALSE(record.ErrorOf(changed).empty());
    };
    refused("num_dst", [](BlockHeader& b) { ++b.num_dst; });
    refused("num_src", [](BlockHeader& b) { ++b.num_src; });
    refused("num_src < num_dst", [](BlockHeader& b) { b.num_src = b.num_dst - 1; });
    refused("num_src > dst + edges",
            [](BlockHeader& b) { b.num_src = b.num_dst + b.num_edges + 1; });
    refused("num_edges", [](BlockHeader& b) { --b.num_edges; });
    refused("reserved", [](BlockHeader& b) { b.reserved = 1; });
    refused("indptr_at", [](BlockHeader& b) { b.indptr_at += 8; });
    refused("indptr_at overlaps", [](BlockHeader& b) { b.indptr_at -= 4096; });
    refused("src_at", [](BlockHeader& b) { b.src_at += 8; });
    refused("src_at overlaps", [](BlockHeader& b) { b.src_at = b.indptr_at; });
    refused("weight_at", [](BlockHeader& b) { b.weight_at += 4; });
    refused("no weight_at", [](BlockHeader& b) { b.weight_at = 0; });
    refused("self_weight_at", [](BlockHeader& b) { b.self_weight_at = uint64_t{1} << 50; });
    refused("no self_weight_at", [](BlockHeader& b) { b.self_weight_at = 0; });
  }
}

TEST_CASE("a slot that is too small, unaligned or empty is refused") {
  RecordToBreak record;
  const std::span<const std::byte> slot = record.slot();
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.first(sizeof(RecordHeader) - 1), false).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.first(record.header.extent_bytes - 1), false).empty());
  CHECK(RecordToBreak::ErrorOf(slot.first(record.header.extent_bytes), true).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(slot.subspan(4), false).empty());
  CHECK_FALSE(RecordToBreak::ErrorOf(std::vector<std::byte>(8192), false).empty());
}

TEST_CASE("indptr must run from zero to the number of edges") {
  RecordToBreak record;
  const BlockHeader& block = record.header.blocks[1];
  const auto first = record.WithWord(block.indptr_at, 0, 1);
  CHECK_FALSE(RecordToBreak::ErrorOf(first, false).empty());
  const auto last = record.WithWord(block.indptr_at, block.num_dst, block.num_edges + 1);
  CHECK_FALSE(RecordToBreak::ErrorOf(last, false).empty());
}

TEST_CASE("the deep check refuses what the shallow one lets pass") {
  RecordToBreak record;
  const BlockHeader& block = record.header.blocks[1];
  const auto only_deep = [](const std::vector<std::byte>& slot) {
    CHECK(RecordToBreak::ErrorOf(slot, false).empty());
    CHECK_FALSE(RecordToBreak::ErrorOf(slot, true).empty());
  };
  uint32_t first_node = 0;
  std::memcpy(&first_node, record.slot().data() + record.header.nodes_at, sizeof first_node);
  only_deep(record.WithWord(record.header.nodes_at, 1, first_node));
  only_deep(record.WithWord(block.src_at, 0, block.num_dst + 1));
}

TEST_CASE("a record without weights shows none") {
  const test::Graph graph = test::RandomGraph(8, 100, 10);
  test::SamplerUnderTest sampler(graph.view(), {{3}, EdgeWeights::kNone}, 4,
                                 DetectInstructionSet());
  const RecordView record = sampler.Sample({1, 0, 0}, std::vector<uint32_t>{5, 6});
  CHECK(record.block(0).weight.empty());
  CHECK(record.block(0).self_weight.empty());
}

}  // namespace
}  // namespace gnnd
