#include "core/table/text_ids.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace gnnd {
namespace {

TEST_CASE("text ids: numbers by the order in which texts come, as a map gives them") {
  std::mt19937 random(7);
  TextIds ids;
  std::unordered_map<std::string, uint32_t> expected;
  std::vector<std::string> all;
  std::string lines;
  for (int at = 0; at < 200'000; ++at) {
    // Some are longer than a word, and some come again.
    std::string text = std::to_string(random() % 150'000);
    if (at % 3 == 0) text.insert(0, std::string(random() % 40, 'x'));
    const auto [place, is_new] = expected.try_emplace(text, expected.size());
    const std::optional<uint32_t> number = ids.Add(text);
    CHECK(number.has_value() == is_new);
    CHECK(ids.NumberOf(text) == place->second);
    if (is_new) {
      all.push_back(text);
      lines.append(text).push_back('\n');
    }
  }
  CHECK(ids.size() == all.size());
  const std::vector<std::string_view> texts(all.begin(), all.end());
  std::vector<uint32_t> numbers(all.size());
  CHECK(ids.FindAll(texts, numbers.data()));
  std::string found;
  for (uint32_t at = 0; at < numbers.size(); ++at) {
    REQUIRE(numbers[at] == at);
    REQUIRE(ids.At(at) == all[at]);
  }
  for (size_t piece = 0; piece < ids.num_pieces(); ++piece) found.append(ids.Piece(piece));
  CHECK(ids.num_pieces() > 1);
  CHECK(found == lines);
  CHECK_FALSE(ids.Find("y").has_value());
  CHECK_FALSE(ids.Find(std::string(TextIds::kTextBytesMax + 1, 'x')).has_value());
  CHECK_FALSE(ids.FindAll(std::vector<std::string_view>{"1", "y"}, numbers.data()));
}

TEST_CASE("text ids: lines are added up to one that is there, or that a reader must judge") {
  TextIds ids;
  CHECK(ids.AddLines("a\nb\n\nc") == 4);
  CHECK(ids.Find("") == 2);
  CHECK(ids.AddLines("d\nb\ne") == 1);
  CHECK(ids.AddLines("e\rf") == 0);
  CHECK(ids.AddLines(std::string(TextIds::kPlainBytesMax, 'x') + "\n" +
                     std::string(TextIds::kPlainBytesMax + 1, 'y')) == 1);
  CHECK(ids.size() == 6);
  CHECK(ids.At(4) == "d");
}

}  // namespace
}  // namespace gnnd
