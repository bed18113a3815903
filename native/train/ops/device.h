#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace gnnd {

struct Operators;

// The place of a Trainer's computation: the torch device of its tensors, its operators, and the
// source of its memory. A simulated device has the host's memory, so the place of its tensors does
// not identify it; this struct does.
struct TrainDevice {
  c10::Device where{c10::kCPU};
  const Operators* operators = nullptr;
  // For the operators and the two functions below: a stream (device_stream.h); null: the CPU's.
  void* context = nullptr;
  // Memory for workspaces, on boundaries of 64 bytes; null: the host's. `allocate` throws like
  // operators.
  void* (*allocate)(void* context, uint64_t bytes) = nullptr;
  void (*release)(void* context, void* memory, uint64_t bytes) = nullptr;
};

// The processor. Lives as long as the process.
const TrainDevice& CpuDevice();

}  // namespace gnnd
