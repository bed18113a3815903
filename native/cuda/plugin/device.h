#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cuda/plugin/failure.h"
#include "cuda/plugin/handout.h"
#include "cuda/plugin/ranges.h"
#include "cuda/plugin/runtime.h"

// A device in the plug-in's table: accounts, checks and the pinned ring, over either library.
// device_plugin.h documents the interface; functions return the library's number or one of
// failure.h, and describe errors in the caller's Failure.

namespace gnnd::cuda {

inline constexpr uint64_t kAlignment = 256;
inline constexpr uint64_t kStagingPieces = 8;
inline constexpr uint64_t kStagingPieceBytes = uint64_t{16} << 20;

}  // namespace gnnd::cuda

struct gnnd_device_stream {
  gnnd_device* device = nullptr;
  gnnd::cuda::Runtime::Stream stream = nullptr;
  bool is_own = true;
};

struct gnnd_device_event {
  gnnd_device* device = nullptr;
  gnnd::cuda::Runtime::Event event = nullptr;
  bool is_timed = false;
};

struct gnnd_device {
 public:
  using Runtime = gnnd::cuda::Runtime;
  using Failure = gnnd::cuda::Failure;

  gnnd_device(Runtime& runtime, const gnnd_device_config& config)
      : runtime_(runtime), config_(config) {}
  gnnd_device(const gnnd_device&) = delete;
  gnnd_device& operator=(const gnnd_device&) = delete;
  ~gnnd_device();

  int Open(Failure* failure);

  // Called before every operation: returns the sticky error, if any, else makes the device current.
  int Enter(Failure* failure);
  // Makes the device the calling thread's, whatever happened to it.
  int Use() { return runtime_.Use(config_.index); }
  // Called after every operation: records a sticky error. Returns `native`.
  int Leave(int native, const Failure& failure);

  int Memory(gnnd_device_memory* memory, Failure* failure);
  int Allocate(uint64_t bytes, uint32_t purpose, void** memory, Failure* failure);
  int AllocateShared(uint64_t bytes, uint32_t purpose, void** memory, gnnd_device_handle* handle,
                     Failure* failure);
  int OpenShared(const gnnd_device_handle& handle, void** memory, Failure* failure);
  void CloseShared(void* memory);
  void Release(void* memory);
  int Register(void* memory, uint64_t bytes, void** seen, Failure* failure);
  int Unregister(void* memory, Failure* failure);
  // Whether an asynchronous copy may use this host memory.
  bool IsRegistered(const void* memory, uint64_t bytes);

  int CreateStream(uint32_t priority, gnnd_device_stream** stream, Failure* failure);
  gnnd_device_stream* Adopt(void* native_stream);
  void Destroy(gnnd_device_stream* stream);
  int CreateEvent(bool is_timed, gnnd_device_event** event, Failure* failure);
  void Destroy(gnnd_device_event* event);

  int Copy(Runtime::Stream stream, void* to, const void* from, uint64_t bytes, uint32_t direction,
           Failure* failure);
  int CopyStaged(Runtime::Stream stream, void* to, const void* from, uint64_t bytes,
                 uint32_t direction, Failure* failure);

  // Registers an object, by its address, that must go before the device does: `end` frees it.
  void Own(void* what, std::function<void()> end);
  void Disown(void* what);

  Runtime& runtime() { return runtime_; }
  uint32_t max_blocks() const { return max_blocks_; }

 private:
  struct Allocation {
    uint32_t purpose;
    bool is_shared;
  };
  struct Piece {
    std::byte* memory = nullptr;
    Runtime::Event event = nullptr;
  };

  int EnsureRing(Failure* failure);
  int StageIn(Runtime::Stream stream, std::byte* to, const std::byte* from, uint64_t bytes);
  int StageOut(Runtime::Stream stream, std::byte* to, const std::byte* from, uint64_t bytes);
  uint64_t Used() const;
  std::string Budget() const;
  // Takes `bytes` from the arena, rounded up to `unit`s: take(rounded) returns the library's
  // number.
  int Take(uint64_t bytes, uint64_t unit, Allocation allocation, void** memory, Failure* failure,
           const std::function<int(uint64_t)>& take);
  void GiveBack(void* memory, bool is_shared);

  Runtime& runtime_;
  gnnd_device_config config_;
  uint32_t max_blocks_ = 1;
  uint64_t total_bytes_ = 0;
  uint64_t context_bytes_ = 0;
  uint64_t free_before_bytes_ = 0;  // free memory before this process opened the device
  uint64_t budget_bytes_ = 0;

  gnnd::cuda::Handout handout_;

  std::mutex mutex_;  // guards the members up to the ring
  int sticky_ = 0;
  std::string sticky_what_;
  gnnd::cuda::Ranges<Allocation> arena_;
  std::array<uint64_t, GNND_PURPOSES> used_{};
  uint64_t peak_bytes_ = 0;
  std::set<void*> opened_;                // shared memory of other processes
  gnnd::cuda::Ranges<void*> registered_;  // with the addresses at which kernels see them
  uint64_t registered_bytes_ = 0;
  uint64_t copied_in_bytes_ = 0;
  uint64_t copied_out_bytes_ = 0;
  std::set<gnnd_device_stream*> streams_;
  std::set<gnnd_device_event*> events_;
  std::map<void*, std::function<void()>> owned_;

  std::mutex ring_mutex_;  // one copy through the ring at a time
  std::vector<Piece> ring_;
  uint64_t piece_bytes_ = 0;
};
