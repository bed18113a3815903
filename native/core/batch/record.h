#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"
#include "core/draw/batch_key.h"

// A record is a sample as it lies in a queue slot (docs/formats/record.md draws it). This header is
// for writers of records and for the one function that reads them; all other code works with the
// Sample that this function returns.
//
// The slot is sparse virtual memory: every section has a fixed place, computed once per job from
// bounds, and a record touches only the pages that it needs. Byte offsets count from the record's
// start.
//
// If each hop expands only new nodes (Expansion::kNew), a node has one row for each relation in the
// whole sample. All blocks of a relation then share the sections of one compressed matrix: that of
// hop h is its first num_dst rows and their num_edges edges. A reader that goes block by block need
// not care.

namespace gnnd {

inline constexpr uint64_t kRecordMagic = 0x31434552444E4E47;  // "GNNDREC1", little-endian
inline constexpr uint32_t kRecordVersion = 2;
inline constexpr uint32_t kRecordIdBytes = 4;  // the only width of ids so far

// The nodes of one type.
struct NodeEntry {
  uint32_t id_bytes;  // bytes of a global id
  uint32_t num_nodes;
  uint32_t num_seeds;
  uint32_t reserved;
  uint64_t nodes_at;  // uint32[num_nodes], global ids
  uint64_t ranks_at;  // uint32[num_nodes], hot rank of each node, 0xFFFFFFFF = in no cache; 0 = the
                      // record has no ranks
};
static_assert(sizeof(NodeEntry) == 32);

struct BlockEntry {
  uint32_t hop;
  uint32_t relation;
  uint32_t dst_type;
  uint32_t src_type;
  uint32_t num_dst;
  uint32_t num_src;
  uint32_t num_edges;
  uint32_t id_bytes;        // bytes of a local id and of an offset in indptr
  uint64_t indptr_at;       // uint32[num_dst + 1]
  uint64_t src_at;          // uint32[num_edges], batch-local source rows
  uint64_t weight_at;       // float[num_edges], 0 = the record has no edge weights
  uint64_t self_weight_at;  // float[num_dst], weight of a destination's own row (GCN self-loop), 0
                            // = none; only beside edge weights
};
static_assert(sizeof(BlockEntry) == 64);

// The pairs of a batch whose items are links; all 0 for a batch of nodes. Rows are below num_seeds
// of nodes[0].
struct PairEntry {
  uint32_t num_pairs;
  uint32_t per_pair;  // negatives a pair; in-batch: num_pairs
  uint32_t num_masked;
  uint32_t in_batch;      // 1: negatives are the destinations, and negatives_at is 0
  uint64_t ends_at;       // uint32[2 * num_pairs], rows of the sources, then of the destinations
  uint64_t items_at;      // uint32[num_pairs], index of each pair among the training links
  uint64_t negatives_at;  // uint32[num_pairs * per_pair], rows; 0 = none
  uint64_t masked_at;     // uint32[num_masked], rising, below num_pairs * per_pair; 0 = none
};
static_assert(sizeof(PairEntry) == 48);

// A record begins with it; the tables follow without a gap: NodeEntry[num_node_types], then
// BlockEntry[num_blocks]. The first section lies on a page behind them.
struct RecordHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t kind;  // SampleKind
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;
  uint32_t num_node_types;
  uint32_t num_blocks;
  uint64_t payload_bytes;  // header, tables and all sections; what the queue's byte budget counts
  uint64_t extent_bytes;   // end of the last section; the slot is untouched beyond it
  uint32_t shares_rows;    // 1: the blocks of a relation share their sections; else 0
  uint32_t reserved;
  PairEntry pairs;
};
static_assert(sizeof(RecordHeader) == 112);

// Bytes of a header and its tables.
constexpr uint64_t HeaderBytes(uint32_t num_node_types, uint32_t num_blocks) {
  return sizeof(RecordHeader) + num_node_types * sizeof(NodeEntry) +
         num_blocks * sizeof(BlockEntry);
}

// Header and tables in a writer's own memory.
struct RecordTables {
  RecordHeader header{};
  std::vector<NodeEntry> nodes{};
  std::vector<BlockEntry> blocks{};

  // Begins a record without entries: magic, version, kind and key are set.
  void Begin(SampleKind kind, const BatchKey& key);
  uint64_t bytes() const {
    return HeaderBytes(static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(blocks.size()));
  }
};

// Sets the numbers of entries, payload_bytes and extent_bytes from the tables and writes header and
// tables, which makes the slot a record. Sections that share their place count once.
void WriteTables(RecordTables* tables, std::span<std::byte> slot);

// The sample in a slot. Checks the header, every section against the slot's size, and every element
// of indptr and src, so that users of the sample stay within the record; kShmCorrupted otherwise.
// Node ids are checked by the caller, who knows the graph. With `deep`, also checks order and
// uniqueness (tests).
Result<Sample> OpenRecord(std::span<const std::byte> slot, bool deep = false);

// Header, tables and sample of a record that this process has just written itself, unchecked.
const RecordHeader& OwnHeader(std::span<const std::byte> slot);
RecordTables OwnTables(std::span<const std::byte> slot);
Sample OwnSample(std::span<const std::byte> slot);

}  // namespace gnnd
