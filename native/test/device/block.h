#pragma once

#include <cstdint>
#include <vector>

#include "test/cuda/values.h"

namespace gnnd::test {

// A block whose rows have up to so many edges.
struct Block {
  Block(Random* random, uint32_t num_dst, uint32_t sources, uint32_t max_degree)
      : num_src(sources) {
    for (uint32_t d = 0; d < num_dst; ++d) {
      const uint32_t degree = num_src == 0 ? 0 : random->Below(max_degree + 1);
      for (uint32_t e = 0; e < degree; ++e) src.push_back(random->Below(num_src));
      indptr.push_back(static_cast<uint32_t>(src.size()));
    }
  }
  uint32_t num_dst() const { return static_cast<uint32_t>(indptr.size() - 1); }

  uint32_t num_src;
  std::vector<uint32_t> indptr{0};
  std::vector<uint32_t> src;
};

}  // namespace gnnd::test
