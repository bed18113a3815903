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
// A waiter calls `seen = Load()`, then checks its condition, then calls `Wait(seen, timeout)`.
// A waker changes the state first, then calls `Notify()`.
// A change after the check has also changed the word, so the kernel does not let the waiter sleep.
// Every Wait is bounded: returning means "look again", never "it happened" and never "it failed".
//
// News have kinds, bits of a mask that the users of a word agree on: a sleeper wakes only for kinds
// that it named. A waiter that does not sleep yet looks again after news of any kind.

namespace gnnd {

inline constexpr uint32_t kAllNews = 0xFFFFFFFF;

class EventWord {
 public:
  // Acquire: pairs with the release in Notify, so that a waiter that saw the new number also sees
  // the change that was announced with it.
  uint32_t Load() const { return word_.load(std::memory_order_acquire); }

  // Sleeps until news of a kind in `news` come or, at once, if any came since `seen`; at most
  // `timeout_ns`. Signals and spurious wake-ups return early. Not FUTEX_PRIVATE: the word is shared
  // between processes.
  void Wait(uint32_t seen, uint64_t timeout_ns, uint32_t news = kAllNews) {
    // Sequentially consistent, as in Notify: either Notify sees the sleeper, or the kernel sees
    // here that the word has changed.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const timespec deadline = ToTimespec(KernelNs() + timeout_ns);
    syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET, seen, &deadline, nullptr, news);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // Changes the number and wakes up to `most` of those who sleep for any kind in `news`; returns
  // how many. Release: pairs with Load.
  int Notify(uint32_t news = kAllNews, int most = INT_MAX) {
    word_.fetch_add(1, std::memory_order_seq_cst);
    if (!anybody_sleeps()) return 0;
    const long woken = syscall(SYS_futex, &word_, FUTEX_WAKE_BITSET, most, nullptr, nullptr, news);
    return woken > 0 ? static_cast<int>(woken) : 0;
  }

  // False only if nobody sleeps. A process killed in its sleep stays counted for ever, which costs
  // one system call per Notify and no more.
  bool anybody_sleeps() const { return sleepers_.load(std::memory_order_seq_cst) != 0; }

 private:
  std::atomic<uint32_t> word_;
  std::atomic<uint32_t> sleepers_;
};
static_assert(sizeof(EventWord) == 8 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace gnnd
