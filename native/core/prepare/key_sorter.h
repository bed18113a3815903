#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/memfd.h"
#include "core/base/status.h"

namespace gnnd {

// Puts keys in ascending order, equal ones as often as they came. Holds `held_max` of them, 8 bytes
// each: what is more is sorted in runs of so many, which lie in a file without a name in `folder`
// and are merged at the end. However keys are spread, memory is the same.
class KeySorter {
 public:
  // REQUIRES: held_max > 0.
  KeySorter(std::string folder, uint64_t held_max)
      : folder_(std::move(folder)), held_max_(held_max) {}

  // kIo, kDiskFull: of the file.
  Status Add(uint64_t key) {
    held_.push_back(key);
    ++size_;
    return held_.size() < held_max_ ? Status::Ok() : Settle();
  }
  uint64_t size() const { return size_; }

  // Gives all keys, block after block, and is empty then. Errors: the file's, and `take`'s.
  Status Drain(const std::function<Status(std::span<const uint64_t>)>& take);

 private:
  // A run as it is read back.
  struct Run {
    uint64_t at = 0;  // keys of the file, up to `end`, that were not read
    uint64_t end = 0;
    size_t place = 0;  // in `keys`
    std::vector<uint64_t> keys;
  };

  Status Settle();
  Status Refill(Run* run, uint64_t most) const;

  std::string folder_;
  uint64_t held_max_;
  uint64_t size_ = 0;
  std::vector<uint64_t> held_;
  UniqueFd file_;
  std::vector<uint64_t> ends_;  // of runs, in keys of the file
};

}  // namespace gnnd
