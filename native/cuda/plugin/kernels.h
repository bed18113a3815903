#pragma once

#include "include/gnnd/device_plugin.h"

namespace gnnd::cuda {

// These put the functions that launch kernels into the table.
void AddSamplers(gnnd_device_plugin* table);
void AddFeatures(gnnd_device_plugin* table);
void AddTraining(gnnd_device_plugin* table);
void AddAttention(gnnd_device_plugin* table);
void AddLayerEnds(gnnd_device_plugin* table);
void AddRowModels(gnnd_device_plugin* table);

}  // namespace gnnd::cuda
