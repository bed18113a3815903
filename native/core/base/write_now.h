#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

// Writing to what others read: a log's reader may stall, or go, and its disk may fill.

namespace gnnd {

// Writes as much of `text` as `fd` takes within `wait_ms` and answers how many bytes that was: few
// where a reader stalls or is gone, a disk is full, or anything else is wrong. Changes no flag of
// `fd`, which other processes may share. (A regular file always takes what its disk takes.)
// REQUIRES: SIGPIPE is ignored, as Node has it.
size_t WriteNow(int fd, std::string_view text, uint64_t wait_ms);

}  // namespace gnnd
