#pragma once

#include <span>

#include "core/base/sha256.h"
#include "core/model/model_spec.h"

namespace gnnd {

// SHA-256 over the tensors' bytes in manifest order, without padding. Checkpoints and epoch records
// identify a model by it.
Sha256Digest DigestOf(const ParameterManifest& manifest, std::span<const float> parameters);

}  // namespace gnnd
