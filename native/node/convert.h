#pragma once

#include <napi.h>

#include "core/base/status.h"
#include "node/codec.h"

// A Status becomes an Error whose `code` is that of the Status.

namespace gnnd::node {

// The names of all codes but kOk.
template <>
inline constexpr auto kNames<Code> =
    NamesOf<Code>("NativeCode", {{"SPEC_INVALID", Code::kInvalidArgument},
                                 {"DATASET_NOT_FOUND", Code::kNotFound},
                                 {"DATASET_CORRUPT", Code::kDatasetCorrupt},
                                 {"SHM_ALLOCATION_FAILED", Code::kShmAllocationFailed},
                                 {"SHM_CORRUPTED", Code::kShmCorrupted},
                                 {"IO", Code::kIo},
                                 {"DISK_FULL", Code::kDiskFull},
                                 {"ABORTED", Code::kAborted},
                                 {"NUMERIC_DIVERGENCE", Code::kNumericDivergence},
                                 {"PLUGIN_FAILED", Code::kPluginFailed},
                                 {"DEVICE_UNAVAILABLE", Code::kDeviceUnavailable},
                                 {"DEVICE_OUT_OF_MEMORY", Code::kDeviceMemory},
                                 {"DEVICE_FAILED", Code::kDeviceFailed},
                                 {"DEVICE_LOST", Code::kDeviceLost},
                                 {"INTERNAL", Code::kInternal}});

inline Napi::Error ErrorOf(Napi::Env env, const Status& status) {
  Napi::Error error = Napi::Error::New(env, status.message());
  error.Set("code", Codec<Code>::Write(env, status.code()));
  return error;
}

inline void ThrowUnlessOk(Napi::Env env, const Status& status) {
  if (!status.ok()) throw ErrorOf(env, status);
}

}  // namespace gnnd::node
