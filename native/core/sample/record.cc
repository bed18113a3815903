#include "core/sample/record.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>

#include "core/sample/layout.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxEpoch = 0xFFFFFF;

Status Corrupted(const std::string& what) { return Status(Code::kShmCorrupted, "record: " + what); }

Status CorruptedBlock(uint32_t hop, const std::string& what) {
  return Corrupted("block " + std::to_string(hop) + ": " + what);
}

// Walks the sections in their order in the slot and adds up what they hold.
class SectionWalk {
 public:
  explicit SectionWalk(uint64_t slot_bytes) : slot_bytes_(slot_bytes) {}

  // False when the section does not start on a boundary behind its predecessor or leaves the slot.
  bool Add(uint64_t at, uint64_t elements) {
    const uint64_t bytes = elements * sizeof(uint32_t);  // elements <= 2^32
    if (at % RecordLayout::kSectionAlignment != 0 || at < end_) return false;
    if (at > slot_bytes_ || bytes > slot_bytes_ - at) return false;
    end_ = at + bytes;
    payload_ += bytes;
    return true;
  }
  uint64_t end() const { return end_; }
  uint64_t payload() const { return payload_; }

 private:
  uint64_t slot_bytes_;
  uint64_t end_ = sizeof(RecordHeader);
  uint64_t payload_ = sizeof(RecordHeader);
};

bool IsZero(const void* bytes, size_t size) {
  const auto* first = static_cast<const unsigned char*>(bytes);
  return std::all_of(first, first + size, [](unsigned char byte) { return byte == 0; });
}

const uint32_t* WordsAt(const std::byte* base, uint64_t at) {
  return reinterpret_cast<const uint32_t*>(base + at);
}

Status CheckHeader(const RecordHeader& header) {
  if (header.magic != kRecordMagic) return Corrupted("wrong magic");
  if (header.version != kRecordVersion) {
    return Corrupted("version " + std::to_string(header.version));
  }
  if (header.kind != static_cast<uint32_t>(RecordKind::kBlocks)) return Corrupted("unknown kind");
  if (header.epoch > kMaxEpoch) return Corrupted("epoch needs more than 24 bits");
  if (header.num_hops == 0 || header.num_hops > kMaxHops) return Corrupted("number of hops");
  if (header.num_seeds == 0) return Corrupted("no seeds");
  if (header.reserved != 0 || !IsZero(header.reserved2, sizeof header.reserved2)) {
    return Corrupted("a reserved field is set");
  }
  const size_t unused = kMaxHops - header.num_hops;
  if (!IsZero(header.blocks + header.num_hops, unused * sizeof(BlockHeader))) {
    return Corrupted("a block beyond the last hop");
  }
  return Status::Ok();
}

// `num_dst` is what the hops before lead to.
Status CheckBlock(const RecordHeader& header, uint32_t hop, uint32_t num_dst) {
  const BlockHeader& block = header.blocks[hop];
  const BlockHeader& first = header.blocks[0];
  if (block.num_dst != num_dst) return CorruptedBlock(hop, "number of destinations");
  if (block.num_src < num_dst || block.num_src - num_dst > block.num_edges) {
    return CorruptedBlock(hop, "number of sources");
  }
  if (block.reserved != 0) return CorruptedBlock(hop, "a reserved field is set");
  const bool weighted = block.weight_at != 0;
  const bool self_weighted = block.self_weight_at != 0;
  if (weighted != (first.weight_at != 0) || self_weighted != (first.self_weight_at != 0)) {
    return CorruptedBlock(hop, "edge weights in part of the record only");
  }
  if (self_weighted && !weighted) return CorruptedBlock(hop, "self weights without edge weights");
  if (!header.shares_rows()) return Status::Ok();
  if (block.indptr_at != first.indptr_at || block.src_at != first.src_at ||
      block.weight_at != first.weight_at || block.self_weight_at != first.self_weight_at) {
    return CorruptedBlock(hop, "rows are shared in part of the record only");
  }
  if (hop > 0 && block.num_edges < header.blocks[hop - 1].num_edges) {
    return CorruptedBlock(hop, "fewer edges than the block before, whose rows it has");
  }
  return Status::Ok();
}

Status CheckSections(const RecordHeader& header, uint32_t hop, SectionWalk* walk) {
  const BlockHeader& block = header.blocks[hop];
  if (!walk->Add(block.indptr_at, uint64_t{block.num_dst} + 1)) {
    return CorruptedBlock(hop, "indptr_at");
  }
  if (!walk->Add(block.src_at, block.num_edges)) return CorruptedBlock(hop, "src_at");
  if (block.weight_at != 0 && !walk->Add(block.weight_at, block.num_edges)) {
    return CorruptedBlock(hop, "weight_at");
  }
  if (block.self_weight_at != 0 && !walk->Add(block.self_weight_at, block.num_dst)) {
    return CorruptedBlock(hop, "self_weight_at");
  }
  return Status::Ok();
}

Status CheckIndptrEnds(const RecordHeader& header, uint32_t hop, const std::byte* base) {
  const BlockHeader& block = header.blocks[hop];
  const uint32_t* indptr = WordsAt(base, block.indptr_at);
  if (indptr[0] == 0 && indptr[block.num_dst] == block.num_edges) return Status::Ok();
  return CorruptedBlock(hop, "indptr does not run from 0 to the number of edges");
}

// Invariant 4: nothing that follows indptr or src leaves the record, whatever it says. A linear
// pass without branches; where rows are shared, over those that the block before has not.
Status CheckRows(const RecordHeader& header, uint32_t hop, const std::byte* base) {
  const BlockHeader& block = header.blocks[hop];
  const bool prefix = header.shares_rows() && hop > 0;
  const uint32_t first_row = prefix ? header.blocks[hop - 1].num_dst : 0;
  const uint32_t first_edge = prefix ? header.blocks[hop - 1].num_edges : 0;
  const uint32_t* indptr = WordsAt(base, block.indptr_at);
  uint32_t falls = 0;
  for (uint32_t row = first_row; row < block.num_dst; ++row) {
    falls |= indptr[row] > indptr[row + 1] ? 1 : 0;
  }
  if (falls != 0) return CorruptedBlock(hop, "indptr is not monotone");
  const uint32_t* src = WordsAt(base, block.src_at);
  uint32_t largest = 0;
  for (uint32_t e = first_edge; e < block.num_edges; ++e) largest = std::max(largest, src[e]);
  if (largest >= block.num_src) return CorruptedBlock(hop, "a source beyond num_src");
  return Status::Ok();
}

// Invariants 1 to 4, element by element.
Status CheckElements(const RecordView& view) {
  std::unordered_set<uint32_t> ids(view.nodes().begin(), view.nodes().end());
  if (ids.size() != view.nodes().size()) return Corrupted("a node is listed twice");
  for (uint32_t hop = 0; hop < view.num_hops(); ++hop) {
    const BlockView block = view.block(hop);
    uint32_t seen = block.num_dst;
    for (const uint32_t source : block.src) {
      if (source > seen) return CorruptedBlock(hop, "sources are not in order of first occurrence");
      if (source == seen) ++seen;
    }
    if (seen != block.num_src) return CorruptedBlock(hop, "not every source is used");
  }
  return Status::Ok();
}

}  // namespace

Result<RecordView> RecordView::Open(std::span<const std::byte> slot, bool deep) {
  if (slot.size() < sizeof(RecordHeader)) return Corrupted("the slot is smaller than a header");
  if (reinterpret_cast<uintptr_t>(slot.data()) % alignof(RecordHeader) != 0) {
    return Corrupted("the slot is not aligned");
  }
  RecordView view;
  view.base_ = slot.data();
  view.header_ = reinterpret_cast<const RecordHeader*>(slot.data());
  const RecordHeader& header = *view.header_;
  GNND_TRY(CheckHeader(header));
  SectionWalk walk(slot.size());
  if (!walk.Add(header.nodes_at, header.num_nodes)) return Corrupted("nodes_at");
  uint32_t num_nodes = header.num_seeds;
  for (uint32_t hop = 0; hop < header.num_hops; ++hop) {
    GNND_TRY(CheckBlock(header, hop, num_nodes));
    num_nodes = header.blocks[hop].num_src;
    // Shared sections are as long as the last block needs.
    if (!header.shares_rows() || hop + 1 == header.num_hops) {
      GNND_TRY(CheckSections(header, hop, &walk));
    }
  }
  // All sections lie within the slot now.
  for (uint32_t hop = 0; hop < header.num_hops; ++hop) {
    GNND_TRY(CheckIndptrEnds(header, hop, view.base_));
    GNND_TRY(CheckRows(header, hop, view.base_));
  }
  if (header.num_nodes != num_nodes) return Corrupted("number of nodes");
  if (header.ranks_at != 0 && !walk.Add(header.ranks_at, num_nodes)) return Corrupted("ranks_at");
  if (header.payload_bytes != walk.payload()) return Corrupted("payload_bytes");
  if (header.extent_bytes != walk.end()) return Corrupted("extent_bytes");
  if (deep) GNND_TRY(CheckElements(view));
  return view;
}

std::span<const uint32_t> RecordView::nodes() const {
  return {WordsAt(base_, header_->nodes_at), header_->num_nodes};
}

std::span<const uint32_t> RecordView::ranks() const {
  if (header_->ranks_at == 0) return {};
  return {WordsAt(base_, header_->ranks_at), header_->num_nodes};
}

BlockView RecordView::block(uint32_t hop) const {
  const BlockHeader& header = header_->blocks[hop];
  BlockView view;
  view.num_dst = header.num_dst;
  view.num_src = header.num_src;
  view.indptr = {WordsAt(base_, header.indptr_at), size_t{header.num_dst} + 1};
  view.src = {WordsAt(base_, header.src_at), header.num_edges};
  if (header.weight_at != 0) {
    view.weight = {reinterpret_cast<const float*>(base_ + header.weight_at), header.num_edges};
  }
  if (header.self_weight_at != 0) {
    view.self_weight = {reinterpret_cast<const float*>(base_ + header.self_weight_at),
                        header.num_dst};
  }
  return view;
}

uint64_t RecordView::num_edges() const { return header_->drawn_edges(); }

}  // namespace gnnd
