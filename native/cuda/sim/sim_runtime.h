#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/plugin/runtime.h"
#include "cuda/sim/script.h"

// Devices that are made of this host's memory, for hosts and tests without a GPU. They are as
// strict as a GPU is unforgiving:
//
//   - enqueued operations run late: only when somebody waits, and then in any order that streams
//     and events allow, chosen by a seeded generator;
//   - a copy may touch only memory that is allocated here or registered, both when it is enqueued
//     and when it runs, and may not cross from one registered piece to the next;
//   - fresh memory holds a pattern, not zeros; each allocation ends at a page that nobody may
//   touch;
//   - on demand memory runs out, registering is refused, a kernel faults, a device is lost.
//
// The environment says which devices there are and which faults befall them (script.h).

namespace gnnd::sim {

class SimDevice;

class SimRuntime final : public cuda::Runtime {
 public:
  SimRuntime();
  ~SimRuntime() override;

  const char* Name() const override { return ThePose().name; }
  const char* Build() const override;
  std::string Said(int native) const override;
  uint32_t DriverVersion() override { return RuntimeVersion(); }
  uint32_t RuntimeVersion() const override { return 13000; }
  int Count(uint32_t* devices) override;
  std::string MonitorProblem() override { return ""; }
  int Info(uint32_t index, gnnd_device_info* info) override;
  int Link(uint32_t from, uint32_t to, gnnd_device_link* link) override;
  int LinkRate(uint32_t from, uint32_t to, uint64_t* bytes_per_second) override;
  int Instances(uint32_t index, gnnd_device_instance* instances, uint32_t capacity,
                uint32_t* count) override;
  int Processes(uint32_t index, gnnd_device_process* processes, uint32_t capacity,
                uint32_t* count) override;
  int Use(uint32_t index) override;
  int MemoryInfo(uint64_t* free_bytes, uint64_t* total_bytes) override;
  int Allocate(uint64_t bytes, void** memory) override;
  int Free(void* memory) override;
  int AllocateShared(uint64_t bytes, void** memory, cuda::SharedMemory* shared) override;
  int FreeShared(void* memory) override { return Free(memory); }
  int OpenShared(const cuda::SharedMemory& shared, void** memory) override;
  int CloseShared(void* memory) override;
  uint64_t PieceBytes() const override { return uint64_t{1} << 20; }
  int Register(void* memory, uint64_t bytes, void** seen) override;
  int Unregister(void* memory) override;
  int AllocatePinned(uint64_t bytes, void** memory) override;
  int FreePinned(void* memory) override;
  int CreateStream(bool is_high, Stream* stream) override;
  int DestroyStream(Stream stream) override;
  int Synchronize(Stream stream) override;
  int Wait(Stream stream, Event event) override;
  int CreateEvent(bool is_timed, Event* event) override;
  int DestroyEvent(Event event) override;
  int Record(Event event, Stream stream) override;
  int Query(Event event) override;
  int SynchronizeEvent(Event event) override;
  int Elapsed(Event begin, Event end, uint64_t* ns) override;
  int Copy(Stream stream, void* to, const void* from, uint64_t bytes, uint32_t direction) override;
  int Fill(Stream stream, void* to, uint8_t byte, uint64_t bytes) override;
  int BeginForeign(Stream stream) override;
  int LaunchError() override;
  uint32_t MaxBlocks(uint32_t) override { return 4; }

 private:
  SimDevice& Device();
  // The link between two devices of the script; 0: neither can read the other's memory.
  uint32_t LinkBetween(uint32_t a, uint32_t b) const;

  Script script_;
  std::vector<std::unique_ptr<SimDevice>> devices_;
};

}  // namespace gnnd::sim
