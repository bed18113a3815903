#include "train/ops/torch_failure.h"

#include <string>
#include <string_view>

namespace gnnd {
namespace {

constexpr int kMemoryAllocation = 2;  // a cudaError_t

// Torch's later lines are advice for debugging kernels.
std::string FirstLine(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return "torch: " + std::string(text.substr(0, text.find('\n')));
}

// cuBLAS allocates memory outside torch's allocator, and torch throws its errors as plain ones.
bool IsCublasOutOfMemory(std::string_view text) {
  const bool has_no_handle = text.find("CUBLAS_STATUS_NOT_INITIALIZED") != text.npos &&
                             text.find("cublasCreate") != text.npos;
  return has_no_handle || text.find("CUBLAS_STATUS_ALLOC_FAILED") != text.npos;
}

// A sentence about the holders of device memory, if the device answers.
std::string Holders(const Device& device) {
  const Result<gnnd_device_memory> memory = device.Memory();
  if (!memory.ok()) return "";
  uint64_t used = 0;
  for (const uint64_t bytes : memory->used_bytes) used += bytes;
  return "; " + std::to_string(used) + " bytes of a budget of " +
         std::to_string(memory->budget_bytes) + " are in use beside torch, " +
         std::to_string(memory->free_bytes) + " bytes of the device are free";
}

Status OutOfDeviceMemory(const c10::Error& error, const Device& device) {
  return Status(Code::kDeviceMemory,
                FirstLine(error) + Holders(device) +
                    "; give the job more memory (resources.device_memory_bytes), a smaller batch "
                    "(training.batch_size) or a smaller cache (cache.ratio)");
}

Status StatusOfNumber(const c10::AcceleratorError& error, const Device& device) {
  gnnd_device_error told{};
  device.table().foreign_failed(device.get(), error.get_error_code(), FirstLine(error).c_str(),
                                &told);
  return StatusOf(told);
}

}  // namespace

Status StatusOfTorch(const c10::Error& error, const Device* device, Code thrown) {
  const Status plain(thrown, error.what_without_backtrace());
  if (device == nullptr) return plain;
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
      IsCublasOutOfMemory(error.what_without_backtrace())) {
    return OutOfDeviceMemory(error, *device);
  }
  if (const auto* const number = dynamic_cast<const c10::AcceleratorError*>(&error)) {
    if (number->get_error_code() == kMemoryAllocation) return OutOfDeviceMemory(error, *device);
    return StatusOfNumber(*number, *device);
  }
  // cuBLAS reports a broken device as an error of its own; the device's answer is reliable.
  const Status asked = device->Memory().status();
  const bool is_broken = asked.code() == Code::kDeviceFailed || asked.code() == Code::kDeviceLost;
  return is_broken ? Status(asked.code(), FirstLine(error) + "; " + asked.message()) : plain;
}

void ThrowAsTorch(const gnnd_device_error& error) {
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  const std::string words = "CUDA error: " + std::string(error.message);
  if (error.native_code == kMemoryAllocation) throw c10::OutOfMemoryError(here, words);
  throw c10::AcceleratorError(here, error.native_code, words);
}

}  // namespace gnnd
