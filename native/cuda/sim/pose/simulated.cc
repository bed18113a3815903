#include "cuda/sim/script.h"

// gnnd_sim.so: simulated devices that say so.

const gnnd::sim::Pose& gnnd::sim::ThePose() { return kAsSimulated; }
