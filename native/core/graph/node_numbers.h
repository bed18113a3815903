#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/mapping.h"

namespace gnnd {

// The nodes of all types in one line, for what is kept of each node whatever its type: sets of
// nodes, and rows of hidden layers. Node v of type t has number begin(t) + v; each type begins at a
// multiple of 64, so that words of a set of bits belong to one type.
class NodeNumbers {
 public:
  explicit NodeNumbers(std::span<const uint32_t> num_nodes) : begins_{0} {
    for (const uint32_t nodes : num_nodes) {
      begins_.push_back(begins_.back() + RoundUp(nodes, kAlignment));
    }
  }

  uint32_t num_types() const { return static_cast<uint32_t>(begins_.size() - 1); }
  uint64_t begin(uint32_t type) const { return begins_[type]; }
  // Behind the last number, which may be beyond 32 bits.
  uint64_t end() const { return begins_.back(); }

  // Calls visit(type, part) for the numbers of each type in turn. REQUIRES: they rise.
  template <typename Visit>
  void ForTypes(std::span<const uint32_t> numbers, const Visit& visit) const {
    size_t first = 0;
    for (uint32_t type = 0; type < num_types() && first < numbers.size(); ++type) {
      size_t last = first;
      while (last < numbers.size() && numbers[last] < begins_[type + 1]) ++last;
      if (last > first) visit(type, numbers.subspan(first, last - first));
      first = last;
    }
  }

 private:
  static constexpr uint64_t kAlignment = 64;

  std::vector<uint64_t> begins_;
};

}  // namespace gnnd
