#pragma once

#include <vector>

#include "core/model/model_kind.h"

namespace gnnd::test {

// Every kind of model over blocks.
inline std::vector<ModelType> BlockTypes() {
  std::vector<ModelType> types;
  for (const ModelKind& kind : kModelKinds) {
    if (kind.input == ModelInput::kBlocks) types.push_back(kind.type);
  }
  return types;
}

// The types that devices with memory of their own compute.
inline std::vector<ModelType> DeviceBlockTypes() {
  std::vector<ModelType> types;
  for (const ModelType type : BlockTypes()) {
    if (KindOf(type).on_devices) types.push_back(type);
  }
  return types;
}

}  // namespace gnnd::test
