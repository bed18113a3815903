#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

// The language of kernels (cuda/dev.h) on a processor. Each thread of a block is a fiber, which
// runs until it meets others: at a barrier, in a warp function. Blocks run one after another. So a
// kernel gives a GPU's results as long as it keeps the rules that dev.h states, and most ways to
// break them are detected:
//
//   a thread leaves while others wait at a barrier; lanes of a mask meet in different functions or
//   lines, or some never come; a lane outside its own mask, or that reads a lane outside
//   it; more shared memory or threads than a block has                            Fault
//   an access beyond an array, static and dynamic shared ones included            AddressSanitizer
//   no barrier between a write and another thread's access; plain updates that
//   should be atomic                                                              ThreadSanitizer
//   reads of shared memory that nobody wrote                  results under another poison differ
//   results that depend on the order of threads or blocks        results in shuffled order differ
//
// docs/decisions/0041 says what it cannot show. Each OS thread has a machine of its own.

namespace gnnd::shim {

// A rule of dev.h is broken. The kernel is abandoned where it was.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Options for the kernels that this OS thread runs, from now on.
struct Options {
  bool shuffled = false;  // random order of threads and blocks; changes to others within atomics
  uint64_t random_seed = 1;
  uint8_t poison = 0xA5;         // initial content of shared memory
  bool portable_switch = false;  // swapcontext, as on processors without our own switch
  bool block_fibers = false;     // ThreadSanitizer: two blocks count as unordered
};
void SetOptions(const Options& options);

struct Grid {
  uint32_t blocks;
  uint32_t threads;
  uint32_t shared_bytes;
};

// Runs a grid on the calling OS thread. Throws Fault.
void Run(const Grid& grid, const std::function<void()>& thread);

// Represents a device's stream; null means that work runs at once.
class Stream {
 public:
  virtual ~Stream() = default;
  // Adds work that may run from now on, after earlier work.
  virtual void Add(std::function<void()> work) = 0;
};

void Submit(Stream* stream, const Grid& grid, std::function<void()> thread);

// Counts since this OS thread began, for tests of cost.
struct Counts {
  uint64_t launches = 0;
  uint64_t switches = 0;  // from one fiber to another
};
Counts CountsSoFar();

// The rest is for shim_dev.h. None of it is instrumented.
uint32_t Thread();
uint32_t BlockThreads();
uint32_t Block();
uint32_t Blocks();
void* Shared(const void* place, uint64_t bytes);
void* DynamicShared();
void BlockSync(uint32_t line);
// `source` is a lane of the warp, for kShuffle.
enum class Meeting : uint32_t { kSync, kShuffle, kBallot, kMatch };
uint64_t Meet(Meeting kind, uint32_t mask, uint64_t value, uint32_t source, uint32_t line);
void AtAtomic();

}  // namespace gnnd::shim
