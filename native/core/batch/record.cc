#include "core/batch/record.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/check.h"
#include "core/batch/layout.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxEpoch = 0xFFFFFF;
constexpr uint64_t kTablesAt = offsetof(RecordHeader, blocks);

Status Corrupted(const std::string& what) { return Status(Code::kShmCorrupted, "record: " + what); }

Status CorruptedBlock(uint32_t index, const std::string& what) {
  return Corrupted("block " + std::to_string(index) + ": " + what);
}

Status CorruptedPairs(const std::string& what) { return Corrupted("pairs: " + what); }

Status CorruptedNodes(uint32_t type, const std::string& what) {
  return Corrupted("nodes of type " + std::to_string(type) + ": " + what);
}

const uint32_t* WordsAt(const std::byte* base, uint64_t at) {
  return reinterpret_cast<const uint32_t*>(base + at);
}

// Calls visit(at, elements, name) for every section in the order in which they lie; stops at the
// first error that one returns, which gets the section's name.
template <typename Visit>
Status VisitSections(const RecordHeader& header, const Visit& visit) {
  for (uint32_t t = 0; t < header.num_node_types; ++t) {
    const NodeEntry& list = header.nodes[t];
    if (!visit(list.nodes_at, list.num_nodes)) return CorruptedNodes(t, "nodes_at");
  }
  const PairEntry& pairs = header.pairs;
  if (pairs.ends_at != 0 && !visit(pairs.ends_at, uint64_t{2} * pairs.num_pairs)) {
    return CorruptedPairs("ends_at");
  }
  if (pairs.items_at != 0 && !visit(pairs.items_at, pairs.num_pairs)) {
    return CorruptedPairs("items_at");
  }
  if (pairs.negatives_at != 0 &&
      !visit(pairs.negatives_at, uint64_t{pairs.num_pairs} * pairs.per_pair)) {
    return CorruptedPairs("negatives_at");
  }
  if (pairs.masked_at != 0 && !visit(pairs.masked_at, pairs.num_masked)) {
    return CorruptedPairs("masked_at");
  }
  // Shared sections are as long as the last block needs.
  for (uint32_t b = header.shares_rows() ? header.num_blocks - 1 : 0; b < header.num_blocks; ++b) {
    const BlockEntry& block = header.blocks[b];
    if (!visit(block.indptr_at, uint64_t{block.num_dst} + 1)) return CorruptedBlock(b, "indptr_at");
    if (!visit(block.src_at, block.num_edges)) return CorruptedBlock(b, "src_at");
    if (block.weight_at != 0 && !visit(block.weight_at, block.num_edges)) {
      return CorruptedBlock(b, "weight_at");
    }
    if (block.self_weight_at != 0 && !visit(block.self_weight_at, block.num_dst)) {
      return CorruptedBlock(b, "self_weight_at");
    }
  }
  for (uint32_t t = 0; t < header.num_node_types; ++t) {
    const NodeEntry& list = header.nodes[t];
    if (list.ranks_at != 0 && !visit(list.ranks_at, list.num_nodes)) {
      return CorruptedNodes(t, "ranks_at");
    }
  }
  return Status::Ok();
}

Status CheckHeader(const RecordHeader& header) {
  if (header.magic != kRecordMagic) return Corrupted("wrong magic");
  if (header.version != kRecordVersion) {
    return Corrupted("version " + std::to_string(header.version));
  }
  const bool rows = header.kind == static_cast<uint32_t>(SampleKind::kRows);
  if (!rows && header.kind != static_cast<uint32_t>(SampleKind::kBlocks)) {
    return Corrupted("unknown kind");
  }
  if (header.epoch > kMaxEpoch) return Corrupted("epoch needs more than 24 bits");
  if (header.num_node_types == 0 || header.num_node_types > kMaxNodeTypes) {
    return Corrupted("number of node types");
  }
  if (header.num_blocks > kMaxBlocks || (header.num_blocks == 0) != rows) {
    return Corrupted("number of blocks");
  }
  if (header.reserved != 0) return Corrupted("a reserved field is set");
  uint64_t seeds = 0;
  for (uint32_t t = 0; t < header.num_node_types; ++t) {
    const NodeEntry& list = header.nodes[t];
    if (list.id_bytes != kRecordIdBytes) return CorruptedNodes(t, "width of ids");
    if (list.reserved != 0) return CorruptedNodes(t, "a reserved field is set");
    if (list.num_seeds > list.num_nodes) return CorruptedNodes(t, "more seeds than nodes");
    if (rows && list.num_seeds != list.num_nodes) return CorruptedNodes(t, "number of rows");
    seeds += list.num_seeds;
  }
  if (seeds == 0) return Corrupted("no seeds");
  return Status::Ok();
}

// Follows how many nodes of each type are known, block after block.
class Chain {
 public:
  explicit Chain(const RecordHeader& header) : header_(header) {
    for (uint32_t t = 0; t < header.num_node_types; ++t) found_[t] = header.nodes[t].num_seeds;
    at_hop_ = found_;
  }

  Status Add(uint32_t index) {
    const BlockEntry& block = header_.blocks[index];
    if (block.dst_type >= header_.num_node_types || block.src_type >= header_.num_node_types) {
      return CorruptedBlock(index, "type of nodes");
    }
    GNND_TRY(AddHop(index));
    if (block.num_dst != at_hop_[block.dst_type]) {
      return CorruptedBlock(index, "number of destinations");
    }
    uint32_t& found = found_[block.src_type];
    if (block.num_src < found || block.num_src - found > block.num_edges) {
      return CorruptedBlock(index, "number of sources");
    }
    found = block.num_src;
    return Status::Ok();
  }

  uint32_t found(uint32_t type) const { return found_[type]; }

 private:
  // Checks that hops follow each other, and relations within a hop.
  Status AddHop(uint32_t index) {
    const BlockEntry& block = header_.blocks[index];
    if (index == 0) return block.hop == 0 ? Status::Ok() : CorruptedBlock(index, "hop");
    const BlockEntry& before = header_.blocks[index - 1];
    if (block.hop == before.hop) {
      return block.relation > before.relation ? Status::Ok() : CorruptedBlock(index, "relation");
    }
    if (block.hop != before.hop + 1 || block.hop >= kMaxHops) return CorruptedBlock(index, "hop");
    at_hop_ = found_;
    return Status::Ok();
  }

  const RecordHeader& header_;
  std::array<uint32_t, kMaxNodeTypes> at_hop_{};  // nodes known before the hop
  std::array<uint32_t, kMaxNodeTypes> found_{};
};

Status CheckBlock(const RecordHeader& header, uint32_t index) {
  const BlockEntry& block = header.blocks[index];
  const BlockEntry& first = header.blocks[0];
  if (block.id_bytes != kRecordIdBytes) return CorruptedBlock(index, "width of ids");
  const bool weighted = block.weight_at != 0;
  const bool self_weighted = block.self_weight_at != 0;
  if (weighted != (first.weight_at != 0) || self_weighted != (first.self_weight_at != 0)) {
    return CorruptedBlock(index, "edge weights in part of the record only");
  }
  if (self_weighted && !weighted) return CorruptedBlock(index, "self weights without edge weights");
  if (!header.shares_rows()) return Status::Ok();
  if (block.indptr_at != first.indptr_at || block.src_at != first.src_at ||
      block.weight_at != first.weight_at || block.self_weight_at != first.self_weight_at ||
      block.hop != index || block.relation != first.relation || block.dst_type != first.dst_type ||
      block.src_type != first.src_type) {
    return CorruptedBlock(index, "rows are shared in part of the record only");
  }
  if (index > 0 && block.num_edges < header.blocks[index - 1].num_edges) {
    return CorruptedBlock(index, "fewer edges than the block before, whose rows it has");
  }
  return Status::Ok();
}

// The pairs' numbers; their rows are checked once the sections are known to lie in the slot.
Status CheckPairs(const RecordHeader& header) {
  const PairEntry& pairs = header.pairs;
  if (pairs.num_pairs == 0) {
    const PairEntry none{};
    if (std::memcmp(&pairs, &none, sizeof none) != 0) return CorruptedPairs("of no pairs");
    return Status::Ok();
  }
  if (pairs.ends_at == 0 || pairs.items_at == 0) return CorruptedPairs("ends or items are missing");
  if (pairs.in_batch > 1) return CorruptedPairs("in_batch");
  const uint64_t negatives = uint64_t{pairs.num_pairs} * pairs.per_pair;
  if (negatives > std::numeric_limits<uint32_t>::max()) return CorruptedPairs("per_pair");
  const bool listed = pairs.in_batch == 0 && negatives > 0;
  if (listed != (pairs.negatives_at != 0)) return CorruptedPairs("negatives_at");
  if (pairs.in_batch != 0 && pairs.per_pair != pairs.num_pairs) return CorruptedPairs("per_pair");
  if (pairs.num_masked > negatives) return CorruptedPairs("num_masked");
  if ((pairs.num_masked > 0) != (pairs.masked_at != 0)) return CorruptedPairs("masked_at");
  return Status::Ok();
}

// Checks that every section starts on a boundary after its predecessor and lies within the slot,
// and that both sums are right.
Status CheckSections(const RecordHeader& header, uint64_t slot_bytes) {
  uint64_t end = header.bytes();
  uint64_t payload = header.bytes();
  GNND_TRY(VisitSections(header, [&](uint64_t at, uint64_t elements) {
    const uint64_t bytes = elements * sizeof(uint32_t);  // elements <= 2^32
    if (at % RecordLayout::kSectionAlignment != 0 || at < end) return false;
    if (at > slot_bytes || bytes > slot_bytes - at) return false;
    end = at + bytes;
    payload += bytes;
    return true;
  }));
  if (header.payload_bytes != payload) return Corrupted("payload_bytes");
  if (header.extent_bytes != end) return Corrupted("extent_bytes");
  return Status::Ok();
}

Status CheckTables(const RecordHeader& header, uint64_t slot_bytes) {
  GNND_TRY(CheckPairs(header));
  Chain chain(header);
  for (uint32_t b = 0; b < header.num_blocks; ++b) {
    GNND_TRY(CheckBlock(header, b));
    GNND_TRY(chain.Add(b));
  }
  for (uint32_t t = 0; t < header.num_node_types; ++t) {
    if (header.nodes[t].num_nodes != chain.found(t)) return CorruptedNodes(t, "number of nodes");
  }
  return CheckSections(header, slot_bytes);
}

// Checks that no element of indptr or src leads out of the record. A linear pass without branches;
// with shared rows, it covers only those that the previous block lacks.
Status CheckRows(const RecordHeader& header, uint32_t index, const std::byte* base) {
  const BlockEntry& block = header.blocks[index];
  const uint32_t* indptr = WordsAt(base, block.indptr_at);
  if (indptr[0] != 0 || indptr[block.num_dst] != block.num_edges) {
    return CorruptedBlock(index, "indptr does not run from 0 to the number of edges");
  }
  const bool prefix = header.shares_rows() && index > 0;
  const uint32_t first_row = prefix ? header.blocks[index - 1].num_dst : 0;
  const uint32_t first_edge = prefix ? header.blocks[index - 1].num_edges : 0;
  uint32_t falls = 0;
  for (uint32_t row = first_row; row < block.num_dst; ++row) {
    falls |= indptr[row] > indptr[row + 1] ? 1 : 0;
  }
  if (falls != 0) return CorruptedBlock(index, "indptr is not monotone");
  const uint32_t* src = WordsAt(base, block.src_at);
  uint32_t largest = 0;
  for (uint32_t e = first_edge; e < block.num_edges; ++e) largest = std::max(largest, src[e]);
  if (largest >= block.num_src) return CorruptedBlock(index, "a source beyond num_src");
  return Status::Ok();
}

uint32_t LargestOf(const uint32_t* words, uint64_t count) {
  uint32_t largest = 0;
  for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, words[i]);
  return largest;
}

// Checks that no row of a pair leads out of the seeds, and no masked position out of the negatives.
Status CheckPairRows(const RecordHeader& header, const std::byte* base) {
  const PairEntry& pairs = header.pairs;
  if (pairs.num_pairs == 0) return Status::Ok();
  const uint32_t num_seeds = header.nodes[0].num_seeds;
  const uint64_t negatives = uint64_t{pairs.num_pairs} * pairs.per_pair;
  if (LargestOf(WordsAt(base, pairs.ends_at), uint64_t{2} * pairs.num_pairs) >= num_seeds) {
    return CorruptedPairs("an end beyond the seeds");
  }
  if (pairs.negatives_at != 0 &&
      LargestOf(WordsAt(base, pairs.negatives_at), negatives) >= num_seeds) {
    return CorruptedPairs("a negative beyond the seeds");
  }
  if (pairs.masked_at == 0) return Status::Ok();
  const uint32_t* masked = WordsAt(base, pairs.masked_at);
  uint32_t falls = 0;
  for (uint32_t i = 1; i < pairs.num_masked; ++i) falls |= masked[i - 1] >= masked[i] ? 1 : 0;
  if (falls != 0 || masked[pairs.num_masked - 1] >= negatives) {
    return CorruptedPairs("masked positions do not rise within the negatives");
  }
  return Status::Ok();
}

// The checks that only `deep` makes: ids are unique, new nodes stand in order of first occurrence.
Status CheckOrder(const Sample& sample) {
  std::vector<uint32_t> seen;
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    const std::span<const uint32_t> nodes = sample.nodes(t);
    const std::unordered_set<uint32_t> ids(nodes.begin(), nodes.end());
    if (ids.size() != nodes.size()) return CorruptedNodes(t, "a node is listed twice");
    seen.push_back(sample.num_seeds(t));
  }
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    uint32_t& known = seen[block.src_type];
    for (const uint32_t source : block.src) {
      if (source > known) return CorruptedBlock(b, "sources are not in order of first occurrence");
      if (source == known) ++known;
    }
    if (known != block.num_src) return CorruptedBlock(b, "not every source is used");
  }
  return Status::Ok();
}

BlockView BlockOf(const BlockEntry& entry, const std::byte* base) {
  BlockView block;
  block.num_dst = entry.num_dst;
  block.num_src = entry.num_src;
  block.indptr = {WordsAt(base, entry.indptr_at), size_t{entry.num_dst} + 1};
  block.src = {WordsAt(base, entry.src_at), entry.num_edges};
  if (entry.weight_at != 0) {
    block.weight = {reinterpret_cast<const float*>(base + entry.weight_at), entry.num_edges};
  }
  if (entry.self_weight_at != 0) {
    block.self_weight = {reinterpret_cast<const float*>(base + entry.self_weight_at),
                         entry.num_dst};
  }
  block.hop = entry.hop;
  block.relation = entry.relation;
  block.dst_type = entry.dst_type;
  block.src_type = entry.src_type;
  return block;
}

PairsView PairsOf(const PairEntry& entry, const std::byte* base) {
  PairsView pairs;
  if (entry.num_pairs == 0) return pairs;
  const uint32_t* ends = WordsAt(base, entry.ends_at);
  pairs.source = {ends, entry.num_pairs};
  pairs.destination = {ends + entry.num_pairs, entry.num_pairs};
  pairs.items = {WordsAt(base, entry.items_at), entry.num_pairs};
  pairs.per_pair = entry.per_pair;
  pairs.in_batch = entry.in_batch != 0;
  if (pairs.in_batch) pairs.negatives = pairs.destination;
  if (entry.negatives_at != 0) {
    pairs.negatives = {WordsAt(base, entry.negatives_at), size_t{entry.num_pairs} * entry.per_pair};
  }
  if (entry.masked_at != 0) pairs.masked = {WordsAt(base, entry.masked_at), entry.num_masked};
  return pairs;
}

Sample SampleOf(const RecordHeader& header, const std::byte* base) {
  Sample sample(static_cast<SampleKind>(header.kind),
                {header.random_seed, header.epoch, header.batch});
  for (uint32_t t = 0; t < header.num_node_types; ++t) {
    const NodeEntry& list = header.nodes[t];
    std::span<const uint32_t> ranks;
    if (list.ranks_at != 0) ranks = {WordsAt(base, list.ranks_at), list.num_nodes};
    sample.AddNodes({WordsAt(base, list.nodes_at), list.num_nodes}, list.num_seeds, ranks);
  }
  for (uint32_t b = 0; b < header.num_blocks; ++b) sample.AddBlock(BlockOf(header.blocks[b], base));
  sample.SetPairs(PairsOf(header.pairs, base));
  return sample;
}

}  // namespace

RecordHeader RecordHeaderOf(SampleKind kind, const BatchKey& key) {
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.version = kRecordVersion;
  header.kind = static_cast<uint32_t>(kind);
  header.random_seed = key.random_seed;
  header.epoch = key.epoch;
  header.batch = key.batch;
  return header;
}

void WriteHeader(RecordHeader* header, std::span<std::byte> slot) {
  header->payload_bytes = header->extent_bytes = header->bytes();
  const Status visited = VisitSections(*header, [header](uint64_t at, uint64_t elements) {
    const uint64_t bytes = elements * sizeof(uint32_t);
    header->payload_bytes += bytes;
    header->extent_bytes = at + bytes;
    return true;
  });
  GNND_CHECK(visited.ok() && header->extent_bytes <= slot.size());
  std::memmove(slot.data(), header, header->bytes());  // it may be the slot's own
}

Result<Sample> OpenRecord(std::span<const std::byte> slot, bool deep) {
  if (slot.size() < kTablesAt) return Corrupted("the slot is smaller than a header");
  if (reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) != 0) {
    return Corrupted("the slot is not aligned");
  }
  const auto& header = *reinterpret_cast<const RecordHeader*>(slot.data());
  GNND_TRY(CheckHeader(header));
  if (slot.size() < header.bytes()) return Corrupted("the slot is smaller than its tables");
  GNND_TRY(CheckTables(header, slot.size()));
  // The sections were checked to lie within the slot.
  for (uint32_t b = 0; b < header.num_blocks; ++b) GNND_TRY(CheckRows(header, b, slot.data()));
  GNND_TRY(CheckPairRows(header, slot.data()));
  const Sample sample = SampleOf(header, slot.data());
  if (deep) GNND_TRY(CheckOrder(sample));
  return sample;
}

RecordHeader& OwnHeader(std::span<std::byte> slot) {
  return *reinterpret_cast<RecordHeader*>(slot.data());
}

Sample OwnSample(std::span<std::byte> slot) { return SampleOf(OwnHeader(slot), slot.data()); }

}  // namespace gnnd
