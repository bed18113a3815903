#include "cuda/plugin/handout.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

namespace gnnd::cuda {
namespace {

constexpr int kWaiting = 16;            // connections that may wait
constexpr time_t kPatienceSeconds = 2;  // longest wait for a process that does not answer

// The content of a handle.
struct Name {
  char socket[40];  // terminated
  uint64_t bytes;
  uint32_t key;
  uint32_t device;
};
static_assert(sizeof(Name) <= sizeof(gnnd_device_handle));

// An address among the kernel's own names of local sockets, which begin with a 0 and have no file.
socklen_t AddressOf(const char* name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t length = std::strlen(name);
  std::memcpy(address->sun_path + 1, name, length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

void SetPatience(int socket) {
  const timeval patience{kPatienceSeconds, 0};
  static_cast<void>(setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience));
  static_cast<void>(setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
}

bool IsSameUser(int connection) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == geteuid();
}

// One byte with a descriptor, in the form of sendmsg and recvmsg.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
};

void Send(int connection, int fd) {
  Message message;
  cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  static_cast<void>(sendmsg(connection, &message.header, MSG_NOSIGNAL));
}

UniqueFd Receive(int connection) {
  Message message;
  if (recvmsg(connection, &message.header, MSG_CMSG_CLOEXEC) != 1) return UniqueFd();
  const cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Handout::~Handout() {
  if (!thread_.joinable()) return;
  ending_ = true;
  shutdown(listening_.get(), SHUT_RDWR);  // ends its accept
  thread_.join();
}

bool Handout::Start() {
  if (!name_.empty()) return true;
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return false;
  char name[sizeof(Name::socket)];
  static_cast<void>(std::snprintf(name, sizeof name, "gnnd-%d-%016llx", getpid(),
                                  static_cast<unsigned long long>(number)));
  sockaddr_un address;
  const socklen_t bytes = AddressOf(name, &address);
  UniqueFd listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listening.valid() ||
      bind(listening.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      listen(listening.get(), kWaiting) != 0) {
    return false;
  }
  listening_ = std::move(listening);
  try {
    thread_ = std::thread([this] { Serve(); });
  } catch (const std::system_error&) {
    return false;
  }
  name_ = name;
  return true;
}

void Handout::Add(const void* memory, const SharedMemory& shared, gnnd_device_handle* handle) {
  *handle = {};
  UniqueFd fd(shared.fd);
  const std::lock_guard lock(mutex_);
  if (!fd.valid() || !Start()) return;
  Name name{};
  std::memcpy(name.socket, name_.c_str(), name_.size() + 1);
  name.bytes = shared.bytes;
  name.key = ++last_key_;
  name.device = shared.device;
  entries_[memory] = {name.key, std::move(fd)};
  std::memcpy(handle->bytes, &name, sizeof name);
}

void Handout::Remove(const void* memory) {
  const std::lock_guard lock(mutex_);
  entries_.erase(memory);
}

void Handout::Serve() {
  while (!ending_) {
    const UniqueFd connection(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid()) {
      Answer(connection.get());
    } else if (!ending_) {
      // Accept failed, perhaps because descriptors have run out for now.
      const timespec pause{0, 10'000'000};
      nanosleep(&pause, nullptr);
    }
  }
}

void Handout::Answer(int connection) {
  SetPatience(connection);
  uint32_t key = 0;
  if (!IsSameUser(connection) || recv(connection, &key, sizeof key, 0) != sizeof key) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [memory, entry] : entries_) {
    if (entry.key == key) Send(connection, entry.fd.get());
  }
}

SharedMemory Fetch(const gnnd_device_handle& handle, UniqueFd* fd) {
  Name name{};
  std::memcpy(&name, handle.bytes, sizeof name);
  name.socket[sizeof name.socket - 1] = '\0';
  if (name.key == 0) return {};
  sockaddr_un address;
  const socklen_t bytes = AddressOf(name.socket, &address);
  const UniqueFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return {};
  SetPatience(connection.get());
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      send(connection.get(), &name.key, sizeof name.key, MSG_NOSIGNAL) != sizeof name.key) {
    return {};
  }
  *fd = Receive(connection.get());
  return {fd->get(), name.device, name.bytes};
}

}  // namespace gnnd::cuda
