#include "core/base/write_now.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "core/base/clock.h"

namespace gnnd {
namespace {

// A pipe that is ready has room for at least a page, so writing a chunk does not wait.
constexpr size_t kChunkBytes = PIPE_BUF;

bool IsReady(int fd, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = MonotonicNs();
    const uint64_t left_ms = now < deadline_ns ? (deadline_ns - now) / kNsPerMs : 0;
    pollfd asked{fd, POLLOUT, 0};
    const int found = poll(&asked, 1, static_cast<int>(std::min<uint64_t>(left_ms, INT_MAX)));
    if (found < 0 && errno == EINTR) continue;
    return found > 0;
  }
}

ssize_t WriteChunk(int fd, std::string_view chunk) {
  // A socket that is ready may take less than a chunk, and a write would wait for room.
  const ssize_t sent = send(fd, chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return write(fd, chunk.data(), chunk.size());
}

}  // namespace

size_t WriteNow(int fd, std::string_view text, uint64_t wait_ms) {
  const uint64_t deadline_ns = MonotonicNs() + wait_ms * kNsPerMs;
  size_t done = 0;
  while (done < text.size() && IsReady(fd, deadline_ns)) {
    const ssize_t written = WriteChunk(fd, text.substr(done, kChunkBytes));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) {
      if (MonotonicNs() >= deadline_ns) break;
      continue;
    }
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  return done;
}

}  // namespace gnnd
