#pragma once

#include <string>

#include "core/base/status.h"

namespace gnnd {

// The bytes of a file that a job froze by its digest, read once: whoever uses them uses what was
// checked, whatever happens to the file meanwhile. `sha256` is in lower-case hex. kPluginFailed,
// naming the file, when it cannot be read or its bytes are others.
Result<std::string> ReadFrozenFile(const std::string& path, const std::string& sha256);

}  // namespace gnnd
