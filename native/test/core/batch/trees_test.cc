#include "core/batch/trees.h"

#include <doctest/doctest.h>

#include <vector>

namespace gnnd {
namespace {

// Two seeds of type 0; both found node 5 of type 1, and the second node 0 of its own type besides.
struct TwoTrees {
  std::vector<uint32_t> nodes0 = {3, 3, 7};
  std::vector<uint32_t> nodes1 = {5, 5};
  std::vector<uint32_t> indptr0 = {0, 1, 2};
  std::vector<uint32_t> src0 = {0, 1};  // of type 1
  std::vector<uint32_t> indptr1 = {0, 0, 1};
  std::vector<uint32_t> src1 = {2};  // of type 0

  Sample sample() const {
    Sample made(SampleKind::kBlocks, {1, 0, 0});
    made.AddNodes(nodes0, 2, {});
    made.AddNodes(nodes1, 0, {});
    BlockView first{2, 2, indptr0, src0, {}, {}};
    first.src_type = 1;
    BlockView second{2, 3, indptr1, src1, {}, {}};
    second.relation = 1;
    made.AddBlock(first);
    made.AddBlock(second);
    return made;
  }
};

TEST_CASE("the tree of a node is that of the row which found it") {
  const TwoTrees two;
  CHECK(CheckTrees(two.sample()).ok());
  const std::vector<std::vector<uint32_t>> expected = {{0, 1, 1}, {0, 1}};
  CHECK(TreesOf(two.sample()) == expected);
}

TEST_CASE("a record of trees whose edges leave them, or that lists a node twice, is refused") {
  const auto code = [](const TwoTrees& two) { return CheckTrees(two.sample()).code(); };
  TwoTrees leaves;
  leaves.src0 = {0, 0};
  leaves.nodes1 = {5};
  CHECK(code(leaves) == Code::kShmCorrupted);
  TwoTrees out_of_order;
  out_of_order.src0 = {1, 0};
  CHECK(code(out_of_order) == Code::kShmCorrupted);
  TwoTrees unused;
  unused.nodes1 = {5, 5, 6};
  CHECK(code(unused) == Code::kShmCorrupted);
  TwoTrees twice;
  twice.nodes0 = {3, 3, 3};
  CHECK(code(twice) == Code::kShmCorrupted);
}

}  // namespace
}  // namespace gnnd
