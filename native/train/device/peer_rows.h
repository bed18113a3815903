#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device.h"
#include "core/feature/row_placement.h"
#include "core/ledger/row_shares.h"

namespace gnnd {

// What a placement's other devices share, opened for kernels of this one. A peer comes and goes
// with its Trainer: before the first, after a death, and where its memory cannot be opened, its
// rows are the host's.
class PeerRows {
 public:
  // Borrows all of them.
  PeerRows(const Device& device, const RowPlacement& placement, uint64_t row_bytes,
           const RowShares& shares);

  // Looks at who shares, and puts the memory of each into the places of `tiers` that are its own:
  // those of the placement's lines, in their order, come first. REQUIRES: no kernel that was given
  // places before still runs.
  void Refresh(gnnd_device_row_tiers* tiers);

 private:
  struct Peer {
    uint32_t device = 0;
    uint64_t rows = 0;   // of it that the placement names
    uint32_t owner = 0;  // looked at last; 0 = nobody
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
