#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/topology_view.h"

// Which nodes locality-aware sampling favours in a hop (Song and Jiang, ICS'22, section 4.2;
// core/draw/locality.h). In the last hop, whose picks are rows to extract: those that devices hold.
// In the hop before it: nodes whose rows lead there; and so on. Only those with the most paths: if
// all nodes were favoured, none would be. No sampler asks yet.

namespace gnnd {

// From paths[j], the number of ways of some length from node j into a set, those of one edge
// more: per node the sum over its row. Doubles: they grow with each hop.
std::vector<double> LongerPaths(const TopologyView& topology, std::span<const double> paths);

// For hops of `layers`, the last one first: `placed` itself, ascending; then at most `most` nodes
// each of the most paths into it, by falling number, ties by rising id; those without any never.
std::vector<std::vector<uint32_t>> FavouredSets(const TopologyView& topology,
                                                std::span<const uint32_t> placed, uint32_t layers,
                                                uint32_t most);

}  // namespace gnnd
