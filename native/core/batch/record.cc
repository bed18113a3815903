#include "core/batch/record.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/check.h"
#include "core/base/mapping.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxEpoch = 0xFFFFFF;

// A record's header and tables where they lie.
struct TablesView {
  const RecordHeader& header;
  std::span<const NodeEntry> nodes;
  std::span<const BlockEntry> blocks;

  // Those of the record in `slot`, whose numbers of entries are right.
  static TablesView In(std::span<const std::byte> slot) {
    const auto& header = *reinterpret_cast<const RecordHeader*>(slot.data());
    const auto* nodes = reinterpret_cast<const NodeEntry*>(&header + 1);
    const auto* blocks = reinterpret_cast<const BlockEntry*>(nodes + header.num_node_types);
    return {header, {nodes, header.num_node_types}, {blocks, header.num_blocks}};
  }
  uint64_t bytes() const { return HeaderBytes(header.num_node_types, header.num_blocks); }
  // Whether block `b` has only the first rows of its sections, which its relation's block in the
  // last hop has whole.
  bool IsPrefix(uint32_t b) const {
    return header.shares_rows != 0 && blocks[b].hop != blocks.back().hop;
  }
};

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
Status VisitSections(const TablesView& tables, const Visit& visit) {
  for (uint32_t t = 0; t < tables.nodes.size(); ++t) {
    const NodeEntry& list = tables.nodes[t];
    if (!visit(list.nodes_at, list.num_nodes)) return CorruptedNodes(t, "nodes_at");
  }
  const PairEntry& pairs = tables.header.pairs;
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
  // Shared sections are as long as the last hop needs.
  for (uint32_t b = 0; b < tables.blocks.size(); ++b) {
    if (tables.IsPrefix(b)) continue;
    const BlockEntry& block = tables.blocks[b];
    if (!visit(block.indptr_at, uint64_t{block.num_dst} + 1)) return CorruptedBlock(b, "indptr_at");
    if (!visit(block.src_at, block.num_edges)) return CorruptedBlock(b, "src_at");
    if (block.weight_at != 0 && !visit(block.weight_at, block.num_edges)) {
      return CorruptedBlock(b, "weight_at");
    }
    if (block.self_weight_at != 0 && !visit(block.self_weight_at, block.num_dst)) {
      return CorruptedBlock(b, "self_weight_at");
    }
  }
  for (uint32_t t = 0; t < tables.nodes.size(); ++t) {
    const NodeEntry& list = tables.nodes[t];
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
  if (header.shares_rows > 1 || (rows && header.shares_rows != 0)) return Corrupted("shares_rows");
  return Status::Ok();
}

Status CheckNodes(const TablesView& tables) {
  const bool rows = tables.blocks.empty();
  uint64_t seeds = 0;
  for (uint32_t t = 0; t < tables.nodes.size(); ++t) {
    const NodeEntry& list = tables.nodes[t];
    if (list.id_bytes != kRecordIdBytes) return CorruptedNodes(t, "width of ids");
    if (list.reserved != 0) return CorruptedNodes(t, "a reserved field is set");
    if (list.num_seeds > list.num_nodes) return CorruptedNodes(t, "more seeds than nodes");
    if (rows && list.num_seeds != list.num_nodes) return CorruptedNodes(t, "number of rows");
    seeds += list.num_seeds;
  }
  if (seeds == 0) return Corrupted("no seeds");
  return Status::Ok();
}

// Follows how many nodes of each type are known, block after block, and which block of its relation
// came before.
class Chain {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  explicit Chain(const TablesView& tables) : tables_(tables) {
    for (uint32_t t = 0; t < tables.nodes.size(); ++t) found_[t] = tables.nodes[t].num_seeds;
    at_hop_ = found_;
    last_.fill(kNone);
  }

  Status Add(uint32_t index) {
    const BlockEntry& block = tables_.blocks[index];
    const size_t types = tables_.nodes.size();
    if (block.dst_type >= types || block.src_type >= types) {
      return CorruptedBlock(index, "type of nodes");
    }
    if (block.relation >= kMaxRelations) return CorruptedBlock(index, "relation");
    GNND_TRY(AddHop(index));
    GNND_TRY(AddRelation(index));
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
  // The last block of the relation so far, or kNone.
  uint32_t Last(uint32_t relation) const { return last_[relation]; }

 private:
  // Checks that hops follow each other, and relations within a hop.
  Status AddHop(uint32_t index) {
    const BlockEntry& block = tables_.blocks[index];
    if (index == 0) return block.hop == 0 ? Status::Ok() : CorruptedBlock(index, "hop");
    const BlockEntry& before = tables_.blocks[index - 1];
    if (block.hop == before.hop) {
      return block.relation > before.relation ? Status::Ok() : CorruptedBlock(index, "relation");
    }
    if (block.hop != before.hop + 1 || block.hop >= kMaxHops) return CorruptedBlock(index, "hop");
    at_hop_ = found_;
    return Status::Ok();
  }

  // Checks that a relation has the same types in all its blocks and, where these share their rows,
  // a block in each hop from its first one on.
  Status AddRelation(uint32_t index) {
    const BlockEntry& block = tables_.blocks[index];
    const uint32_t last = last_[block.relation];
    last_[block.relation] = index;
    if (last == kNone) return Status::Ok();
    const BlockEntry& before = tables_.blocks[last];
    if (tables_.header.shares_rows != 0 && before.hop + 1 != block.hop) {
      return CorruptedBlock(index, "its relation left a hop out");
    }
    if (before.dst_type != block.dst_type || before.src_type != block.src_type) {
      return CorruptedBlock(index, "types of its relation");
    }
    return Status::Ok();
  }

  const TablesView& tables_;
  std::array<uint32_t, kMaxNodeTypes> at_hop_{};  // nodes known before the hop
  std::array<uint32_t, kMaxNodeTypes> found_{};
  std::array<uint32_t, kMaxRelations> last_;
};

// `before` is the block of its relation in the hop before, or Chain::kNone.
Status CheckBlock(const TablesView& tables, uint32_t index, uint32_t before) {
  const BlockEntry& block = tables.blocks[index];
  const BlockEntry& first = tables.blocks[0];
  if (block.id_bytes != kRecordIdBytes) return CorruptedBlock(index, "width of ids");
  const bool weighted = block.weight_at != 0;
  const bool self_weighted = block.self_weight_at != 0;
  if (weighted != (first.weight_at != 0) || self_weighted != (first.self_weight_at != 0)) {
    return CorruptedBlock(index, "edge weights in part of the record only");
  }
  if (self_weighted && !weighted) return CorruptedBlock(index, "self weights without edge weights");
  if (tables.header.shares_rows == 0 || before == Chain::kNone) return Status::Ok();
  const BlockEntry& prefix = tables.blocks[before];
  if (block.indptr_at != prefix.indptr_at || block.src_at != prefix.src_at ||
      block.weight_at != prefix.weight_at || block.self_weight_at != prefix.self_weight_at) {
    return CorruptedBlock(index, "rows are shared in part of the record only");
  }
  if (block.num_edges < prefix.num_edges) {
    return CorruptedBlock(index, "fewer edges than the block before, whose rows it has");
  }
  return Status::Ok();
}

// The pairs' numbers; their rows are checked once the sections are known to lie in the slot.
Status CheckPairs(const PairEntry& pairs) {
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
Status CheckSections(const TablesView& tables, uint64_t slot_bytes) {
  uint64_t end = tables.bytes();
  uint64_t payload = tables.bytes();
  GNND_TRY(VisitSections(tables, [&](uint64_t at, uint64_t elements) {
    const uint64_t bytes = elements * sizeof(uint32_t);  // elements <= 2^32
    if (at % kPageBytes != 0 || at < end) return false;
    if (at > slot_bytes || bytes > slot_bytes - at) return false;
    end = at + bytes;
    payload += bytes;
    return true;
  }));
  if (tables.header.payload_bytes != payload) return Corrupted("payload_bytes");
  if (tables.header.extent_bytes != end) return Corrupted("extent_bytes");
  return Status::Ok();
}

Status CheckTables(const TablesView& tables, uint64_t slot_bytes) {
  GNND_TRY(CheckNodes(tables));
  GNND_TRY(CheckPairs(tables.header.pairs));
  Chain chain(tables);
  const auto num_blocks = static_cast<uint32_t>(tables.blocks.size());
  for (uint32_t b = 0; b < num_blocks; ++b) {
    const uint32_t relation = tables.blocks[b].relation;
    const uint32_t before = relation < kMaxRelations ? chain.Last(relation) : Chain::kNone;
    GNND_TRY(chain.Add(b));
    GNND_TRY(CheckBlock(tables, b, before));
  }
  for (uint32_t b = 0; b < num_blocks && tables.header.shares_rows != 0; ++b) {
    const uint32_t last = chain.Last(tables.blocks[b].relation);
    // The last hop's blocks have the sections whole.
    if (tables.blocks[last].hop != tables.blocks.back().hop) {
      return CorruptedBlock(last, "its relation ends before the last hop");
    }
  }
  for (uint32_t t = 0; t < tables.nodes.size(); ++t) {
    if (tables.nodes[t].num_nodes != chain.found(t)) return CorruptedNodes(t, "number of nodes");
  }
  return CheckSections(tables, slot_bytes);
}

// Checks that no element of indptr or src leads out of the record. A linear pass without branches;
// with shared rows, it covers only those that `prefix`, the block of the hop before, lacks.
Status CheckRows(const TablesView& tables, uint32_t index, const BlockEntry* prefix,
                 const std::byte* base) {
  const BlockEntry& block = tables.blocks[index];
  const uint32_t* indptr = WordsAt(base, block.indptr_at);
  if (indptr[0] != 0 || indptr[block.num_dst] != block.num_edges) {
    return CorruptedBlock(index, "indptr does not run from 0 to the number of edges");
  }
  const uint32_t first_row = prefix == nullptr ? 0 : prefix->num_dst;
  const uint32_t first_edge = prefix == nullptr ? 0 : prefix->num_edges;
  uint32_t falls = 0;
  for (uint32_t row = first_row; row < block.num_dst; ++row) {
    falls |= indptr[row] > indptr[row + 1] ? 1 : 0;
  }
  if (falls != 0) return CorruptedBlock(index, "indptr is not monotone");
  const uint32_t* src = WordsAt(base, block.src_at);
  uint32_t largest = 0;
  for (uint32_t e = first_edge; e < block.num_edges; ++e) largest = std::max(largest, src[e]);
  if (block.num_edges > first_edge && largest >= block.num_src) {
    return CorruptedBlock(index, "a source beyond num_src");
  }
  return Status::Ok();
}

Status CheckAllRows(const TablesView& tables, const std::byte* base) {
  std::array<const BlockEntry*, kMaxRelations> last{};
  for (uint32_t b = 0; b < tables.blocks.size(); ++b) {
    const BlockEntry& block = tables.blocks[b];
    const BlockEntry*& prefix = last[block.relation];
    GNND_TRY(CheckRows(tables, b, tables.header.shares_rows == 0 ? nullptr : prefix, base));
    prefix = &block;
  }
  return Status::Ok();
}

uint32_t LargestOf(const uint32_t* words, uint64_t count) {
  uint32_t largest = 0;
  for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, words[i]);
  return largest;
}

// Checks that no row of a pair leads out of the seeds, and no masked position out of the negatives.
Status CheckPairRows(const TablesView& tables, const std::byte* base) {
  const PairEntry& pairs = tables.header.pairs;
  if (pairs.num_pairs == 0) return Status::Ok();
  const uint32_t num_seeds = tables.nodes[0].num_seeds;
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

Sample SampleOf(const TablesView& tables, const std::byte* base) {
  const RecordHeader& header = tables.header;
  Sample sample(static_cast<SampleKind>(header.kind),
                {header.random_seed, header.epoch, header.batch});
  sample.SetSharesRows(header.shares_rows != 0);
  for (const NodeEntry& list : tables.nodes) {
    std::span<const uint32_t> ranks;
    if (list.ranks_at != 0) ranks = {WordsAt(base, list.ranks_at), list.num_nodes};
    sample.AddNodes({WordsAt(base, list.nodes_at), list.num_nodes}, list.num_seeds, ranks);
  }
  for (const BlockEntry& block : tables.blocks) sample.AddBlock(BlockOf(block, base));
  sample.SetPairs(PairsOf(header.pairs, base));
  return sample;
}

}  // namespace

void RecordTables::Begin(SampleKind kind, const BatchKey& key) {
  header = {};
  header.magic = kRecordMagic;
  header.version = kRecordVersion;
  header.kind = static_cast<uint32_t>(kind);
  header.random_seed = key.random_seed;
  header.epoch = key.epoch;
  header.batch = key.batch;
  nodes.clear();
  blocks.clear();
}

void WriteTables(RecordTables* tables, std::span<std::byte> slot) {
  RecordHeader& header = tables->header;
  header.num_node_types = static_cast<uint32_t>(tables->nodes.size());
  header.num_blocks = static_cast<uint32_t>(tables->blocks.size());
  header.payload_bytes = header.extent_bytes = tables->bytes();
  const TablesView view{header, tables->nodes, tables->blocks};
  const Status visited = VisitSections(view, [&header](uint64_t at, uint64_t elements) {
    const uint64_t bytes = elements * sizeof(uint32_t);
    header.payload_bytes += bytes;
    header.extent_bytes = at + bytes;
    return true;
  });
  GNND_CHECK(visited.ok() && header.extent_bytes <= slot.size());
  std::byte* at = slot.data();
  const auto write = [&at](std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  write(std::as_bytes(std::span(&header, 1)));
  write(std::as_bytes(std::span(tables->nodes)));
  write(std::as_bytes(std::span(tables->blocks)));
}

Result<Sample> OpenRecord(std::span<const std::byte> slot, bool deep) {
  if (slot.size() < sizeof(RecordHeader)) return Corrupted("the slot is smaller than a header");
  if (reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) != 0) {
    return Corrupted("the slot is not aligned");
  }
  GNND_TRY(CheckHeader(*reinterpret_cast<const RecordHeader*>(slot.data())));
  const TablesView tables = TablesView::In(slot);
  if (slot.size() < tables.bytes()) return Corrupted("the slot is smaller than its tables");
  GNND_TRY(CheckTables(tables, slot.size()));
  // The sections were checked to lie within the slot.
  GNND_TRY(CheckAllRows(tables, slot.data()));
  GNND_TRY(CheckPairRows(tables, slot.data()));
  Sample sample = SampleOf(tables, slot.data());
  if (deep) GNND_TRY(CheckOrder(sample));
  return sample;
}

const RecordHeader& OwnHeader(std::span<const std::byte> slot) {
  return TablesView::In(slot).header;
}

RecordTables OwnTables(std::span<const std::byte> slot) {
  const TablesView tables = TablesView::In(slot);
  return {tables.header,
          {tables.nodes.begin(), tables.nodes.end()},
          {tables.blocks.begin(), tables.blocks.end()}};
}

Sample OwnSample(std::span<const std::byte> slot) {
  return SampleOf(TablesView::In(slot), slot.data());
}

}  // namespace gnnd
