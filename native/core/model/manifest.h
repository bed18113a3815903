#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/model/model_spec.h"

namespace gnnd {

// The tensors of docs/formats/checkpoint.md, layer by layer.
// kInvalidArgument, naming the field, when a dimension is 0, num_layers is not in 1..8, hidden_dim
// is not a multiple of heads, an option does not belong to the model, or the model is a script,
// whose tensors stand in its file.
Result<ParameterManifest> ManifestOf(const ModelSpec& spec);

// Columns of the rows that each layer gives.
std::vector<uint32_t> WidthsOf(const ModelSpec& spec);

}  // namespace gnnd
