#pragma once

#include <exception>
#include <new>

#include "cuda/plugin/device.h"

// The frame of each of the table's functions: it enters the device, contains exceptions, and
// reports errors.

namespace gnnd::cuda {

// Calls `work(failure)`, which returns one of the library's numbers.
template <typename Work>
int Contained(Failure* failure, const Work& work) {
  try {
    return work(failure);
  } catch (const std::bad_alloc&) {
    failure->said = "the host's memory ran out";
    return kHostMemory;
  } catch (const std::exception& error) {
    // A simulated kernel broke a rule, so its results are not to be trusted.
    failure->said = error.what();
    return kBrokenKernel;
  }
}

inline uint32_t TellOf(Runtime& runtime, Failure* failure, int native, gnnd_device_error* error) {
  if (native == 0) {
    if (error != nullptr) *error = {};
    return GNND_DEVICE_OK;
  }
  failure->native = native;
  if (failure->said.empty() && native > 0) failure->said = runtime.Said(native);
  failure->driver_version = runtime.DriverVersion();
  failure->runtime_version = runtime.RuntimeVersion();
  return Tell(*failure, error);
}

// Runs work that needs no device.
template <typename Work>
uint32_t Ask(gnnd_device_error* error, const Work& work) {
  Runtime& runtime = TheRuntime();
  Failure failure;
  const int native = Contained(&failure, [&](Failure* f) { return work(runtime, f); });
  return TellOf(runtime, &failure, native, error);
}

// Runs work of a device.
template <typename Work>
uint32_t On(gnnd_device* device, gnnd_device_error* error, const Work& work) {
  Failure failure;
  int native = Contained(&failure, [&](Failure* f) { return device->Enter(f); });
  if (native == 0) native = Contained(&failure, work);
  native = device->Leave(native, failure);
  return TellOf(device->runtime(), &failure, native, error);
}

}  // namespace gnnd::cuda
