// The first questions to a GPU, before anything of gnnd is built: probe QUESTION. An answer is a
// line of JSON on stdout: {"name": ..., "value": ..., "unit": ...}; what the runtime refuses is an
// answer, too. gpu_check.py asks each question in a process of its own, with a deadline.
//
//   attributes   what the device says of itself
//   register     which host memory can be pinned, and how long that takes
//   copy         copies on the device and over the bus, pinned and not
//   zero-copy    rows read by kernels from pinned memory, by size and multiprocessors
//   context      what a process costs before it does anything
//   turns        two processes at once: how long a kernel of one waits for the other
//   kill         how long a killed process's memory stays away
//   primitives   match_any beside a loop; 64-bit atomicMax in and out of the L2 cache
//   fault        a read beyond an array, for compute-sanitizer to find

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

double Seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void Say(const std::string& name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

void Refused(const std::string& name, cudaError_t error) {
  std::printf("{\"name\": \"%s\", \"value\": null, \"unit\": \"%s (%d)\"}\n", name.c_str(),
              cudaGetErrorName(error), static_cast<int>(error));
  std::fflush(stdout);
  static_cast<void>(cudaGetLastError());
}

// What must work for the rest of a question to mean anything.
void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  Refused(what, error);
  std::exit(1);
}

// Milliseconds of `work` on the device, the best of several after one to warm up.
template <typename Work>
double BestMs(int times, const Work& work) {
  cudaEvent_t begin;
  cudaEvent_t end;
  Must(cudaEventCreate(&begin), "event");
  Must(cudaEventCreate(&end), "event");
  work();
  double best = 1e30;
  for (int k = 0; k < times; ++k) {
    Must(cudaEventRecord(begin, nullptr), "record");
    work();
    Must(cudaEventRecord(end, nullptr), "record");
    Must(cudaEventSynchronize(end), "work");
    float ms = 0;
    Must(cudaEventElapsedTime(&ms, begin, end), "elapsed");
    best = std::min(best, static_cast<double>(ms));
  }
  return best;
}

void* DeviceMemory(uint64_t bytes) {
  void* memory = nullptr;
  Must(cudaMalloc(&memory, bytes), "cudaMalloc");
  Must(cudaMemset(memory, 1, bytes), "cudaMemset");
  return memory;
}

int Processors() {
  int count = 0;
  Must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "attribute");
  return count;
}

void Attributes() {
  cudaDeviceProp properties{};
  Must(cudaGetDeviceProperties(&properties, 0), "properties");
  int driver = 0;
  int runtime = 0;
  Must(cudaDriverGetVersion(&driver), "driver");
  Must(cudaRuntimeGetVersion(&runtime), "runtime");
  std::printf("{\"name\": \"device\", \"value\": \"%s\", \"unit\": \"\"}\n", properties.name);
  Say("driver", driver, "CUDA");
  Say("runtime", runtime, "CUDA");
  Say("architecture", properties.major * 10 + properties.minor, "sm");
  Say("memory", static_cast<double>(properties.totalGlobalMem), "bytes");
  Say("l2", properties.l2CacheSize, "bytes");
  const struct {
    const char* name;
    cudaDeviceAttr attribute;
  } asked[] = {
      {"multiprocessors", cudaDevAttrMultiProcessorCount},
      {"HostRegisterSupported", cudaDevAttrHostRegisterSupported},
      {"HostRegisterReadOnlySupported", cudaDevAttrHostRegisterReadOnlySupported},
      {"CanUseHostPointerForRegisteredMem", cudaDevAttrCanUseHostPointerForRegisteredMem},
      {"PageableMemoryAccess", cudaDevAttrPageableMemoryAccess},
      {"MpsEnabled", cudaDevAttrMpsEnabled},
      {"ComputeMode", cudaDevAttrComputeMode},
      {"KernelExecTimeout", cudaDevAttrKernelExecTimeout},
      {"AsyncEngineCount", cudaDevAttrAsyncEngineCount},
      {"HostNumaId", cudaDevAttrHostNumaId},
  };
  for (const auto& [name, attribute] : asked) {
    int value = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&value, attribute, 0);
    if (error == cudaSuccess)
      Say(name, value, "");
    else
      Refused(name, error);
  }
}

struct Shared {
  int fd;
  uint64_t bytes;
};

Shared SharedMemory(uint64_t bytes) {
  const int fd = memfd_create("gpu-check", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::exit(1);
  return {fd, bytes};
}

void* MapOf(const Shared& shared, int protection) {
  void* memory = mmap(nullptr, shared.bytes, protection, MAP_SHARED, shared.fd, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return memory;
}

bool TryRegister(const std::string& name, void* memory, uint64_t bytes, unsigned int flags = 0) {
  const double begin = Seconds();
  const cudaError_t error = cudaHostRegister(memory, bytes, flags);
  if (error != cudaSuccess) {
    Refused(name, error);
    return false;
  }
  Say(name, (Seconds() - begin) * 1e3, "ms");
  return true;
}

// Two processes that map the same slots both register them.
void RegisterInTwo(const Shared& shared) {
  for (const char* who : {"first", "second"}) {
    const pid_t child = fork();
    if (child == 0) {
      void* memory = MapOf(shared, PROT_READ | PROT_WRITE);
      TryRegister(std::string("shared memfd of two processes, ") + who, memory, shared.bytes);
      std::fflush(stdout);
      // The first one holds on while the second tries.
      if (std::strcmp(who, "first") == 0) sleep(3);
      _exit(0);
    }
    if (std::strcmp(who, "first") == 0) sleep(1);
  }
  while (wait(nullptr) > 0) {
  }
}

void Register() {
  RegisterInTwo(SharedMemory(64 * kMiB));  // before this process has a context to inherit
  Must(cudaSetDevice(0), "device");
  for (const uint64_t bytes : {uint64_t{4096}, kGiB, 8 * kGiB}) {
    for (const bool is_touched : {false, true}) {
      const Shared shared = SharedMemory(bytes);
      void* memory = MapOf(shared, PROT_READ | PROT_WRITE);
      if (is_touched) std::memset(memory, 1, bytes);
      const std::string name = "memfd " + std::to_string(bytes) + (is_touched ? " touched" : "");
      if (TryRegister(name, memory, bytes)) static_cast<void>(cudaHostUnregister(memory));
      munmap(memory, bytes);
      close(shared.fd);
    }
  }
  const Shared shared = SharedMemory(16 * kMiB);
  void* read_only = MapOf(shared, PROT_READ);
  TryRegister("read-only mapping", read_only, shared.bytes);
  TryRegister("read-only mapping with the flag", read_only, shared.bytes, cudaHostRegisterReadOnly);
  void* memory = MapOf(shared, PROT_READ | PROT_WRITE);
  if (!TryRegister("read-write mapping, protected afterwards", memory, shared.bytes)) return;
  mprotect(memory, shared.bytes, PROT_READ);
  const cudaError_t error =
      cudaMemcpy(DeviceMemory(shared.bytes), memory, shared.bytes, cudaMemcpyHostToDevice);
  if (error == cudaSuccess)
    Say("copy from what was protected", 1, "works");
  else
    Refused("copy from what was protected", error);
}

void Copy() {
  const uint64_t bytes = 512 * kMiB;
  void* from = DeviceMemory(bytes);
  void* to = DeviceMemory(bytes);
  void* pinned = nullptr;
  Must(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  std::memset(pinned, 1, bytes);
  std::vector<char> pageable(bytes, 1);
  const auto gbps = [&](double ms, double times) {
    return static_cast<double>(bytes) * times / (ms * 1e-3) / 1e9;
  };
  const auto copy = [&](void* a, const void* b, cudaMemcpyKind kind) {
    return BestMs(5, [&] { Must(cudaMemcpyAsync(a, b, bytes, kind, nullptr), "copy"); });
  };
  Say("on the device, read and write", gbps(copy(to, from, cudaMemcpyDeviceToDevice), 2), "GB/s");
  Say("to the device, pinned", gbps(copy(to, pinned, cudaMemcpyHostToDevice), 1), "GB/s");
  Say("to the host, pinned", gbps(copy(pinned, from, cudaMemcpyDeviceToHost), 1), "GB/s");
  Say("to the device, pageable", gbps(copy(to, pageable.data(), cudaMemcpyHostToDevice), 1),
      "GB/s");
  Say("to the host, pageable", gbps(copy(pageable.data(), from, cudaMemcpyDeviceToHost), 1),
      "GB/s");
}

// A warp a row: rows of `words` times 16 bytes at keyed places of host memory.
__global__ void ReadRows(const uint4* host, uint64_t rows, uint32_t words, uint4* out,
                         uint64_t count) {
  const uint64_t warp = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const uint64_t warps = uint64_t{gridDim.x} * blockDim.x / 32;
  for (uint64_t i = warp; i < count; i += warps) {
    const uint64_t row = i * 0x9E3779B97F4A7C15ull % rows;
    for (uint32_t w = threadIdx.x % 32; w < words; w += 32) {
      out[i * words + w] = host[row * words + w];
    }
  }
}

void ZeroCopy() {
  const uint64_t bytes = 2 * kGiB;
  const uint64_t read = 256 * kMiB;
  void* host = nullptr;
  Must(cudaHostAlloc(&host, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  std::memset(host, 1, bytes);
  void* seen = nullptr;
  Must(cudaHostGetDevicePointer(&seen, host, 0), "device pointer");
  auto* out = static_cast<uint4*>(DeviceMemory(read));
  for (const int processors : {8, 16, 32, Processors()}) {
    for (const uint32_t row : {128u, 256u, 400u, 512u, 1024u}) {
      const uint32_t words = row / 16;
      const uint64_t count = read / row;
      const double ms = BestMs(3, [&] {
        ReadRows<<<processors, 1024>>>(static_cast<const uint4*>(seen), bytes / row, words, out,
                                       count);
      });
      Must(cudaGetLastError(), "launch");
      Say("rows of " + std::to_string(row) + " bytes, " + std::to_string(processors) + " blocks",
          static_cast<double>(count) * row / (ms * 1e-3) / 1e9, "GB/s");
    }
  }
}

// Holds a context and `bytes` of memory until it is killed; says so on a pipe.
int Hold(int pipe_end, uint64_t bytes) {
  Must(cudaFree(nullptr), "context");
  if (bytes > 0) static_cast<void>(DeviceMemory(bytes));
  Must(cudaDeviceSynchronize(), "context");
  if (write(pipe_end, "x", 1) != 1) return 1;
  for (;;) pause();
}

pid_t StartHolding(uint64_t bytes) {
  int ready[2];
  if (pipe(ready) != 0) std::exit(1);
  const std::string end = std::to_string(ready[1]);
  const std::string size = std::to_string(bytes);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "probe", "hold", end.c_str(), size.c_str(), nullptr);
    _exit(1);
  }
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) std::exit(1);
  return child;
}

void Context() {
  size_t free_before = 0;
  size_t total = 0;
  double begin = Seconds();
  Must(cudaMemGetInfo(&free_before, &total), "memory");
  Say("time to a context", (Seconds() - begin) * 1e3, "ms");
  Say("memory in use with one context", static_cast<double>(total - free_before), "bytes");
  // Another program: a context does not survive a fork.
  const pid_t child = StartHolding(0);
  size_t free_after = 0;
  Must(cudaMemGetInfo(&free_after, &total), "memory");
  Say("memory of another context", static_cast<double>(free_before - free_after), "bytes");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

void Kill() {
  Must(cudaFree(nullptr), "context");
  size_t free_before = 0;
  size_t total = 0;
  Must(cudaMemGetInfo(&free_before, &total), "memory");
  const pid_t child = StartHolding(free_before / 2);
  kill(child, SIGKILL);
  const double killed = Seconds();
  waitpid(child, nullptr, 0);
  Say("until a killed process was reaped", (Seconds() - killed) * 1e3, "ms");
  size_t free_now = 0;
  do {
    Must(cudaMemGetInfo(&free_now, &total), "memory");
  } while (free_now + 64 * kMiB < free_before && Seconds() - killed < 30);
  Say("until its memory was back", (Seconds() - killed) * 1e3, "ms");
}

__global__ void Spin(uint64_t cycles) {
  const uint64_t begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

// Kernels of about a millisecond, alone and beside those of another process.
double MeanSpinMs() {
  const double begin = Seconds();
  for (int k = 0; k < 200; ++k) {
    Spin<<<1, 32>>>(1'500'000);
    Must(cudaDeviceSynchronize(), "spin");
  }
  return (Seconds() - begin) * 1e3 / 200;
}

void Turns() {
  const pid_t child = fork();
  if (child == 0) {
    sleep(2);
    const double end = Seconds() + 6;
    while (Seconds() < end) {
      Spin<<<1, 32>>>(1'500'000);
      Must(cudaDeviceSynchronize(), "spin");
    }
    _exit(0);
  }
  Say("a kernel alone", MeanSpinMs(), "ms");
  sleep(3);
  Say("a kernel beside another process's", MeanSpinMs(), "ms");
  waitpid(child, nullptr, 0);
}

__global__ void Match(const uint32_t* values, uint32_t* out, uint64_t count) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = __match_any_sync(0xFFFFFFFF, values[i]);
  }
}

__global__ void MatchByLoop(const uint32_t* values, uint32_t* out, uint64_t count) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint32_t same = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      same |= (__shfl_sync(0xFFFFFFFF, values[i], lane) == values[i] ? 1u : 0u) << lane;
    }
    out[i] = same;
  }
}

__global__ void Marks(unsigned long long* words, uint64_t mask, uint64_t count) {
  const uint64_t step = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    atomicMax(words + (i * 0x9E3779B97F4A7C15ull >> 20 & mask), i);
  }
}

void Primitives() {
  const uint64_t count = 64 * kMiB;
  const int blocks = 8 * Processors();
  auto* values = static_cast<uint32_t*>(DeviceMemory(count * 4));
  auto* out = static_cast<uint32_t*>(DeviceMemory(count * 4));
  const auto rate = [&](double ms) { return static_cast<double>(count) / (ms * 1e-3) / 1e9; };
  Say("match_any, all lanes equal",
      rate(BestMs(5, [&] { Match<<<blocks, 256>>>(values, out, count); })), "G/s");
  Say("the same by a loop",
      rate(BestMs(5, [&] { MatchByLoop<<<blocks, 256>>>(values, out, count); })), "G/s");
  auto* words = static_cast<unsigned long long*>(DeviceMemory(kGiB));
  for (const uint64_t size : {16 * kMiB, kGiB}) {
    const double ms = BestMs(5, [&] { Marks<<<blocks, 256>>>(words, size / 8 - 1, count); });
    Say("atomicMax of 64 bits in " + std::to_string(size / kMiB) + " MiB", rate(ms), "G/s");
  }
  Must(cudaDeviceSynchronize(), "primitives");
}

__global__ void ReadBeyond(const uint32_t* values, uint32_t* out, uint32_t at) {
  *out = values[at];
}

void Fault() {
  auto* values = static_cast<uint32_t*>(DeviceMemory(256));
  ReadBeyond<<<1, 1>>>(values, values, 64);
  Must(cudaDeviceSynchronize(), "read beyond an array");
  Say("read beyond an array", 1, "went unseen");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string question = argc > 1 ? argv[1] : "";
  if (question == "hold" && argc == 4) {
    return Hold(std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10));
  }
  const struct {
    const char* name;
    void (*answer)();
  } questions[] = {{"attributes", Attributes},
                   {"register", Register},
                   {"copy", Copy},
                   {"zero-copy", ZeroCopy},
                   {"context", Context},
                   {"turns", Turns},
                   {"kill", Kill},
                   {"primitives", Primitives},
                   {"fault", Fault}};
  for (const auto& [name, answer] : questions) {
    if (question != name) continue;
    answer();
    return 0;
  }
  static_cast<void>(std::fprintf(stderr, "usage: probe QUESTION\n"));
  return 2;
}
