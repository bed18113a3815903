#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/support/graphs.h"
#include "test/support/links.h"
#include "test/support/sampling.h"
#include "test/support/typed_graphs.h"

// Records that a stray store has changed: a Trainer refuses them, or stays within what they hold.
// Every slot lies in memory of exactly its size, so AddressSanitizer sees the first byte beyond.

namespace gnnd {
namespace {

using Words = std::vector<uint32_t>;

// Reads all that a Trainer reads, in the same way: rows by indptr, sources by src. Returns a
// checksum, so that nothing is optimised away; -1 when an index leads out of the record.
int64_t ReadLikeATrainer(const Sample& sample) {
  int64_t sum = 0;
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    for (const uint32_t node : sample.nodes(t)) sum += node;
    for (const uint32_t rank : sample.ranks(t)) sum += rank;
    if (sample.num_seeds(t) > sample.nodes(t).size()) return -1;
  }
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    const std::span<const uint32_t> sources = sample.nodes(block.src_type);
    if (block.num_src > sources.size()) return -1;
    if (block.num_dst > sample.nodes(block.dst_type).size()) return -1;
    for (uint32_t d = 0; d < block.num_dst; ++d) {
      if (!block.self_weight.empty()) sum += block.self_weight[d] > 0 ? 1 : 0;
      for (uint64_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
        if (e >= block.src.size() || block.src[e] >= block.num_src) return -1;
        sum += sources[block.src[e]];
        if (!block.weight.empty()) sum += block.weight[e] > 0 ? 1 : 0;
      }
    }
  }
  const PairsView& pairs = sample.pairs();
  const auto is_seed = [&sample](uint32_t row) { return row < sample.num_seeds(); };
  const bool rows_are_seeds =
      std::all_of(pairs.source.begin(), pairs.source.end(), is_seed) &&
      std::all_of(pairs.destination.begin(), pairs.destination.end(), is_seed) &&
      std::all_of(pairs.negatives.begin(), pairs.negatives.end(), is_seed);
  if (!rows_are_seeds) return -1;
  const uint64_t columns = uint64_t{pairs.size()} * pairs.per_pair;
  if (pairs.negatives.size() != (pairs.in_batch ? pairs.size() : columns)) return -1;
  for (const uint32_t place : pairs.masked) {
    if (place >= columns) return -1;
    sum += pairs.items[place / pairs.per_pair];
  }
  return sum & 0x7FFFFFFF;
}

// A record of a batch of links, likewise.
Words WordsOfLinks(const LinkOptions& choice, uint64_t seed) {
  const test::LinkGraph graph = test::RandomLinkGraph(seed, 120, 12, true);
  const LinkOptions links = test::OptionsOf(graph, choice);
  const SamplerOptions options{.fanouts = {4, 6}, .weights = EdgeWeights::kNone};
  const TopologyView topology = graph.graph.view();
  const Result<RecordLayout> layout =
      RecordLayout::Of(LimitsOf(topology.num_nodes(), topology.num_edges(), 10, options, links));
  REQUIRE(layout.ok());
  LinkSeeds seeds(links, graph.links, 10, topology);
  REQUIRE(seeds.Make({seed, 1, 2}).ok());
  Words slot(layout->slot_bytes() / 4);
  Sampler sampler(topology, options, *layout, DetectInstructionSet());
  REQUIRE(sampler
              .Sample({seed, 1, 2}, seeds.seeds(), std::as_writable_bytes(std::span(slot)),
                      kScaleOne, seeds.batch())
              .ok());
  slot.resize(OwnHeader(std::as_bytes(std::span(slot))).extent_bytes / 4);
  return slot;
}

// A record in a slot that ends where the record does.
Words WordsOf(const SamplerOptions& options, bool ranks, uint64_t seed) {
  const test::Graph graph = test::RandomGraph(seed, 120, 12);
  test::SamplerUnderTest sampler(graph.view(), options, 10, DetectInstructionSet());
  sampler.Sample({seed, 1, 2}, test::RandomNodes(seed + 1, 120, 10));
  RecordTables tables = OwnTables(sampler.slot());
  const uint64_t extent_bytes = tables.header.extent_bytes;
  Words words(extent_bytes / 4);
  std::memcpy(words.data(), sampler.slot().data(), words.size() * 4);
  if (!ranks) return words;
  NodeEntry& list = tables.nodes[0];
  list.ranks_at = (extent_bytes + 4095) / 4096 * 4096;
  words.resize((list.ranks_at + uint64_t{4} * list.num_nodes) / 4, 0xFFFFFFFF);
  WriteTables(&tables, std::as_writable_bytes(std::span(words)));
  return words;
}

// A record of several types and relations, likewise.
Words WordsOfTypes(const SamplerOptions& options, uint64_t seed) {
  const test::TypedGraph graph = test::RandomTypedGraph(seed, {60, 40, 80}, 5, 8);
  const uint32_t type = graph.relations[0].dst_type;
  const RecordLayout layout = *RecordLayout::Of(LimitsOf(graph.view(), type, 10, options));
  Sampler sampler(graph.view(), options, layout, DetectInstructionSet());
  Words words(layout.slot_bytes() / 4);
  const auto seeds = test::RandomNodes(seed + 1, 40, 10);
  const std::span<std::byte> slot = std::as_writable_bytes(std::span(words));
  REQUIRE(sampler.Sample({seed, 1, 2}, seeds, slot, kScaleOne, {}, type).ok());
  words.resize(OwnHeader(slot).extent_bytes / 4);
  return words;
}

// Header words of a record with two blocks.
constexpr uint64_t kHeaderWords = HeaderBytes(1, 2) / 4;

// Places of the header, of sections' first words, and any others.
size_t PlaceIn(const Words& words, std::mt19937_64& draw) {
  switch (draw() % 3) {
    case 0:
      return draw() % kHeaderWords;
    case 1:
      return std::min(draw() % (words.size() / 1024 + 1) * 1024 + draw() % 40, words.size() - 1);
    default:
      return draw() % words.size();
  }
}

uint32_t ValueFor(uint32_t old, std::mt19937_64& draw) {
  switch (draw() % 5) {
    case 0:
      return old ^ 1U << draw() % 32;
    case 1:
      return old + static_cast<uint32_t>(draw() % 5) - 2;
    case 2:
      return static_cast<uint32_t>(draw());
    case 3:
      return 0;
    default:
      return 0xFFFFFFFF;
  }
}

struct Tally {
  int refused = 0;
  int read = 0;
};

void Fuzz(const Words& good, uint64_t seed, Tally* tally) {
  std::mt19937_64 draw(seed);
  // A vector's spare capacity would hide an overrun.
  const std::unique_ptr<uint32_t[]> words(new uint32_t[good.size()]);
  const std::span slot = std::as_bytes(std::span(words.get(), good.size()));
  for (int round = 0; round < 300; ++round) {
    std::copy(good.begin(), good.end(), words.get());
    for (uint64_t changes = 1 + draw() % 4; changes > 0; --changes) {
      const size_t place = PlaceIn(good, draw);
      words[place] = ValueFor(words[place], draw);
    }
    const Result<Sample> sample = OpenRecord(slot);
    if (!sample.ok()) {
      CHECK(sample.status().code() == Code::kShmCorrupted);
      ++tally->refused;
      continue;
    }
    INFO("GNND_SEED=", seed, " round ", round);
    CHECK(ReadLikeATrainer(*sample) >= 0);
    ++tally->read;
  }
}

}  // namespace

TEST_CASE("a record whose words were overwritten is refused or read within its bounds") {
  const char* given = std::getenv("GNND_SEED");
  const uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const uint64_t count = given != nullptr ? 1 : 40;
  Tally tally;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SamplerOptions options{.fanouts = {4, 6},
                           .weights = seed % 2 == 0 ? EdgeWeights::kGcn : EdgeWeights::kNone};
    if (seed % 4 >= 2) options.expansion = Expansion::kNew;
    Fuzz(WordsOf(options, seed % 3 == 0, seed), seed, &tally);
    options.weights = EdgeWeights::kNone;
    if (seed % 3 == 1) options.relation_fanouts = {{4, 0}, {0, 3}, {2, 2}, {0, 0}, {-1, 1}};
    Fuzz(WordsOfTypes(options, seed), seed, &tally);
    LinkOptions links;
    links.known = KnownLinks::kMask;
    links.negatives = 3;
    if (seed % 2 == 1) links.method = NegativeMethod::kInBatch;
    Fuzz(WordsOfLinks(links, seed), seed, &tally);
  }
  MESSAGE("refused ", tally.refused, ", read ", tally.read);
  if (given == nullptr) {
    CHECK(tally.refused > 2000);
    CHECK(tally.read > 1000);  // weights, node ids, order: not what keeps a reader inside
  }
}

TEST_CASE("a pair beyond the seeds and a masked place beyond the negatives are refused") {
  LinkOptions links;
  links.known = KnownLinks::kMask;
  links.negatives = 3;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const Words good = WordsOfLinks(links, seed);
    const RecordTables tables = OwnTables(std::as_bytes(std::span(good)));
    const PairEntry& pairs = tables.header.pairs;
    REQUIRE(pairs.num_pairs == 10);
    const auto refused = [&good](uint64_t at, uint32_t value) {
      Words words = good;
      words[at] = value;
      const Status status = OpenRecord(std::as_bytes(std::span(words))).status();
      return status.code() == Code::kShmCorrupted;
    };
    const auto refused_header = [&good, &tables](const auto& change) {
      RecordTables changed = tables;
      change(&changed.header.pairs);
      Words words = good;
      test::CopyTables(changed, std::as_writable_bytes(std::span(words)));
      return !OpenRecord(std::as_bytes(std::span(words))).ok();
    };
    const uint32_t seeds = tables.nodes[0].num_seeds;
    CHECK_FALSE(refused(pairs.ends_at / 4 + 19, seeds - 1));
    CHECK(refused(pairs.ends_at / 4 + 19, seeds));
    CHECK(refused(pairs.negatives_at / 4 + 29, seeds));
    CHECK(refused_header([](PairEntry* entry) { entry->num_pairs = 0; }));
    CHECK(refused_header([](PairEntry* entry) { entry->per_pair = 4; }));
    CHECK(refused_header([](PairEntry* entry) { entry->per_pair = 0xFFFFFFFF; }));
    CHECK(refused_header([](PairEntry* entry) { entry->in_batch = 1; }));
    CHECK(refused_header([](PairEntry* entry) { entry->in_batch = 2; }));
    CHECK(refused_header([](PairEntry* entry) { entry->items_at = 0; }));
    CHECK(refused_header([](PairEntry* entry) { entry->ends_at += 4096; }));
    CHECK(refused_header([](PairEntry* entry) { ++entry->num_masked; }));
    if (pairs.num_masked < 2) continue;
    CHECK(refused(pairs.masked_at / 4 + pairs.num_masked - 1, 30));
    CHECK(refused(pairs.masked_at / 4 + 1, good[pairs.masked_at / 4]));
  }
}

TEST_CASE("an indptr that falls and a source beyond the block are refused, in shared rows, too") {
  for (const Expansion expansion : {Expansion::kAll, Expansion::kNew}) {
    SamplerOptions options{.fanouts = {4, 6}, .weights = EdgeWeights::kNone};
    options.expansion = expansion;
    const Words good = WordsOf(options, false, 7);
    const RecordTables tables = OwnTables(std::as_bytes(std::span(good)));
    CHECK((tables.header.shares_rows != 0) == (expansion == Expansion::kNew));
    const auto refused = [&good](uint64_t at, uint32_t value) {
      Words words = good;
      words[at] = value;
      const Status status = OpenRecord(std::as_bytes(std::span(words))).status();
      return status.code() == Code::kShmCorrupted;
    };
    const uint64_t nodes_at = tables.nodes[0].nodes_at / 4;
    CHECK_FALSE(refused(nodes_at, good[nodes_at]));
    for (uint32_t hop = 0; hop < 2; ++hop) {
      const BlockEntry& block = tables.blocks[hop];
      const uint64_t src = block.src_at / 4;
      // The last row and edge of this block: those of the next one come after, where rows are
      // shared.
      CHECK(refused(block.indptr_at / 4 + block.num_dst - 1, block.num_edges + 1));
      CHECK(refused(block.indptr_at / 4 + 1, 0xFFFFFFFF));
      CHECK(refused(src + block.num_edges - 1, block.num_src));
      CHECK(refused(src, 0xFFFFFFFF));
      CHECK_FALSE(refused(src + block.num_edges - 1, block.num_src - 1));
    }
  }
}

}  // namespace gnnd
