#include "core/sample/relabel.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace gnnd {
namespace {

constexpr uint32_t kNodes = 500;

// One batch of random ids in several calls; local ids must lead back to the ids, and count from 0
// in order of first occurrence.
template <typename Table>
void RunBatch(Table* table, std::mt19937_64* generator) {
  std::vector<uint32_t> nodes(kNodes + 1);
  std::map<uint32_t, uint32_t> expected;
  uint32_t count = 0;
  table->Begin(kNodes);
  for (int call = 0; call < 4; ++call) {
    std::vector<uint32_t> ids(1 + (*generator)() % 300);
    for (uint32_t& id : ids) id = static_cast<uint32_t>((*generator)() % kNodes);
    std::vector<uint32_t> local_ids(ids.size());
    count = table->InsertAll(ids.data(), static_cast<uint32_t>(ids.size()), nodes.data(), count,
                             local_ids.data());
    for (size_t k = 0; k < ids.size(); ++k) {
      const auto next = static_cast<uint32_t>(expected.size());
      REQUIRE(local_ids[k] == expected.try_emplace(ids[k], next).first->second);
      REQUIRE(nodes[local_ids[k]] == ids[k]);
    }
  }
  REQUIRE(count == expected.size());
  table->End(count);
}

TEST_CASE_TEMPLATE("relabelling leads back to the ids, batch after batch", Table, DenseRelabel,
                   HashRelabel) {
  std::mt19937_64 generator(3);
  Table table(kNodes);
  for (int batch = 0; batch < 50; ++batch) RunBatch(&table, &generator);
}

TEST_CASE_TEMPLATE("tags that run out start anew", Table, DenseRelabel, HashRelabel) {
  std::mt19937_64 generator(4);
  Table table(kNodes, static_cast<uint32_t>(kTagEnd - 3 * kNodes));
  for (int batch = 0; batch < 20; ++batch) RunBatch(&table, &generator);
}

TEST_CASE("a hash table grows at the ids it holds, tags running out meanwhile") {
  constexpr uint32_t kMany = 200'000;
  for (const auto first_base : {1U, static_cast<uint32_t>(kTagEnd - kMany)}) {
    HashRelabel table(kMany, first_base);
    const uint64_t first_bytes = table.bytes();
    std::vector<uint32_t> ids(kMany);
    for (uint32_t i = 0; i < kMany; ++i) ids[i] = i * 2654435761U;
    std::vector<uint32_t> nodes(kMany + 1);
    std::vector<uint32_t> local_ids(kMany);
    table.Begin(kMany);
    uint32_t count = 0;
    for (uint32_t begin = 0; begin < kMany; begin += 1000) {
      count =
          table.InsertAll(ids.data() + begin, 1000, nodes.data(), count, local_ids.data() + begin);
    }
    // Again: all are known now.
    count = table.InsertAll(ids.data(), kMany, nodes.data(), count, local_ids.data());
    CHECK(count == kMany);
    CHECK(table.bytes() > first_bytes);
    bool in_order = true;
    for (uint32_t i = 0; i < kMany; ++i) in_order &= local_ids[i] == i && nodes[i] == ids[i];
    CHECK(in_order);
  }
}

}  // namespace
}  // namespace gnnd
