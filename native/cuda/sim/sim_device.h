#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "cuda/plugin/handout.h"
#include "cuda/plugin/ranges.h"
#include "cuda/shim/shim.h"
#include "cuda/sim/script.h"
#include "include/gnnd/device_plugin.h"

namespace gnnd::sim {

// Counters of an event: a wait is for the records that were enqueued before it.
struct SimEvent {
  uint64_t enqueued = 0;
  uint64_t happened = 0;
  uint64_t at_ns = 0;
};

class SimDevice;

// Operations that were enqueued and have not run.
class SimStream final : public shim::Stream {
 public:
  explicit SimStream(SimDevice& device) : device_(device) {}

  void Add(std::function<void()> work) override;

  SimDevice& device() { return device_; }

 private:
  friend class SimDevice;
  struct Operation {
    std::function<int()> run;         // returns a CUDA error; null for the two below
    std::shared_ptr<SimEvent> event;  // to record, or to wait for up to `count`
    uint64_t count = 0;
    bool is_wait = false;
  };

  SimDevice& device_;
  std::deque<Operation> operations_;
};

// One simulated device (sim_runtime.h). Results are CUDA's numbers.
class SimDevice {
 public:
  SimDevice(const Script& script, uint32_t index);

  uint64_t free_bytes();
  int Allocate(uint64_t bytes, void** memory);
  int Free(void* memory);
  // Allocates in a memfd, whose pages live until nobody holds or maps it.
  int AllocateShared(uint64_t bytes, void** memory, cuda::SharedMemory* shared);
  // `reaches(a, b)`: whether device a of the script can read the memory of device b.
  int OpenShared(const cuda::SharedMemory& shared, void** memory,
                 const std::function<bool(uint32_t, uint32_t)>& reaches);
  int CloseShared(void* memory);
  int Register(void* memory, uint64_t bytes);
  int Unregister(void* memory);
  int AllocatePinned(uint64_t bytes, void** memory);
  int FreePinned(void* memory);

  SimStream* CreateStream();
  int DestroyStream(SimStream* stream);
  int Synchronize(SimStream* stream);
  SimEvent* CreateEvent();
  int DestroyEvent(SimEvent* event);
  int Record(SimEvent* event, SimStream* stream);
  int Wait(SimStream* stream, SimEvent* event);
  int Query(SimEvent* event);
  int SynchronizeEvent(SimEvent* event);
  int Elapsed(const SimEvent* begin, const SimEvent* end, uint64_t* ns);
  int Copy(SimStream* stream, void* to, const void* from, uint64_t bytes, uint32_t direction);
  int Fill(SimStream* stream, void* to, uint8_t byte, uint64_t bytes);
  // Enqueues a kernel.
  void Enqueue(SimStream* stream, std::function<void()> work);
  // Called before torch works on the device: the CUDA error that it is to throw, 0 = none.
  int BeginForeign();
  int broken();

 private:
  // Runs operations of all streams, in an order that they allow, until `is_over`.
  template <typename Condition>
  int RunUntil(const Condition& is_over);
  bool RunOne();
  bool IsBlocked(const SimStream& stream) const;
  int RunOperation(SimStream* stream);
  bool Strikes(const char* kind);
  int Break(int error);
  int CheckCopy(const void* to, const void* from, uint64_t bytes, uint32_t direction) const;
  uint64_t Random(uint64_t bound);

  std::mutex mutex_;
  const Script& script_;
  const uint32_t number_;  // number in the script
  uint64_t random_state_;
  int broken_ = 0;
  std::map<std::string, uint64_t> calls_;
  uint64_t used_bytes_ = 0;  // includes the reserve, once that is taken
  bool has_reserve_ = false;
  std::map<void*, Mapping> memory_;  // device memory and pinned memory
  cuda::Ranges<bool> arena_;
  cuda::Ranges<bool> opened_;
  cuda::Ranges<bool> registered_;
  std::map<SimStream*, std::unique_ptr<SimStream>> streams_;
  std::map<SimEvent*, std::shared_ptr<SimEvent>> events_;
};

}  // namespace gnnd::sim
