#pragma once

// A mapped file that cannot be read (it shrank, or its disk has a bad block) kills its reader by
// SIGBUS, which names no file.

namespace gnnd {

// From now on this process, when a SIGBUS from a mapped `.npy` file kills it, writes the line
// "gnnd.unreadable <pid> <path>" to stderr and exits with `exit_code`. Every other SIGBUS (sent by
// a process, or from anonymous memory, shared memory or other files) is as deadly as before.
void ExplainBusErrors(int exit_code);

}  // namespace gnnd
