#pragma once

#include <cstdint>
#include <string>

#include "core/item/links.h"
#include "core/kernels/optimizer.h"
#include "core/model/model_spec.h"
#include "core/sample/options.h"

// A job's spec as native code gets it, with the daemon's additions. gen/job_spec.h lists the spec's
// fields, tables.h the daemon's.

namespace gnnd::node {

struct SamplingOptions : SamplerOptions {
  uint32_t batch_size = 0;
  bool hot_ranks = false;
  LinkOptions links;
};

// A user's model, if the model's type is a script.
struct ScriptSource {
  std::string path;
  std::string sha256;
};

struct ModelOptions : ModelSpec {
  ScriptSource script;
};

}  // namespace gnnd::node
