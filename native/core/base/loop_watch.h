#pragma once

#include <cstdint>
#include <string>

// Eyes on the daemon's loop that do not run on it.

namespace gnnd {

// Tells who started this process, if NOTIFY_SOCKET names a socket (sd_notify(3)); false where it
// does not, or nobody reads it.
bool NotifyManager(const std::string& state);

// From now on a thread of its own writes `line` to standard error when nobody has called Beat for
// `limit_ms`, once for each such silence. Time in which the whole process did not run (SIGSTOP, a
// frozen control group) counts for nobody.
void WatchLoop(uint64_t limit_ms, const std::string& line);
void Beat();

}  // namespace gnnd
