#pragma once

#include <cstdint>
#include <optional>

#include "core/ledger/segment.h"
#include "include/gnnd/device_plugin.h"

// The feature rows that a job's Trainers let each other read if a placement spreads rows over
// linked devices: one entry per device. Its Trainer writes the entry before it trains, and its own
// incarnation last; the daemon removes the incarnation once it has reaped the process. So what a
// reader finds beside an owner is that owner's, and may be used while the owner stays the same.
// Readers that find no owner read the host's rows, and never wait for a Trainer's.

namespace gnnd {

struct SharedRows {
  uint32_t owner = 0;  // incarnation
  uint64_t bytes = 0;
  gnnd_device_handle handle{};
};

class RowShares {
 public:
  explicit RowShares(Segment& segment) : segment_(segment) {}

  // REQUIRES: the caller is the device's Trainer.
  void Publish(uint32_t device, const SharedRows& rows) const;
  // Clears the entry if `owner` still has it. Called by the owner at its end, or by the daemon.
  void Withdraw(uint32_t device, uint32_t owner) const;

  // The incarnation of the owner; 0: none.
  uint32_t OwnerOf(uint32_t device) const;
  // The shared rows; none if nobody shares, or the owner changes meanwhile.
  std::optional<SharedRows> Of(uint32_t device) const;

 private:
  Segment& segment_;
};

}  // namespace gnnd
