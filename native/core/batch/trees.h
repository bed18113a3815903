#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/batch/sample.h"

// Samples whose seeds have a tree each (core/sample/temporal_sampler.h). Such a record is one like
// any other, but that ids repeat within a type, once for each tree that has the node. Which records
// are of trees follows from the job; no tree is written down, because blocks say it: an edge does
// not leave its tree.

namespace gnnd {

// [num_node_types][nodes(type).size()]: the tree of each node. Seeds are numbered by type, then by
// their place in it. The sample is one of trees (CheckTrees).
std::vector<std::vector<uint32_t>> TreesOf(const Sample& sample);

// The checks that an opened record needs besides, if it is one of trees: ids are unique within a
// tree, edges stay in theirs, new nodes stand in order of first occurrence. kShmCorrupted.
Status CheckTrees(const Sample& sample);

}  // namespace gnnd
