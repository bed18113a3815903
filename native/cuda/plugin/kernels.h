#pragma once

#include "include/gnnd/device_plugin.h"

namespace gnnd::cuda {

// Puts the functions that launch kernels into the table.
void AddKernels(gnnd_device_plugin* table);

}  // namespace gnnd::cuda
