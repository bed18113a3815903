#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/memfd.h"
#include "core/base/status.h"

// Claims on folders and socket paths that one process at a time may hold. The kernel keeps a claim
// and ends it with the process.

namespace gnnd {

// Claims the folder itself, so that removing a file does not evade the claim. Several `shared`
// claims may stand at once. Returns nothing while another process's claim forbids it; kIo also
// where the file system has no such locks (NFS locks only files open for writing, never a folder).
Result<std::optional<UniqueFd>> ClaimFolder(const std::string& path, bool shared);

// Lets shared claims in beside the one that `fd` holds.
Status ShareClaim(int fd);

// Binds a Unix socket to `path` that does not listen yet, so that nobody connects before its file
// has `mode`. Returns its descriptor, or -errno of the failed call: -EADDRINUSE if the file exists.
int BindSocket(const std::string& path, uint32_t mode);

}  // namespace gnnd
