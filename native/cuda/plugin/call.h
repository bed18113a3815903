#pragma once

#include <exception>
#include <new>

#include "cuda/plugin/device.h"

// What each function of the table does around its one thing: it enters the device, contains what is
// thrown, and tells what went wrong.

namespace gnnd::cuda {

// `work(failure)` answers a native number.
template <typename Work>
int Contained(Failure* failure, const Work& work) {
  try {
    return work(failure);
  } catch (const std::bad_alloc&) {
    failure->said = "the host's memory ran out";
    return kHostMemory;
  } catch (const std::exception& error) {
    // A simulated kernel that broke a rule: what it wrote is not to be trusted.
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

// Of what needs no device.
template <typename Work>
uint32_t Ask(gnnd_device_error* error, const Work& work) {
  Runtime& runtime = TheRuntime();
  Failure failure;
  const int native = Contained(&failure, [&](Failure* f) { return work(runtime, f); });
  return TellOf(runtime, &failure, native, error);
}

// Of what a device does.
template <typename Work>
uint32_t On(gnnd_device* device, gnnd_device_error* error, const Work& work) {
  Failure failure;
  int native = Contained(&failure, [&](Failure* f) { return device->Enter(f); });
  if (native == 0) native = Contained(&failure, work);
  native = device->Leave(native, failure);
  return TellOf(device->runtime(), &failure, native, error);
}

}  // namespace gnnd::cuda
