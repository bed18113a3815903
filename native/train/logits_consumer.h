#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/status.h"

namespace gnnd {

// Takes the logits of `nodes`, [nodes.size(), out_dim]; anything but Ok ends the prediction with
// it.
using LogitsConsumer = std::function<Status(std::span<const uint32_t> nodes, const float* logits)>;

}  // namespace gnnd
