#pragma once

#include <cstdint>
#include <string>

namespace gnnd {

// The file of a user's model (script_model.h), and the shape that it must fit.
struct ScriptOptions {
  std::string path;
  std::string sha256;  // lower-case hex
  uint32_t num_layers = 0;
  uint32_t in_dim = 0;
  uint32_t out_dim = 0;
  bool weighted = false;  // the job passes it edge weights, in batches or in evaluations
};

}  // namespace gnnd
