#include "core/item/item_range.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace gnnd {
namespace {

TEST_CASE("the batches of an epoch have each item once, in the epoch's order") {
  constexpr uint32_t kItems = 1003;
  const ItemOrder order{7, 2, kItems};
  std::vector<uint32_t> whole(kItems);
  order.Write({0, kItems}, whole.data());
  for (const uint32_t batch_size : {1U, 10U, 1003U, 4000U}) {
    CAPTURE(batch_size);
    std::vector<uint32_t> found;
    const uint32_t batches = NumBatches(kItems, batch_size);
    for (uint32_t batch = 0; batch < batches; ++batch) {
      const ItemRange range = ItemRange::OfBatch(batch, batch_size, kItems);
      CHECK(range.begin == found.size());
      CHECK((range.size() == batch_size || batch + 1 == batches));
      std::vector<uint32_t> items(range.size());
      order.Write(range, items.data());
      found.insert(found.end(), items.begin(), items.end());
    }
    CHECK(found == whole);
  }
  std::vector<uint32_t> sorted = whole;
  std::ranges::sort(sorted);
  std::vector<uint32_t> all(kItems);
  std::iota(all.begin(), all.end(), 0U);
  CHECK(sorted == all);
  CHECK(whole != all);
}

TEST_CASE("seeds are the training nodes that a batch's items name") {
  std::vector<uint32_t> train(50);
  for (uint32_t i = 0; i < train.size(); ++i) train[i] = 1000 + 3 * i;
  std::vector<uint32_t> seeds = {1, 2, 3};
  SeedsOf({7, 1, 6}, train, 8, &seeds);
  REQUIRE(seeds.size() == 2);
  std::vector<uint32_t> items(2);
  ItemOrder{7, 1, 50}.Write({48, 50}, items.data());
  CHECK(seeds == std::vector<uint32_t>{train[items[0]], train[items[1]]});
}

}  // namespace
}  // namespace gnnd
