#include "core/base/loop_watch.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/base/memfd.h"
#include "core/base/write_now.h"

namespace gnnd {
namespace {

// Looks per limit: a silence is reported at most one look late.
constexpr uint64_t kLooks = 8;

std::atomic<uint64_t> beats{0};

}  // namespace

bool NotifyManager(const std::string& state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name == nullptr || (name[0] != '/' && name[0] != '@')) return false;
  const size_t length = std::strlen(name);
  if (length >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, name, length);
  if (name[0] == '@') address.sun_path[0] = '\0';  // an abstract socket, which has no file
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return socket.valid() &&
         sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                reinterpret_cast<const sockaddr*>(&address), size) >= 0;
}

void WatchLoop(uint64_t limit_ms, const std::string& line) {
  const std::chrono::milliseconds pause(std::max<uint64_t>(1, limit_ms / kLooks));
  std::thread([pause, text = line + "\n"] {
    uint64_t seen = beats.load(std::memory_order_relaxed);
    uint64_t silent = 0;
    while (true) {
      // A process that did not run meanwhile counts one sleep, however long it was.
      std::this_thread::sleep_for(pause);
      const uint64_t now = beats.load(std::memory_order_relaxed);
      silent = now == seen ? silent + 1 : 0;
      seen = now;
      if (silent == kLooks) WriteNow(STDERR_FILENO, text, 0);
    }
  }).detach();
}

void Beat() { beats.fetch_add(1, std::memory_order_relaxed); }

}  // namespace gnnd
