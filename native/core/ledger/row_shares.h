#pragma once

#include <cstdint>
#include <optional>

#include "core/ledger/segment.h"
#include "include/gnnd/device_plugin.h"

// Which feature rows the Trainers of a job let each other read, where a placement spreads them over
// linked devices: an entry a device. Its Trainer writes the entry before it trains and its own
// incarnation last; the daemon takes that away once it has reaped the process. So who reads an
// owner reads what is that owner's, and who reads the same owner again may go on using it. Readers
// that find none read the host's rows: nobody waits for another one's rows, ever.

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
  // Nothing where the entry is another one's. The owner's at its end, or the daemon's.
  void Withdraw(uint32_t device, uint32_t owner) const;

  // 0: nobody.
  uint32_t OwnerOf(uint32_t device) const;
  // None where nobody shares, or the owner changes meanwhile.
  std::optional<SharedRows> Of(uint32_t device) const;

 private:
  Segment& segment_;
};

}  // namespace gnnd
