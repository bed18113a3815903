#include "core/base/confine.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

namespace gnnd {
namespace {

// Whether it holds in a child that is confined; the test's own process stays free.
bool HoldsConfined(bool unix_sockets, const std::function<bool()>& holds) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!Confine(unix_sockets).ok()) _exit(3);
    _exit(holds() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 3);
  return WEXITSTATUS(status) == 0;
}

bool Refused(long result) { return result == -1 && errno == EPERM; }

}  // namespace

TEST_CASE("who is confined starts nothing, signals nobody and opens no socket, and hears EPERM") {
  const pid_t parent = getpid();
  char* const no_words[] = {nullptr};
  const std::function<bool()> refused[] = {
      [&] { return Refused(execve("/bin/true", no_words, no_words)); },
      [] { return Refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); },
      [] { return Refused(fork()); },
      [&] { return Refused(kill(parent, 0)); },
      [&] { return Refused(syscall(SYS_tgkill, parent, parent, 0)); },
      [&] { return Refused(ptrace(PTRACE_ATTACH, parent, nullptr, nullptr)); },
      [&] { return Refused(syscall(SYS_pidfd_open, parent, 0)); },
      [&] {
        rlimit limit{};
        return Refused(syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, nullptr, &limit));
      },
      [] { return Refused(socket(AF_INET, SOCK_STREAM, 0)); },
      [] { return Refused(socket(AF_NETLINK, SOCK_RAW, 0)); },
      [] { return Refused(socket(AF_UNIX, SOCK_STREAM, 0)); },
      [] { return Refused(unshare(CLONE_NEWUSER)); },
      [] { return Refused(prctl(PR_SET_PDEATHSIG, 0)); },
      [] { return Refused(syscall(SYS_bpf, 0, nullptr, 0)); },
  };
  for (const auto& holds : refused) {
    CHECK(HoldsConfined(false, holds));
    // It is the filter that refuses.
    CHECK_FALSE(Refused(socket(AF_INET, SOCK_STREAM, 0)));
  }
}

TEST_CASE("who is confined keeps threads, its own signals, and what is open") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(HoldsConfined(false, [&] {
    std::atomic<int> refused{0};
    // Threads of before and after: the filter is the process's.
    std::thread([&] { refused += Refused(socket(AF_INET, SOCK_STREAM, 0)) ? 1 : 0; }).join();
    signal(SIGUSR1, [](int) {});
    rlimit limit{};
    return refused == 1 && raise(SIGUSR1) == 0 && kill(getpid(), 0) == 0 &&
           getrlimit(RLIMIT_NOFILE, &limit) == 0 && send(ends[0], "x", 1, 0) == 1;
  }));
  close(ends[0]);
  close(ends[1]);
  CHECK(HoldsConfined(true, [] {
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && Refused(socket(AF_INET, SOCK_STREAM, 0));
  }));
}

TEST_CASE("threads that were there before are confined, too") {
  const pid_t pid = fork();
  if (pid == 0) {
    std::atomic<int> stage{0};
    bool refused = false;
    std::thread before([&] {
      while (stage == 0) std::this_thread::yield();
      refused = Refused(socket(AF_INET, SOCK_STREAM, 0));
    });
    const bool confined = Confine(false).ok();
    stage = 1;
    before.join();
    _exit(confined && refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
}

TEST_CASE("foreign code gets no io_uring where its process is confined") {
  // Bad arguments: whoever may, hears of those.
  CHECK(HoldsConfined(false, [] { return !Refused(syscall(SYS_io_uring_setup, 0, nullptr)); }));
  CHECK(HoldsConfined(false, [] {
    return ConfineForeignCode().ok() && Refused(syscall(SYS_io_uring_setup, 0, nullptr));
  }));
  // Here nobody is.
  CHECK(ConfineForeignCode().ok());
  CHECK(prctl(PR_GET_SECCOMP) == 0);
}

}  // namespace gnnd
