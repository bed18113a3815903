#include "train/evaluate/known_pairs.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/prefetch.h"

namespace gnnd {
namespace {

constexpr uint64_t Packed(uint32_t node, uint32_t other) { return uint64_t{node} << 32 | other; }

constexpr uint32_t kSlotsOfPlace = 2;     // at least so many slots for each place
constexpr uint32_t kMixing = 0x9E3779B1;  // 2^32 over the golden ratio (Knuth 6.4)

// Asks for where the rows of nodes are, and for their first edges, which lie anywhere in memory.
GNND_PREFETCHES void AskForRows(const TopologyView& topology, std::span<const uint32_t> nodes) {
  for (const uint32_t node : nodes) Prefetch(PrefetchLevel::kL1, &topology.indptr[node]);
  for (const uint32_t node : nodes) {
    Prefetch(PrefetchLevel::kL1, topology.indices.data() + topology.indptr[node]);
  }
}

}  // namespace

void PlacesOf::Set(std::span<const uint32_t> nodes) {
  nodes_ = nodes;
  const uint64_t slots = std::bit_ceil(std::max<uint64_t>(2, kSlotsOfPlace * nodes.size()));
  shift_ = static_cast<uint32_t>(32 - std::countr_zero(slots));
  slots_.assign(slots, kNone);
  before_.resize(nodes.size());
  least_ = UINT32_MAX;
  greatest_ = 0;
  for (uint32_t place = 0; place < nodes.size(); ++place) {
    uint32_t& slot = slots_[SlotOf(nodes[place])];
    before_[place] = slot;
    slot = place;
    least_ = std::min(least_, nodes[place]);
    greatest_ = std::max(greatest_, nodes[place]);
  }
}

uint32_t PlacesOf::SlotOf(uint32_t node) const {
  const auto mask = static_cast<uint32_t>(slots_.size() - 1);
  uint32_t slot = (node * kMixing) >> shift_;
  while (slots_[slot] != kNone && nodes_[slots_[slot]] != node) slot = (slot + 1) & mask;
  return slot;
}

template <typename Visit>
void PlacesOf::Each(uint32_t node, const Visit& visit) const {
  for (uint32_t at = slots_[SlotOf(node)]; at != kNone; at = before_[at]) visit(at);
}

KnownPairs::KnownPairs(const TopologyView& topology, std::span<const LinkSet> sets, bool symmetric)
    : topology_(topology),
      symmetric_(symmetric),
      first_(uint64_t{topology.num_nodes()} + 1),
      bits_(topology.num_nodes()) {
  std::vector<uint64_t> pairs;
  for (const LinkSet& set : sets) {
    for (uint64_t link = 0; link < set.size(); ++link) {
      pairs.push_back(Packed(set.source(link), set.destination(link)));
      if (symmetric_) pairs.push_back(Packed(set.destination(link), set.source(link)));
    }
  }
  std::ranges::sort(pairs);
  for (const uint64_t pair : pairs) {
    ++first_[(pair >> 32) + 1];
    listed_.push_back(static_cast<uint32_t>(pair));
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

void KnownPairs::SetBits(std::span<const uint32_t> nodes, bool value) {
  for (const uint32_t node : nodes) bits_[node] = value;
}

// Edges are in both rows, and there are fewer sources than destinations.
template <typename Found>
void KnownPairs::ByRowsOfSources(std::span<const uint32_t> sources, const Found& found) {
  const uint32_t first = destinations_.least();
  const uint32_t last = destinations_.greatest();
  for (uint32_t s = 0; s < sources.size(); ++s) {
    const uint32_t* const begin = topology_.indices.data() + topology_.indptr[sources[s]];
    const uint32_t* const end = begin + topology_.degree(sources[s]);
    for (const uint32_t* at = std::lower_bound(begin, end, first); at != end && *at <= last; ++at) {
      if (bits_[*at]) found(s, *at);
    }
  }
}

// Row v lists the sources of edges to v.
template <typename Found>
void KnownPairs::ByRowsOfDestinations(std::span<const uint32_t> destinations, const Found& found) {
  for (const uint32_t node : destinations) {
    const uint64_t end = topology_.indptr[node + 1];
    for (uint64_t e = topology_.indptr[node]; e < end; ++e) {
      const uint32_t source = topology_.indices[e];
      if (!bits_[source]) continue;
      sources_.Each(source, [&](uint32_t s) { found(s, node); });
    }
  }
}

template <typename Found>
void KnownPairs::Listed(std::span<const uint32_t> sources, const Found& found) const {
  for (uint32_t s = 0; s < sources.size(); ++s) {
    for (uint64_t at = first_[sources[s]]; at < first_[sources[s] + 1]; ++at) {
      if (bits_[listed_[at]]) found(s, listed_[at]);
    }
  }
}

void KnownPairs::Mark(std::span<const uint32_t> sources, std::span<const uint32_t> destinations,
                      std::vector<uint8_t>* marks, std::vector<uint64_t>* places) {
  if (sources.empty() || destinations.empty()) return;
  if (symmetric_) AskForRows(topology_, sources);
  destinations_.Set(destinations);
  const auto found = [&](uint32_t s, uint32_t node) {
    destinations_.Each(node, [&](uint32_t d) {
      const uint64_t place = uint64_t{d} * sources.size() + s;
      if ((*marks)[place] != 0) return;
      (*marks)[place] = 1;
      places->push_back(place);
    });
  };
  SetBits(destinations, true);
  for (uint32_t s = 0; s < sources.size(); ++s) {
    if (bits_[sources[s]]) found(s, sources[s]);
  }
  for (const uint32_t source : sources) Prefetch(PrefetchLevel::kL1, &first_[source]);
  Listed(sources, found);
  if (symmetric_) ByRowsOfSources(sources, found);
  SetBits(destinations, false);
  if (symmetric_) return;
  sources_.Set(sources);
  SetBits(sources, true);
  ByRowsOfDestinations(destinations, found);
  SetBits(sources, false);
}

}  // namespace gnnd
