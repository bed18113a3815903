#pragma once

#include <ucontext.h>

#include <cstdint>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define GNND_SHIM_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
// ThreadSanitizer would take the shim's own work for the kernel's: only kernels are instrumented,
// and the shim is compiled with GNND_SHIM_TSAN instead (native/cmake/cuda.cmake).
#if defined(GNND_SHIM_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// Stacks to run on, one at a time, on one OS thread. Fibers 0 .. belong to a block's threads; kMain
// is the OS thread's own stack. This class tells sanitizers about switches.

namespace gnnd::shim {

class Fibers {
 public:
  static constexpr uint32_t kMain = 0xFFFFFFFF;

  Fibers() = default;
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Makes `count` fibers that begin in `entry`, which calls Arrived() and never returns. Earlier
  // fibers must have ended with a last switch or been abandoned. Called on kMain.
  void Prepare(uint32_t count, void (*entry)(), bool portable);

  // Drops fibers that may be in the middle of their work and will not go on. Called on kMain.
  void Abandon();

  // From now on no earlier work of fibers counts as done before later work. Called on kMain.
  void ForgetOrder();

  // Continues `to` where it left off. `last`: the calling fiber never continues.
  void Switch(uint32_t to, bool last = false);

  // Called at the beginning of each fiber.
  void Arrived();

 private:
  struct Stack {
    uint8_t* memory = nullptr;  // above its guard page
    void* pointer = nullptr;    // where it left off
    ucontext_t context{};
    void* fake_stack = nullptr;  // AddressSanitizer's
    void* tsan = nullptr;
  };

  Stack& StackOf(uint32_t fiber) { return fiber == kMain ? main_ : stacks_[fiber]; }
  void Begin(Stack* stack, void (*entry)());
  static void Allocate(Stack* stack);

  std::vector<Stack> stacks_;
  Stack main_;
  const void* main_bottom_ = nullptr;
  size_t main_bytes_ = 0;
  uint32_t running_ = kMain;
  uint32_t left_ = kMain;  // the fiber that ran before
  bool portable_ = false;
};

}  // namespace gnnd::shim
