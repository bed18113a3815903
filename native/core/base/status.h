#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

// The errors of core. Core throws only what its containers throw when memory runs out; whoever
// starts a thread turns that into a Status (contain.h).

namespace gnnd {

// The codes are those of the daemon's ErrorCode; the Node border hands them on unchanged.
enum class Code {
  kOk,
  kInvalidArgument,      // the caller asked for something that cannot be
  kNotFound,             // a file or object is missing
  kDatasetCorrupt,       // bytes on disk are not what the format says
  kShmAllocationFailed,  // the kernel refused memory
  kShmCorrupted,         // a segment or record does not carry what it must
  kIo,                   // a system call on a file failed
  kDiskFull,             // one of them for want of space, or of quota
  kAborted,              // the job was told to stop
  kNumericDivergence,    // a loss or gradient is not finite
  kPluginFailed,         // code of the user's cannot be loaded or broke its contract
  kDeviceUnavailable,    // a device cannot be used, or not for this
  kDeviceMemory,         // a device's memory, or the budget of it, ran out
  kDeviceFailed,         // a device failed: this process can do nothing more with it
  kDeviceLost,           // likewise, and the device itself is gone
  kInternal,             // an invariant of ours does not hold
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return Status(); }
  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// The error of the system call that has just failed: `what` it was for, and the system's reason.
inline Status SystemError(Code code, const std::string& what) {
  const bool is_full = code == Code::kIo && (errno == ENOSPC || errno == EDQUOT);
  return Status(is_full ? Code::kDiskFull : code, what + ": " + std::strerror(errno));
}

// A value or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

#define GNND_TRY(expression)                   \
  do {                                         \
    ::gnnd::Status gnnd_status = (expression); \
    if (!gnnd_status.ok()) return gnnd_status; \
  } while (false)

// The value of a Result, moved out of it; where there is none, the function returns its Status.
#define GNND_VALUE(expression)                          \
  __extension__({                                       \
    auto gnnd_result = (expression);                    \
    if (!gnnd_result.ok()) return gnnd_result.status(); \
    std::move(*gnnd_result);                            \
  })

}  // namespace gnnd
