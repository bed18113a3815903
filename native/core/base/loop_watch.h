#pragma once

#include <cstdint>
#include <string>

// Watches the daemon's event loop from outside that loop.

namespace gnnd {

// Sends `state` to the service manager (sd_notify(3)) if NOTIFY_SOCKET names its socket; false if
// it names none, or nobody reads it.
bool NotifyManager(const std::string& state);

// Starts a thread that writes `line` to standard error when nobody has called Beat for `limit_ms`,
// once for each such silence. Time in which the whole process did not run (SIGSTOP, a frozen
// control group) does not count.
void WatchLoop(uint64_t limit_ms, const std::string& line);
void Beat();

}  // namespace gnnd
