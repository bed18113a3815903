#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Writes to logs and pipes whose reader may stall or go, and whose disk may fill.

namespace gnnd {

// Writes as much of `text` as `fd` accepts within `wait_ms` and returns the number of bytes: fewer
// than all if the reader stalls or is gone, the disk is full, or anything else is wrong. Changes no
// flag of `fd`, which other processes may share. (A regular file accepts what its disk accepts.)
// REQUIRES: SIGPIPE is ignored, as Node does.
size_t WriteNow(int fd, std::string_view text, uint64_t wait_ms);

}  // namespace gnnd
