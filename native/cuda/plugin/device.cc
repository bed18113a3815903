#include "cuda/plugin/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

using gnnd::cuda::kAlignment;
using gnnd::cuda::kBadArgument;
using gnnd::cuda::kNotRegistered;
using gnnd::cuda::kOverBudget;
using gnnd::cuda::kSharedBytes;
using gnnd::cuda::kStagingPieceBytes;
using gnnd::cuda::kStagingPieces;

namespace {

std::string BytesText(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string RangeText(const void* memory, uint64_t bytes) {
  char text[40];
  static_cast<void>(snprintf(text, sizeof text, "%p", memory));
  return BytesText(bytes) + " at " + text;
}

}  // namespace

gnnd_device::~gnnd_device() {
  static_cast<void>(runtime_.Use(config_.index));
  for (const auto& [what, end] : owned_) end();
  // Streams go next: destroying one waits for work that still uses the rest.
  for (gnnd_device_stream* stream : streams_) {
    if (stream->is_own) static_cast<void>(runtime_.DestroyStream(stream->stream));
    delete stream;
  }
  for (gnnd_device_event* event : events_) {
    static_cast<void>(runtime_.DestroyEvent(event->event));
    delete event;
  }
  for (const Piece& piece : ring_) {
    if (piece.event != nullptr) static_cast<void>(runtime_.DestroyEvent(piece.event));
    if (piece.memory != nullptr) static_cast<void>(runtime_.FreePinned(piece.memory));
  }
  for (const auto& [start, entry] : registered_.entries()) {
    for (uint64_t at = 0; at < entry.bytes; at += runtime_.PieceBytes()) {
      static_cast<void>(runtime_.Unregister(reinterpret_cast<void*>(start + at)));
    }
  }
  for (void* const memory : opened_) static_cast<void>(runtime_.CloseShared(memory));
  for (const auto& [start, entry] : arena_.entries()) {
    GiveBack(reinterpret_cast<void*>(start), entry.value.is_shared);
  }
}

int gnnd_device::Open(Failure* failure) {
  failure->what = "opening device " + std::to_string(config_.index);
  gnnd_device_info info{};
  if (const int error = runtime_.Info(config_.index, &info); error != 0) return error;
  if (const int error = runtime_.Use(config_.index); error != 0) return error;
  uint64_t free_bytes = 0;
  if (const int error = runtime_.MemoryInfo(&free_bytes, &total_bytes_); error != 0) return error;
  context_bytes_ = info.free_bytes == GNND_UNKNOWN_BYTES || info.free_bytes < free_bytes
                       ? 0
                       : info.free_bytes - free_bytes;
  free_before_bytes_ = free_bytes + context_bytes_;
  budget_bytes_ = config_.budget_bytes == 0 ? free_bytes : config_.budget_bytes;
  max_blocks_ = runtime_.MaxBlocks(config_.index);
  return 0;
}

int gnnd_device::Enter(Failure* failure) {
  {
    const std::lock_guard lock(mutex_);
    if (sticky_ != 0) {
      failure->what = sticky_what_;
      return sticky_;
    }
  }
  failure->what = "making the device current";
  return runtime_.Use(config_.index);
}

int gnnd_device::Leave(int native, const Failure& failure) {
  if (!gnnd::cuda::IsSticky(native)) return native;
  const std::lock_guard lock(mutex_);
  if (sticky_ == 0) {
    sticky_ = native;
    sticky_what_ = failure.what;
  }
  return native;
}

uint64_t gnnd_device::Used() const {
  uint64_t used = 0;
  for (const uint64_t bytes : used_) used += bytes;
  return used;
}

std::string gnnd_device::Budget() const {
  return BytesText(Used()) + " of a budget of " + std::to_string(budget_bytes_) + " are in use";
}

int gnnd_device::Memory(gnnd_device_memory* memory, Failure* failure) {
  failure->what = "asking for memory in use";
  *memory = {};
  uint64_t total = 0;
  if (const int error = runtime_.MemoryInfo(&memory->free_bytes, &total); error != 0) return error;
  const std::lock_guard lock(mutex_);
  memory->total_bytes = total_bytes_;
  memory->context_bytes = context_bytes_;
  const uint64_t taken = free_before_bytes_ - std::min(memory->free_bytes, free_before_bytes_);
  memory->beside_bytes = taken - std::min(Used(), taken);
  memory->budget_bytes = budget_bytes_;
  std::copy(used_.begin(), used_.end(), memory->used_bytes);
  memory->peak_bytes = peak_bytes_;
  memory->registered_bytes = registered_bytes_;
  memory->staging_bytes = ring_.size() * piece_bytes_;
  memory->copied_in_bytes = copied_in_bytes_;
  memory->copied_out_bytes = copied_out_bytes_;
  return 0;
}

int gnnd_device::Allocate(uint64_t bytes, uint32_t purpose, void** memory, Failure* failure) {
  return Take(bytes, kAlignment, {purpose, false}, memory, failure,
              [&](uint64_t rounded) { return runtime_.Allocate(rounded, memory); });
}

int gnnd_device::AllocateShared(uint64_t bytes, uint32_t purpose, void** memory,
                                gnnd_device_handle* handle, Failure* failure) {
  *handle = {};
  return Take(bytes, kSharedBytes, {purpose, true}, memory, failure, [&](uint64_t rounded) {
    gnnd::cuda::SharedMemory shared;
    const int error = runtime_.AllocateShared(rounded, memory, &shared);
    if (error == 0) handout_.Add(*memory, shared, handle);
    return error;
  });
}

int gnnd_device::Take(uint64_t bytes, uint64_t unit, Allocation allocation, void** memory,
                      Failure* failure, const std::function<int(uint64_t)>& take) {
  *memory = nullptr;
  if (bytes == 0) return 0;
  const std::lock_guard lock(mutex_);
  failure->what = "allocating " + BytesText(bytes) + ", " + Budget();
  if (allocation.purpose >= GNND_PURPOSES) return kBadArgument;
  const uint64_t used = Used();
  // This comparison cannot overflow, so it comes first.
  if (bytes > budget_bytes_) return kOverBudget;
  const uint64_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded > budget_bytes_ - std::min(used, budget_bytes_)) return kOverBudget;
  if (const int error = take(rounded); error != 0) return error;
  arena_.Add(*memory, rounded, allocation);
  used_[allocation.purpose] += rounded;
  peak_bytes_ = std::max(peak_bytes_, used + rounded);
  return 0;
}

void gnnd_device::GiveBack(void* memory, bool is_shared) {
  if (is_shared) handout_.Remove(memory);
  static_cast<void>(is_shared ? runtime_.FreeShared(memory) : runtime_.Free(memory));
}

int gnnd_device::OpenShared(const gnnd_device_handle& handle, void** memory, Failure* failure) {
  failure->what = "opening memory that another process shares";
  *memory = nullptr;
  gnnd::UniqueFd descriptor;
  const gnnd::cuda::SharedMemory shared = gnnd::cuda::Fetch(handle, &descriptor);
  if (shared.fd < 0) {
    failure->said = "the process that shared it is gone, or cannot share memory of its device";
    return kBadArgument;
  }
  if (const int error = runtime_.OpenShared(shared, memory); error != 0) return error;
  const std::lock_guard lock(mutex_);
  opened_.insert(*memory);
  return 0;
}

void gnnd_device::CloseShared(void* memory) {
  const std::lock_guard lock(mutex_);
  if (opened_.erase(memory) == 0) return;
  static_cast<void>(runtime_.Use(config_.index));
  static_cast<void>(runtime_.CloseShared(memory));
}

void gnnd_device::Release(void* memory) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  gnnd::cuda::Ranges<Allocation>::Entry entry{};
  if (!arena_.Remove(memory, &entry)) return;
  used_[entry.value.purpose] -= entry.bytes;
  static_cast<void>(runtime_.Use(config_.index));
  GiveBack(memory, entry.value.is_shared);
}

int gnnd_device::Register(void* memory, uint64_t bytes, void** seen, Failure* failure) {
  failure->what = "registering " + RangeText(memory, bytes);
  failure->doing = gnnd::cuda::Doing::kRegistering;
  *seen = nullptr;
  if (memory == nullptr || bytes == 0) {
    failure->doing = gnnd::cuda::Doing::kAnything;
    return kBadArgument;
  }
  const std::lock_guard lock(mutex_);
  if (!registered_.Add(memory, bytes, nullptr)) return 712;
  auto* const start = static_cast<std::byte*>(memory);
  int error = 0;
  uint64_t done = 0;
  for (; done < bytes && error == 0; done += runtime_.PieceBytes()) {
    void* piece = nullptr;
    error = runtime_.Register(start + done, std::min(runtime_.PieceBytes(), bytes - done), &piece);
    if (error != 0) break;
    if (done == 0) *seen = piece;
    // Kernels must see the range as one; otherwise nothing stays registered.
    if (piece != static_cast<std::byte*>(*seen) + done) {
      static_cast<void>(runtime_.Unregister(start + done));
      error = 801;
      break;
    }
  }
  gnnd::cuda::Ranges<void*>::Entry entry{};
  static_cast<void>(registered_.Remove(memory, &entry));
  if (error != 0) {
    for (uint64_t at = 0; at < done; at += runtime_.PieceBytes()) {
      static_cast<void>(runtime_.Unregister(start + at));
    }
    *seen = nullptr;
    return error;
  }
  registered_.Add(memory, bytes, *seen);
  registered_bytes_ += bytes;
  return 0;
}

int gnnd_device::Unregister(void* memory, Failure* failure) {
  const std::lock_guard lock(mutex_);
  gnnd::cuda::Ranges<void*>::Entry entry{};
  if (!registered_.Remove(memory, &entry)) {
    failure->what = "unregistering " + RangeText(memory, 0) + ", where no range starts";
    return kBadArgument;
  }
  registered_bytes_ -= entry.bytes;
  failure->what = "unregistering " + RangeText(memory, entry.bytes);
  int first = 0;
  for (uint64_t at = 0; at < entry.bytes; at += runtime_.PieceBytes()) {
    const int error = runtime_.Unregister(static_cast<std::byte*>(memory) + at);
    if (first == 0) first = error;
  }
  return first;
}

bool gnnd_device::IsRegistered(const void* memory, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return registered_.Covers(memory, bytes);
}

int gnnd_device::CreateStream(uint32_t priority, gnnd_device_stream** stream, Failure* failure) {
  failure->what = "creating a stream";
  Runtime::Stream made = nullptr;
  const int error = runtime_.CreateStream(priority == GNND_PRIORITY_HIGH, &made);
  if (error != 0) return error;
  *stream = new gnnd_device_stream{this, made, true};
  const std::lock_guard lock(mutex_);
  streams_.insert(*stream);
  return 0;
}

gnnd_device_stream* gnnd_device::Adopt(void* native_stream) {
  auto* const stream = new gnnd_device_stream{this, native_stream, false};
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  return stream;
}

void gnnd_device::Destroy(gnnd_device_stream* stream) {
  {
    const std::lock_guard lock(mutex_);
    streams_.erase(stream);
  }
  static_cast<void>(runtime_.Use(config_.index));
  if (stream->is_own) static_cast<void>(runtime_.DestroyStream(stream->stream));
  delete stream;
}

int gnnd_device::CreateEvent(bool is_timed, gnnd_device_event** event, Failure* failure) {
  failure->what = "creating an event";
  Runtime::Event made = nullptr;
  if (const int error = runtime_.CreateEvent(is_timed, &made); error != 0) return error;
  *event = new gnnd_device_event{this, made, is_timed};
  const std::lock_guard lock(mutex_);
  events_.insert(*event);
  return 0;
}

void gnnd_device::Destroy(gnnd_device_event* event) {
  {
    const std::lock_guard lock(mutex_);
    events_.erase(event);
  }
  static_cast<void>(runtime_.Use(config_.index));
  static_cast<void>(runtime_.DestroyEvent(event->event));
  delete event;
}

void gnnd_device::Own(void* what, std::function<void()> end) {
  const std::lock_guard lock(mutex_);
  owned_.emplace(what, std::move(end));
}

void gnnd_device::Disown(void* what) {
  const std::lock_guard lock(mutex_);
  owned_.erase(what);
}

int gnnd_device::Copy(Runtime::Stream stream, void* to, const void* from, uint64_t bytes,
                      uint32_t direction, Failure* failure) {
  if (bytes == 0) return 0;
  const void* host = direction == GNND_COPY_TO_DEVICE ? from
                     : direction == GNND_COPY_TO_HOST ? to
                                                      : nullptr;
  failure->what = "copying " + BytesText(bytes);
  if (host == nullptr) {
    if (direction != GNND_COPY_ON_DEVICE) return kBadArgument;
    return runtime_.Copy(stream, to, from, bytes, direction);
  }
  uint64_t first = bytes;  // up to the next piece
  {
    const std::lock_guard lock(mutex_);
    if (!registered_.Covers(host, bytes)) {
      failure->what += ": " + RangeText(host, bytes) + " is not registered";
      return kNotRegistered;
    }
    const auto range =
        std::prev(registered_.entries().upper_bound(reinterpret_cast<uintptr_t>(host)));
    const uint64_t offset = reinterpret_cast<uintptr_t>(host) - range->first;
    first = std::min(bytes, runtime_.PieceBytes() - offset % runtime_.PieceBytes());
    (direction == GNND_COPY_TO_DEVICE ? copied_in_bytes_ : copied_out_bytes_) += bytes;
  }
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t part = at == 0 ? first : std::min(bytes - at, runtime_.PieceBytes());
    const int error = runtime_.Copy(stream, static_cast<std::byte*>(to) + at,
                                    static_cast<const std::byte*>(from) + at, part, direction);
    if (error != 0) return error;
    at += part;
  }
  return 0;
}

int gnnd_device::EnsureRing(Failure* failure) {
  if (!ring_.empty()) return 0;
  const uint64_t bytes =
      config_.staging_bytes == 0 ? kStagingPieces * kStagingPieceBytes : config_.staging_bytes;
  piece_bytes_ = std::max<uint64_t>(4096, bytes / kStagingPieces / 4096 * 4096);
  failure->what = "allocating a pinned ring of " + BytesText(piece_bytes_ * kStagingPieces);
  std::vector<Piece> ring(kStagingPieces);
  int error = 0;
  for (Piece& piece : ring) {
    void* memory = nullptr;
    error = runtime_.AllocatePinned(piece_bytes_, &memory);
    piece.memory = static_cast<std::byte*>(memory);
    if (error == 0) error = runtime_.CreateEvent(false, &piece.event);
    if (error != 0) break;
  }
  ring_ = std::move(ring);
  if (error == 0) return 0;
  for (const Piece& piece : ring_) {
    if (piece.event != nullptr) static_cast<void>(runtime_.DestroyEvent(piece.event));
    if (piece.memory != nullptr) static_cast<void>(runtime_.FreePinned(piece.memory));
  }
  ring_.clear();
  return error;
}

int gnnd_device::StageIn(Runtime::Stream stream, std::byte* to, const std::byte* from,
                         uint64_t bytes) {
  for (uint64_t at = 0, k = 0; at < bytes; at += piece_bytes_, ++k) {
    const Piece& piece = ring_[k % ring_.size()];
    const uint64_t part = std::min(piece_bytes_, bytes - at);
    if (const int error = runtime_.SynchronizeEvent(piece.event); error != 0) return error;
    std::memcpy(piece.memory, from + at, part);
    int error = runtime_.Copy(stream, to + at, piece.memory, part, GNND_COPY_TO_DEVICE);
    if (error == 0) error = runtime_.Record(piece.event, stream);
    if (error != 0) return error;
  }
  return 0;
}

int gnnd_device::StageOut(Runtime::Stream stream, std::byte* to, const std::byte* from,
                          uint64_t bytes) {
  const uint64_t pieces = (bytes + piece_bytes_ - 1) / piece_bytes_;
  const auto part = [&](uint64_t k) { return std::min(piece_bytes_, bytes - k * piece_bytes_); };
  // A piece is emptied just before it is refilled, so the ring is always as full as possible.
  for (uint64_t k = 0; k < pieces + ring_.size(); ++k) {
    const Piece& piece = ring_[k % ring_.size()];
    if (k >= ring_.size() && k - ring_.size() < pieces) {
      const uint64_t full = k - ring_.size();
      if (const int error = runtime_.SynchronizeEvent(piece.event); error != 0) return error;
      std::memcpy(to + full * piece_bytes_, piece.memory, part(full));
    }
    if (k >= pieces) continue;
    if (k < ring_.size()) {
      // The piece still holds an earlier copy to the device.
      if (const int error = runtime_.SynchronizeEvent(piece.event); error != 0) return error;
    }
    int error =
        runtime_.Copy(stream, piece.memory, from + k * piece_bytes_, part(k), GNND_COPY_TO_HOST);
    if (error == 0) error = runtime_.Record(piece.event, stream);
    if (error != 0) return error;
  }
  return 0;
}

int gnnd_device::CopyStaged(Runtime::Stream stream, void* to, const void* from, uint64_t bytes,
                            uint32_t direction, Failure* failure) {
  if (bytes == 0) return 0;
  if (direction != GNND_COPY_TO_DEVICE && direction != GNND_COPY_TO_HOST) {
    failure->what = "a staged copy between devices";
    return kBadArgument;
  }
  const std::lock_guard ring(ring_mutex_);
  if (const int error = EnsureRing(failure); error != 0) return error;
  failure->what = "copying " + BytesText(bytes) + " through the pinned ring";
  {
    const std::lock_guard lock(mutex_);
    (direction == GNND_COPY_TO_DEVICE ? copied_in_bytes_ : copied_out_bytes_) += bytes;
  }
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  return direction == GNND_COPY_TO_DEVICE ? StageIn(stream, target, source, bytes)
                                          : StageOut(stream, target, source, bytes);
}
