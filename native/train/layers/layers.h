#pragma once

#include "core/base/check.h"
#include "train/layers/layer.h"

// The layers of all models over blocks.

namespace gnnd {

const Layer& ConvolutionLayer();
const Layer& AttentionLayer();
const Layer& PinSageLayer();
const Layer& GinLayer();
const Layer& TransformerLayer();

inline const Layer& LayerOf(ModelType type) {
  switch (type) {
    case ModelType::kGraphSage:
    case ModelType::kGcn:
      return ConvolutionLayer();
    case ModelType::kGat:
    case ModelType::kGatV2:
      return AttentionLayer();
    case ModelType::kPinSage:
      return PinSageLayer();
    case ModelType::kGin:
      return GinLayer();
    case ModelType::kTransformer:
      return TransformerLayer();
    default:
      GNND_CHECK(false);  // a model over rows or a script has no layers over blocks
      return ConvolutionLayer();
  }
}

}  // namespace gnnd
