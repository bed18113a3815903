#include "train/evaluate/known_pairs.h"

#include <algorithm>

namespace gnnd {
namespace {

constexpr uint64_t Packed(uint32_t source, uint32_t destination) {
  return uint64_t{source} << 32 | destination;
}

}  // namespace

KnownPairs::KnownPairs(const TopologyView& topology, std::span<const LinkSet> sets, bool symmetric)
    : topology_(topology), symmetric_(symmetric), bits_(topology.num_nodes()) {
  for (const LinkSet& set : sets) {
    for (uint64_t link = 0; link < set.size(); ++link) {
      listed_.push_back(Packed(set.source(link), set.destination(link)));
      if (symmetric_) listed_.push_back(Packed(set.destination(link), set.source(link)));
    }
  }
  std::ranges::sort(listed_);
}

void KnownPairs::Sort(std::span<const uint32_t> nodes, Sorted* sorted) {
  sorted->clear();
  for (uint32_t i = 0; i < nodes.size(); ++i) sorted->emplace_back(nodes[i], i);
  if (!std::ranges::is_sorted(*sorted)) std::ranges::sort(*sorted);
}

void KnownPairs::SetBits(std::span<const uint32_t> nodes, bool value) {
  for (const uint32_t node : nodes) bits_[node] = value;
}

// Edges are in both rows, and there are fewer sources than destinations.
template <typename Found>
void KnownPairs::ByRowsOfSources(std::span<const uint32_t> sources, const Found& found) {
  const uint32_t first = destinations_.front().first;
  const uint32_t last = destinations_.back().first;
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
      auto at = std::ranges::lower_bound(sources_, std::pair(source, 0U));
      for (; at != sources_.end() && at->first == source; ++at) found(at->second, node);
    }
  }
}

template <typename Found>
void KnownPairs::Listed(std::span<const uint32_t> sources, const Found& found) const {
  for (uint32_t s = 0; s < sources.size(); ++s) {
    auto at = std::ranges::lower_bound(listed_, Packed(sources[s], 0));
    for (; at != listed_.end() && *at >> 32 == sources[s]; ++at) {
      found(s, static_cast<uint32_t>(*at));
    }
  }
}

void KnownPairs::Mark(std::span<const uint32_t> sources, std::span<const uint32_t> destinations,
                      std::vector<uint8_t>* marks, std::vector<uint64_t>* places) {
  if (sources.empty() || destinations.empty()) return;
  Sort(sources, &sources_);
  Sort(destinations, &destinations_);
  const auto found = [&](uint32_t s, uint32_t node) {
    auto at = std::ranges::lower_bound(destinations_, std::pair(node, 0U));
    for (; at != destinations_.end() && at->first == node; ++at) {
      const uint64_t place = uint64_t{at->second} * sources.size() + s;
      if ((*marks)[place] != 0) continue;
      (*marks)[place] = 1;
      places->push_back(place);
    }
  };
  for (uint32_t s = 0; s < sources.size(); ++s) found(s, sources[s]);
  Listed(sources, found);
  const auto filter = symmetric_ ? destinations : sources;
  SetBits(filter, true);
  if (symmetric_) {
    ByRowsOfSources(sources, found);
  } else {
    ByRowsOfDestinations(destinations, found);
  }
  SetBits(filter, false);
}

}  // namespace gnnd
