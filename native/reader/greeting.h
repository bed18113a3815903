#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/memfd.h"
#include "core/base/status.h"
#include "core/executor/lend_messages.h"

// How a reader meets the Lender of its job.

namespace gnnd {

inline constexpr int kGreetingMs = 10'000;

inline Result<UniqueFd> ConnectTo(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) {
    return Status(Code::kInvalidArgument, "the name of a socket has 1 to 107 bytes: " + name);
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) {
    return SystemError(Code::kNotFound, "connecting to @" + name);
  }
  ucred peer{};
  socklen_t peer_bytes = sizeof peer;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 ||
      peer.uid != geteuid()) {
    return Status(Code::kIo, "the daemon runs as another user than this process");
  }
  return fd;
}

// True once there is something to read, or the other end has gone.
inline bool Readable(int fd, int timeout_ms) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, timeout_ms) > 0;
}

struct Greeting {
  LendWelcome welcome;
  UniqueFd segment;
  UniqueFd features;
};

inline Result<Greeting> Greet(int fd, const LendHello& hello) {
  const Status refused(Code::kIo,
                       "the lender did not answer: it is of another version, has this rank "
                       "already, or expects another number of readers");
  if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) return refused;
  if (!Readable(fd, kGreetingMs)) return refused;
  Greeting greeting;
  std::array<int, 2> descriptors{-1, -1};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  iovec bytes{&greeting.welcome, sizeof greeting.welcome};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* rights = got <= 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return refused;
  const bool is_one = rights->cmsg_len == CMSG_LEN(sizeof(int));
  if (!is_one && rights->cmsg_len != CMSG_LEN(sizeof descriptors)) return refused;
  std::memcpy(descriptors.data(), CMSG_DATA(rights), is_one ? sizeof(int) : sizeof descriptors);
  greeting.segment = UniqueFd(descriptors[0]);
  greeting.features = UniqueFd(descriptors[1]);
  const LendWelcome& welcome = greeting.welcome;
  const bool is_known = got == sizeof welcome && welcome.magic == kLendMagic &&
                        welcome.version == kLendVersion && welcome.num_slots > 0 &&
                        welcome.batches_per_epoch > 0;
  if (!is_known) return refused;
  return greeting;
}

}  // namespace gnnd
