#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/bus_error.h"
#include "core/base/claim.h"
#include "core/base/confine.h"
#include "core/base/cpu.h"
#include "core/base/loop_watch.h"
#include "core/base/memfd.h"
#include "core/base/write_now.h"
#include "core/ledger/build_id.h"
#include "node/core/bindings.h"

// The process and the host (locks, cores, ties to the parent), and the codes of all failures.

namespace gnnd::node {

template <>
inline constexpr auto kNames<InstructionSet> =
    NamesOf<InstructionSet>("InstructionSet", {{"SCALAR", InstructionSet::kPlain},
                                               {"AVX2", InstructionSet::kAvx2},
                                               {"AVX512", InstructionSet::kAvx512},
                                               {"NEON", InstructionSet::kNeon}});

namespace {

Result<std::vector<uint32_t>> Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return SystemError(Code::kIo, "sched_getaffinity");
  std::vector<uint32_t> cores;
  for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

Status Pin(const std::vector<uint32_t>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const uint32_t core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof set, &set) == 0) return Status::Ok();
  return SystemError(Code::kIo, "sched_setaffinity");
}

Result<bool> DieWithParent(int parent_pid) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return SystemError(Code::kIo, "prctl(PR_SET_PDEATHSIG)");
  // If the parent died before the call above, the signal never comes.
  return getppid() == parent_pid;
}

Result<std::optional<int>> Lock(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!fd.valid()) return SystemError(Code::kIo, "open " + path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return std::optional<int>(fd.Release());
  if (errno == EWOULDBLOCK) return std::optional<int>();
  return SystemError(Code::kIo, "flock " + path);
}

Result<std::optional<int>> LockFolder(const std::string& path, bool shared) {
  Result<std::optional<UniqueFd>> claim = ClaimFolder(path, shared);
  if (!claim.ok()) return claim.status();
  return claim->has_value() ? std::optional<int>((*claim)->Release()) : std::optional<int>();
}

// Sets only the soft limit, so that a debugger can raise it (prlimit). It does not limit a pipe in
// /proc/sys/kernel/core_pattern, such as systemd-coredump's.
Status NoCoreFile() {
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return SystemError(Code::kIo, "getrlimit");
  limit.rlim_cur = 0;
  if (setrlimit(RLIMIT_CORE, &limit) == 0) return Status::Ok();
  return SystemError(Code::kIo, "setrlimit");
}

uint64_t WriteWhatGoes(int fd, const std::string& text, uint64_t wait_ms) {
  return WriteNow(fd, text, wait_ms);
}

std::string BuildId() { return {kBuildId, strnlen(kBuildId, kBuildIdBytes)}; }

// Returns glibc's free heap memory, which it keeps: hundreds of megabytes after a few hundred jobs.
void ReturnMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void ExplainBusErrorsFromNow(int exit_code) { ExplainBusErrors(exit_code); }

void ExitAfter(uint64_t delay_ms, int exit_code, const std::string& text) {
  const std::chrono::milliseconds delay(delay_ms);
  std::thread([delay, exit_code, line = text + "\n"] {
    std::this_thread::sleep_for(delay);
    WriteNow(STDERR_FILENO, line, 0);
    _exit(exit_code);
  }).detach();
}

}  // namespace

void DefineHost(Subject& subject) {
  subject.Enum<Code>()
      .Enum<InstructionSet>()
      .Function("hostInstructionSet", DetectInstructionSet, {})
      .Function("hostBuildId", BuildId, {},
                "Digest of all native sources and options that decide bits.")
      .Function("hostCores", Cores, {}, "Cores this process may run on.")
      .Function("hostPin", Pin, {"cores"}, "Later threads of this process inherit it.")
      .Function("hostDieWithParent", DieWithParent, {"parentPid"},
                "SIGKILL this process when its parent dies; false when the parent is dead already.")
      .Function("hostConfine", Confine, {"unixSockets"}, "native/core/base/confine.h")
      .Function("hostLock", Lock, {"path"},
                "A descriptor that holds the lock for the process's life; null when another holds "
                "it.")
      .Function("hostLockFolder", LockFolder, {"path", "shared"},
                "Like hostLock, on the folder itself (native/core/base/claim.h).")
      .Function("hostShareFolder", ShareClaim, {"fd"}, "native/core/base/claim.h")
      .Function("hostBindSocket", BindSocket, {"path", "mode"}, "native/core/base/claim.h")
      .Function("hostNoCoreFile", NoCoreFile, {},
                "Should this process, or a child of it, crash: it leaves no core file.")
      .Function("hostWriteNow", WriteWhatGoes, {"fd", "text", "waitMs"},
                "Number of bytes written (native/core/base/write_now.h).")
      .Function("hostReturnMemory", ReturnMemory, {},
                "Free memory of the native heap goes back to the kernel; some milliseconds.")
      .Function("hostExplainBusErrors", ExplainBusErrorsFromNow, {"exitCode"},
                "native/core/base/bus_error.h")
      .Function("hostNotify", NotifyManager, {"state"}, "native/core/base/loop_watch.h")
      .Function("hostWatchLoop", WatchLoop, {"limitMs", "line"}, "native/core/base/loop_watch.h")
      .Function("hostBeat", Beat, {}, "The loop lives.")
      .Function("hostExitAfter", ExitAfter, {"delayMs", "exitCode", "line"},
                "After so long, writes `line` to stderr and ends this process, whatever its "
                "threads do.");
}

}  // namespace gnnd::node
