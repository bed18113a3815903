#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <new>

#include "core/base/contain.h"
#include "core/base/status.h"
#include "train/device_stream.h"
#include "train/script_model.h"

namespace gnnd {

// Torch's own threads of the calling thread, for which OpenMP keeps the number.
inline void UseThreads(uint32_t threads) {
  if (at::get_num_threads() != static_cast<int>(threads)) {
    at::set_num_threads(static_cast<int>(threads));
  }
}

// Runs `body`, turning what torch throws into a Status of code `thrown`.
template <typename Body>
Status Guarded(const Body& body, Code thrown = Code::kInternal) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const DeviceError& error) {
    return error.status();
  } catch (const ScriptError& error) {
    return Status(Code::kPluginFailed, error.what());
  } catch (const c10::Error& error) {
    return Status(thrown, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return Status(thrown, error.what());
  }
}

}  // namespace gnnd
