#include "core/graph/csr.h"

#include <algorithm>
#include <string>

namespace gnnd {
namespace {

Status CheckIds(const char* side, std::span<const uint32_t> ids, uint32_t num_nodes) {
  const auto first =
      std::find_if(ids.begin(), ids.end(), [num_nodes](uint32_t id) { return id >= num_nodes; });
  if (first == ids.end()) return Status::Ok();
  return Status(Code::kInvalidArgument, "edge " + std::to_string(first - ids.begin()) + ": " +
                                            side + " " + std::to_string(*first) +
                                            " is not below the " + std::to_string(num_nodes) +
                                            " nodes");
}

// Calls visit(row, neighbour) for every entry that the options let through.
template <typename Visit>
void ForEachEntry(std::span<const uint32_t> src, std::span<const uint32_t> dst, CsrOptions options,
                  const Visit& visit) {
  for (uint64_t i = 0; i < src.size(); ++i) {
    const bool self_loop = src[i] == dst[i];
    if (self_loop && options.drop_self_loops_and_duplicates) continue;
    visit(dst[i], src[i]);
    if (options.make_undirected && !self_loop) visit(src[i], dst[i]);
  }
}

}  // namespace

Result<Csr> BuildCsr(std::span<const uint32_t> src, std::span<const uint32_t> dst,
                     uint32_t num_nodes, CsrOptions options) {
  if (src.size() != dst.size()) {
    return Status(Code::kInvalidArgument, std::to_string(src.size()) + " sources, but " +
                                              std::to_string(dst.size()) + " destinations");
  }
  GNND_TRY(CheckIds("source", src, num_nodes));
  GNND_TRY(CheckIds("destination", dst, num_nodes));

  // Counting sort by row: counts, then starts, then each entry to the next place of its row.
  Csr csr;
  csr.indptr.assign(num_nodes + uint64_t{1}, 0);
  ForEachEntry(src, dst, options, [&](uint32_t row, uint32_t) { ++csr.indptr[row + uint64_t{1}]; });
  for (uint64_t row = 0; row < num_nodes; ++row) csr.indptr[row + 1] += csr.indptr[row];
  csr.indices.resize(static_cast<uint64_t>(csr.indptr[num_nodes]));
  std::vector<int64_t> next(csr.indptr.begin(), csr.indptr.end() - 1);
  ForEachEntry(src, dst, options, [&](uint32_t row, uint32_t neighbour) {
    csr.indices[static_cast<uint64_t>(next[row]++)] = neighbour;
  });

  // Each row in order; with duplicates dropped, rows move up to where the one before ends.
  auto end = csr.indices.begin();
  for (uint64_t row = 0; row < num_nodes; ++row) {
    const auto first = csr.indices.begin() + csr.indptr[row];
    const auto last = csr.indices.begin() + csr.indptr[row + 1];
    std::sort(first, last);
    csr.indptr[row] = end - csr.indices.begin();
    const auto kept = options.drop_self_loops_and_duplicates ? std::unique(first, last) : last;
    end = first == end ? kept : std::copy(first, kept, end);
  }
  csr.indptr[num_nodes] = end - csr.indices.begin();
  csr.indices.erase(end, csr.indices.end());
  return csr;
}

}  // namespace gnnd
