#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "core/base/contain.h"
#include "core/base/status.h"
#include "train/device_stream.h"
#include "train/script_model.h"

namespace gnnd {

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
