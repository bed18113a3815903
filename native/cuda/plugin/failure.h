#pragma once

#include <cstdint>
#include <string>

#include "include/gnnd/device_plugin.h"

// The meaning of the numbers with which a device's library fails: a code of the plug-in's
// interface, a sentence, and a remedy for operators. The numbers are cudaError_t's; simulated
// devices use the same ones, so that this table serves both.

namespace gnnd::cuda {

// The plug-in's own failures; the library's numbers are positive.
inline constexpr int kOverBudget = -1;
inline constexpr int kNotRegistered = -2;
inline constexpr int kBadArgument = -3;
inline constexpr int kNoKernel = -4;
inline constexpr int kHostMemory = -5;
inline constexpr int kNoMonitor = -6;
inline constexpr int kBrokenKernel = -7;  // a simulated kernel broke a rule of dev.h

// The attempted operation: registering memory fails for reasons of its own.
enum class Doing { kAnything, kRegistering };

// The code for a number of the library's. `driver_version` is that of gnnd_device_system: 0 means
// "no driver", which the library reports with the same number as "driver too old".
uint32_t CodeOf(int native, uint32_t driver_version, Doing doing = Doing::kAnything);

// Whether the process can do nothing more with its device.
bool IsSticky(int native);

// The remedy for an error, as a sentence or command; "" if there is none.
std::string RemedyOf(uint32_t code, uint32_t driver_version, uint32_t runtime_version);

// The oldest driver for a version of CUDA, for people, as "580.65"; "" if unknown.
std::string DriverFor(uint32_t cuda_version);

// A version as "13.0".
std::string VersionText(uint32_t cuda_version);

struct Failure {
  int native = 0;
  Doing doing = Doing::kAnything;
  std::string what;  // the attempted operation, with sizes
  std::string said;  // the library's name of the error and its sentence
  uint32_t driver_version = 0;
  uint32_t runtime_version = 0;
};

// Writes all of it, cut to the fields' sizes; returns the code. `error` may be null.
uint32_t Tell(const Failure& failure, gnnd_device_error* error);

// Copies a text into a field of a struct, cut to its size and terminated.
template <size_t N>
void Put(char (&field)[N], const std::string& text) {
  const size_t bytes = text.copy(field, N - 1);
  field[bytes] = '\0';
}

}  // namespace gnnd::cuda
