#pragma once

#include <cstdint>
#include <string>

#include "cuda/plugin/handout.h"
#include "include/gnnd/device_plugin.h"

// A device's library as the plug-in needs it. There are two: CUDA's (runtime/) and a simulated one
// (sim/). All code above it (accounts, checks, staging, samplers, the table) is the same for both.
// Functions return the library's numbers; 0 is success (failure.h says what others mean).

namespace gnnd::cuda {

// Shared memory is a whole block of the library's (CUDA's have this size): otherwise a process
// would see the neighbouring memory, too.
inline constexpr uint64_t kSharedBytes = uint64_t{2} << 20;

class Runtime {
 public:
  using Stream = void*;  // the stream that kernels are launched with: cudaStream_t, shim::Stream*
  using Event = void*;

  virtual ~Runtime() = default;

  virtual const char* Name() const = 0;
  virtual const char* Build() const = 0;
  // The library's description of one of its numbers.
  virtual std::string Said(int native) const = 0;

  // Properties that need no context. DriverVersion is 0 without a driver.
  virtual uint32_t DriverVersion() = 0;
  virtual uint32_t RuntimeVersion() const = 0;
  virtual int Count(uint32_t* devices) = 0;
  virtual std::string MonitorProblem() = 0;  // "" where processes can be listed
  virtual int Info(uint32_t index, gnnd_device_info* info) = 0;
  virtual int Link(uint32_t from, uint32_t to, gnnd_device_link* link) = 0;
  // Measures the bytes a second that `from` reads of `to` or of GNND_HOST_MEMORY. Makes contexts.
  virtual int LinkRate(uint32_t from, uint32_t to, uint64_t* bytes_per_second) = 0;
  virtual int Processes(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                        uint32_t* count) = 0;
  virtual int Instances(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                        uint32_t* count) = 0;

  // Begins a range of the calling thread's time for profilers, if the library has one. Ranges nest.
  virtual void BeginRange(const char* /*name*/) {}
  virtual void EndRange() {}

  // Makes the device current in the calling thread, with a context.
  virtual int Use(uint32_t index) = 0;
  // The functions below concern the current device.
  virtual int MemoryInfo(uint64_t* free_bytes, uint64_t* total_bytes) = 0;
  virtual int Allocate(uint64_t bytes, void** memory) = 0;
  virtual int Free(void* memory) = 0;
  // Memory, a multiple of kSharedBytes, that others may open by means of `shared`, whose descriptor
  // goes to the caller. It lives until nobody holds a descriptor of it or maps it.
  virtual int AllocateShared(uint64_t bytes, void** memory, SharedMemory* shared) = 0;
  virtual int FreeShared(void* memory) = 0;
  virtual int OpenShared(const SharedMemory& shared, void** memory) = 0;
  virtual int CloseShared(void* memory) = 0;
  // Largest piece that is registered at once; no copy may cross from one piece to the next.
  virtual uint64_t PieceBytes() const = 0;
  virtual int Register(void* memory, uint64_t bytes, void** seen) = 0;
  virtual int Unregister(void* memory) = 0;
  virtual int AllocatePinned(uint64_t bytes, void** memory) = 0;
  virtual int FreePinned(void* memory) = 0;

  virtual int CreateStream(bool is_high, Stream* stream) = 0;
  virtual int DestroyStream(Stream stream) = 0;
  virtual int Synchronize(Stream stream) = 0;
  virtual int Wait(Stream stream, Event event) = 0;
  virtual int CreateEvent(bool is_timed, Event* event) = 0;
  virtual int DestroyEvent(Event event) = 0;
  virtual int Record(Event event, Stream stream) = 0;
  virtual int Query(Event event) = 0;  // 600: it has not happened yet
  virtual int SynchronizeEvent(Event event) = 0;
  virtual int Elapsed(Event begin, Event end, uint64_t* ns) = 0;
  virtual int Copy(Stream stream, void* to, const void* from, uint64_t bytes,
                   uint32_t direction) = 0;
  virtual int Fill(Stream stream, void* to, uint8_t byte, uint64_t bytes) = 0;
  // Called before another library works on a stream; injects a simulated device's planned faults.
  virtual int BeginForeign(Stream /*stream*/) { return 0; }
  // The error of launches since the last call.
  virtual int LaunchError() = 0;
  // Largest sensible number of blocks in a launch.
  virtual uint32_t MaxBlocks(uint32_t index) = 0;
};

// Shows a range to profilers while it lives.
class Range {
 public:
  Range(Runtime& runtime, const char* name) : runtime_(runtime) { runtime_.BeginRange(name); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { runtime_.EndRange(); }

 private:
  Runtime& runtime_;
};

// The runtime of this plug-in.
Runtime& TheRuntime();

}  // namespace gnnd::cuda
