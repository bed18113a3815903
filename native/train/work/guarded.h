#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "core/base/contain.h"
#include "core/base/status.h"
#include "train/layers/script_model.h"
#include "train/ops/device_stream.h"
#include "train/ops/torch_failure.h"

namespace gnnd {

// Runs `body`, turning what torch throws into a Status: what failed on `device` (null: the
// processor) into what the device answers for it, anything else into the code `thrown`.
template <typename Body>
Status Guarded(const Device* device, const Body& body, Code thrown = Code::kInternal) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const DeviceError& error) {
    return error.status();
  } catch (const ScriptError& error) {
    return Status(Code::kPluginFailed, error.what());
  } catch (const c10::Error& error) {
    return StatusOfTorch(error, device, thrown);
  } catch (const std::exception& error) {
    return Status(thrown, error.what());
  }
}

}  // namespace gnnd
