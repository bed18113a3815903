#include "core/graph/array_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/check.h"

namespace gnnd {
namespace {

std::string NameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Whether no float in the chunk has the exponent, under `mask`, of NaN and infinity. Free of
// branches, so that it runs at the speed of memory.
template <typename Word>
bool AllFinite(std::span<const std::byte> chunk, Word mask) {
  const auto* words = reinterpret_cast<const Word*>(chunk.data());
  uint32_t bad = 0;
  for (uint64_t i = 0; i < chunk.size() / sizeof(Word); ++i) bad |= (words[i] & mask) == mask;
  return bad == 0;
}

}  // namespace

Result<std::unique_ptr<ArrayCopy>> ArrayCopy::Open(const ArrayCopyOptions& options) {
  std::unique_ptr<ArrayCopy> copy(new ArrayCopy(options));
  copy->source_ = UniqueFd(open(options.source.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!copy->source_.valid()) {
    return SystemError(Code::kIo, NameOf(options.source) + ": cannot be opened");
  }
  static_cast<void>(posix_fadvise(copy->source_.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
  if (options.rule == ElementRule::kNodes) copy->named_.resize(options.num_nodes / 64 + 1);
  const uint64_t chunk = std::min(options.bytes, kChunkBytes);
  for (std::vector<std::byte>& buffer : copy->buffers_) buffer.resize(chunk);
  return copy;
}

Result<bool> ArrayCopy::Step(uint64_t bytes) {
  const uint64_t end = done_ + std::min(bytes, options_.bytes - done_);
  filled_ = hashed_ = 0;
  failed_ = false;
  std::thread hasher(
      [this, chunks = (end - done_ + kChunkBytes - 1) / kChunkBytes] { HashChunks(chunks); });
  const Status status = CopyChunks(end);
  if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
  }
  changed_.notify_all();
  hasher.join();
  GNND_TRY(status);
  done_ = end;
  return done_ < options_.bytes;
}

// This thread's part of a step: fills the next buffer, hands it on to be hashed, checks and writes
// it.
Status ArrayCopy::CopyChunks(uint64_t end) {
  for (uint64_t at = done_, number = 0; at < end; at += kChunkBytes, ++number) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return number < hashed_ + kBuffers; });
    }
    std::vector<std::byte>& buffer = buffers_[number % kBuffers];
    buffer.resize(std::min(kChunkBytes, end - at));
    for (uint64_t from = 0; from < buffer.size();) {
      const ssize_t got = pread(source_.get(), buffer.data() + from, buffer.size() - from,
                                static_cast<off_t>(options_.source_at + at + from));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError(Code::kIo, NameOf(options_.source) + ": cannot be read");
      if (got == 0) {
        return Status(Code::kDatasetCorrupt, NameOf(options_.source) + ": ends after " +
                                                 std::to_string(at + from) + " of " +
                                                 std::to_string(options_.bytes) + " bytes");
      }
      from += static_cast<uint64_t>(got);
    }
    {
      const std::lock_guard lock(mutex_);
      filled_ = number + 1;
    }
    changed_.notify_all();
    Check(buffer);
    const int target = options_.target_fd;
    if (target >= 0 && !WriteAll(target, buffer, options_.target_at + at)) {
      return SystemError(Code::kIo,
                         "the copy of " + NameOf(options_.source) + " cannot be written");
    }
  }
  return Status::Ok();
}

void ArrayCopy::HashChunks(uint64_t chunks) {
  for (uint64_t number = 0; number < chunks; ++number) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return number < filled_ || failed_; });
      if (number >= filled_) return;
    }
    hash_.Add(buffers_[number % kBuffers]);
    {
      const std::lock_guard lock(mutex_);
      hashed_ = number + 1;
    }
    changed_.notify_all();
  }
}

void ArrayCopy::Check(std::span<const std::byte> chunk) {
  switch (options_.rule) {
    case ElementRule::kAny:
      return;
    case ElementRule::kNodes:
      return See(
          {reinterpret_cast<const uint32_t*>(chunk.data()), chunk.size() / sizeof(uint32_t)});
    case ElementRule::kFiniteFloat32:
      clean_ = AllFinite<uint32_t>(chunk, 0x7F800000) && clean_;
      return;
    case ElementRule::kFiniteFloat16:
      clean_ = AllFinite<uint16_t>(chunk, 0x7C00) && clean_;
      return;
  }
}

void ArrayCopy::See(std::span<const uint32_t> nodes) {
  for (const uint32_t node : nodes) {
    if (node >= options_.num_nodes) {
      clean_ = false;
      continue;
    }
    // Most bits are set already; testing before writing spares the cache line from becoming dirty.
    uint64_t& word = named_[node / 64];
    const uint64_t bit = uint64_t{1} << node % 64;
    if ((word & bit) == 0) word |= bit;
  }
}

ArrayCopied ArrayCopy::Finish() {
  GNND_CHECK(done_ == options_.bytes);
  return {HexOf(hash_.Finish()), clean_};
}

uint64_t ArrayCopy::CountUnnamed(std::span<const uint32_t> nodes) const {
  return static_cast<uint64_t>(std::count_if(nodes.begin(), nodes.end(), [this](uint32_t node) {
    return node >= options_.num_nodes || (named_[node / 64] >> node % 64 & 1) == 0;
  }));
}

}  // namespace gnnd
