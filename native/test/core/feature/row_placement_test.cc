#include "core/feature/row_placement.h"

#include <doctest/doctest.h>

#include <vector>

namespace gnnd {
namespace {

constexpr uint32_t kHost = RowPlacement::kHost;

TEST_CASE("a placement's own rows lie where its lines say") {
  const std::vector<uint32_t> order{9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  // Ranks 0 and 1 on all three, 2 to 8 dealt.
  RowPlacement placement;
  placement.device = 4;
  placement.lines = {{0, 2, {{4, 0}}}, {2, 9, {{1, 2}, {4, 2}, {kHost, 0}}}};
  CHECK(*placement.OwnNodes(order) == std::vector<uint32_t>{9, 8, 6, 3});
  CHECK(placement.RowsOf(1) == 5);  // ranks 2, 5, 8 from row 2 on
  CHECK(placement.RowsOf(4) == 4);
  CHECK(placement.Peers() == std::vector<uint32_t>{1});
  CHECK(*RowPlacement::Prefix(3).OwnNodes(order) == std::vector<uint32_t>{9, 8, 7});
  CHECK(RowPlacement::Prefix(0).OwnNodes(order)->empty());
  CHECK(RowPlacement::Prefix(3).Peers().empty());
}

TEST_CASE("a placement that contradicts itself is refused") {
  const std::vector<uint32_t> order{3, 2, 1, 0};
  const auto refused = [&](const std::vector<RowPlacement::Line>& lines) {
    RowPlacement placement;
    placement.lines = lines;
    return placement.OwnNodes(order).status().code() == Code::kInvalidArgument;
  };
  CHECK_FALSE(refused({{0, 4, {{0, 0}}}}));
  CHECK(refused({{0, 5, {{0, 0}}}}));                    // beyond the order
  CHECK(refused({{2, 2, {{0, 0}}}}));                    // no rank
  CHECK(refused({{0, 2, {}}}));                          // no place
  CHECK(refused({{0, 2, {{0, 0}}}, {1, 3, {{0, 2}}}}));  // rank 1 twice
  CHECK(refused({{0, 2, {{0, 0}}}, {2, 3, {{0, 1}}}}));  // row 1 twice
  CHECK(refused({{0, 2, {{0, 1}}}}));                    // no row 0
  CHECK(refused({{0, 2, {{0, 9}}}}));
}

}  // namespace
}  // namespace gnnd
