#pragma once

#include <c10/util/Exception.h>

#include "core/base/status.h"
#include "core/device/device.h"

// Torch computes products on devices beside us, and throws exceptions of its own when they fail.
// These functions turn them into the plug-in's errors, so that a lack of memory is reported as
// such, and the whole job gives up a broken device.

namespace gnnd {

// The Status of an exception that torch threw while it worked on `device` (null: the processor);
// failures that are not the device's get the code `thrown`.
Status StatusOfTorch(const c10::Error& error, const Device* device, Code thrown);

// Throws torch's exception for a failure that a simulated device planned for torch.
[[noreturn]] void ThrowAsTorch(const gnnd_device_error& error);

}  // namespace gnnd
