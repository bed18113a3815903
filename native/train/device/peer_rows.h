#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device.h"
#include "core/feature/row_placement.h"
#include "core/ledger/row_shares.h"

namespace gnnd {

// The shared memory of a placement's other devices, opened for kernels of this one. A peer comes
// and goes with its Trainer: before the first, after a death, and if its memory cannot be opened,
// its rows come from the host.
class PeerRows {
 public:
  // Borrows all arguments.
  PeerRows(const Device& device, const RowPlacement& placement, uint64_t row_bytes,
           const RowShares& shares);

  // Checks who shares, and writes each peer's memory into its places in `tiers`, of which those of
  // the placement's lines, in order, come first. REQUIRES: no kernel that got earlier places still
  // runs.
  void Refresh(gnnd_device_row_tiers* tiers);

 private:
  struct Peer {
    uint32_t device = 0;
    uint64_t rows = 0;   // rows of it that the placement names
    uint32_t owner = 0;  // the owner at the last look; 0 = none
    OpenedDeviceMemory memory;
  };

  void Open(Peer* peer);

  const Device& device_;
  const RowPlacement& placement_;
  const uint64_t row_bytes_;
  const RowShares& shares_;
  std::vector<Peer> peers_;
};

}  // namespace gnnd
