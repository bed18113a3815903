#include "cuda/shim/shim.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "cuda/queue.h"
#include "cuda/shim/fibers.h"

// This code runs between the instrumented instructions of kernels: under ThreadSanitizer it must
// not call intercepted functions (allocation, memset, memcpy) while a fiber runs.

namespace gnnd::shim {
namespace {

using cuda::kMaxThreads;
using cuda::kWarpLanes;

constexpr uint64_t kSharedBytes = uint64_t{48} << 10;  // every device gives a block this much
constexpr uint32_t kMaxShared = 16;                    // arrays in a kernel
constexpr uint32_t kWarps = kMaxThreads / kWarpLanes;

const char* NameOf(Meeting kind) {
  switch (kind) {
    case Meeting::kSync:
      return "WarpSync";
    case Meeting::kShuffle:
      return "Shuffle";
    case Meeting::kBallot:
      return "Ballot";
    default:
      return "MatchAny";
  }
}

// A place where lanes of a warp wait for the other lanes of their mask. Groups may be at different
// points of a kernel, so a warp has several at a time, each for another mask.
struct Place {
  uint32_t arrived = 0;  // lanes
  uint32_t mask = 0;
  Meeting kind = Meeting::kSync;
  uint32_t line = 0;
};

struct FiberState {
  bool ended = false;
  bool at_barrier = false;
  const Place* place = nullptr;  // the place where it waits
  uint64_t value = 0;            // the value that it brought, then the one that it receives
  uint32_t source = 0;
};

struct SharedArray {
  const void* place = nullptr;
  uint8_t* memory = nullptr;
  uint64_t bytes = 0;
};

class Machine {
 public:
  ~Machine() {
    FreeArrays();
    if (arena_ != nullptr) munmap(arena_, kSharedBytes);
  }

  void Set(const Options& options) {
    options_ = options;
    random_ = options.random_seed * 0x9E3779B97F4A7C15U + 1;
  }
  void Run(const Grid& grid, const std::function<void()>& thread);

  uint32_t thread() const { return running_; }
  uint32_t block() const { return block_; }
  const Grid& grid() const { return grid_; }
  const Counts& counts() const { return counts_; }

  void* Shared(const void* place, uint64_t bytes);
  void* DynamicShared() { return Shared(nullptr, grid_.shared_bytes); }
  void BlockSync(uint32_t line);
  uint64_t Meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t source, uint32_t line);
  void AtAtomic();

 private:
  static void Entry();
  void RunBlock();
  void RenewArena();
  void Finish();  // the running fiber's thread
  // Called by the running fiber, which owns nothing, as it is abandoned.
  [[noreturn]] void Fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  [[noreturn]] void FailDeadlocked();

  void MakeReady(uint32_t thread) { ready_[ready_end_++ % kMaxThreads] = thread; }
  uint32_t TakeReady();
  // Continues another thread or, if there is none, the end of the block.
  void Leave(bool last);
  Place& PlaceOf(uint32_t warp, uint32_t mask);
  void Complete(uint32_t warp, Place* place);
  uint64_t Random();
  void FreeArrays();
  void Poison(const SharedArray& array);
  void Release(const void* tag);
  void Acquire(const void* tag);
  // A word per meeting place of a block for ThreadSanitizer; blocks take turns with the words.
  const void* Tag(uint32_t place) const {
    return tags_ + uint64_t{block_ % kTagBlocks} * kBlockTags + place;
  }

  static constexpr uint32_t kBlockTags = 4 + kMaxThreads;
  static constexpr uint32_t kTagBlocks = 16;
  static constexpr uint32_t kBarrierTag = 0;

  Options options_;
  Grid grid_{};
  const std::function<void()>* body_ = nullptr;
  Fibers fibers_;
  Counts counts_;
  uint64_t random_ = 1;
  char fault_[512] = {};
  bool failed_ = false;

  uint32_t block_ = 0;
  uint32_t running_ = 0;
  uint32_t ended_ = 0;
  uint32_t at_barrier_ = 0;
  uint32_t barrier_line_ = 0;
  uint32_t ready_[kMaxThreads];  // ring buffer
  uint64_t ready_begin_ = 0;
  uint64_t ready_end_ = 0;
  FiberState states_[kMaxThreads];
  Place places_[kWarps][kWarpLanes];
  SharedArray arrays_[kMaxShared];
  uint32_t num_arrays_ = 0;
  uint64_t shared_bytes_ = 0;
  uint8_t* arena_ = nullptr;  // for ThreadSanitizer, under which a fiber must not allocate arrays
  char tags_[kTagBlocks * kBlockTags] = {};
  char begin_tag_ = 0;
  char end_tag_ = 0;
};

Machine& This() {
  thread_local Machine machine;
  return machine;
}

void Machine::Release([[maybe_unused]] const void* tag) {
#if defined(GNND_SHIM_TSAN)
  __tsan_release(const_cast<void*>(tag));
#endif
}

void Machine::Acquire([[maybe_unused]] const void* tag) {
#if defined(GNND_SHIM_TSAN)
  __tsan_acquire(const_cast<void*>(tag));
#endif
}

uint64_t Machine::Random() {  // xorshift64*
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545F4914F6CDD1DU >> 32;
}

void Machine::Run(const Grid& grid, const std::function<void()>& thread) {
  GNND_CHECK(body_ == nullptr);  // kernels launch nothing
  if (grid.blocks == 0) return;
  if (grid.threads == 0 || grid.threads > kMaxThreads || grid.threads % kWarpLanes != 0) {
    throw Fault("a launch of " + std::to_string(grid.threads) +
                " threads a block, not whole warps" + " of at most " + std::to_string(kMaxThreads) +
                " together");
  }
  if (grid.shared_bytes > kSharedBytes) {
    throw Fault("a launch with " + std::to_string(grid.shared_bytes) + " bytes of shared memory");
  }
  grid_ = grid;
  body_ = &thread;
  failed_ = false;
  ++counts_.launches;
  // Shuffled: blocks run in the order start + i * step, with a step coprime to their number.
  const uint64_t start = options_.shuffled ? Random() % grid.blocks : 0;
  uint64_t step = 1;
  if (options_.shuffled && grid.blocks > 2) {
    do {
      step = 1 + Random() % (grid.blocks - 1);
    } while (std::gcd(step, grid.blocks) != 1);
  }
  for (uint64_t i = 0; i < grid.blocks && !failed_; ++i) {
    block_ = static_cast<uint32_t>((start + i * step) % grid.blocks);
    RunBlock();
  }
  Acquire(&end_tag_);
  body_ = nullptr;
  FreeArrays();
  if (failed_) {
    fibers_.Abandon();
    throw Fault(fault_);
  }
}

void Machine::RunBlock() {
  fibers_.Prepare(grid_.threads, Entry, options_.portable_switch);
  if (options_.block_fibers) fibers_.ForgetOrder();
  RenewArena();
  Release(&begin_tag_);
  for (uint32_t a = 0; a < num_arrays_; ++a) Poison(arrays_[a]);
  std::fill_n(states_, grid_.threads, FiberState{});
  std::fill_n(&places_[0][0], kWarps * kWarpLanes, Place{});
  ended_ = 0;
  at_barrier_ = 0;
  ready_begin_ = 0;
  ready_end_ = 0;
  for (uint32_t t = 0; t < grid_.threads; ++t) MakeReady(t);
  running_ = TakeReady();
  fibers_.Switch(running_);
}

// For ThreadSanitizer, each block must have other shared memory.
void Machine::RenewArena() {
#if defined(GNND_SHIM_TSAN)
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (arena_ == nullptr ? 0 : MAP_FIXED);
  void* const memory = mmap(arena_, kSharedBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  GNND_CHECK(memory != MAP_FAILED);
  arena_ = static_cast<uint8_t*>(memory);
#endif
}

void Machine::Entry() {
  Machine& machine = This();
  machine.fibers_.Arrived();
  machine.Acquire(&machine.begin_tag_);
  (*machine.body_)();
  machine.Finish();
}

void Machine::Finish() {
  if (at_barrier_ > 0) {
    Fail("leaves the kernel, and others wait at the barrier of line %u", barrier_line_);
  }
  Release(&end_tag_);
  states_[running_].ended = true;
  ++ended_;
  Leave(true);
}

uint32_t Machine::TakeReady() {
  if (options_.shuffled) {
    const uint64_t other = ready_begin_ + Random() % (ready_end_ - ready_begin_);
    std::swap(ready_[ready_begin_ % kMaxThreads], ready_[other % kMaxThreads]);
  }
  return ready_[ready_begin_++ % kMaxThreads];
}

void Machine::Leave(bool last) {
  if (ready_begin_ == ready_end_) {
    if (ended_ < grid_.threads) FailDeadlocked();
    fibers_.Switch(Fibers::kMain, last);
    return;
  }
  const uint32_t next = TakeReady();
  if (next == running_) return;
  ++counts_.switches;
  running_ = next;
  fibers_.Switch(next, last);
}

void Machine::Fail(const char* format, ...) {
  const int used = snprintf(fault_, sizeof fault_, "thread %u of block %u ", running_, block_);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault_ + used, sizeof fault_ - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  failed_ = true;
  fibers_.Switch(Fibers::kMain);
  __builtin_unreachable();
}

// Reports the first waiting thread; its place tells about the others.
void Machine::FailDeadlocked() {
  for (running_ = 0; states_[running_].ended;) ++running_;
  const FiberState& state = states_[running_];
  if (state.at_barrier) Fail("waits for ever at the barrier of line %u", barrier_line_);
  Fail("waits for ever in %s of line %u: mask %08x, came %08x", NameOf(state.place->kind),
       state.place->line, state.place->mask, state.place->arrived);
}

void Machine::BlockSync(uint32_t line) {
  if (ended_ > 0) Fail("comes to the barrier of line %u, and others left the kernel", line);
  if (at_barrier_ > 0 && line != barrier_line_) {
    Fail("comes to the barrier of line %u, and others wait at that of line %u", line,
         barrier_line_);
  }
  Release(Tag(kBarrierTag));
  barrier_line_ = line;
  states_[running_].at_barrier = true;
  if (++at_barrier_ == grid_.threads) {
    at_barrier_ = 0;
    for (uint32_t t = 0; t < grid_.threads; ++t) {
      states_[t].at_barrier = false;
      MakeReady(t);
    }
  }
  Leave(false);
  Acquire(Tag(kBarrierTag));
}

Place& Machine::PlaceOf(uint32_t warp, uint32_t mask) {
  Place* unused = nullptr;
  for (Place& place : places_[warp]) {
    if (place.arrived != 0 && place.mask == mask) return place;
    if (place.arrived == 0) {
      if (unused == nullptr) unused = &place;
      if (place.mask == 0) break;  // none beyond was ever used
    }
  }
  return *unused;  // a lane waits at one place at most
}

uint64_t Machine::Meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t source,
                       uint32_t line) {
  const uint32_t warp = running_ / kWarpLanes;
  const uint32_t lane = running_ % kWarpLanes;
  const auto fail = [&](const char* what) {
    Fail("in %s of line %u %s", NameOf(kind), line, what);
  };
  if ((mask >> lane & 1) == 0) fail("is not in its own mask");
  if (kind == Meeting::kShuffle && (mask >> source & 1) == 0) fail("reads a lane outside its mask");
  Place& place = PlaceOf(warp, mask);
  if (place.arrived == 0) place = {0, mask, kind, line};
  if (place.kind != kind || place.line != line) fail("meets lanes in another function or line");
  const uint32_t tag = 4 + warp * kWarpLanes + static_cast<uint32_t>(__builtin_ctz(mask));
  if (kind == Meeting::kSync) Release(Tag(tag));
  FiberState& state = states_[running_];
  state.value = value;
  state.source = source;
  state.place = &place;
  place.arrived |= 1U << lane;
  if (place.arrived == mask) Complete(warp, &place);
  Leave(false);
  if (kind == Meeting::kSync) Acquire(Tag(tag));
  return state.value;
}

// Gives each lane the value that it receives, and lets the lanes continue.
void Machine::Complete(uint32_t warp, Place* place) {
  FiberState* const lanes = states_ + warp * kWarpLanes;
  uint64_t values[kWarpLanes];
  uint32_t ballot = 0;
  for (uint32_t l = 0; l < kWarpLanes; ++l) {
    if ((place->mask >> l & 1) == 0) continue;
    values[l] = lanes[l].value;
    if (values[l] != 0) ballot |= 1U << l;
  }
  for (uint32_t l = 0; l < kWarpLanes; ++l) {
    if ((place->mask >> l & 1) == 0) continue;
    if (place->kind == Meeting::kShuffle) {
      lanes[l].value = values[lanes[l].source];
    } else if (place->kind == Meeting::kBallot) {
      lanes[l].value = ballot;
    } else if (place->kind == Meeting::kMatch) {
      uint32_t same = 0;
      for (uint32_t k = 0; k < kWarpLanes; ++k) {
        if ((place->mask >> k & 1) != 0 && values[k] == values[l]) same |= 1U << k;
      }
      lanes[l].value = same;
    }
    lanes[l].place = nullptr;
    MakeReady(warp * kWarpLanes + l);
  }
  place->arrived = 0;
}

void Machine::AtAtomic() {
  if (!options_.shuffled || Random() % 4 != 0) return;
  MakeReady(running_);
  Leave(false);
}

void* Machine::Shared(const void* place, uint64_t bytes) {
  for (uint32_t a = 0; a < num_arrays_; ++a) {
    if (arrays_[a].place == place) return arrays_[a].memory;
  }
  if (num_arrays_ == kMaxShared || shared_bytes_ + bytes > kSharedBytes) {
    Fail("takes more shared memory than a block has");
  }
  SharedArray& array = arrays_[num_arrays_++];
  array = {place, nullptr, bytes};
  // Each array is its own allocation, so that AddressSanitizer knows its ends.
  array.memory = arena_ != nullptr ? arena_ + shared_bytes_ : static_cast<uint8_t*>(malloc(bytes));
  shared_bytes_ += (bytes + 15) / 16 * 16;
  Poison(array);
  return array.memory;
}

void Machine::Poison(const SharedArray& array) {
  for (uint64_t i = 0; i < array.bytes; ++i) {
    array.memory[i] = options_.poison;
#if defined(GNND_SHIM_TSAN)
    __asm__ volatile("" ::: "memory");  // keeps the compiler from calling memset
#endif
  }
}

void Machine::FreeArrays() {
  for (uint32_t a = 0; a < num_arrays_; ++a) {
    if (arena_ == nullptr) free(arrays_[a].memory);
  }
  num_arrays_ = 0;
  shared_bytes_ = 0;
}

}  // namespace

void SetOptions(const Options& options) { This().Set(options); }
void Run(const Grid& grid, const std::function<void()>& thread) { This().Run(grid, thread); }
Counts CountsSoFar() { return This().counts(); }

void Submit(Stream* stream, const Grid& grid, std::function<void()> thread) {
  if (stream == nullptr) {
    Run(grid, thread);
  } else {
    stream->Add([grid, thread = std::move(thread)] { Run(grid, thread); });
  }
}

uint32_t Thread() { return This().thread(); }
uint32_t BlockThreads() { return This().grid().threads; }
uint32_t Block() { return This().block(); }
uint32_t Blocks() { return This().grid().blocks; }
void* Shared(const void* place, uint64_t bytes) { return This().Shared(place, bytes); }
void* DynamicShared() { return This().DynamicShared(); }
void BlockSync(uint32_t line) { This().BlockSync(line); }
uint64_t Meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t source, uint32_t line) {
  return This().Meet(kind, mask, value, source, line);
}
void AtAtomic() { This().AtAtomic(); }

}  // namespace gnnd::shim
