#pragma once

// Places where a test kills a process, and rules that a test drops.
//
// Compiled in only with GNND_FAILPOINTS (CMake: -DGNND_FAILPOINTS=ON); otherwise the macros vanish.
//
//   GNND_FAILPOINT("claim.after");             a named point
//   if (!GNND_BROKEN("slot-window") && ...)    a rule that can be dropped
//   GNND_VISIT();                              a batch's ledger word is looked at: tests count them
//
// From the environment:  GNND_FAILPOINT=name:nth   SIGKILLs the process at its nth visit (from 1)
//                        GNND_BREAK=rule           drops that rule in this process
// From a test:           failpoint::Arm(name, nth, callback), failpoint::Break(rule),
//                        failpoint::MakeTime(true)

#ifndef GNND_FAILPOINTS

#define GNND_FAILPOINT(name) static_cast<void>(0)
#define GNND_BROKEN(rule) false
#define GNND_VISIT() static_cast<void>(0)
#define GNND_WAIT_CAP_NS(otherwise) (otherwise)
#define GNND_MADE_NS(otherwise) (otherwise)

#else

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace gnnd::failpoint {

struct State {
  std::mutex mutex;
  std::string armed;
  int visits_left = 0;
  std::function<void()> action;  // empty = SIGKILL
  std::string broken;
  void (*every)() = nullptr;
  std::atomic<uint64_t> wait_cap_ns{0};  // 0 = the product's
  std::atomic<bool> makes_time{false};

  State() {
    if (const char* spec = std::getenv("GNND_FAILPOINT")) {
      const std::string text(spec);
      const size_t colon = text.rfind(':');
      armed = text.substr(0, colon);
      visits_left = colon == std::string::npos ? 1 : std::atoi(text.c_str() + colon + 1);
    }
    if (const char* rule = std::getenv("GNND_BREAK")) broken = rule;
  }
};

inline State& TheState() {
  static State state;
  return state;
}

// Arms one point for this process; an empty name disarms. `action` runs without any lock held.
inline void Arm(std::string name, int nth, std::function<void()> action = {}) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.armed = std::move(name);
  state.visits_left = nth;
  state.action = std::move(action);
}

// Drops one rule in this process; an empty name restores all.
inline void Break(std::string rule) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.broken = std::move(rule);
}

// Runs `action` at every point from now on: a test that shakes the schedule. nullptr ends it.
inline void AtEvery(void (*action)()) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  state.every = action;
}

// How long a loop sleeps at most before it looks again. A test that sets hours shows that no
// wake-up is missing; one that sets milliseconds does not wait for what a dead process failed to
// announce.
inline void SetWaitCapNs(uint64_t ns) { TheState().wait_cap_ns.store(ns); }
inline uint64_t WaitCapNs(uint64_t otherwise) {
  const uint64_t cap = TheState().wait_cap_ns.load();
  return cap == 0 ? otherwise : cap;
}

// From now on each thread has a time of its own, which passes where a test says so and by 1 ns at
// each look: what is counted depends on the work alone and not on the machine. Sleeping takes none.
inline void MakeTime(bool makes) { TheState().makes_time.store(makes); }
inline uint64_t& ThreadNs() {
  static thread_local uint64_t ns = 0;
  return ns;
}
inline void PassNs(uint64_t ns) { ThreadNs() += ns; }
inline uint64_t MadeNs(uint64_t otherwise) {
  return TheState().makes_time.load(std::memory_order_relaxed) ? ++ThreadNs() : otherwise;
}

// Ledger words of batches that this thread has looked at.
inline uint64_t& Visits() {
  static thread_local uint64_t visits = 0;
  return visits;
}

inline void Hit(const char* name) {
  State& state = TheState();
  std::function<void()> action = [] { kill(getpid(), SIGKILL); };
  void (*every)() = nullptr;
  bool hit = false;
  {
    const std::lock_guard lock(state.mutex);
    every = state.every;
    hit = state.armed == name && --state.visits_left == 0;
    if (hit && state.action) action = state.action;
  }
  if (every != nullptr) every();
  if (hit) action();
}

inline bool Broken(const char* rule) {
  State& state = TheState();
  const std::lock_guard lock(state.mutex);
  return state.broken == rule;
}

}  // namespace gnnd::failpoint

#define GNND_FAILPOINT(name) ::gnnd::failpoint::Hit(name)
#define GNND_BROKEN(rule) ::gnnd::failpoint::Broken(rule)
#define GNND_VISIT() ++::gnnd::failpoint::Visits()
#define GNND_WAIT_CAP_NS(otherwise) ::gnnd::failpoint::WaitCapNs(otherwise)
#define GNND_MADE_NS(otherwise) ::gnnd::failpoint::MadeNs(otherwise)

#endif
