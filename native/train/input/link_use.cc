#include "train/input/link_use.h"

#include <algorithm>
#include <string>

namespace gnnd {
namespace {

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

Status CheckNodes(std::span<const uint32_t> nodes, uint64_t num_nodes, const char* what) {
  if (std::ranges::all_of(nodes, [num_nodes](uint32_t node) { return node < num_nodes; })) {
    return Status::Ok();
  }
  return Status(Code::kDatasetCorrupt, std::string(what) + " of a link is not in the graph");
}

Status CheckSet(const LinkUse& use, const LinkSet& set, uint64_t num_nodes) {
  if (set.ends.size() % 2 != 0) return Invalid("links to evaluate are not [links, 2]");
  GNND_TRY(CheckNodes(set.ends, num_nodes, "an end"));
  GNND_TRY(CheckNodes(set.negatives, num_nodes, "a negative"));
  if (set.size() == 0) return Status::Ok();
  if (use.negatives == EvaluationNegatives::kPool) {
    if (!set.negatives.empty() && set.negatives.size() % 2 == 0) return Status::Ok();
    return Invalid("a pool of negatives is not [pairs, 2]");
  }
  if (use.negatives != EvaluationNegatives::kDataset) return Status::Ok();
  if (!set.negatives.empty() && set.negatives.size() % set.size() == 0) return Status::Ok();
  return Invalid("negatives of links to evaluate are not [links, k]");
}

}  // namespace

Status LinkQuestion::Check(uint64_t num_nodes) const {
  if (asks == LinkAsks::kScores && (pairs.empty() || pairs.size() % 2 != 0)) {
    return Invalid("pairs to score are not [pairs, 2]");
  }
  if (asks == LinkAsks::kNearest && k == 0) return Invalid("the nearest of a node are 1 or more");
  if (!std::ranges::is_sorted(among)) return Invalid("nodes to choose from are not ascending");
  GNND_TRY(CheckNodes(pairs, num_nodes, "an end"));
  GNND_TRY(CheckNodes(among, num_nodes, "a node to choose from"));
  for (const LinkSet& set : known) GNND_TRY(CheckNodes(set.ends, num_nodes, "an end"));
  return Status::Ok();
}

Status LinkUse::Check(uint64_t num_nodes) const {
  if (!(loss.temperature > 0)) return Invalid("the temperature must be above 0");
  if (negatives == EvaluationNegatives::kKeyed && count == 0) {
    return Invalid("links are evaluated with one negative or more");
  }
  if (test_messages && test_messages->topology.num_nodes() != num_nodes) {
    return Invalid("the graph that test links are told by has other nodes");
  }
  for (const LinkSet& set : sets) GNND_TRY(CheckSet(*this, set, num_nodes));
  for (size_t side = 0; labels != nullptr && side < 2; ++side) {
    if (labels->evaluated[side].rows() == sets[side].size()) continue;
    return Invalid("links to evaluate have labels of another number");
  }
  return question.Check(num_nodes);
}

}  // namespace gnnd
