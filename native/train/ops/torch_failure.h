#pragma once

#include <c10/util/Exception.h>

#include "core/base/status.h"
#include "core/device/device.h"

// Torch computes products on devices beside us, and fails there with exceptions of its own. Here
// they become what the plug-in would have answered, so that memory that ran out is told as such,
// and a device that broke is left by the whole job.

namespace gnnd {

// What torch threw while it worked on `device` (null: on the processor); a failure that is not the
// device's gets the code `thrown`.
Status StatusOfTorch(const c10::Error& error, const Device* device, Code thrown);

// Throws what torch throws for a failure that a simulated device answered in torch's place.
[[noreturn]] void ThrowAsTorch(const gnnd_device_error& error);

}  // namespace gnnd
