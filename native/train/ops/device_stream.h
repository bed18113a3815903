#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/base/status.h"
#include "core/device/device.h"
#include "train/ops/device.h"

// A stream of a device with memory of its own, for use in train/: provides the memory of Workspaces
// and runs their operators. Two threads may use the workspaces of two streams at once.

namespace gnnd {

// A device's error in code without a Status to return: operators and workspaces, which autograd
// calls.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

class TrainStream {
 public:
  enum class Use {
    kExtract,  // a stream of the device's own
    // A stream that torch's operators also use while a thread is within Current; if device memory
    // is the host's, they run at once, on the processor.
    kCompute,
  };
  // Workspaces of the stream compute by `operators`. kDeviceUnavailable if the plug-in lacks a
  // kernel that those call.
  static Result<std::unique_ptr<TrainStream>> Create(const Device& device, Use use,
                                                     const Operators& operators);
  TrainStream(const TrainStream&) = delete;
  TrainStream& operator=(const TrainStream&) = delete;

  // The stream on which a workspace of this device works.
  static TrainStream& Of(const TrainDevice& device) {
    return *static_cast<TrainStream*>(device.context);
  }

  // For workspaces; valid as long as the stream.
  const TrainDevice& train_device() const { return train_device_; }
  const gnnd_device_plugin& table() const { return device_.table(); }
  // Whether the processor may follow pointers to device memory.
  bool on_host() const { return device_.info().memory_kind == GNND_MEMORY_HOST; }

  // Enqueues function(stream, &args, error). This and the functions below throw DeviceError. If
  // device memory is the host's, it also waits, because torch's operators run there at once.
  template <typename Args>
  void Launch(uint32_t (*function)(gnnd_device_stream*, const Args*, gnnd_device_error*),
              const Args& args) {
    gnnd_device_error error{};
    if (function(stream_->get(), &args, &error) != GNND_DEVICE_OK) {
      throw DeviceError(StatusOf(error));
    }
    if (on_host()) Synchronize();
  }
  // Direct if host memory is registered, which must then stay unchanged until the copy has run.
  void CopyIn(void* to, const void* from, uint64_t bytes);
  void CopyOut(void* to, const void* from, uint64_t bytes);
  void Fill(void* to, uint8_t byte, uint64_t bytes);
  void Synchronize();
  // Call before torch works on the stream. Throws torch's exceptions for simulated faults.
  void BeginTorch();
  // The device's time between the two calls, by events on the stream; EndTiming waits for it.
  void BeginTiming();
  uint64_t EndTiming();
  // Synchronize after a failure that was reported already.
  void Drain() noexcept { static_cast<void>(stream_->Synchronize()); }

  // Makes torch's operators of this thread use the stream, too.
  class Current {
   public:
    explicit Current(const TrainStream& stream);
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current();

   private:
    std::optional<c10::Stream> before_;
  };

 private:
  TrainStream(const Device& device, const Operators& operators);

  void Copy(void* to, const void* from, uint64_t bytes, uint32_t direction);

  const Device& device_;
  std::optional<c10::Stream> torch_;  // the same stream for torch, if torch has streams there
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> begun_;
  std::unique_ptr<DeviceEvent> ended_;
  TrainDevice train_device_;
};

}  // namespace gnnd
