#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/registrar.h"
#include "core/base/status.h"
#include "core/device/plugin.h"
#include "core/device/use.h"

// Wrappers for code that works on a device: owners that free their resources, and typed views.
// include/gnnd/device_plugin.h says what the functions do and in which order; here they return a
// Status (StatusOf). Owners must be destroyed before their device.

namespace gnnd {

enum class DevicePurpose : uint32_t {
  kTopology = GNND_PURPOSE_TOPOLOGY,
  kCache = GNND_PURPOSE_CACHE,
  kWorkspace = GNND_PURPOSE_WORKSPACE,
  kModel = GNND_PURPOSE_MODEL,
};

// Borrowed device memory: only kernels may dereference its address.
template <typename T>
struct DeviceView {
  T* data = nullptr;
  uint64_t size = 0;  // elements
};

class Device {
 public:
  struct Options {
    uint32_t index = 0;
    uint64_t budget_bytes = 0;   // 0 = all that is free
    uint64_t staging_bytes = 0;  // 0 = the plug-in's own choice
  };

  // The devices of a host; on a host without a usable device the Status says why.
  static Result<std::vector<gnnd_device_info>> List(const DevicePlugin& plugin);

  static Result<std::unique_ptr<Device>> Open(const DevicePlugin& plugin, const Options& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() { table().close(device_); }

  Result<gnnd_device_memory> Memory() const;
  // This process's part of Memory.
  Result<DeviceUse> Use() const;
  // kDeviceUnavailable if the plug-in lacks this kernel, an entry of its table.
  template <typename Function>
  Status Needs(Function* function, const char* name) const {
    if (function != nullptr) return Status::Ok();
    return Status(Code::kDeviceUnavailable, plugin_.path() + " has no kernel " + name);
  }

  const gnnd_device_plugin& table() const { return plugin_.table(); }
  gnnd_device* get() const { return device_; }
  const gnnd_device_info& info() const { return info_; }
  // Devices of one kind give the same bits: it names architecture, multiprocessors and plug-in.
  std::string kind() const;

 private:
  Device(const DevicePlugin& plugin, gnnd_device* device, const gnnd_device_info& info)
      : plugin_(plugin), device_(device), info_(info) {}

  const DevicePlugin& plugin_;
  gnnd_device* device_;
  gnnd_device_info info_;
};

// Memory of a device; freed when destroyed. Move-only.
template <typename T>
class DeviceBuffer {
 public:
  static Result<DeviceBuffer> Allocate(const Device& device, uint64_t size, DevicePurpose purpose) {
    void* memory = nullptr;
    gnnd_device_error error{};
    // A size that overflows exceeds any budget.
    const uint64_t bytes = size > UINT64_MAX / sizeof(T) ? UINT64_MAX : size * sizeof(T);
    if (device.table().allocate(device.get(), bytes, static_cast<uint32_t>(purpose), &memory,
                                &error) != GNND_DEVICE_OK) {
      return StatusOf(error);
    }
    return DeviceBuffer(device, static_cast<T*>(memory), size);
  }
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept { Swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (device_ != nullptr) device_->table().release(device_->get(), data_);
  }

  T* data() const { return data_; }
  uint64_t size() const { return size_; }
  uint64_t bytes() const { return size_ * sizeof(T); }
  DeviceView<T> view() const { return {data_, size_}; }

 private:
  DeviceBuffer(const Device& device, T* data, uint64_t size)
      : device_(&device), data_(data), size_(size) {}
  void Swap(DeviceBuffer& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  const Device* device_ = nullptr;
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

// Memory of a device that other processes on this host may open; freed when destroyed. Move-only.
class SharedDeviceBuffer {
 public:
  static Result<SharedDeviceBuffer> Allocate(const Device& device, uint64_t bytes,
                                             DevicePurpose purpose);
  SharedDeviceBuffer() = default;
  SharedDeviceBuffer(SharedDeviceBuffer&& other) noexcept { Swap(other); }
  SharedDeviceBuffer& operator=(SharedDeviceBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  SharedDeviceBuffer(const SharedDeviceBuffer&) = delete;
  SharedDeviceBuffer& operator=(const SharedDeviceBuffer&) = delete;
  ~SharedDeviceBuffer();

  std::byte* data() const { return data_; }
  const gnnd_device_handle& handle() const { return handle_; }

 private:
  void Swap(SharedDeviceBuffer& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(handle_, other.handle_);
  }

  const Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  gnnd_device_handle handle_{};
};

// Memory of another process, opened for kernels to read; closed when destroyed. Move-only.
class OpenedDeviceMemory {
 public:
  static Result<OpenedDeviceMemory> Open(const Device& device, const gnnd_device_handle& handle);
  OpenedDeviceMemory() = default;
  OpenedDeviceMemory(OpenedDeviceMemory&& other) noexcept { Swap(other); }
  OpenedDeviceMemory& operator=(OpenedDeviceMemory&& other) noexcept {
    Swap(other);
    return *this;
  }
  OpenedDeviceMemory(const OpenedDeviceMemory&) = delete;
  OpenedDeviceMemory& operator=(const OpenedDeviceMemory&) = delete;
  ~OpenedDeviceMemory();

  const std::byte* data() const { return data_; }

 private:
  void Swap(OpenedDeviceMemory& other) {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
  }

  const Device* device_ = nullptr;
  std::byte* data_ = nullptr;
};

class DeviceEvent;

// A stream of the device; its destructor waits for the work in it.
class DeviceStream {
 public:
  static Result<std::unique_ptr<DeviceStream>> Create(const Device& device, bool is_high = false);
  // Wraps a stream of somebody else, such as torch's.
  static Result<std::unique_ptr<DeviceStream>> Adopt(const Device& device, void* native_stream);
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() { device_.table().stream_destroy(stream_); }

  Status Synchronize();
  Status Wait(const DeviceEvent& event);
  // Copies registered host memory; both sides must stay unchanged until the copy has run.
  template <typename T>
  Status CopyIn(DeviceView<T> to, std::span<const T> from) {
    return Copy(to.data, from.data(), from.size_bytes(), GNND_COPY_TO_DEVICE);
  }
  template <typename T>
  Status CopyOut(std::span<T> to, DeviceView<const T> from) {
    return Copy(to.data(), from.data, to.size_bytes(), GNND_COPY_TO_HOST);
  }
  // Copies any host memory, which may be reused when this returns.
  template <typename T>
  Status StageIn(DeviceView<T> to, std::span<const T> from) {
    return Stage(to.data, from.data(), from.size_bytes(), GNND_COPY_TO_DEVICE);
  }
  template <typename T>
  Status StageOut(std::span<T> to, DeviceView<const T> from) {
    return Stage(to.data(), from.data, to.size_bytes(), GNND_COPY_TO_HOST);
  }
  Status Fill(void* to, uint8_t byte, uint64_t bytes);

  const Device& device() const { return device_; }
  gnnd_device_stream* get() const { return stream_; }

 private:
  DeviceStream(const Device& device, gnnd_device_stream* stream)
      : device_(device), stream_(stream) {}
  Status Copy(void* to, const void* from, uint64_t bytes, uint32_t direction);
  Status Stage(void* to, const void* from, uint64_t bytes, uint32_t direction);

  const Device& device_;
  gnnd_device_stream* stream_;
};

class DeviceEvent {
 public:
  static Result<std::unique_ptr<DeviceEvent>> Create(const Device& device, bool is_timed = false);
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  ~DeviceEvent() { device_.table().event_destroy(event_); }

  Status Record(DeviceStream& stream);
  Result<bool> HasHappened();
  Status Synchronize();
  // Nanoseconds from `begin` to this event; both must be timed and have happened.
  Result<uint64_t> Since(const DeviceEvent& begin);

  gnnd_device_event* get() const { return event_; }

 private:
  DeviceEvent(const Device& device, gnnd_device_event* event) : device_(device), event_(event) {}

  const Device& device_;
  gnnd_device_event* event_;
};

// Host memory pinned for a device, in whole pages mapped read-write. It is unpinned when destroyed,
// which must be before it is unmapped.
class HostRegistration {
 public:
  static Result<std::unique_ptr<HostRegistration>> Register(const Device& device,
                                                            std::span<std::byte> memory);
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;
  ~HostRegistration() {
    static_cast<void>(device_.table().unregister_host(device_.get(), memory_.data(), nullptr));
  }

  // Address at which kernels see the memory.
  std::byte* seen() const { return seen_; }
  std::span<std::byte> memory() const { return memory_; }

 private:
  HostRegistration(const Device& device, std::span<std::byte> memory, std::byte* seen)
      : device_(device), memory_(memory), seen_(seen) {}

  const Device& device_;
  std::span<std::byte> memory_;
  std::byte* seen_;
};

// A Registrar over the device, which it borrows, with the rules of HostRegistration.
Registrar RegistrarOf(const Device& device);

}  // namespace gnnd
