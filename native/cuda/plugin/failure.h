#pragma once

#include <cstdint>
#include <string>

#include "include/gnnd/device_plugin.h"

// What the numbers mean with which a device's library fails: a code of the plug-in's interface, a
// sentence, and what an operator can do. The numbers are cudaError_t's; simulated devices use them,
// too, so that this table is what both speak.

namespace gnnd::cuda {

// Failures of the plug-in's own, beside the library's numbers, which are positive.
inline constexpr int kOverBudget = -1;
inline constexpr int kNotRegistered = -2;
inline constexpr int kBadArgument = -3;
inline constexpr int kNoKernel = -4;
inline constexpr int kHostMemory = -5;
inline constexpr int kNoMonitor = -6;
inline constexpr int kBrokenKernel = -7;  // a simulated kernel broke a rule of dev.h

// What the same number meant for: registering memory fails for reasons of its own.
enum class Doing { kAnything, kRegistering };

// `driver_version` as gnnd_device_system has it: 0 tells "no driver" from "too old a driver", which
// are one number of the library's.
uint32_t CodeOf(int native, uint32_t driver_version, Doing doing = Doing::kAnything);

// Whether the process can do nothing more with its device.
bool IsSticky(int native);

// What to do about it, as a sentence or command; "" where there is nothing.
std::string RemedyOf(uint32_t code, uint32_t driver_version, uint32_t runtime_version);

// "580.65" for people: the driver that serves a version of CUDA at least, "" where unknown.
std::string DriverFor(uint32_t cuda_version);

// "13.0"
std::string VersionText(uint32_t cuda_version);

struct Failure {
  int native = 0;
  Doing doing = Doing::kAnything;
  std::string what;  // what was tried, with sizes
  std::string said;  // the library's name of it and its sentence
  uint32_t driver_version = 0;
  uint32_t runtime_version = 0;
};

// Writes all of it, cut to its places; returns the code. `error` may be null.
uint32_t Tell(const Failure& failure, gnnd_device_error* error);

// Copies a text into a field of a struct, cut to its size and terminated.
template <size_t N>
void Put(char (&field)[N], const std::string& text) {
  const size_t bytes = text.copy(field, N - 1);
  field[bytes] = '\0';
}

}  // namespace gnnd::cuda
