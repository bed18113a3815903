#pragma once

#include <cstdint>
#include <string>

#include "core/kernels/optimizer.h"
#include "core/model/model_spec.h"
#include "core/sample/options.h"

// What a job's spec says to native code, and beside it what the daemon adds. The fields that are
// the spec's are listed in gen/job_spec.h, the daemon's in tables.h.

namespace gnnd::node {

struct SamplingOptions : SamplerOptions {
  uint32_t batch_size = 0;
  bool hot_ranks = false;
};

// A user's model, where the type says so.
struct ScriptSource {
  std::string path;
  std::string sha256;
};

struct ModelOptions : ModelSpec {
  ScriptSource script;
};

}  // namespace gnnd::node
