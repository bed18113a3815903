#include "train/ops/team.h"

#include <algorithm>
#include <system_error>

#include "core/base/check.h"
#include "core/base/clock.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace gnnd {
namespace {

// The next loop mostly comes within this time, and waking a thread takes longer than a short loop.
constexpr uint64_t kSpinNs = 100'000;
constexpr uint32_t kLooksPerClock = 32;
// Sleepers look again now and then, as in all waits (futex.h).
constexpr uint64_t kNapNs = kNsPerSecond;

constexpr uint32_t kPieceBits = 16;
constexpr uint64_t kDismissed = ~uint64_t{0};

constexpr uint32_t PiecesOf(uint64_t call) {
  return static_cast<uint32_t>(call & ((1U << kPieceBits) - 1));
}

// Whether this thread runs a piece, so that loops within it run on this thread alone.
thread_local bool is_inside = false;

inline void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// News for a helper, and for the first `helpers` ones: bits that repeat after 32 helpers.
constexpr uint32_t NewsOf(uint32_t helper) { return 1U << helper % 32; }
constexpr uint32_t NewsOfFirst(uint32_t helpers) {
  return helpers >= 31 ? kAllNews : (2U << helpers) - 2;
}

// Returns when is_there() holds; spins for a while, then sleeps until `kinds` of news.
template <typename IsThere>
void WaitFor(const IsThere& is_there, uint64_t spin_ns, EventWord* news, uint32_t kinds) {
  for (const uint64_t end_ns = KernelNs() + spin_ns; KernelNs() < end_ns;) {
    for (uint32_t look = 0; look < kLooksPerClock; ++look) {
      if (is_there()) return;
      Relax();
    }
  }
  for (;;) {
    const uint32_t seen = news->Load();
    if (is_there()) return;
    news->Wait(seen, kNapNs, kinds);
  }
}

}  // namespace

Team& Team::Mine() {
  thread_local Team team;
  return team;
}

Team::~Team() { Dismiss(); }

void Team::Dismiss() {
  call_.store(kDismissed, std::memory_order_release);  // pairs with the load in Help
  calls_.Notify();
  for (std::thread& helper : helpers_) helper.join();
  helpers_.clear();
}

void Team::Use(uint32_t threads) {
  if (threads == threads_ || is_inside) return;
  threads = std::clamp<uint32_t>(threads, 1, (1U << kPieceBits) - 1);
  if (threads > helpers_.size() + 1) {
    Dismiss();
    taken_ = std::make_unique<Taken[]>(threads);
    call_.store(number_ = 0, std::memory_order_relaxed);
    try {
      while (helpers_.size() + 1 < threads) {
        const auto self = static_cast<uint32_t>(helpers_.size() + 1);
        helpers_.emplace_back([this, self] { Help(self); });
      }
    } catch (const std::system_error&) {  // goes on with the helpers that it has
      threads = static_cast<uint32_t>(helpers_.size() + 1);
    }
  }
  threads_ = threads;
}

uint32_t Team::threads() const { return is_inside ? 1 : threads_; }

void Team::Help(uint32_t self) {
  is_inside = true;
#if defined(_OPENMP)
  omp_set_num_threads(1);  // for OpenMP loops of libraries within a piece
#endif
  bool is_needed = true;
  for (uint64_t seen = 0;;) {
    uint64_t call = seen;
    const auto is_called = [&] {
      // Acquire: pairs with the release in RunAll, so that this call's loop is visible.
      return (call = call_.load(std::memory_order_acquire)) != seen;
    };
    WaitFor(is_called, is_needed ? kSpinNs : 0, &calls_, NewsOf(self));
    if (call == kDismissed) return;
    is_needed = self < PiecesOf(call);
    if (is_needed) Work(call, self);
    seen = call;
  }
}

void Team::Work(uint64_t call, uint32_t first) {
  const uint64_t number = call >> kPieceBits;
  const uint32_t pieces = PiecesOf(call);
  for (uint32_t k = 0; k < pieces; ++k) {
    const uint32_t piece = (first + k) % pieces;
    std::atomic<uint64_t>& taken = taken_[piece].number;
    // Every piece that was taken has this loop's number, or a later one.
    uint64_t last = taken.load(std::memory_order_relaxed);
    if (last >= number) continue;
    if (!taken.compare_exchange_strong(last, number, std::memory_order_relaxed)) continue;
    // This piece keeps the loop from ending, so loop_ is this call's.
    loop_.run(loop_.context, piece);
    // Release: pairs with the acquire in RunAll, so that the piece's writes are visible there.
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.Notify();
  }
}

void Team::RunAll(uint32_t pieces, const Loop& loop) {
  GNND_CHECK(pieces <= threads() && !is_inside);
  is_inside = true;
  if (pieces <= 1) {
    if (pieces == 1) loop.run(loop.context, 0);
  } else {
    loop_ = loop;
    left_.store(pieces, std::memory_order_relaxed);
    const uint64_t call = ++number_ << kPieceBits | pieces;
    call_.store(call, std::memory_order_release);  // pairs with the load in Help
    calls_.Notify(NewsOfFirst(pieces - 1));
    Work(call, 0);
    // Acquire: pairs with the release in Work.
    const auto is_done = [&] { return left_.load(std::memory_order_acquire) == 0; };
    WaitFor(is_done, kSpinNs, &done_, kAllNews);
  }
  is_inside = false;
}

}  // namespace gnnd
