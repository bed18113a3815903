#pragma once

#include <pthread.h>

#include <cerrno>
#include <cstdint>

#include "core/base/check.h"
#include "core/base/clock.h"

// A process-shared, robust mutex with a deadline. If its owner dies, the next process to lock it is
// told so and must repair what it guards; here that means doing the interrupted work anew.

namespace gnnd {

enum class LockResult {
  kLocked,
  kOwnerDied,  // locked, too; the former owner died inside and its work may be half done
  kTimedOut,
};

class RobustMutex {
 public:
  // Called once, before any other process sees the memory.
  void Init() {
    pthread_mutexattr_t attributes;
    GNND_CHECK(pthread_mutexattr_init(&attributes) == 0);
    GNND_CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    GNND_CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    GNND_CHECK(pthread_mutex_init(&mutex_, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
  }

  // Waits at most `timeout_ns`; 0 only tries. The caller's thread must unlock.
  LockResult Lock(uint64_t timeout_ns) {
    int error = pthread_mutex_trylock(&mutex_);
    if (error == EBUSY && timeout_ns > 0) {
#ifdef __SANITIZE_THREAD__
      // GCC 12's ThreadSanitizer does not know clocklock and would see an unlock without a lock.
      timespec deadline{};
      clock_gettime(CLOCK_REALTIME, &deadline);
      deadline.tv_sec += static_cast<time_t>(timeout_ns / kNsPerSecond) + 1;
      error = pthread_mutex_timedlock(&mutex_, &deadline);
#else
      const timespec deadline = ToTimespec(KernelNs() + timeout_ns);
      error = pthread_mutex_clocklock(&mutex_, CLOCK_MONOTONIC, &deadline);
#endif
    }
    if (error == EOWNERDEAD) {
      // Made consistent at once: whoever locks redoes the work from state that is never half
      // written (the commit word), so there is nothing to repair before that.
      GNND_CHECK(pthread_mutex_consistent(&mutex_) == 0);
      return LockResult::kOwnerDied;
    }
    if (error == EBUSY || error == ETIMEDOUT) return LockResult::kTimedOut;
    GNND_CHECK(error == 0);
    return LockResult::kLocked;
  }

  void Unlock() { GNND_CHECK(pthread_mutex_unlock(&mutex_) == 0); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace gnnd
