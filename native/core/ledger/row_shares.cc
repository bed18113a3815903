#include "core/ledger/row_shares.h"

#include <array>
#include <atomic>
#include <bit>

#include "core/base/failpoint.h"

namespace gnnd {
namespace {

using Words = std::array<uint64_t, 8>;
static_assert(sizeof(Words) == sizeof(gnnd_device_handle));
static_assert(sizeof(Words) == sizeof(RowShare::handle));

}  // namespace

void RowShares::Publish(uint32_t device, const SharedRows& rows) const {
  RowShare& share = segment_.share(device);
  if (GNND_BROKEN("share-owner-last")) share.owner.store(rows.owner, std::memory_order_release);
  share.bytes.store(rows.bytes, std::memory_order_relaxed);
  const auto words = std::bit_cast<Words>(rows.handle);
  for (size_t i = 0; i < words.size(); ++i) {
    share.handle[i].store(words[i], std::memory_order_relaxed);
    GNND_FAILPOINT("share.writing");
  }
  GNND_FAILPOINT("share.before_owner");
  // Pairs with the acquires of OwnerOf: the rows and their handle are written before.
  share.owner.store(rows.owner, std::memory_order_release);
  GNND_FAILPOINT("share.after_owner");
}

void RowShares::Withdraw(uint32_t device, uint32_t owner) const {
  std::atomic<uint32_t>& word = segment_.share(device).owner;
  uint32_t expected = GNND_BROKEN("share-withdraws-own") ? word.load() : owner;
  GNND_FAILPOINT("share.before_withdraw");
  word.compare_exchange_strong(expected, 0, std::memory_order_release, std::memory_order_relaxed);
  GNND_FAILPOINT("share.after_withdraw");
}

uint32_t RowShares::OwnerOf(uint32_t device) const {
  return segment_.share(device).owner.load(std::memory_order_acquire);
}

std::optional<SharedRows> RowShares::Of(uint32_t device) const {
  const RowShare& share = segment_.share(device);
  SharedRows rows;
  rows.owner = OwnerOf(device);
  if (rows.owner == 0) return std::nullopt;
  rows.bytes = share.bytes.load(std::memory_order_relaxed);
  Words words;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = share.handle[i].load(std::memory_order_relaxed);
    GNND_FAILPOINT("share.reading");
  }
  rows.handle = std::bit_cast<gnnd_device_handle>(words);
  // Keeps the loads above before the next one: a new owner writes only after this name is gone.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (GNND_BROKEN("share-looks-again")) return rows;
  if (share.owner.load(std::memory_order_relaxed) != rows.owner) return std::nullopt;
  return rows;
}

}  // namespace gnnd
