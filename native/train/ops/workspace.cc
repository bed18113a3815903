#include "train/ops/workspace.h"

#include <algorithm>
#include <utility>

namespace gnnd {
namespace {

constexpr uint64_t kLine = 64;

}  // namespace

Workspace::~Workspace() { Free(); }

void Workspace::Free() {
  for (const Chunk& chunk : chunks_) {
    if (chunk.host.size() == 0) device_->release(device_->context, chunk.data, chunk.bytes);
  }
  chunks_.clear();
}

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
    Free();
    AddChunk(total);
  }
  used_ = 0;
}

void Workspace::Reserve(uint64_t bytes) {
  Reset();
  if (reserved_bytes() >= bytes) return;
  Free();
  AddChunk(bytes);
}

uint64_t Workspace::reserved_bytes() const {
  uint64_t total = 0;
  for (const Chunk& chunk : chunks_) total += chunk.bytes;
  return total;
}

void Workspace::AddChunk(uint64_t at_least) {
  // Grows in proportion, so that even a large first batch needs few chunks.
  const uint64_t bytes = RoundUp(std::max(at_least, reserved_bytes() / 2), kHugePageBytes);
  Chunk chunk;
  chunk.bytes = bytes;
  chunks_.reserve(chunks_.size() + 1);  // so that the push_back below cannot fail
  if (device_->allocate != nullptr) {
    chunk.data = static_cast<std::byte*>(device_->allocate(device_->context, bytes));
  } else {
    chunk.host = AnonymousOrThrow(bytes);
    chunk.data = chunk.host.data();
  }
  chunks_.push_back(std::move(chunk));
  used_ = 0;
}

}  // namespace gnnd
