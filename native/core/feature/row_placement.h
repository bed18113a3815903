#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

// Which rows of the hot order lie in which device's memory, as one device reads them: a plan of
// src/placement, which says how it comes about. Planned in ranks, so that its size does not grow
// with the graph.

namespace gnnd {

struct RowPlacement {
  static constexpr uint32_t kHost = 0xFFFFFFFF;

  struct Place {
    uint32_t device = kHost;  // kHost: nobody whose rows this device reads
    uint32_t row = 0;         // where the first rank lies that is dealt to this place
  };
  // Ranks from `from` on and below `to`, dealt to the places in rotation.
  struct Line {
    uint32_t from = 0;
    uint32_t to = 0;
    std::vector<Place> places;

    // Ranks that place `hand` gets.
    uint32_t Dealt(uint32_t hand) const;
  };

  uint32_t device = 0;      // whose view it is
  std::vector<Line> lines;  // by rank, without overlaps
  // What a row costs over the link to each device, and from the host: nanoseconds, assumed or
  // measured. Nothing but an account goes by it.
  std::vector<double> row_ns;
  double host_row_ns = 0;

  // A plain cache: the first ranks, and no other device.
  static RowPlacement Prefix(uint64_t rows);

  // Rows that the plan has in this device's memory, as far as this placement tells.
  uint64_t RowsOf(uint32_t other) const;
  // The nodes of this device's own rows, in the order of rows. kInvalidArgument where ranks are
  // beyond `order`, lines contradict each other, or rows are missing or there twice.
  Result<std::vector<uint32_t>> OwnNodes(std::span<const uint32_t> order) const;
  // Others whose rows it reads, ascending.
  std::vector<uint32_t> Peers() const;
};

}  // namespace gnnd
