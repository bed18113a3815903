#include "train/workspace.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace gnnd {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kLine = 64;

uint64_t RoundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Workspace::~Workspace() { FreeChunks(); }

void* Workspace::Allocate(uint64_t bytes) {
  const uint64_t rounded = RoundUp(std::max<uint64_t>(bytes, 1), kLine);
  if (chunks_.empty() || chunks_.back().bytes - used_ < rounded) AddChunk(rounded);
  void* result = chunks_.back().data + used_;
  used_ += rounded;
  return result;
}

void Workspace::Reset() {
  if (chunks_.size() > 1) {
    const uint64_t total = reserved_bytes();
    FreeChunks();
    AddChunk(total);
  }
  used_ = 0;
}

uint64_t Workspace::reserved_bytes() const {
  uint64_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.bytes;
  return total;
}

void Workspace::AddChunk(uint64_t at_least) {
  // Grows in proportion, so that the number of chunks of a first, large batch stays small.
  const uint64_t bytes = RoundUp(std::max(at_least, reserved_bytes() / 2), kHugePage);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: refusing it costs speed only
  chunks_.push_back({static_cast<std::byte*>(memory), bytes});
  used_ = 0;
}

void Workspace::FreeChunks() {
  for (const Chunk& chunk : chunks_) munmap(chunk.data, chunk.bytes);
  chunks_.clear();
  used_ = 0;
}

}  // namespace gnnd
