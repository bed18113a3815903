#pragma once

#include <cstdint>
#include <string>

namespace gnnd {

// Where the hidden layers' rows of exact evaluation lie.
struct EvalPlace {
  int fd = -1;  // shared with other Trainers; -1: memory of our own, made when it is needed
  uint64_t memory_bytes = 0;  // of our own at most; beyond it a file in `folder`
  std::string folder;         // empty: memory all the same
};

}  // namespace gnnd
