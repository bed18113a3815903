#include "core/graph/stream.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace gnnd {
namespace {

constexpr auto kUntouched = std::byte{0xA5};
constexpr uint64_t kNumRows = 97;

// Rows of which no two bytes beside each other are alike.
std::vector<std::byte> RowsOf(uint64_t row_bytes) {
  std::vector<std::byte> rows(kNumRows * row_bytes);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * 31 + i / 251);
  return rows;
}

TEST_CASE("every variant copies the rows that are asked for, and nothing beside them") {
  const std::vector<uint32_t> nodes{3, 96, 0, 3, 50, 51, 7, 96, 12, 13, 14, 90, 1, 2, 4, 8, 16, 32};
  for (const uint64_t row_bytes : {16, 48, 64, 96, 400, 512, 1024, 2048}) {
    const std::vector<std::byte> rows = RowsOf(row_bytes);
    for (const uint64_t shift : {16, 32, 64}) {  // Of the result, from a line's start.
      for (const PrefetchLevel level : {PrefetchLevel::kL1, PrefetchLevel::kL2}) {
        for (const InstructionSet set : AvailableInstructionSets()) {
          for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{nodes.size()}}) {
            CAPTURE(row_bytes);
            CAPTURE(shift);
            INFO(NameOf(set), " count ", count);
            std::vector<std::byte> whole(count * row_bytes + 256, kUntouched);
            const uint64_t skew = reinterpret_cast<uintptr_t>(whole.data()) % 64;
            std::byte* out = whole.data() + (64 - skew) + shift;
            REQUIRE(CanStream(row_bytes, out));
            LoopsFor<StreamLoops>(set).gather({rows.data(), row_bytes}, nodes.data(), count, level,
                                              out);
            std::vector<std::byte> expected(whole.size(), kUntouched);
            std::byte* at = expected.data() + (out - whole.data());
            for (uint64_t i = 0; i < count; ++i) {
              std::memcpy(at + i * row_bytes, rows.data() + nodes[i] * row_bytes, row_bytes);
            }
            REQUIRE(whole == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("rows or results that are no whole units are not streamed") {
  alignas(64) std::byte out[64];
  CHECK(CanStream(16, out));
  CHECK(CanStream(400, out + 16));
  CHECK_FALSE(CanStream(0, out));
  CHECK_FALSE(CanStream(24, out));
  CHECK_FALSE(CanStream(512, out + 8));
}

}  // namespace
}  // namespace gnnd
