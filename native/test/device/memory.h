#pragma once

#include <memory>
#include <string>
#include <vector>

#include "test/device/support.h"

namespace gnnd::test {

// Arrays on a device, one stream, and the functions of its table.
class Arrays {
 public:
  explicit Arrays(const Device& device)
      : device_(device), stream_(Get(DeviceStream::Create(device))) {}

  // A copy on the device; null for nothing.
  template <typename T>
  T* Put(const std::vector<T>& values) {
    T* const at = Room<T>(values.size());
    if (values.empty()) return at;
    Check(stream_->StageIn<T>({at, values.size()}, values));
    return at;
  }
  template <typename T>
  T* Room(uint64_t size) {
    auto buffer = Get(
        DeviceBuffer<std::byte>::Allocate(device_, size * sizeof(T), DevicePurpose::kWorkspace));
    buffers_.push_back(std::move(buffer));
    return reinterpret_cast<T*>(buffers_.back().data());
  }
  void* Bytes(uint64_t bytes) { return Room<std::byte>(bytes); }

  // The content of device memory, after all enqueued work has run.
  template <typename T>
  std::vector<T> Take(const T* from, uint64_t size) {
    std::vector<T> values(size);
    if (size > 0) Check(stream_->StageOut<T>(values, {from, size}));
    Check(stream_->Synchronize());
    return values;
  }

  // function(stream, &args, error)
  template <typename Args>
  Status Try(uint32_t (*function)(gnnd_device_stream*, const Args*, gnnd_device_error*),
             const Args& args) {
    gnnd_device_error error{};
    const uint32_t code = function(stream_->get(), &args, &error);
    return code == GNND_DEVICE_OK ? Status::Ok() : StatusOf(error);
  }
  template <typename Args>
  void Call(uint32_t (*function)(gnnd_device_stream*, const Args*, gnnd_device_error*),
            const Args& args) {
    Check(Try(function, args));
  }

  const gnnd_device_plugin& table() const { return device_.table(); }

 private:
  const Device& device_;
  std::vector<DeviceBuffer<std::byte>> buffers_;
  std::unique_ptr<DeviceStream> stream_;  // waits before they go
};

// An argument was refused with a message that names this field.
inline void CheckRefused(const Status& status, const std::string& field) {
  INFO(field);
  INFO(status.message());
  CHECK(status.code() == Code::kInternal);
  CHECK(status.message().find("field " + field + " ") != std::string::npos);
}

}  // namespace gnnd::test
