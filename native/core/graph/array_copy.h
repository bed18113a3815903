#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/sha256.h"
#include "core/base/status.h"

// Copies the elements of an array from file to file in steps of the caller's size, and reads each
// element once: a second thread hashes it while it is checked and written. Memory is bounded by a
// few chunks, whatever the size of the array.

namespace gnnd {

// The rule that elements are checked against.
enum class ElementRule {
  kAny,
  kNodes,          // uint32 ids below num_nodes; records which ids occur
  kFiniteFloat32,  // no NaN, no infinity
  kFiniteFloat16,
};

struct ArrayCopyOptions {
  std::string source;
  uint64_t source_at = 0;  // offset of the first element in the source
  uint64_t bytes = 0;      // whole elements
  int target_fd = -1;      // open for writing, closed by the caller; -1: nothing is written
  uint64_t target_at = 0;
  ElementRule rule = ElementRule::kAny;
  uint64_t num_nodes = 0;
};

struct ArrayCopied {
  std::string sha256;  // digest of the elements, lower-case hex
  bool clean = false;  // every element meets the rule; else Validate (validate.h) says which do not
};

class ArrayCopy {
 public:
  static constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

  // kIo when the source cannot be opened. The target must stay open until the last step.
  static Result<std::unique_ptr<ArrayCopy>> Open(const ArrayCopyOptions& options);

  // Copies up to `bytes` more. False once all is done. kIo when a file cannot be read or written;
  // kDatasetCorrupt when the source ends before its time.
  Result<bool> Step(uint64_t bytes);

  // Called once, after the last step.
  ArrayCopied Finish();

  // Number of these nodes that no element named. REQUIRES: kNodes.
  uint64_t CountUnnamed(std::span<const uint32_t> nodes) const;

 private:
  explicit ArrayCopy(const ArrayCopyOptions& options) : options_(options) {}

  Status CopyChunks(uint64_t end);
  void HashChunks(uint64_t chunks);
  void Check(std::span<const std::byte> chunk);
  void See(std::span<const uint32_t> nodes);

  static constexpr uint32_t kBuffers = 3;

  ArrayCopyOptions options_;
  UniqueFd source_;
  uint64_t done_ = 0;  // bytes
  bool clean_ = true;
  Sha256 hash_;
  std::vector<uint64_t> named_;  // one bit per node
  std::vector<std::byte> buffers_[kBuffers];

  std::mutex mutex_;  // guards the counts of this step's chunks that are filled and hashed
  std::condition_variable changed_;
  uint64_t filled_ = 0;
  uint64_t hashed_ = 0;
  bool failed_ = false;
};

}  // namespace gnnd
