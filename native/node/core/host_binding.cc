#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "core/base/bus_error.h"
#include "core/base/cpu.h"
#include "core/base/memfd.h"
#include "node/core/bindings.h"

// The process and the host: locks, cores, ties to the parent. Mirrors `host*` of contract.ts.

namespace gnnd::node {
namespace {

Status SystemError(const std::string& what) {
  return Status(Code::kIo, what + ": " + std::strerror(errno));
}

// hostInstructionSet(): 'SCALAR' | 'AVX2' | 'AVX512' | 'NEON'
Napi::Value InstructionSetName(const Napi::CallbackInfo& info) {
  switch (DetectInstructionSet()) {
    case InstructionSet::kAvx512:
      return Napi::String::New(info.Env(), "AVX512");
    case InstructionSet::kAvx2:
      return Napi::String::New(info.Env(), "AVX2");
    case InstructionSet::kNeon:
      return Napi::String::New(info.Env(), "NEON");
    case InstructionSet::kPlain:
      break;
  }
  return Napi::String::New(info.Env(), "SCALAR");
}

// hostCores(): the cores this process may run on
Napi::Value Cores(const Napi::CallbackInfo& info) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    ThrowUnlessOk(info.Env(), SystemError("sched_getaffinity"));
  }
  Napi::Array cores = Napi::Array::New(info.Env());
  uint32_t count = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.Set(count++, core);
  }
  return cores;
}

// hostPin(cores): later threads of this process inherit it
void Pin(const Napi::CallbackInfo& info) {
  const auto cores = info[0].As<Napi::Array>();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (uint32_t i = 0; i < cores.Length(); ++i) {
    CPU_SET(static_cast<size_t>(Napi::Value(cores[i]).As<Napi::Number>().Uint32Value()), &set);
  }
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    ThrowUnlessOk(info.Env(), SystemError("sched_setaffinity"));
  }
}

// hostDieWithParent(parentPid): SIGKILL when the parent dies; false when it is dead already
Napi::Value DieWithParent(const Napi::CallbackInfo& info) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
    ThrowUnlessOk(info.Env(), SystemError("prctl(PR_SET_PDEATHSIG)"));
  }
  // The parent may have died before the call above; then the signal never comes.
  const bool alive = getppid() == info[0].As<Napi::Number>().Int32Value();
  return Napi::Boolean::New(info.Env(), alive);
}

// hostLock(path): a descriptor that holds the lock for life, or null when another process has it
Napi::Value Lock(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>().Utf8Value();
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!fd.valid()) ThrowUnlessOk(info.Env(), SystemError("open " + path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return info.Env().Null();
    ThrowUnlessOk(info.Env(), SystemError("flock " + path));
  }
  return Napi::Number::New(info.Env(), fd.Release());
}

// hostExplainBusErrors(exitCode): core/base/bus_error.h
void ExplainBusErrorsFromNow(const Napi::CallbackInfo& info) {
  ExplainBusErrors(info[0].As<Napi::Number>().Int32Value());
}

// hostExitAfter(delayMs, exitCode, line): also when the JavaScript thread is stuck in a call
void ExitAfter(const Napi::CallbackInfo& info) {
  const std::chrono::milliseconds delay(info[0].As<Napi::Number>().Int64Value());
  const int exit_code = info[1].As<Napi::Number>().Int32Value();
  const std::string line = info[2].As<Napi::String>().Utf8Value() + "\n";
  std::thread([delay, exit_code, line] {
    std::this_thread::sleep_for(delay);
    static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
    _exit(exit_code);
  }).detach();
}

}  // namespace

void DefineHost(Napi::Env env, Napi::Object exports) {
  exports.Set("hostInstructionSet", Napi::Function::New(env, InstructionSetName));
  exports.Set("hostCores", Napi::Function::New(env, Cores));
  exports.Set("hostPin", Napi::Function::New(env, Pin));
  exports.Set("hostDieWithParent", Napi::Function::New(env, DieWithParent));
  exports.Set("hostLock", Napi::Function::New(env, Lock));
  exports.Set("hostExplainBusErrors", Napi::Function::New(env, ExplainBusErrorsFromNow));
  exports.Set("hostExitAfter", Napi::Function::New(env, ExitAfter));
}

}  // namespace gnnd::node
