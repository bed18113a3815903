#include "core/base/confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gnnd {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr uint32_t kX32Bit = 0x40000000;

std::atomic<bool> confined{false};

// System calls that no executor needs, whatever their arguments.
constexpr uint32_t kRefused[] = {
    // They start or reach into processes. Threads are made by clone, which is treated below.
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_process_madvise,
    SYS_tkill,
#ifdef SYS_fork
    SYS_fork,
    SYS_vfork,
#endif
    // They reach files of others, mounts and namespaces.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_unshare,
    SYS_setns,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_quotactl,
    SYS_acct,
    // They change the kernel: programs in it, modules, keys, clocks, names.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
#endif
    // They change the identity of the process.
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_capset,
    SYS_personality,
    // They make objects that have a name and outlive their maker.
    SYS_shmget,
    SYS_shmat,
    SYS_msgget,
    SYS_semget,
    SYS_mq_open,
};

// Sending and receiving on existing sockets stays allowed: the channel to the daemon needs it.
constexpr uint32_t kSockets[] = {SYS_socket, SYS_socketpair};
constexpr uint32_t kSocketUse[] = {SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4};

// Calls whose first argument is a process, which may only be this one or 0.
constexpr uint32_t kOnOneself[] = {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
                                   SYS_prlimit64};

// A classic BPF program over seccomp_data. Each rule ends the program, or leaves the number of the
// call in the accumulator for the next one.
class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    // Another architecture numbers its calls differently.
    If(BPF_JEQ, kArchitecture, 1, 0);
    Refuse();
    Load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    If(BPF_JGE, kX32Bit, 0, 1);
    Refuse();
#endif
  }

  void RefuseCall(uint32_t call, uint32_t error = EPERM) {
    If(BPF_JEQ, call, 0, 1);
    Refuse(error);
  }

  // Refuses the call unless the low half of its first argument is one of `values`, which fit there.
  void RefuseUnless(uint32_t call, const std::vector<uint32_t>& values) {
    const auto count = static_cast<uint8_t>(values.size());
    If(BPF_JEQ, call, 0, static_cast<uint8_t>(count + 3));
    Load(kFirstArgument);
    for (uint8_t i = 0; i < count; ++i) {
      If(BPF_JEQ, values[i], static_cast<uint8_t>(count - i), 0);
    }
    Refuse();
    Allow();
  }

  // Refuses the call if its first argument is `value`.
  void RefuseIf(uint32_t call, uint32_t value) {
    If(BPF_JEQ, call, 0, 4);
    Load(kFirstArgument);
    If(BPF_JEQ, value, 0, 1);
    Refuse();
    Allow();
  }

  // Refuses the call unless its first argument has this bit.
  void RefuseWithout(uint32_t call, uint32_t bit) {
    If(BPF_JEQ, call, 0, 4);
    Load(kFirstArgument);
    If(BPF_JSET, bit, 1, 0);
    Refuse();
    Allow();
  }

  Status Install() {
    Allow();
    // Without this flag only root may install a filter. It also disables set-user-id programs.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
      return SystemError(Code::kIo, "prctl(PR_SET_NO_NEW_PRIVS)");
    }
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    const long failed =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (failed == 0) return Status::Ok();
    if (failed > 0) {
      return Status(Code::kIo, "seccomp: thread " + std::to_string(failed) + " has other filters");
    }
    return SystemError(Code::kIo, "seccomp");
  }

 private:
  // Offset of the low half of the first argument: both architectures are little-endian.
  static constexpr uint32_t kFirstArgument = offsetof(seccomp_data, args);

  void Load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void If(uint16_t how, uint32_t value, uint8_t skip_if, uint8_t skip_else) {
    code_.push_back(
        sock_filter{static_cast<uint16_t>(BPF_JMP | how | BPF_K), skip_if, skip_else, value});
  }
  void Refuse(uint32_t error = EPERM) {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
  }
  void Allow() { code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)); }

  std::vector<sock_filter> code_;
};

}  // namespace

Status Confine(bool unix_sockets) {
  Filter filter;
  for (const uint32_t call : kRefused) filter.RefuseCall(call);
  for (const uint32_t call : kSockets) {
    if (unix_sockets) {
      filter.RefuseUnless(call, {AF_UNIX});
    } else {
      filter.RefuseCall(call);
    }
  }
  for (const uint32_t call : kSocketUse) {
    if (!unix_sockets) filter.RefuseCall(call);
  }
  const auto self = static_cast<uint32_t>(getpid());
  for (const uint32_t call : kOnOneself) {
    filter.RefuseUnless(
        call, call == SYS_prlimit64 ? std::vector<uint32_t>{0, self} : std::vector<uint32_t>{self});
  }
  // A new process would outlive this one. clone3's flags lie in memory that a filter cannot read;
  // told that there is no clone3, glibc falls back to clone.
  filter.RefuseWithout(SYS_clone, CLONE_THREAD);
  filter.RefuseCall(SYS_clone3, ENOSYS);
  filter.RefuseIf(SYS_prctl, PR_SET_PDEATHSIG);
  GNND_TRY(filter.Install());
  confined.store(true, std::memory_order_release);
  return Status::Ok();
}

Status ConfineForeignCode() {
  if (!confined.load(std::memory_order_acquire)) return Status::Ok();
  Filter filter;
  filter.RefuseCall(SYS_io_uring_setup);
  return filter.Install();
}

}  // namespace gnnd
