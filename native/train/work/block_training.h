#pragma once

#include <memory>

#include "train/device/device_side.h"
#include "train/input/block_input.h"
#include "train/layers/block_model.h"
#include "train/layers/history.h"
#include "train/work/block_task.h"
#include "train/work/work_parts.h"

namespace gnnd {

// The borrowed parts of training on blocks.
struct BlockTrainer {
  BlockInput* input;
  ComputeSide* side;
  BlockModel* model;
  BatchHistory* history;
  const BlockTask* task;
};

// Makes training on sampled blocks whose rows the processor reads, or those that go to a device.
std::unique_ptr<Training> BlockTraining(const BlockTrainer& parts);
std::unique_ptr<Training> BlockTraining(const BlockTrainer& parts, DeviceSide* device);

}  // namespace gnnd
