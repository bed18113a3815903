#include "core/base/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace gnnd {

Result<std::optional<UniqueFd>> ClaimFolder(const std::string& path, bool shared) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return SystemError(Code::kIo, "open " + path);
  if (flock(fd.get(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
    return std::optional<UniqueFd>(std::move(fd));
  }
  if (errno == EWOULDBLOCK) return std::optional<UniqueFd>();
  return SystemError(Code::kIo, "flock " + path);
}

Status ShareClaim(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return Status::Ok();
  return SystemError(Code::kIo, "flock");
}

int BindSocket(const std::string& path, uint32_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return -errno;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return -errno;
  if (chmod(path.c_str(), mode) != 0) return -errno;
  return fd.Release();
}

}  // namespace gnnd
