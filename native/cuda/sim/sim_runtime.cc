#include "cuda/sim/sim_runtime.h"

#include <unistd.h>

#include <cstdlib>

#include "core/ledger/build_id.h"
#include "cuda/plugin/failure.h"
#include "cuda/sim/sim_device.h"

namespace gnnd::sim {
namespace {

constexpr int kInvalidDevice = 101;
constexpr int kPeerAccessUnsupported = 217;

// The current device of each thread, as in CUDA.
thread_local uint32_t device_in_use = 0;

// A Runtime's stream is the shim::Stream on which kernels are launched.
SimStream* StreamOf(void* stream) {
  return static_cast<SimStream*>(static_cast<shim::Stream*>(stream));
}
SimEvent* EventOf(void* event) { return static_cast<SimEvent*>(event); }

}  // namespace

SimRuntime::SimRuntime()
    : script_(ReadScript([](const char* name) { return std::getenv(name); }, ThePose())) {
  for (const uint32_t device : script_.visible) {
    devices_.push_back(std::make_unique<SimDevice>(script_, device));
  }
}

SimRuntime::~SimRuntime() = default;

SimDevice& SimRuntime::Device() { return *devices_.at(device_in_use); }

const char* SimRuntime::Build() const {
  static const std::string build = "sim " + std::string(kBuildId);
  return build.c_str();
}

std::string SimRuntime::Said(int native) const {
  return "simulated error " + std::to_string(native);
}

int SimRuntime::Count(uint32_t* devices) {
  *devices = static_cast<uint32_t>(devices_.size());
  return script_.system_error;
}

int SimRuntime::Info(uint32_t index, gnnd_device_info* info) {
  if (index >= devices_.size()) return kInvalidDevice;
  cuda::Put(info->name, "simulated device");
  cuda::Put(info->uuid, UuidOf(script_.visible[index], ThePose()));
  info->architecture = ThePose().architecture;
  info->multiprocessors = MaxBlocks(index);
  info->total_bytes = script_.memory_bytes;
  info->free_bytes = devices_[index]->free_bytes();
  info->memory_kind = script_.memory_kind;
  info->can_register = 1;
  info->pageable_access = 0;
  info->copy_engines = 2;
  info->numa_node = -1;
  return 0;
}

int SimRuntime::Link(uint32_t from, uint32_t to, gnnd_device_link* link) {
  if (from >= devices_.size() || to >= devices_.size()) return kInvalidDevice;
  *link = {from == to ? 1U : 0U, GNND_UNKNOWN, 0, GNND_UNKNOWN};
  const uint32_t kind = LinkBetween(script_.visible[from], script_.visible[to]);
  if (kind != 0) *link = {1, kind, 0, kind};
  return 0;
}

uint32_t SimRuntime::LinkBetween(uint32_t a, uint32_t b) const {
  for (const Script::Peers& peers : script_.peers) {
    const bool are_these = (peers.a == a && peers.b == b) || (peers.a == b && peers.b == a);
    if (are_these) return peers.kind;
  }
  return 0;
}

int SimRuntime::LinkRate(uint32_t from, uint32_t to, uint64_t* bytes_per_second) {
  if (from >= devices_.size() || (to >= devices_.size() && to != GNND_HOST_MEMORY)) {
    return kInvalidDevice;
  }
  uint32_t kind = 0;
  if (to != GNND_HOST_MEMORY) {
    kind = LinkBetween(script_.visible[from], script_.visible[to]);
    if (kind == 0) return kPeerAccessUnsupported;
  }
  *bytes_per_second = script_.rates[kind] * 1'000'000'000;
  return 0;
}

int SimRuntime::Processes(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                          uint32_t* count) {
  if (index >= devices_.size()) return kInvalidDevice;
  *count = script_.processes;
  for (uint32_t k = 0; k < script_.processes && k < capacity; ++k) {
    processes[k] = {1, 0, GNND_UNKNOWN_BYTES};
  }
  return 0;
}

int SimRuntime::Instances(uint32_t index, gnnd_device_instance*, uint32_t, uint32_t* count) {
  *count = 0;
  return index < devices_.size() ? 0 : kInvalidDevice;
}

int SimRuntime::Use(uint32_t index) {
  if (index >= devices_.size()) return kInvalidDevice;
  device_in_use = index;
  return devices_[index]->broken();
}

int SimRuntime::MemoryInfo(uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = Device().free_bytes();
  *total_bytes = script_.memory_bytes;
  return 0;
}

int SimRuntime::Allocate(uint64_t bytes, void** memory) { return Device().Allocate(bytes, memory); }
int SimRuntime::Free(void* memory) { return Device().Free(memory); }

int SimRuntime::AllocateShared(uint64_t bytes, void** memory, cuda::SharedMemory* shared) {
  return Device().AllocateShared(bytes, memory, shared);
}
int SimRuntime::OpenShared(const cuda::SharedMemory& shared, void** memory) {
  return Device().OpenShared(shared, memory,
                             [this](uint32_t a, uint32_t b) { return LinkBetween(a, b) != 0; });
}
int SimRuntime::CloseShared(void* memory) { return Device().CloseShared(memory); }

int SimRuntime::Register(void* memory, uint64_t bytes, void** seen) {
  *seen = memory;
  return Device().Register(memory, bytes);
}
int SimRuntime::Unregister(void* memory) { return Device().Unregister(memory); }
int SimRuntime::AllocatePinned(uint64_t bytes, void** memory) {
  return Device().AllocatePinned(bytes, memory);
}
int SimRuntime::FreePinned(void* memory) { return Device().FreePinned(memory); }

int SimRuntime::CreateStream(bool, Stream* stream) {
  *stream = static_cast<shim::Stream*>(Device().CreateStream());
  return 0;
}
int SimRuntime::DestroyStream(Stream stream) {
  return StreamOf(stream)->device().DestroyStream(StreamOf(stream));
}
int SimRuntime::Synchronize(Stream stream) {
  return StreamOf(stream)->device().Synchronize(StreamOf(stream));
}
int SimRuntime::Wait(Stream stream, Event event) {
  return Device().Wait(StreamOf(stream), EventOf(event));
}
int SimRuntime::CreateEvent(bool, Event* event) {
  *event = Device().CreateEvent();
  return 0;
}
int SimRuntime::DestroyEvent(Event event) { return Device().DestroyEvent(EventOf(event)); }
int SimRuntime::Record(Event event, Stream stream) {
  return Device().Record(EventOf(event), StreamOf(stream));
}
int SimRuntime::Query(Event event) { return Device().Query(EventOf(event)); }
int SimRuntime::SynchronizeEvent(Event event) { return Device().SynchronizeEvent(EventOf(event)); }
int SimRuntime::Elapsed(Event begin, Event end, uint64_t* ns) {
  return Device().Elapsed(EventOf(begin), EventOf(end), ns);
}
int SimRuntime::Copy(Stream stream, void* to, const void* from, uint64_t bytes,
                     uint32_t direction) {
  return Device().Copy(StreamOf(stream), to, from, bytes, direction);
}
int SimRuntime::Fill(Stream stream, void* to, uint8_t byte, uint64_t bytes) {
  return Device().Fill(StreamOf(stream), to, byte, bytes);
}
int SimRuntime::BeginForeign(Stream stream) { return StreamOf(stream)->device().BeginForeign(); }
int SimRuntime::LaunchError() { return Device().broken(); }

}  // namespace gnnd::sim

gnnd::cuda::Runtime& gnnd::cuda::TheRuntime() {
  static sim::SimRuntime runtime;
  return runtime;
}
