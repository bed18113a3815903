#include "cuda/shim/fibers.h"

#include <sys/mman.h>

#include "core/base/check.h"

namespace gnnd::shim {
namespace {

constexpr size_t kStackBytes = size_t{64} << 10;
constexpr size_t kGuardBytes = size_t{4} << 10;

}  // namespace

#if defined(__x86_64__)
// Saves the callee-saved registers on the present stack, stores its pointer in *left, and goes on
// with the other stack. swapcontext does the same with a system call each time, 8 times slower.
extern "C" void GnndShimSwitch(void** left, void* pointer);
__asm__(
    ".text\n"
    ".globl GnndShimSwitch\n"
    ".hidden GnndShimSwitch\n"
    ".type GnndShimSwitch, @function\n"
    "GnndShimSwitch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size GnndShimSwitch, .-GnndShimSwitch\n");
constexpr bool kHasOwnSwitch = true;
#else
void GnndShimSwitch(void**, void*) { GNND_CHECK(false); }
constexpr bool kHasOwnSwitch = false;
#endif

Fibers::~Fibers() {
  for (Stack& stack : stacks_) {
#if defined(GNND_SHIM_TSAN)
    __tsan_destroy_fiber(stack.tsan);
#endif
    munmap(stack.memory - kGuardBytes, kGuardBytes + kStackBytes);
  }
}

void Fibers::Allocate(Stack* stack) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const memory =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  GNND_CHECK(memory != MAP_FAILED);
  GNND_CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0);
  stack->memory = static_cast<uint8_t*>(memory) + kGuardBytes;
#if defined(GNND_SHIM_TSAN)
  stack->tsan = __tsan_create_fiber(0);
#endif
}

void Fibers::Begin(Stack* stack, void (*entry)()) {
  if (portable_) {
    GNND_CHECK(getcontext(&stack->context) == 0);
    stack->context.uc_stack.ss_sp = stack->memory;
    stack->context.uc_stack.ss_size = kStackBytes;
    stack->context.uc_link = nullptr;
    makecontext(&stack->context, entry, 0);
    return;
  }
  // Looks like a stack that entry's caller left: six registers, the return address, and a word that
  // gives the stack the alignment of a call.
  auto** top = reinterpret_cast<void**>(stack->memory + kStackBytes) - 8;
  for (uint32_t i = 0; i < 6; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void*>(entry);
  top[7] = nullptr;
  stack->pointer = top;
}

void Fibers::Prepare(uint32_t count, void (*entry)(), bool portable) {
  GNND_CHECK(running_ == kMain);
  portable_ = portable || !kHasOwnSwitch;
#if defined(GNND_SHIM_TSAN)
  if (main_.tsan == nullptr) main_.tsan = __tsan_get_current_fiber();
#endif
  while (stacks_.size() < count) Allocate(&stacks_.emplace_back());
  for (uint32_t i = 0; i < count; ++i) Begin(&stacks_[i], entry);
}

void Fibers::Abandon() {
#if defined(GNND_SHIM_ASAN)
  for (Stack& stack : stacks_) {
    __asan_unpoison_memory_region(stack.memory, kStackBytes);
    stack.fake_stack = nullptr;
  }
#endif
#if defined(GNND_SHIM_TSAN)
  // Everything that fibers did happened before the code that follows.
  for (Stack& stack : stacks_) {
    __tsan_switch_to_fiber(stack.tsan, __tsan_switch_to_fiber_no_sync);
    __tsan_switch_to_fiber(main_.tsan, 0);
  }
#endif
  ForgetOrder();
}

void Fibers::ForgetOrder() {
#if defined(GNND_SHIM_TSAN)
  for (Stack& stack : stacks_) {
    __tsan_destroy_fiber(stack.tsan);
    stack.tsan = __tsan_create_fiber(0);
  }
#endif
}

void Fibers::Switch(uint32_t to, [[maybe_unused]] bool last) {
  Stack& from = StackOf(running_);
  Stack& next = StackOf(to);
#if defined(GNND_SHIM_ASAN)
  const bool to_main = to == kMain;
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack,
                                 to_main ? main_bottom_ : next.memory,
                                 to_main ? main_bytes_ : kStackBytes);
#endif
#if defined(GNND_SHIM_TSAN)
  __tsan_switch_to_fiber(next.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  left_ = running_;
  running_ = to;
  if (portable_) {
    GNND_CHECK(swapcontext(&from.context, &next.context) == 0);
  } else {
    GnndShimSwitch(&from.pointer, next.pointer);
  }
  Arrived();
}

void Fibers::Arrived() {
#if defined(GNND_SHIM_ASAN)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(StackOf(running_).fake_stack, &bottom, &bytes);
  StackOf(running_).fake_stack = nullptr;
  if (left_ == kMain) {
    main_bottom_ = bottom;
    main_bytes_ = bytes;
  }
#endif
}

}  // namespace gnnd::shim
