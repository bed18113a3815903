#pragma once

#include "core/base/status.h"

// What an executor gives up for good before it touches data or code of users: system calls that it
// does not need and that would let such code act on other processes, on the network or on the host
// (docs/operating.md lists what stays open). The kernel answers them with EPERM: nothing is killed,
// and who asks finds out. By seccomp, for all threads, those that come later and what any of them
// might start.

namespace gnnd {

// From now on, in this whole process: no program is started and no process forked, nobody else is
// signalled, traced or opened by its id, no socket is made (`unix_sockets`: but local ones, which a
// GPU's driver may need), nothing is mounted, no namespace is entered, no identity changed, no
// clock, module or key touched. kIo where the kernel has no seccomp or refuses: nothing has
// changed. REQUIRES: ties to the parent (PR_SET_PDEATHSIG) are made; they cannot be changed any
// more.
Status Confine(bool unix_sockets);

// Before code of a user's is loaded: also no io_uring from now on, whose submissions no filter
// sees. Does nothing in a process that is not confined. kIo as above.
Status ConfineForeignCode();

}  // namespace gnnd
