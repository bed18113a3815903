#pragma once

#include <string>

#include "core/base/status.h"

namespace gnnd {

// Reads the bytes of a file that a job froze by its digest, once: the bytes that are used are the
// ones that were checked, whatever happens to the file meanwhile. `sha256` is in lower-case hex.
// kPluginFailed names the file when it cannot be read or has other bytes.
Result<std::string> ReadFrozenFile(const std::string& path, const std::string& sha256);

}  // namespace gnnd
