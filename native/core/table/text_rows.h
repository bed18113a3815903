#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/table/text_ids.h"

// Rows of a file of text (RFC 4180) as columns of numbers and texts, from
// pieces of the file as they come. What is plain is read here; any other row is handed out as it
// stands, for a reader that can say what is wrong with it.

namespace gnnd {

enum class ColumnKind {
  kSkip,
  kText,
  kNumber,  // a decimal number that is finite in float32, or true or false
  kWeight,  // a decimal number of 0 or more, which is not 0 in float32 alone
  kWhole,   // decimal digits without a zero in front, below 2^32 - 1
  kId,      // a text that is one of the given ids: its number; no WHOLE and CODE beside it
  kCode,    // a text, as its number among those of its column, of which there are few
};

struct TextRowsOptions {
  std::string separator;  // one character
  bool header = true;     // the first row is no data
  bool decimal_commas = false;
  std::vector<ColumnKind> columns;
};

// Several columns of one kind stand row after row, in their order.
struct TextBatch {
  uint64_t num_rows = 0;
  std::optional<std::string> header;  // once, as it stands
  uint64_t first_line = 0;            // where the first row begins, from 1
  std::vector<uint32_t> lines;        // where each row begins, from the first line
  uint64_t last_line = 0;             // where the last row begins, from 1
  std::vector<uint32_t> wholes;       // of WHOLE, ID and CODE
  std::vector<float> numbers;
  std::vector<std::string> texts;  // one a column of texts: those of all rows, by line feeds
  // Rows that are not plain: their numbers are 0, and their texts empty.
  std::vector<uint32_t> odd;
  std::vector<std::string> odd_rows;
  // The text is not UTF-8, has a record without an end, an id that is none, or more texts than a
  // column of codes may: the columns are worth nothing.
  bool broken = false;
  bool taken = false;  // by a sorter of edges, so that the rows' columns are empty
  // One a column of codes: its texts that have a number since this batch, a line feed behind each.
  std::vector<std::string> coded;
};

class TextRows {
 public:
  // Beyond this a quote was not closed.
  static constexpr size_t kRecordBytesMax = size_t{16} << 20;

  // Texts of a column of codes.
  static constexpr size_t kCodesMax = size_t{1} << 16;

  // `ids` are those of columns of kId.
  explicit TextRows(TextRowsOptions options, std::shared_ptr<const TextIds> ids = nullptr);

  // The rows that end in `more`, the next piece of the text; it ends with the last one.
  TextBatch Read(std::string_view more, bool is_last);

 private:
  // Where a row's values go.
  struct Row {
    uint32_t* wholes;
    float* numbers;
    std::string_view* texts;
    std::string_view* ids;
  };

  const char* ReadPlain(const char* at, const char* end, Row row);
  const char* ReadText(const char* at, const char* end, bool quoted, std::string_view* text) const;
  const char* ReadNumber(const char* at, const char* end, ColumnKind kind, float* value) const;
  const char* NextField(const char* at, bool is_last_column) const;
  // Replaces ids by their numbers; false where one has none.
  bool FindIds(TextBatch* batch) const;
  void Add(const char* at, const char* record_end, TextBatch* batch);

  const TextRowsOptions options_;
  const std::shared_ptr<const TextIds> ids_;
  size_t num_ids_ = 0;
  std::vector<std::string_view> row_ids_;  // of all rows of a batch
  std::vector<TextIds> codes_;             // one a column of codes
  std::vector<size_t> told_;               // of each, how many texts were given out
  const char separator_;
  size_t num_wholes_ = 0;
  size_t num_numbers_ = 0;
  bool header_is_due_;
  bool is_start_ = true;
  uint64_t line_ = 1;         // of what follows in the text
  std::string text_;          // what was not read yet
  uint64_t rows_before_ = 0;  // of the last batch: what the next one may have
  std::vector<std::string_view> row_texts_;
};

}  // namespace gnnd
