#pragma once

#include <string>

#include "cuda/plugin/call.h"
#include "cuda/queue.h"

// The frame of each kernel's function in the table: checks arguments and reports failed launches.

namespace gnnd::cuda {

// Collects errors in arguments: remembers the first field that is wrong.
class Fields {
 public:
  // Requires that `is_fit` holds for `field`.
  Fields& Want(const char* field, bool is_fit) {
    if (!is_fit && wrong_ == nullptr) wrong_ = field;
    return *this;
  }
  // Requires memory if there is any work that uses it.
  Fields& Need(const char* field, const void* memory, bool is_used = true) {
    return Want(field, !is_used || memory != nullptr);
  }

  const char* wrong() const { return wrong_; }

 private:
  const char* wrong_ = nullptr;
};

// Enqueues the launches of `work(queue)` on the stream.
template <typename Work>
uint32_t Enqueue(gnnd_device_stream* stream, gnnd_device_error* error, const char* name,
                 const Fields& fields, const Work& work) {
  gnnd_device& device = *stream->device;
  return On(&device, error, [&](Failure* failure) {
    failure->what = name;
    if (fields.wrong() != nullptr) {
      failure->what += std::string(": field ") + fields.wrong() + " cannot be as it is";
      return kBadArgument;
    }
    const Range range(device.runtime(), name);
    work(Queue{static_cast<StreamHandle>(stream->stream), device.max_blocks()});
    return device.runtime().LaunchError();
  });
}

constexpr bool Fits32(uint64_t value) { return value <= 0xFFFFFFFF; }

template <typename T>
const T* As(const void* memory) {
  return static_cast<const T*>(memory);
}
template <typename T>
T* As(void* memory) {
  return static_cast<T*>(memory);
}

}  // namespace gnnd::cuda
