#pragma once

#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/status.h"

// The border that no exception crosses. Core reports errors by Status, but containers throw when
// memory runs out, and the standard library when it cannot start a thread. An exception that leaves
// a thread would end the process, the daemon with all its jobs included, so every thread's first
// call goes through here.

namespace gnnd {

// The error for a lack of memory. Falls back to a text that needs no memory itself.
inline Status OutOfMemory() noexcept {
  try {
    return Status(Code::kShmAllocationFailed,
                  "out of memory: the kernel refused an allocation (a limit on address space or on "
                  "the control group, or vm.overcommit_memory = 2)");
  } catch (...) {
    return Status(Code::kShmAllocationFailed, "out of memory");  // short: no allocation
  }
}

inline Status ThrownStatus(Code code, const char* what) noexcept {
  try {
    return Status(code, std::string("unexpected: ") + what);
  } catch (...) {
    return OutOfMemory();
  }
}

// Runs `work`, which returns a Status or a Result; what it throws becomes kShmAllocationFailed (no
// memory, no thread) or `thrown`.
template <typename Work>
auto Contained(Work&& work, Code thrown = Code::kInternal) noexcept -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::system_error& error) {
    return ThrownStatus(error.code() == std::errc::resource_unavailable_try_again
                            ? Code::kShmAllocationFailed
                            : thrown,
                        error.what());
  } catch (const std::exception& error) {
    return ThrownStatus(thrown, error.what());
  } catch (...) {
    return ThrownStatus(thrown, "an exception that is no std::exception");
  }
}

}  // namespace gnnd
