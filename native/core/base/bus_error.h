#pragma once

// What a mapped file does to whoever reads it where it cannot be read (it shrank, its disk has a
// bad block): SIGBUS, which says no name.

namespace gnnd {

// From now on this process, when it dies so of a `.npy` file, writes a line to stderr,
// "gnnd.unreadable <pid> <path>", and exits with `exit_code`. Every other SIGBUS (sent by a
// process, of anonymous or shared memory, of other files) is as deadly as before.
void ExplainBusErrors(int exit_code);

}  // namespace gnnd
