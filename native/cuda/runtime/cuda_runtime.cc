#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

// Needs only the toolkit's headers, which look for a profiler by themselves.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define GNND_HAS_NVTX
#endif

#include "core/ledger/build_id.h"
#include "cuda/plugin/failure.h"
#include "cuda/plugin/runtime.h"
#include "cuda/runtime/nvml.h"
#include "cuda/runtime/shared_mappings.h"

// CUDA's runtime, linked statically: the plug-in loads, and answers, on hosts without a driver. It
// uses plain allocations, no managed memory and no default stream. This copy of the runtime has a
// current device and a last error of its own, apart from those of torch's copy; both work in the
// device's one primary context.

namespace gnnd::cuda {
namespace {

// Returns an error, and clears it, because CUDA would report it to the next call that asks.
int Answer(cudaError_t error) {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return static_cast<int>(error);
}

uint32_t Attribute(cudaDeviceAttr attribute, int index) {
  int value = 0;
  if (Answer(cudaDeviceGetAttribute(&value, attribute, index)) != 0) return GNND_UNKNOWN;
  return static_cast<uint32_t>(value);
}

// The UUID's 16 bytes in the format of NVIDIA's tools.
std::string UuidText(const char* kind, const cudaUUID_t& uuid) {
  std::string text = kind;
  for (int k = 0; k < 16; ++k) {
    char digits[4];
    const auto byte = static_cast<unsigned char>(uuid.bytes[k]);
    static_cast<void>(std::snprintf(digits, sizeof digits, "%02x", byte));
    if (k == 4 || k == 6 || k == 8 || k == 10) text += '-';
    text += digits;
  }
  return text;
}

std::string PciOf(int index) {
  char text[32] = "";
  return Answer(cudaDeviceGetPCIBusId(text, sizeof text, index)) == 0 ? text : "";
}

// A MIG instance can be chosen only through the environment, which names it.
bool IsMigInstance(const std::string& name) { return name.find(" MIG ") != std::string::npos; }

constexpr int kHost = -1;

// Times copies from one memory to a device's, on that device.
class CopyMeter {
 public:
  static constexpr uint64_t kBytes = uint64_t{64} << 20;
  static constexpr int kRounds = 5;

  CopyMeter(int device, int source) : device_(device), source_(source) {}

  // Milliseconds to copy kBytes: the least of the rounds.
  cudaError_t Measure(float* ms) const {
    Parts parts;
    const cudaError_t error = Prepare(&parts);
    const cudaError_t measured = error == cudaSuccess ? Rounds(parts, ms) : error;
    Free(parts);
    return measured;
  }

 private:
  struct Parts {
    void* from = nullptr;
    void* to = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t begun = nullptr;
    cudaEvent_t ended = nullptr;
  };

  cudaError_t Prepare(Parts* parts) const {
    cudaError_t error = cudaSuccess;
    const auto then = [&error](cudaError_t next) {
      error = next;
      return next == cudaSuccess;
    };
    static_cast<void>((source_ == kHost
                           ? then(cudaSetDevice(device_)) &&
                                 then(cudaHostAlloc(&parts->from, kBytes, cudaHostAllocPortable))
                           : then(cudaSetDevice(source_)) &&
                                 then(cudaMalloc(&parts->from, kBytes)) &&
                                 then(cudaSetDevice(device_)) && MayReach(&error)) &&
                      then(cudaMalloc(&parts->to, kBytes)) &&
                      then(cudaStreamCreateWithFlags(&parts->stream, cudaStreamNonBlocking)) &&
                      then(cudaEventCreate(&parts->begun)) && then(cudaEventCreate(&parts->ended)));
    return error;
  }

  bool MayReach(cudaError_t* error) const {
    *error = cudaDeviceEnablePeerAccess(source_, 0);
    if (*error != cudaErrorPeerAccessAlreadyEnabled) return *error == cudaSuccess;
    static_cast<void>(cudaGetLastError());
    *error = cudaSuccess;
    return true;
  }

  cudaError_t Rounds(const Parts& parts, float* ms) const {
    *ms = 0;
    for (int round = 0; round < kRounds; ++round) {
      cudaError_t error = cudaEventRecord(parts.begun, parts.stream);
      if (error == cudaSuccess) {
        error = cudaMemcpyAsync(parts.to, parts.from, kBytes, cudaMemcpyDefault, parts.stream);
      }
      if (error == cudaSuccess) error = cudaEventRecord(parts.ended, parts.stream);
      if (error == cudaSuccess) error = cudaEventSynchronize(parts.ended);
      float took = 0;
      if (error == cudaSuccess) error = cudaEventElapsedTime(&took, parts.begun, parts.ended);
      if (error != cudaSuccess) return error;
      if (round == 0 || took < *ms) *ms = took;
    }
    return cudaSuccess;
  }

  void Free(const Parts& parts) const {
    if (parts.begun != nullptr) static_cast<void>(cudaEventDestroy(parts.begun));
    if (parts.ended != nullptr) static_cast<void>(cudaEventDestroy(parts.ended));
    if (parts.stream != nullptr) static_cast<void>(cudaStreamDestroy(parts.stream));
    if (parts.to != nullptr) static_cast<void>(cudaFree(parts.to));
    if (parts.from == nullptr) return;
    static_cast<void>(source_ == kHost ? cudaFreeHost(parts.from) : cudaFree(parts.from));
  }

  int device_;
  int source_;
};

class CudaRuntime final : public Runtime {
 public:
  const char* Name() const override { return "cuda"; }

  const char* Build() const override {
    static const std::string build =
        "CUDA " + VersionText(CUDART_VERSION) + " " + GNND_CUDA_ARCHITECTURES + " " + kBuildId;
    return build.c_str();
  }

  std::string Said(int native) const override {
    const auto error = static_cast<cudaError_t>(native);
    return std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error);
  }

  uint32_t DriverVersion() override {
    int version = 0;
    return Answer(cudaDriverGetVersion(&version)) == 0 ? static_cast<uint32_t>(version) : 0;
  }
  uint32_t RuntimeVersion() const override { return CUDART_VERSION; }

  int Count(uint32_t* devices) override {
    int count = 0;
    const int error = Answer(cudaGetDeviceCount(&count));
    *devices = error == 0 ? static_cast<uint32_t>(count) : 0;
    return error;
  }

  std::string MonitorProblem() override { return Nvml::Get().problem(); }

  int Info(uint32_t index, gnnd_device_info* info) override {
    const int device = static_cast<int>(index);
    cudaDeviceProp properties{};
    if (const int error = Answer(cudaGetDeviceProperties(&properties, device)); error != 0) {
      return error;
    }
    const std::string name = properties.name;
    const std::string pci = PciOf(device);
    Put(info->name, name);
    Put(info->uuid, UuidText(IsMigInstance(name) ? "MIG-" : "GPU-", properties.uuid));
    Put(info->pci, pci);
    info->architecture = static_cast<uint32_t>(properties.major * 10 + properties.minor);
    info->multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
    info->total_bytes = properties.totalGlobalMem;
    info->free_bytes = GNND_UNKNOWN_BYTES;
    info->memory_kind = GNND_MEMORY_DEVICE;
    info->compute_mode = Attribute(cudaDevAttrComputeMode, device);
    bool is_mig_on = false;
    const bool knows_mig = Nvml::Get().IsMigOn(pci, &is_mig_on);
    info->mig = IsMigInstance(name) ? 1 : !knows_mig ? GNND_UNKNOWN : is_mig_on ? 2 : 0;
    info->mps = Attribute(cudaDevAttrMpsEnabled, device);
    info->can_register = Attribute(cudaDevAttrHostRegisterSupported, device);
    info->can_register_read_only = Attribute(cudaDevAttrHostRegisterReadOnlySupported, device);
    info->pageable_access = Attribute(cudaDevAttrPageableMemoryAccess, device);
    info->time_limit = Attribute(cudaDevAttrKernelExecTimeout, device);
    info->copy_engines = Attribute(cudaDevAttrAsyncEngineCount, device);
    info->numa_node = static_cast<int32_t>(Attribute(cudaDevAttrHostNumaId, device));
    return 0;
  }

  int Link(uint32_t from, uint32_t to, gnnd_device_link* link) override {
    const int a = static_cast<int>(from);
    const int b = static_cast<int>(to);
    *link = {from == to ? 1U : 0U, GNND_UNKNOWN, from == to ? 1U : 0U, GNND_UNKNOWN};
    if (from == to) return 0;
    int access = 0;
    if (const int error = Answer(cudaDeviceCanAccessPeer(&access, a, b)); error != 0) return error;
    link->access = static_cast<uint32_t>(access);
    static_cast<void>(Nvml::Get().LinkKind(PciOf(a), PciOf(b), &link->kind));
    int value = 0;
    if (Answer(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, a, b)) == 0) {
      link->rank = static_cast<uint32_t>(value);
    }
    value = 0;
    if (Answer(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, a, b)) == 0) {
      link->atomics = static_cast<uint32_t>(value);
    }
    return 0;
  }

  int LinkRate(uint32_t from, uint32_t to, uint64_t* bytes_per_second) override {
    const CopyMeter meter{static_cast<int>(from),
                          to == GNND_HOST_MEMORY ? kHost : static_cast<int>(to)};
    float ms = 0;
    const cudaError_t error = meter.Measure(&ms);
    *bytes_per_second =
        error == cudaSuccess && ms > 0 ? static_cast<uint64_t>(CopyMeter::kBytes / (ms * 1e-3)) : 0;
    return Answer(error);
  }

  int Processes(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                uint32_t* count) override {
    std::vector<GpuProcess> found;
    if (!Nvml::Get().Processes(PciOf(static_cast<int>(index)), &found)) return kNoMonitor;
    *count = static_cast<uint32_t>(found.size());
    for (uint32_t k = 0; k < found.size() && k < capacity; ++k) {
      processes[k] = {found[k].pid, 0, found[k].bytes};
    }
    return 0;
  }

  int Instances(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                uint32_t* count) override {
    std::vector<MigInstance> found;
    if (!Nvml::Get().Instances(PciOf(static_cast<int>(index)), &found)) return kNoMonitor;
    *count = static_cast<uint32_t>(found.size());
    for (uint32_t k = 0; k < found.size() && k < capacity; ++k) {
      Put(instances[k].uuid, found[k].uuid);
      Put(instances[k].name, found[k].name);
      instances[k].total_bytes = found[k].total_bytes;
    }
    return 0;
  }

#ifdef GNND_HAS_NVTX
  // Without a profiler this only reads a flag.
  void BeginRange(const char* name) override { static_cast<void>(nvtxRangePushA(name)); }
  void EndRange() override { static_cast<void>(nvtxRangePop()); }
#endif

  int Use(uint32_t index) override { return Answer(cudaSetDevice(static_cast<int>(index))); }

  int MemoryInfo(uint64_t* free_bytes, uint64_t* total_bytes) override {
    size_t free_size = 0;
    size_t total_size = 0;
    const int error = Answer(cudaMemGetInfo(&free_size, &total_size));
    *free_bytes = free_size;
    *total_bytes = total_size;
    return error;
  }
  int Allocate(uint64_t bytes, void** memory) override { return Answer(cudaMalloc(memory, bytes)); }
  int Free(void* memory) override { return Answer(cudaFree(memory)); }

  int AllocateShared(uint64_t bytes, void** memory, SharedMemory* shared) override {
    return shared_.Allocate(bytes, memory, shared);
  }
  int FreeShared(void* memory) override { return shared_.Free(memory); }
  // Also opens memory of devices that this process does not see.
  int OpenShared(const SharedMemory& shared, void** memory) override {
    return shared_.Open(shared, memory);
  }
  int CloseShared(void* memory) override { return shared_.Free(memory); }

  uint64_t PieceBytes() const override { return uint64_t{4} << 30; }
  int Register(void* memory, uint64_t bytes, void** seen) override {
    // Mapped, so that kernels can read it; portable, so that all contexts of the process know it.
    const unsigned int flags = cudaHostRegisterMapped | cudaHostRegisterPortable;
    if (const int error = Answer(cudaHostRegister(memory, bytes, flags)); error != 0) return error;
    const int error = Answer(cudaHostGetDevicePointer(seen, memory, 0));
    if (error != 0) static_cast<void>(Answer(cudaHostUnregister(memory)));
    return error;
  }
  int Unregister(void* memory) override { return Answer(cudaHostUnregister(memory)); }
  int AllocatePinned(uint64_t bytes, void** memory) override {
    return Answer(cudaHostAlloc(memory, bytes, cudaHostAllocPortable));
  }
  int FreePinned(void* memory) override { return Answer(cudaFreeHost(memory)); }

  int CreateStream(bool is_high, Stream* stream) override {
    int least = 0;
    int greatest = 0;
    if (const int error = Answer(cudaDeviceGetStreamPriorityRange(&least, &greatest)); error != 0) {
      return error;
    }
    cudaStream_t made = nullptr;
    const int error = Answer(
        cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, is_high ? greatest : least));
    *stream = made;
    return error;
  }
  int DestroyStream(Stream stream) override {
    const int waited = Synchronize(stream);
    const int destroyed = Answer(cudaStreamDestroy(static_cast<cudaStream_t>(stream)));
    return waited != 0 ? waited : destroyed;
  }
  int Synchronize(Stream stream) override {
    return Answer(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  }
  int Wait(Stream stream, Event event) override {
    return Answer(
        cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0));
  }

  int CreateEvent(bool is_timed, Event* event) override {
    cudaEvent_t made = nullptr;
    // A waiting thread sleeps: one that spins would take a core from others.
    const unsigned int flags =
        cudaEventBlockingSync | (is_timed ? cudaEventDefault : cudaEventDisableTiming);
    const int error = Answer(cudaEventCreateWithFlags(&made, flags));
    *event = made;
    return error;
  }
  int DestroyEvent(Event event) override {
    return Answer(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
  }
  int Record(Event event, Stream stream) override {
    return Answer(
        cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream)));
  }
  int Query(Event event) override {
    return Answer(cudaEventQuery(static_cast<cudaEvent_t>(event)));
  }
  int SynchronizeEvent(Event event) override {
    return Answer(cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
  }
  int Elapsed(Event begin, Event end, uint64_t* ns) override {
    float ms = 0;
    const int error = Answer(
        cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(begin), static_cast<cudaEvent_t>(end)));
    *ns = static_cast<uint64_t>(static_cast<double>(ms) * 1e6);
    return error;
  }

  int Copy(Stream stream, void* to, const void* from, uint64_t bytes, uint32_t direction) override {
    const cudaMemcpyKind kind = direction == GNND_COPY_TO_DEVICE ? cudaMemcpyHostToDevice
                                : direction == GNND_COPY_TO_HOST ? cudaMemcpyDeviceToHost
                                                                 : cudaMemcpyDeviceToDevice;
    return Answer(cudaMemcpyAsync(to, from, bytes, kind, static_cast<cudaStream_t>(stream)));
  }
  int Fill(Stream stream, void* to, uint8_t byte, uint64_t bytes) override {
    return Answer(cudaMemsetAsync(to, byte, bytes, static_cast<cudaStream_t>(stream)));
  }

  int LaunchError() override { return static_cast<int>(cudaGetLastError()); }

  // Enough blocks to hide latency, few enough to keep the tail short: eight blocks of 256 threads
  // fill a multiprocessor's 2,048 threads.
  uint32_t MaxBlocks(uint32_t index) override {
    return 8 * Attribute(cudaDevAttrMultiProcessorCount, static_cast<int>(index));
  }

 private:
  SharedMappings shared_;
};

}  // namespace

Runtime& TheRuntime() {
  static CudaRuntime runtime;
  return runtime;
}

}  // namespace gnnd::cuda
