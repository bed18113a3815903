#include "core/table/text_rows.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace gnnd {
namespace {

TextRowsOptions OptionsOf(std::vector<ColumnKind> columns) {
  TextRowsOptions options;
  options.separator.assign(1, ',');
  options.header = false;
  options.columns = std::move(columns);
  return options;
}

TextBatch ReadAll(const TextRowsOptions& options, const std::string& text) {
  return TextRows(options).Read(text, true);
}

using enum ColumnKind;

TEST_CASE("text rows: columns of each kind, whatever ends the lines") {
  TextRowsOptions options = OptionsOf({kText, kWhole, kNumber, kSkip, kNumber});
  options.header = true;
  for (const std::string end : {"\n", "\r\n"}) {
    for (const std::string& last : {std::string(), end}) {
      std::string text = "\xEF\xBB\xBF";
      for (const char* line : {"id,n,a,b,c", "x,7,1.5,?,-2e3", ""}) text.append(line).append(end);
      text.append("\"y,z\",\"0\",\".25\",,TRUE").append(last);
      const TextBatch batch = ReadAll(options, text);
      CHECK(batch.header == "id,n,a,b,c");
      CHECK(batch.num_rows == 2);
      CHECK(batch.texts == std::vector<std::string>{"x\ny,z"});
      CHECK(batch.wholes == std::vector<uint32_t>{7, 0});
      CHECK(batch.numbers == std::vector<float>{1.5F, -2000.0F, 0.25F, 1.0F});
      CHECK(batch.first_line == 1);
      CHECK(batch.lines == std::vector<uint32_t>{1, 3});
      CHECK(batch.odd.empty());
      CHECK_FALSE(batch.broken);
    }
  }
}

TEST_CASE("text rows: pieces of any size give the same rows") {
  const std::string text =
      "a,1,0.1\n\"b\nc\",2,3\n\n\"d\"\"\",3,1\n\n\xC3\xA4,4294967294,1e-3\r\ne,5,6";
  const TextRowsOptions options = OptionsOf({kText, kWhole, kNumber});
  for (size_t size = 1; size <= text.size(); ++size) {
    TextRows rows(options);
    std::vector<std::string> odd;
    std::vector<uint32_t> wholes;
    std::vector<uint64_t> lines;
    for (size_t at = 0; at < text.size(); at += size) {
      const TextBatch batch = rows.Read(std::string_view(text).substr(at, size), false);
      odd.insert(odd.end(), batch.odd_rows.begin(), batch.odd_rows.end());
      wholes.insert(wholes.end(), batch.wholes.begin(), batch.wholes.end());
      for (const uint32_t line : batch.lines) lines.push_back(batch.first_line + line);
      CHECK_FALSE(batch.broken);
    }
    const TextBatch last = rows.Read("", true);
    CHECK(last.wholes == std::vector<uint32_t>{5});
    CHECK(last.first_line == 8);
    CHECK(odd == std::vector<std::string>{"\"b\nc\",2,3", "\"d\"\"\",3,1"});
    CHECK(wholes == std::vector<uint32_t>{1, 0, 0, 4294967294});
    CHECK(lines == std::vector<uint64_t>{1, 2, 5, 7});
  }
}

TEST_CASE("text rows: what is not plain is handed out as it stands") {
  const TextRowsOptions options = OptionsOf({kWhole, kNumber});
  for (const std::string row :
       {"01,1",  "4294967295,1", "-1,1",    "1",     "1,2,3",  "1,",       "1,x",
        "1,0x1", "1,1e",         "1,1 ",    "1,nan", "1,1e39", "1,3.5e38", "1,1,",
        "\"1,1", "\"1\"x,1",     "1,+true", "1,.",   "1,inf",  "1,1\r2"}) {
    CAPTURE(row);
    const TextBatch batch = ReadAll(options, row);
    CHECK(batch.odd == std::vector<uint32_t>{0});
    CHECK(batch.odd_rows == std::vector<std::string>{row});
    CHECK(batch.wholes == std::vector<uint32_t>{0});
    CHECK(batch.numbers == std::vector<float>{0});
  }
  CHECK(ReadAll(OptionsOf({kWeight}), "-1\ntrue\n1e-50\n-0\n0\n").odd ==
        std::vector<uint32_t>{0, 1, 2, 3});
}

TEST_CASE("text rows: numbers are rounded once, however they are written") {
  const std::vector<std::pair<const char*, float>> cases = {
      {"0.1", 0.1F},
      {"+16777217", 16777216.0F},
      {"9007199254740993", 9007199254740992.0F},
      {"0.30000000000000000000000000000001", 0.3F},
      {"123456789012345678901234567890", 123456789012345678901234567890.0F},
      {"1.e2", 100.0F},
      {"1E-45", 1e-45F},
      {"-0", -0.0F}};
  for (const auto& [text, value] : cases) {
    CAPTURE(text);
    const TextBatch batch = ReadAll(OptionsOf({kNumber}), text);
    REQUIRE(batch.odd.empty());
    CHECK(batch.numbers[0] == value);
  }
}

TEST_CASE("text rows: decimal commas, where they separate nothing") {
  TextRowsOptions options = OptionsOf({kNumber, kNumber});
  options.separator.assign(1, ';');
  options.decimal_commas = true;
  const TextBatch batch = ReadAll(options, "1,5;,25\n1,;2\n");
  CHECK(batch.numbers == std::vector<float>{1.5F, 0.25F, 0, 0});
  CHECK(batch.odd == std::vector<uint32_t>{1});
}

TEST_CASE("text rows: a text that is not UTF-8, or has no end of a record, is broken") {
  const TextRowsOptions options = OptionsOf({kText});
  for (const std::string bad : {"\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "a\xFF"}) {
    CAPTURE(bad);
    CHECK(ReadAll(options, std::string("a\n").append(bad)).broken);
  }
  for (const std::string good : {"\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF"}) {
    CHECK_FALSE(ReadAll(options, good).broken);
  }
  TextRows rows(options);
  CHECK(rows.Read(std::string(1, '"').append(TextRows::kRecordBytesMax, 'x'), false).broken);
}

TEST_CASE("text rows: ids are numbers of given texts, odd rows apart") {
  const auto ids = std::make_shared<TextIds>();
  for (const char* text : {"a", "b, c", "d"}) ids->Add(text);
  TextRows rows(OptionsOf({kId, kSkip, kId}), ids);
  const TextBatch batch = rows.Read("d,?,a\n\"b, c\",,\"d\"\n\"a\"\"\",1,a\na,2,a\n", true);
  CHECK(batch.wholes == std::vector<uint32_t>{2, 0, 1, 2, 0, 0, 0, 0});
  CHECK(batch.odd == std::vector<uint32_t>{2});
  CHECK_FALSE(batch.broken);
  CHECK(TextRows(OptionsOf({kId, kId}), ids).Read("a,e\n", true).broken);
  CHECK(TextRows(OptionsOf({kId, kId}), ids).Read("a,e\n\"\"\"\",a\n", true).broken);
}

TEST_CASE("text rows: codes count the texts of each column, and are told once") {
  TextRows rows(OptionsOf({kCode, kWhole, kCode}));
  const TextBatch first = rows.Read("x,7,\ny,8,x\n", false);
  CHECK(first.wholes == std::vector<uint32_t>{0, 7, 0, 1, 8, 1});
  CHECK(first.coded == std::vector<std::string>{"x\ny\n", "\nx\n"});
  const TextBatch second = rows.Read("y,9,z\n", true);
  CHECK(second.wholes == std::vector<uint32_t>{1, 9, 2});
  CHECK(second.coded == std::vector<std::string>{"", "z\n"});
  CHECK(second.last_line == 3);
  std::string many;
  for (size_t at = 0; at <= TextRows::kCodesMax; ++at) many.append(std::to_string(at)).append("\n");
  CHECK(ReadAll(OptionsOf({kCode}), many).broken);
}

}  // namespace
}  // namespace gnnd
