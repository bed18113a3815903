#include "train/evaluate/known_pairs.h"

#include <algorithm>
#include <numeric>

namespace gnnd {
namespace {

constexpr uint64_t Packed(uint32_t node, uint32_t other) { return uint64_t{node} << 32 | other; }
constexpr uint32_t NodeOf(uint64_t packed) { return static_cast<uint32_t>(packed >> 32); }
constexpr uint32_t OtherOf(uint64_t packed) { return static_cast<uint32_t>(packed); }

}  // namespace

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

void KnownPairs::Sort(std::span<const uint32_t> nodes, Sorted* sorted) {
  sorted->clear();
  for (uint32_t i = 0; i < nodes.size(); ++i) sorted->push_back(Packed(nodes[i], i));
  if (!std::ranges::is_sorted(*sorted)) std::ranges::sort(*sorted);
}

void KnownPairs::SetBits(std::span<const uint32_t> nodes, bool value) {
  for (const uint32_t node : nodes) bits_[node] = value;
}

// Edges are in both rows, and there are fewer sources than destinations.
template <typename Found>
void KnownPairs::ByRowsOfSources(std::span<const uint32_t> sources, const Found& found) {
  const uint32_t first = NodeOf(destinations_.front());
  const uint32_t last = NodeOf(destinations_.back());
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
      auto at = std::ranges::lower_bound(sources_, Packed(source, 0));
      for (; at != sources_.end() && NodeOf(*at) == source; ++at) found(OtherOf(*at), node);
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
  Sort(sources, &sources_);
  Sort(destinations, &destinations_);
  const auto found = [&](uint32_t s, uint32_t node) {
    auto at = std::ranges::lower_bound(destinations_, Packed(node, 0));
    for (; at != destinations_.end() && NodeOf(*at) == node; ++at) {
      const uint64_t place = uint64_t{OtherOf(*at)} * sources.size() + s;
      if ((*marks)[place] != 0) continue;
      (*marks)[place] = 1;
      places->push_back(place);
    }
  };
  SetBits(destinations, true);
  for (uint32_t s = 0; s < sources.size(); ++s) {
    if (bits_[sources[s]]) found(s, sources[s]);
  }
  Listed(sources, found);
  if (symmetric_) ByRowsOfSources(sources, found);
  SetBits(destinations, false);
  if (symmetric_) return;
  SetBits(sources, true);
  ByRowsOfDestinations(destinations, found);
  SetBits(sources, false);
}

}  // namespace gnnd
