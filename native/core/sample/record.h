#pragma once

#include <cstdint>
#include <span>

#include "core/base/status.h"
#include "core/draw/batch_key.h"

// A record is a sample as it lies in a queue slot (docs/formats/record.md draws it).
//
// The slot is sparse virtual memory, so every section has a fixed place, computed once per job from
// bounds; a record touches only the pages it needs. Byte offsets count from the record's start.
// Node ids are global ids; all other ids are batch-local: positions in the node list.
//
// Invariants (checked at every take by RecordView::Open):
//   1. nodes[0 .. num_seeds) are the seeds in batch order; ids are unique;
//   2. block 0 is the hop at the seeds. Its destinations are nodes[0 .. num_dst), its sources
//      nodes[0 .. num_src): destinations come first, then new nodes in order of first occurrence;
//   3. block h+1 has num_dst = block h's num_src (every node so far is expanded at each hop);
//   4. indptr is monotone from 0 to num_edges; src[e] < num_src, in the order drawn.
//
// Where each hop expands only new nodes (Expansion::kNew) a node has one row in the whole sample.
// All blocks then share the sections of one compressed matrix: block h is its first num_dst rows
// and their num_edges edges. A reader that goes block by block need not know.

namespace gnnd {

inline constexpr uint64_t kRecordMagic = 0x31434552444E4E47;  // "GNNDREC1", little-endian
inline constexpr uint32_t kRecordVersion = 2;
inline constexpr uint32_t kMaxHops = 8;

struct BlockHeader {
  uint32_t num_dst;
  uint32_t num_src;
  uint32_t num_edges;
  uint32_t reserved;
  uint64_t indptr_at;       // uint32[num_dst + 1]
  uint64_t src_at;          // uint32[num_edges], batch-local source rows
  uint64_t weight_at;       // float[num_edges], 0 = the record has no edge weights
  uint64_t self_weight_at;  // float[num_dst], weight of a destination's own row (GCN self-loop), 0
                            // = none; only beside edge weights
};
static_assert(sizeof(BlockHeader) == 48);

struct RecordHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t kind;  // RecordKind
  uint64_t random_seed;
  uint32_t epoch;
  uint32_t batch;
  uint32_t num_hops;
  uint32_t num_seeds;
  uint32_t num_nodes;  // all input nodes
  uint32_t reserved;
  uint64_t nodes_at;       // uint32[num_nodes], global ids
  uint64_t payload_bytes;  // bytes written, all sections; what the queue's byte budget counts
  uint64_t extent_bytes;   // end of the last section touched; a slot beyond it is untouched
  uint64_t ranks_at;       // uint32[num_nodes], hot rank of each input node, 0xFFFFFFFF = in no
                           // cache; 0 = the record has no ranks
  uint64_t reserved2[6];
  BlockHeader blocks[kMaxHops];

  // All blocks are prefixes of the last one's rows.
  bool shares_rows() const { return num_hops > 1 && blocks[1].src_at == blocks[0].src_at; }
  // Edges drawn, all hops.
  uint64_t drawn_edges() const {
    uint64_t total = 0;
    for (uint32_t hop = shares_rows() ? num_hops - 1 : 0; hop < num_hops; ++hop) {
      total += blocks[hop].num_edges;
    }
    return total;
  }
};
static_assert(sizeof(RecordHeader) == 128 + kMaxHops * sizeof(BlockHeader));

enum class RecordKind : uint32_t { kBlocks = 1 };

struct BlockView {
  uint32_t num_dst = 0;
  uint32_t num_src = 0;
  std::span<const uint32_t> indptr;    // [num_dst + 1]
  std::span<const uint32_t> src;       // [num_edges]
  std::span<const float> weight;       // [num_edges] or empty
  std::span<const float> self_weight;  // [num_dst] or empty
};

// A checked, read-only look at a record. Borrows the slot's memory.
class RecordView {
 public:
  // Checks the header, every section against the slot's bytes, and every element of indptr and src,
  // so that whoever follows them stays within the record; kShmCorrupted otherwise. Node ids are the
  // reader's to check, who knows the graph. With `deep`, also order and uniqueness (tests).
  static Result<RecordView> Open(std::span<const std::byte> slot, bool deep = false);

  BatchKey key() const { return {header_->random_seed, header_->epoch, header_->batch}; }
  uint32_t num_hops() const { return header_->num_hops; }
  uint32_t num_seeds() const { return header_->num_seeds; }
  std::span<const uint32_t> nodes() const;  // [num_nodes], global ids, seeds first
  std::span<const uint32_t> ranks() const;  // [num_nodes], hot ranks, or empty
  BlockView block(uint32_t hop) const;      // hop 0 is at the seeds
  uint64_t payload_bytes() const { return header_->payload_bytes; }
  uint64_t num_edges() const;  // drawn, all hops

 private:
  const std::byte* base_ = nullptr;
  const RecordHeader* header_ = nullptr;
};

}  // namespace gnnd
