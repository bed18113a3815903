#include "train/workspace.h"

#include <algorithm>

namespace gnnd {
namespace {

constexpr uint64_t kLine = 64;

}  // namespace

void* Workspace::Allocate(uint64_t bytes) {
  const uint64_t rounded = RoundUp(std::max<uint64_t>(bytes, 1), kLine);
  if (chunks_.empty() || chunks_.back().size() - used_ < rounded) AddChunk(rounded);
  void* result = chunks_.back().data() + used_;
  used_ += rounded;
  return result;
}

void Workspace::Reset() {
  if (chunks_.size() > 1) {
    const uint64_t total = reserved_bytes();
    chunks_.clear();
    AddChunk(total);
  }
  used_ = 0;
}

uint64_t Workspace::reserved_bytes() const {
  uint64_t total = 0;
  for (const Mapping& chunk : chunks_) total += chunk.size();
  return total;
}

void Workspace::AddChunk(uint64_t at_least) {
  // Grows in proportion, so that the number of chunks of a first, large batch stays small.
  const uint64_t bytes = RoundUp(std::max(at_least, reserved_bytes() / 2), kHugePageBytes);
  chunks_.push_back(AnonymousOrThrow(bytes));
  used_ = 0;
}

}  // namespace gnnd
