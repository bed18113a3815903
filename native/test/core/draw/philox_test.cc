#include "core/draw/philox.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/draw/stream.h"

namespace gnnd {
namespace {

void CheckKnownAnswer(const PhiloxCounter& counter, PhiloxKey key, const PhiloxWords& expected) {
  const PhiloxWords words = Philox(key, counter);
  CHECK(std::equal(std::begin(words.word), std::end(words.word), std::begin(expected.word)));
}

TEST_CASE("Philox 4x32-10 gives the published known answers") {
  constexpr uint32_t kOnes = 0xFFFFFFFF;
  CheckKnownAnswer({{0, 0, 0, 0}}, {0, 0}, {{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}});
  CheckKnownAnswer({{kOnes, kOnes, kOnes, kOnes}}, {kOnes, kOnes},
                   {{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}});
  CheckKnownAnswer({{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}}, {0xA4093822, 0x299F31D0},
                   {{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}});
}

TEST_CASE("each field of a counter has bits of its own") {
  const PhiloxCounter all =
      CounterOf(Purpose::kDropout, 0xABCDEF, 0x12345678, 0x9, 0xFED'8765'4321, 0xBEEF);
  CHECK(all.word[0] == 0x87654321);
  CHECK(all.word[1] == 0xFED9BEEF);
  CHECK(all.word[2] == 0x12345678);
  CHECK(all.word[3] == 0x04ABCDEF);
}

TEST_CASE("a bounded draw covers its range and nothing else") {
  CHECK(BoundedDraw(0, 7) == 0);
  CHECK(BoundedDraw(0xFFFFFFFF, 7) == 6);
  CHECK(BoundedDraw(0xFFFFFFFF, 1) == 0);
  CHECK(BoundedDraw(0x80000000, 10) == 5);
}

TEST_CASE("a unit draw stays below one") {
  CHECK(UnitDraw(0) == 0.0F);
  CHECK(UnitDraw(0xFFFFFFFF) < 1.0F);
  CHECK(UnitDraw(0x80000000) == 0.5F);
}

TEST_CASE("what has no field in the counter has a key of its own; the first has the job's") {
  const PhiloxKey key = KeyOf(0x0123456789ABCDEF);
  const auto number = [](PhiloxKey k) { return uint64_t{k.hi} << 32 | k.lo; };
  CHECK(number(RelationKey(key, 0)) == 0x0123456789ABCDEF);
  CHECK(number(PageKey(key, 0)) == 0x0123456789ABCDEF);
  std::set<uint64_t> keys = {number(key)};
  for (const uint32_t index : {1U, 2U, 3U, 0xFFFFFFFFU}) {
    keys.insert(number(RelationKey(key, index)));
    keys.insert(number(PageKey(key, index)));
  }
  CHECK(keys.size() == 9);
  // Frozen.
  CHECK(number(RelationKey(key, 1)) == 0xA7C3960500290688);
  CHECK(number(PageKey(key, 1)) == 0xE02F92150BE8D08C);
}

TEST_CASE("long rows go on where a counter's block ends, under the page's key") {
  const DrawStream stream = DrawStreamOf({0x0123456789ABCDEF, 5, 9}, 2, Purpose::kPlugin);
  const auto same = [](const PhiloxWords& a, const PhiloxWords& b) {
    return std::equal(a.word, a.word + 4, b.word);
  };
  for (const uint32_t block : {0U, 1U, 65535U}) {
    CHECK(same(LongRowWords(stream, 77, block), RowWords(stream, 77, block)));
  }
  DrawStream page = stream;
  page.key = PageKey(stream.key, 3);
  CHECK(same(LongRowWords(stream, 77, 3 * 65536 + 12), RowWords(page, 77, 12)));
  DrawStream other = DrawStreamOf({0x0123456789ABCDEF, 5, 9}, 2, Purpose::kPlugin, 1);
  CHECK_FALSE(same(RowWords(other, 77, 0), RowWords(stream, 77, 0)));
}

}  // namespace
}  // namespace gnnd
