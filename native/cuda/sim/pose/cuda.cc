#include "cuda/sim/script.h"

// posing/gnnd_cuda.so: simulated devices in the place of GPUs, for rehearsals (bench/gpu-check).

const gnnd::sim::Pose& gnnd::sim::ThePose() { return kAsCuda; }
