#include "cuda/sim/sim_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "cuda/plugin/failure.h"
#include "include/gnnd/device_plugin.h"

namespace gnnd::sim {
namespace {

constexpr uint8_t kFresh = 0xCD;
// Larger allocations start as zeros: a pattern would allocate all their pages at once.
constexpr uint64_t kPatternBytes = uint64_t{64} << 20;

// CUDA's error numbers.
constexpr int kInvalidValue = 1;
constexpr int kMemoryAllocation = 2;
constexpr int kInvalidDevicePointer = 17;
constexpr int kNotReady = 600;
constexpr int kPeerAccessUnsupported = 217;
constexpr int kIllegalAddress = 700;
constexpr int kContextIsDestroyed = 709;
constexpr int kAlreadyRegistered = 712;
constexpr int kHostNotRegistered = 713;
constexpr int kLaunchFailure = 719;
constexpr int kNotSupported = 801;

// Memory that ends at a page that nobody may touch.
Result<Mapping> Guarded(uint64_t bytes, void** start) {
  const uint64_t pages = RoundUp(bytes, kPageBytes);
  Mapping mapping = GNND_VALUE(Mapping::Anonymous(pages + kPageBytes, {.huge_pages = false}));
  GNND_TRY(Protect({mapping.data() + pages, kPageBytes}, Protection::kNone));
  *start = mapping.data() + pages - bytes;
  if (bytes <= kPatternBytes) std::memset(*start, kFresh, bytes);
  return mapping;
}

}  // namespace

void SimStream::Add(std::function<void()> work) { device_.Enqueue(this, std::move(work)); }

SimDevice::SimDevice(const Script& script, uint32_t index)
    : script_(script), number_(index), random_state_(script.random_seed * 1000 + index + 1) {}

uint64_t SimDevice::Random(uint64_t bound) {
  random_state_ = random_state_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
  return (random_state_ >> 33) % bound;
}

bool SimDevice::Strikes(const char* kind) {
  const auto planned = script_.faults.find(kind);
  if (++calls_[kind]; planned == script_.faults.end() || calls_[kind] != planned->second) {
    return false;
  }
  if (script_.once.empty()) return true;
  const int file = open(script_.once.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (file < 0) return false;
  close(file);
  return true;
}

int SimDevice::Break(int error) {
  broken_ = error;
  for (auto& [stream, owned] : streams_) stream->operations_.clear();
  return error;
}

int SimDevice::broken() {
  const std::lock_guard lock(mutex_);
  return broken_;
}

uint64_t SimDevice::free_bytes() {
  const std::lock_guard lock(mutex_);
  return script_.memory_bytes - used_bytes_;
}

int SimDevice::Allocate(uint64_t bytes, void** memory) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (Strikes("memory") || bytes > script_.memory_bytes - used_bytes_) return kMemoryAllocation;
  Result<Mapping> mapping = Guarded(bytes, memory);
  if (!mapping.ok()) return kMemoryAllocation;
  memory_.emplace(*memory, std::move(*mapping));
  arena_.Add(*memory, bytes, true);
  used_bytes_ += bytes;
  return 0;
}

int SimDevice::AllocateShared(uint64_t bytes, void** memory, cuda::SharedMemory* shared) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (Strikes("memory") || bytes > script_.memory_bytes - used_bytes_) return kMemoryAllocation;
  Result<UniqueFd> fd = CreateMemfd("gnnd-sim-shared", bytes);
  if (!fd.ok()) return kMemoryAllocation;
  Result<Mapping> mapping = Mapping::Map(fd->get(), /*writable=*/true);
  if (!mapping.ok()) return kMemoryAllocation;
  *memory = mapping->data();
  memory_.emplace(*memory, std::move(*mapping));
  *shared = {fd->Release(), number_, bytes};
  arena_.Add(*memory, bytes, true);
  used_bytes_ += bytes;
  return 0;
}

int SimDevice::OpenShared(const cuda::SharedMemory& shared, void** memory,
                          const std::function<bool(uint32_t, uint32_t)>& reaches) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  const bool is_own = shared.device == number_;
  if (!is_own && !reaches(number_, shared.device)) return kPeerAccessUnsupported;
  Result<Mapping> mapping = Mapping::Map(shared.fd, /*writable=*/false);
  if (!mapping.ok()) return kMemoryAllocation;
  *memory = mapping->data();
  opened_.Add(*memory, mapping->size(), true);
  memory_.emplace(*memory, std::move(*mapping));
  return 0;
}

int SimDevice::CloseShared(void* memory) {
  const std::lock_guard lock(mutex_);
  cuda::Ranges<bool>::Entry entry{};
  if (!opened_.Remove(memory, &entry)) return kInvalidValue;
  memory_.erase(memory);
  return broken_;
}

int SimDevice::Free(void* memory) {
  const std::lock_guard lock(mutex_);
  cuda::Ranges<bool>::Entry entry{};
  if (!arena_.Remove(memory, &entry)) return kInvalidDevicePointer;
  memory_.erase(memory);
  used_bytes_ -= entry.bytes;
  return broken_;
}

int SimDevice::Register(void* memory, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (Strikes("register")) return kNotSupported;
  if (reinterpret_cast<uintptr_t>(memory) % kPageBytes != 0) return kInvalidValue;
  // Allocates all pages, as pinning does; they must be writable.
  if (!Populate({static_cast<std::byte*>(memory), bytes}).ok()) return kInvalidValue;
  return registered_.Add(memory, bytes, true) ? 0 : kAlreadyRegistered;
}

int SimDevice::Unregister(void* memory) {
  const std::lock_guard lock(mutex_);
  cuda::Ranges<bool>::Entry entry{};
  return registered_.Remove(memory, &entry) ? broken_ : kHostNotRegistered;
}

int SimDevice::AllocatePinned(uint64_t bytes, void** memory) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  Result<Mapping> mapping = Guarded(bytes, memory);
  if (!mapping.ok()) return kMemoryAllocation;
  memory_.emplace(*memory, std::move(*mapping));
  registered_.Add(*memory, bytes, true);
  return 0;
}

int SimDevice::FreePinned(void* memory) {
  const std::lock_guard lock(mutex_);
  cuda::Ranges<bool>::Entry entry{};
  if (!registered_.Remove(memory, &entry)) return kInvalidValue;
  memory_.erase(memory);
  return broken_;
}

int SimDevice::BeginForeign() {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (Strikes("torch-memory")) return kMemoryAllocation;
  if (!has_reserve_) {
    if (script_.reserve_bytes > script_.memory_bytes - used_bytes_) return kMemoryAllocation;
    used_bytes_ += script_.reserve_bytes;
    has_reserve_ = true;
  }
  if (!Strikes("torch-error")) return 0;
  return cuda::IsSticky(script_.torch_error) ? Break(script_.torch_error) : script_.torch_error;
}

SimStream* SimDevice::CreateStream() {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<SimStream>(*this);
  SimStream* const stream = made.get();
  streams_.emplace(stream, std::move(made));
  return stream;
}

bool SimDevice::IsBlocked(const SimStream& stream) const {
  if (stream.operations_.empty()) return true;
  const SimStream::Operation& next = stream.operations_.front();
  return next.is_wait && next.event->happened < next.count;
}

int SimDevice::RunOperation(SimStream* stream) {
  SimStream::Operation next = std::move(stream->operations_.front());
  stream->operations_.pop_front();
  if (next.is_wait) return 0;
  if (next.event != nullptr) {
    next.event->happened = next.count;
    next.event->at_ns = MonotonicNs();
    return 0;
  }
  if (Strikes("launch")) return kLaunchFailure;
  if (Strikes("lost")) return kContextIsDestroyed;
  return next.run();
}

// False if no operation can run.
bool SimDevice::RunOne() {
  std::vector<SimStream*> ready;
  for (const auto& [stream, owned] : streams_) {
    if (!IsBlocked(*stream)) ready.push_back(stream);
  }
  if (ready.empty()) return false;
  const int error = RunOperation(ready[Random(ready.size())]);
  if (error != 0) Break(error);
  return true;
}

template <typename Condition>
int SimDevice::RunUntil(const Condition& is_over) {
  while (broken_ == 0 && !is_over()) {
    // An event waits only for earlier records, so some operation can always run.
    if (!RunOne()) return Break(kLaunchFailure);
  }
  return broken_;
}

int SimDevice::DestroyStream(SimStream* stream) {
  const std::lock_guard lock(mutex_);
  const int error = RunUntil([&] { return stream->operations_.empty(); });
  streams_.erase(stream);
  return error;
}

int SimDevice::Synchronize(SimStream* stream) {
  const std::lock_guard lock(mutex_);
  return RunUntil([&] { return stream->operations_.empty(); });
}

SimEvent* SimDevice::CreateEvent() {
  const std::lock_guard lock(mutex_);
  auto made = std::make_shared<SimEvent>();
  SimEvent* const event = made.get();
  events_.emplace(event, std::move(made));
  return event;
}

int SimDevice::DestroyEvent(SimEvent* event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
  return broken_;
}

int SimDevice::Record(SimEvent* event, SimStream* stream) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  stream->operations_.push_back({nullptr, events_.at(event), ++event->enqueued, false});
  return 0;
}

int SimDevice::Wait(SimStream* stream, SimEvent* event) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  stream->operations_.push_back({nullptr, events_.at(event), event->enqueued, true});
  return 0;
}

int SimDevice::Query(SimEvent* event) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  // Runs one operation, so that a caller that polls makes progress.
  if (event->happened < event->enqueued) static_cast<void>(RunOne());
  if (broken_ != 0) return broken_;
  return event->happened < event->enqueued ? kNotReady : 0;
}

int SimDevice::SynchronizeEvent(SimEvent* event) {
  const std::lock_guard lock(mutex_);
  const uint64_t count = event->enqueued;
  return RunUntil([&] { return event->happened >= count; });
}

int SimDevice::Elapsed(const SimEvent* begin, const SimEvent* end, uint64_t* ns) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (begin->happened < begin->enqueued || end->happened < end->enqueued) return kNotReady;
  if (begin->enqueued == 0 || end->enqueued == 0) return kInvalidValue;
  *ns = end->at_ns < begin->at_ns ? 0 : end->at_ns - begin->at_ns;
  return 0;
}

int SimDevice::CheckCopy(const void* to, const void* from, uint64_t bytes,
                         uint32_t direction) const {
  const bool to_device = direction != GNND_COPY_TO_HOST;
  const bool from_device = direction != GNND_COPY_TO_DEVICE;
  const bool is_allowed = (to_device ? arena_ : registered_).Covers(to, bytes) &&
                          ((from_device ? arena_ : registered_).Covers(from, bytes) ||
                           (from_device && opened_.Covers(from, bytes)));
  return is_allowed ? 0 : kInvalidValue;
}

int SimDevice::Copy(SimStream* stream, void* to, const void* from, uint64_t bytes,
                    uint32_t direction) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (const int error = CheckCopy(to, from, bytes, direction); error != 0) return error;
  stream->operations_.push_back({[=, this] {
                                   if (CheckCopy(to, from, bytes, direction) != 0) {
                                     return kIllegalAddress;
                                   }
                                   std::memcpy(to, from, bytes);
                                   return 0;
                                 },
                                 nullptr, 0, false});
  return 0;
}

int SimDevice::Fill(SimStream* stream, void* to, uint8_t byte, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return broken_;
  if (!arena_.Covers(to, bytes)) return kInvalidValue;
  stream->operations_.push_back({[=, this] {
                                   if (!arena_.Covers(to, bytes)) return kIllegalAddress;
                                   std::memset(to, byte, bytes);
                                   return 0;
                                 },
                                 nullptr, 0, false});
  return 0;
}

void SimDevice::Enqueue(SimStream* stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (broken_ != 0) return;
  stream->operations_.push_back({[work = std::move(work)] {
                                   work();
                                   return 0;
                                 },
                                 nullptr, 0, false});
}

}  // namespace gnnd::sim
