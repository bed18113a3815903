#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace gnnd {

struct Operators;

// Where a Trainer computes: what tensors over its memory say, what computes there, and where that
// memory comes from. A simulated device has the host's memory, so that where its tensors lie does
// not tell which one it is; this does.
struct TrainDevice {
  c10::Device where{c10::kCPU};
  const Operators* operators = nullptr;
  // Of what the operators and the two below work on: a stream (device_stream.h); null: the CPU's.
  void* context = nullptr;
  // Memory for workspaces, on boundaries of 64 bytes; null: the host's. `allocate` throws, as
  // operators do.
  void* (*allocate)(void* context, uint64_t bytes) = nullptr;
  void (*release)(void* context, void* memory, uint64_t bytes) = nullptr;
};

// The processor. Lives as long as the process.
const TrainDevice& CpuDevice();

}  // namespace gnnd
