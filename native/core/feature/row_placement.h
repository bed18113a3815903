#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

// Which rows of the hot order lie in which device's memory, as one device reads them; src/placement
// makes the plan. It is expressed in ranks, so that its size does not grow with the graph.

namespace gnnd {

struct RowPlacement {
  static constexpr uint32_t kHost = 0xFFFFFFFF;

  struct Place {
    uint32_t device = kHost;  // kHost: no device whose rows this device reads
    uint32_t row = 0;         // number of the first row dealt to this place
  };
  // Ranks from `from` on and below `to`, dealt to the places in rotation.
  struct Line {
    uint32_t from = 0;
    uint32_t to = 0;
    std::vector<Place> places;

    // Number of ranks dealt to place `hand`.
    uint32_t Dealt(uint32_t hand) const;
  };

  uint32_t device = 0;      // the device that reads by this placement
  std::vector<Line> lines;  // by rank, without overlaps
  // Nanoseconds to read a row over the link to each device, and from the host, assumed or measured.
  // Used for accounting only.
  std::vector<double> row_ns;
  double host_row_ns = 0;

  // The placement of a plain cache: the first ranks, and no other device.
  static RowPlacement Prefix(uint64_t rows);

  // Number of rows in the memory of device `other`, as far as this placement tells.
  uint64_t RowsOf(uint32_t other) const;
  // The nodes of this device's own rows, in the order of rows. kInvalidArgument if ranks are beyond
  // `order`, lines contradict each other, or a row is missing or placed twice.
  Result<std::vector<uint32_t>> OwnNodes(std::span<const uint32_t> order) const;
  // The other devices whose rows this one reads, ascending.
  std::vector<uint32_t> Peers() const;
};

}  // namespace gnnd
