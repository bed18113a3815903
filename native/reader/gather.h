#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/base/prefetch.h"
#include "core/graph/stream.h"
#include "reader/gnnd_reader.h"

namespace gnnd {

// Rows of a few bytes, whose number the compiler knows.
template <uint64_t kBytes>
void GatherValues(const GnndTable& table, std::span<const uint32_t> nodes, std::byte* out) {
  const auto* rows = static_cast<const std::byte*>(table.rows);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::memcpy(out + i * kBytes, rows + nodes[i] * kBytes, kBytes);
  }
}

// Calls put(row, i) for each row; the lines of the rows that come next are asked for ahead.
template <typename Put>
void ForRows(const GnndTable& table, std::span<const uint32_t> nodes, const Put& put) {
  constexpr uint64_t kLineBytes = 64;
  const PrefetchLevel level = BestPrefetchLevel();
  const uint64_t ahead = level == PrefetchLevel::kL2 ? 16 : 6;
  const auto* rows = static_cast<const std::byte*>(table.rows);
  const uint64_t asked = table.row_bytes < kFollowedRowBytes ? table.row_bytes : 1;
  const auto ask = [&](uint32_t node) {
    const std::byte* row = rows + node * table.row_bytes;
    const uint64_t skew = reinterpret_cast<uintptr_t>(row) % kLineBytes;
    for (uint64_t at = 0; at < asked + skew; at += kLineBytes) Prefetch(level, row - skew + at);
  };
  for (uint64_t i = 0; i < std::min<uint64_t>(ahead, nodes.size()); ++i) ask(nodes[i]);
  for (uint64_t i = 0; i < nodes.size(); ++i) {
    if (i + ahead < nodes.size()) ask(nodes[i + ahead]);
    put(rows + nodes[i] * table.row_bytes, i);
  }
}

// From this size on a batch's rows of a table are written past the caches: the loop reads them
// after as many of the next batch's have been written.
constexpr uint64_t kStreamedTableBytes = uint64_t{4} << 20;

// Copies the table's rows of `nodes` to its `out`, from place `begin` on, of a batch of
// `num_nodes`. False where a node is not in the table.
inline bool CopyTable(const GnndTable& table, std::span<const uint32_t> nodes, uint64_t begin,
                      uint64_t num_nodes) {
  if (*std::max_element(nodes.begin(), nodes.end()) >= table.num_rows) return false;
  const uint64_t bytes = table.row_bytes;
  std::byte* out = static_cast<std::byte*>(table.out) + begin * bytes;
  switch (bytes) {
    case 1:
      GatherValues<1>(table, nodes, out);
      return true;
    case 2:
      GatherValues<2>(table, nodes, out);
      return true;
    case 4:
      GatherValues<4>(table, nodes, out);
      return true;
    case 8:
      GatherValues<8>(table, nodes, out);
      return true;
    default:
      break;
  }
  if (num_nodes * bytes >= kStreamedTableBytes && CanStream(bytes, out)) {
    BestLoops<StreamLoops>().gather({static_cast<const std::byte*>(table.rows), bytes},
                                    nodes.data(), nodes.size(), BestPrefetchLevel(), out);
    return true;
  }
  ForRows(table, nodes,
          [=](const std::byte* row, uint64_t i) { std::memcpy(out + i * bytes, row, bytes); });
  return true;
}

}  // namespace gnnd
