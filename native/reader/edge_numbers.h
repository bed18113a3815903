#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "core/batch/sample.h"
#include "core/draw/batch_key.h"
#include "reader/gnnd_reader.h"

namespace gnnd {

// Finds the numbers of a batch's edges in a graph whose rows are sorted, O(log degree) each.
class EdgeNumbers {
 public:
  // `targets` and `sources` are the batch's nodes of a block's types.
  EdgeNumbers(const GnndEdges& graph, const BatchKey& key, std::span<const uint32_t> targets,
              std::span<const uint32_t> sources)
      : graph_(graph), key_(key), targets_(targets), sources_(sources) {}

  // Writes those of the block's rows [begin, end) to out[indptr[begin]] and on. False: the graph
  // has no such edge.
  bool Write(const BlockView& block, uint64_t begin, uint64_t end, int64_t* out) const {
    for (uint64_t row = begin; row < end; ++row) {
      const uint32_t node = targets_[row];
      if (node >= graph_.num_nodes) return false;
      const std::span<const uint32_t> sources{
          graph_.sources + graph_.indptr[node],
          static_cast<size_t>(graph_.indptr[node + 1] - graph_.indptr[node])};
      const uint32_t* numbers = graph_.numbers + graph_.indptr[node];
      // How often the row named a source so far, of those that have several edges.
      std::unordered_map<uint64_t, uint64_t> times;
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        const uint32_t source = sources_[block.src[e]];
        const auto first = std::lower_bound(sources.begin(), sources.end(), source);
        if (first == sources.end() || *first != source) return false;
        auto place = static_cast<uint64_t>(first - sources.begin());
        if (place + 1 < sources.size() && sources[place + 1] == source) {
          const auto alike =
              static_cast<uint64_t>(std::upper_bound(first, sources.end(), source) - first);
          place += (StartOf(node, source) + times[place]++) % alike;
        }
        out[e] = numbers[place];
      }
    }
    return true;
  }

 private:
  // Which of several edges between two nodes a batch names first: a hash (SplitMix64's mixer).
  uint64_t StartOf(uint64_t node, uint64_t source) const {
    uint64_t hash = (uint64_t{key_.epoch} << 32 | key_.batch) * 0x9E3779B97F4A7C15;
    hash ^= node << 32 | source;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EB;
    return (hash ^ (hash >> 31)) >> 1;
  }

  const GnndEdges& graph_;
  const BatchKey key_;
  const std::span<const uint32_t> targets_;
  const std::span<const uint32_t> sources_;
};

}  // namespace gnnd
