#pragma once

#include "core/base/status.h"

// Before an executor touches users' data or code it gives up, for good, the system calls that it
// does not need and that would let such code act on other processes, the network or the host
// (docs/operating.md lists what stays open). The kernel answers them with EPERM and kills nothing,
// so that the caller sees the failure. seccomp enforces this for all threads, present and future,
// and for any process that they start.

namespace gnnd {

// Confines this whole process from now on: it starts no program, forks no process, does not signal,
// trace or open another process, makes no socket (except local ones if `unix_sockets`, which a
// GPU's driver may need), mounts nothing, enters no namespace, and changes no identity, clock,
// kernel module or key. kIo if the kernel lacks or refuses seccomp; then nothing has changed.
// REQUIRES: PR_SET_PDEATHSIG is set already, because it cannot be changed afterwards.
Status Confine(bool unix_sockets);

// Also forbids io_uring, whose submissions no filter sees; called before a user's code is loaded.
// Does nothing in a process that is not confined. kIo as above.
Status ConfineForeignCode();

}  // namespace gnnd
