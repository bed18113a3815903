#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/memfd.h"
#include "core/base/status.h"

// What one process at a time may have: folders and the paths of sockets. The kernel holds a claim,
// and gives it up with the process.

namespace gnnd {

// A claim on the folder itself: no file in it can be removed to get around it. `shared` claims go
// beside each other. Nothing when another process's claim is in the way; kIo also where the file
// system has no such locks (NFS locks what is open for writing, which a folder never is).
Result<std::optional<UniqueFd>> ClaimFolder(const std::string& path, bool shared);

// Lets shared claims in beside the one that `fd` holds.
Status ShareClaim(int fd);

// The descriptor of a unix socket that is bound to `path` and does not listen yet, so that nobody
// gets in before its file has `mode`; -errno of what failed, -EADDRINUSE where there is a file.
int BindSocket(const std::string& path, uint32_t mode);

}  // namespace gnnd
