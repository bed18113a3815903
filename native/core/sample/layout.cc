#include "core/sample/layout.h"

#include <algorithm>
#include <limits>
#include <string>

namespace gnnd {
namespace {

constexpr uint64_t kElementBytes = 4;  // every section is an array of 32-bit elements

Status CheckLimits(const SampleLimits& limits) {
  const auto invalid = [](const std::string& what) { return Status(Code::kInvalidArgument, what); };
  if (limits.num_nodes == 0) return invalid("the graph has no nodes");
  if (limits.batch_size == 0) return invalid("batch_size must be at least 1");
  if (limits.fanouts.empty() || limits.fanouts.size() > kMaxHops) {
    return invalid("fanouts must name 1 to " + std::to_string(kMaxHops) + " hops, not " +
                   std::to_string(limits.fanouts.size()));
  }
  for (size_t hop = 0; hop < limits.fanouts.size(); ++hop) {
    const int32_t fanout = limits.fanouts[hop];
    if (fanout != kFullNeighbourhood && (fanout < 1 || fanout > kMaxFanout)) {
      return invalid("fanouts[" + std::to_string(hop) + "] must be -1 or 1 to " +
                     std::to_string(kMaxFanout) + ", not " + std::to_string(fanout));
    }
  }
  return Status::Ok();
}

}  // namespace

uint64_t RecordLayout::AddSection(uint64_t elements) {
  const uint64_t at = slot_bytes_;
  const uint64_t bytes = elements * kElementBytes + kSectionSlackBytes;
  slot_bytes_ += (bytes + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
  return at;
}

Result<RecordLayout> RecordLayout::Of(const SampleLimits& limits) {
  GNND_TRY(CheckLimits(limits));
  RecordLayout layout;
  layout.num_hops_ = static_cast<uint32_t>(limits.fanouts.size());

  // Destinations of a hop are distinct, so neither they nor their in-edges exceed the graph's.
  uint64_t nodes = std::min(limits.batch_size, limits.num_nodes);
  for (uint32_t h = 0; h < layout.num_hops_; ++h) {
    const int32_t fanout = limits.fanouts[h];
    uint64_t edges = limits.num_edges;
    if (fanout != kFullNeighbourhood)
      edges = std::min(edges, nodes * static_cast<uint64_t>(fanout));
    if (edges > std::numeric_limits<uint32_t>::max()) {
      return Status(Code::kInvalidArgument, "hop " + std::to_string(h) + " may have " +
                                                std::to_string(edges) +
                                                " edges; a record counts them in 32 bits");
    }
    layout.hops_[h].max_dst = static_cast<uint32_t>(nodes);
    layout.hops_[h].max_edges = static_cast<uint32_t>(edges);
    nodes = std::min<uint64_t>(limits.num_nodes, nodes + edges);
  }
  layout.max_nodes_ = static_cast<uint32_t>(nodes);

  layout.slot_bytes_ = kSectionAlignment;  // the header's page
  layout.nodes_at_ = layout.AddSection(nodes);
  for (uint32_t h = 0; h < layout.num_hops_; ++h) {
    HopLayout& hop = layout.hops_[h];
    hop.indptr_at = layout.AddSection(uint64_t{hop.max_dst} + 1);
    hop.src_at = layout.AddSection(hop.max_edges);
    if (!limits.edge_weights) continue;
    hop.weight_at = layout.AddSection(hop.max_edges);
    hop.self_weight_at = layout.AddSection(hop.max_dst);
  }
  // Written after the sample is made (M stage), so it is the last section.
  if (limits.hot_ranks) layout.ranks_at_ = layout.AddSection(nodes);
  return layout;
}

}  // namespace gnnd
