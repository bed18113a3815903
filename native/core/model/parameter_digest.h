#pragma once

#include <span>

#include "core/base/sha256.h"
#include "core/model/model_spec.h"

namespace gnnd {

// SHA-256 over the tensors' bytes in manifest order, padding left out: what checkpoints and epoch
// records name a model by.
Sha256Digest DigestOf(const ParameterManifest& manifest, std::span<const float> parameters);

}  // namespace gnnd
