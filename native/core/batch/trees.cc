#include "core/batch/trees.h"

#include <numeric>
#include <string>
#include <unordered_set>

namespace gnnd {
namespace {

// Calls visit(block, row, source) for every edge, row and source being local ids, in the order in
// which a Sampler drew them; stops when that is false, and answers it.
template <typename Visit>
bool VisitEdges(const Sample& sample, const Visit& visit) {
  for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
    const BlockView& block = sample.block(b);
    for (uint32_t row = 0; row < block.num_dst; ++row) {
      for (uint32_t e = block.indptr[row]; e < block.indptr[row + 1]; ++e) {
        if (!visit(block, row, block.src[e])) return false;
      }
    }
  }
  return true;
}

Status Corrupted(const std::string& what) {
  return Status(Code::kShmCorrupted, "record of trees: " + what);
}

// The trees of the seeds.
std::vector<std::vector<uint32_t>> SeedTrees(const Sample& sample) {
  std::vector<std::vector<uint32_t>> trees;
  uint32_t first = 0;
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    std::vector<uint32_t>& of_type = trees.emplace_back(sample.num_seeds(t));
    std::iota(of_type.begin(), of_type.end(), first);
    first += sample.num_seeds(t);
  }
  return trees;
}

}  // namespace

std::vector<std::vector<uint32_t>> TreesOf(const Sample& sample) {
  std::vector<std::vector<uint32_t>> trees = SeedTrees(sample);
  VisitEdges(sample, [&trees](const BlockView& block, uint32_t row, uint32_t source) {
    std::vector<uint32_t>& sources = trees[block.src_type];
    // A new node is one more than those before.
    if (source == sources.size()) sources.push_back(trees[block.dst_type][row]);
    return true;
  });
  return trees;
}

Status CheckTrees(const Sample& sample) {
  std::vector<std::vector<uint32_t>> trees = SeedTrees(sample);
  const bool stay =
      VisitEdges(sample, [&trees](const BlockView& block, uint32_t row, uint32_t source) {
        std::vector<uint32_t>& sources = trees[block.src_type];
        const uint32_t tree = trees[block.dst_type][row];
        if (source == sources.size()) sources.push_back(tree);
        return source < sources.size() && sources[source] == tree;
      });
  if (!stay) return Corrupted("an edge leaves its tree, or a node stands out of its order");
  for (uint32_t t = 0; t < sample.num_node_types(); ++t) {
    const std::span<const uint32_t> nodes = sample.nodes(t);
    if (trees[t].size() != nodes.size()) return Corrupted("not every node is used");
    std::unordered_set<uint64_t> seen;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (seen.insert(uint64_t{trees[t][i]} << 32 | nodes[i]).second) continue;
      return Corrupted("a node stands twice in a tree");
    }
  }
  return Status::Ok();
}

}  // namespace gnnd
