#include "train/device/peer_rows.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

namespace gnnd {

PeerRows::PeerRows(const Device& device, const RowPlacement& placement, uint64_t row_bytes,
                   const RowShares& shares)
    : device_(device), placement_(placement), row_bytes_(row_bytes), shares_(shares) {
  for (const uint32_t other : placement.Peers()) {
    peers_.push_back({other, placement.RowsOf(other), 0, {}});
  }
}

void PeerRows::Refresh(gnnd_device_row_tiers* tiers) {
  bool changed = false;
  for (Peer& peer : peers_) {
    if (shares_.OwnerOf(peer.device) == peer.owner) continue;
    changed = true;
    Open(&peer);
  }
  if (!changed) return;
  uint32_t at = 0;
  for (const RowPlacement::Line& line : placement_.lines) {
    for (const RowPlacement::Place& place : line.places) {
      const auto peer = std::ranges::find(peers_, place.device, &Peer::device);
      const uint32_t index = at++;
      if (peer == peers_.end()) continue;
      const std::byte* const rows = peer->memory.data();
      tiers->place[index] = rows == nullptr ? nullptr : rows + place.row * row_bytes_;
    }
  }
}

// Opens the memory of the present owner, if any; after a failure it is not tried again.
void PeerRows::Open(Peer* peer) {
  peer->memory = OpenedDeviceMemory();
  const std::optional<SharedRows> rows = shares_.Of(peer->device);
  peer->owner = rows.has_value() ? rows->owner : 0;
  if (!rows.has_value()) return;
  std::string why = "it shares " + std::to_string(rows->bytes) + " bytes";
  if (rows->bytes >= peer->rows * row_bytes_) {
    Result<OpenedDeviceMemory> opened = OpenedDeviceMemory::Open(device_, rows->handle);
    if (opened.ok()) {
      peer->memory = std::move(*opened);
      return;
    }
    why = opened.status().message();
  }
  static_cast<void>(std::fprintf(stderr,
                                 "gnnd.peer: rows of device %u are read from the host: %s\n",
                                 peer->device, why.c_str()));
}

}  // namespace gnnd
