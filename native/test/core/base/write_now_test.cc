#include "core/base/write_now.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "core/base/clock.h"

namespace gnnd {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

struct Ends {
  int read = -1;
  int write = -1;
};

Ends PipeEnds() {
  int fds[2];
  REQUIRE(pipe(fds) == 0);
  return {fds[0], fds[1]};
}

Ends SocketEnds() {
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  return {fds[0], fds[1]};
}

}  // namespace

TEST_CASE("what a stalled reader does not take is not waited for, and the rest not lost") {
  for (const Ends ends : {PipeEnds(), SocketEnds()}) {
    const std::string text(1 << 20, 'x');
    const uint64_t before = MonotonicNs();
    const size_t written = WriteNow(ends.write, text, 0);
    CHECK(MonotonicNs() - before < kSecondNs);
    CHECK(written > 0);
    CHECK(written < text.size());
    CHECK((fcntl(ends.write, F_GETFL) & O_NONBLOCK) == 0);
    std::string room(written, ' ');
    size_t got = 0;
    while (got < written) got += static_cast<size_t>(read(ends.read, room.data(), room.size()));
    CHECK(got == written);
    CHECK(WriteNow(ends.write, "again", 0) == 5);
    close(ends.read);
    close(ends.write);
  }
}

TEST_CASE("nothing is written where a reader is gone or a disk is full") {
  signal(SIGPIPE, SIG_IGN);
  for (const Ends ends : {PipeEnds(), SocketEnds()}) {
    close(ends.read);
    CHECK(WriteNow(ends.write, "line", 50) == 0);
    close(ends.write);
  }
  const int full = open("/dev/full", O_WRONLY);
  CHECK(WriteNow(full, "line", 50) == 0);
  close(full);
  CHECK(WriteNow(-1, "line", 0) == 0);
}

}  // namespace gnnd
