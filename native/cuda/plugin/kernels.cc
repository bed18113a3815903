#include "cuda/plugin/kernels.h"

namespace gnnd::cuda {

void AddKernels(gnnd_device_plugin*) {}

}  // namespace gnnd::cuda
