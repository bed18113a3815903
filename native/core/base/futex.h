#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "core/base/clock.h"

// An event word in shared memory, on which processes sleep.
//
// Who waits: `seen = Load()`, then looks at what it waits for, then `Wait(seen, timeout)`.
// Who wakes: changes the state first, then `Notify()`.
// A change after the look has also changed the word, so the kernel does not let the waiter sleep.
// Every Wait is bounded: returning means "look again", never "it happened" and never "it failed".

namespace gnnd {

class EventWord {
 public:
  // Acquire: pairs with the release in Notify, so that a waiter that saw the new number also sees
  // the change that was announced with it.
  uint32_t Load() const { return word_.load(std::memory_order_acquire); }

  // Sleeps until the word differs from `seen`, at most `timeout_ns`. Signals and spurious wake-ups
  // return early. Not FUTEX_PRIVATE: the word is shared between processes.
  void Wait(uint32_t seen, uint64_t timeout_ns) {
    const timespec timeout = ToTimespec(timeout_ns);
    syscall(SYS_futex, &word_, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  }

  // Changes the number and wakes all waiters. Release: pairs with Load.
  void Notify() {
    word_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &word_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> word_;
};
static_assert(sizeof(EventWord) == 4 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace gnnd
