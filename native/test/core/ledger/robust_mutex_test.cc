#include "core/base/robust_mutex.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "core/base/futex.h"

namespace gnnd {
namespace {

struct Shared {
  RobustMutex mutex;
  EventWord event;
};

Shared* MapShared() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto* shared = static_cast<Shared*>(memory);
  shared->mutex.Init();
  return shared;
}

}  // namespace

TEST_CASE("the next owner of a robust mutex hears that the last one died, again and again") {
  Shared* shared = MapShared();
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      shared->mutex.Lock(kNsPerSecond);
      kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, nullptr, 0) == child);
    CHECK(shared->mutex.Lock(kNsPerSecond) == LockResult::kOwnerDied);
    shared->mutex.Unlock();
    CHECK(shared->mutex.Lock(0) == LockResult::kLocked);
    shared->mutex.Unlock();
  }
  munmap(shared, sizeof(Shared));
}

TEST_CASE("a mutex that another thread holds is given up after the time-out") {
  Shared* shared = MapShared();
  CHECK(shared->mutex.Lock(0) == LockResult::kLocked);
  LockResult tried = LockResult::kLocked;
  LockResult waited = LockResult::kLocked;
  std::thread other([&] {
    tried = shared->mutex.Lock(0);
    waited = shared->mutex.Lock(kNsPerMs);
  });
  other.join();
  CHECK(tried == LockResult::kTimedOut);
  CHECK(waited == LockResult::kTimedOut);
  shared->mutex.Unlock();
  munmap(shared, sizeof(Shared));
}

TEST_CASE("an event that came before the wait does not let the waiter sleep") {
  Shared* shared = MapShared();
  const uint32_t seen = shared->event.Load();
  shared->event.Notify();
  shared->event.Wait(seen, uint64_t{3600} * kNsPerSecond);  // would last an hour
  CHECK(shared->event.Load() == seen + 1);
  munmap(shared, sizeof(Shared));
}

TEST_CASE("an event wakes waiters in other processes") {
  Shared* shared = MapShared();
  const uint32_t seen = shared->event.Load();
  pid_t children[3];
  for (pid_t& child : children) {
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      while (shared->event.Load() == seen) {
        shared->event.Wait(seen, uint64_t{3600} * kNsPerSecond);
      }
      _exit(7);
    }
  }
  shared->event.Notify();
  for (const pid_t child : children) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 7);
  }
  munmap(shared, sizeof(Shared));
}

}  // namespace gnnd
