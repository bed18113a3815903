#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

// From a list of edges to the topology of a dataset.

namespace gnnd {

struct CsrOptions {
  bool make_undirected = false;  // every edge also in the other direction (a self-loop stays one)
  bool drop_self_loops_and_duplicates = false;
};

// Row v holds the in-neighbours of node v, ascending: what indptr.npy and indices.npy store.
struct Csr {
  std::vector<int64_t> indptr;    // [num_nodes + 1]
  std::vector<uint32_t> indices;  // [entries]
};

// Builds the rows of the edges src[i] -> dst[i]. The result does not depend on the edges' order.
// kInvalidArgument when the lists differ in length or an id is not below num_nodes (names the
// first).
Result<Csr> BuildCsr(std::span<const uint32_t> src, std::span<const uint32_t> dst,
                     uint32_t num_nodes, CsrOptions options);

}  // namespace gnnd
