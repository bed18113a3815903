#include "core/table/text_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace gnnd {
namespace {

// Whole numbers up to 2^53 and powers of ten up to this one are doubles, so that their quotient is
// rounded once, as the decimal number itself would be.
constexpr int kExactPower = 22;
constexpr uint64_t kExactWhole = uint64_t{1} << 53;
constexpr int kDigitsMax = 19;  // in 64 bits
constexpr int kWholeDigitsMax = 10;
constexpr size_t kRowsAtOnce = 1024;  // for which there is room

constexpr std::array<double, kExactPower + 1> kPowers = [] {
  std::array<double, kExactPower + 1> powers{};
  double power = 1;
  for (double& each : powers) {
    each = power;
    power *= 10;
  }
  return powers;
}();

const char* Find(const char* from, const char* end, char c) {
  return static_cast<const char*>(std::memchr(from, c, static_cast<size_t>(end - from)));
}

unsigned DigitOf(char c) { return static_cast<unsigned char>(c) - unsigned{'0'}; }

[[gnu::always_inline]] inline const char* ReadDigits(const char* at, uint64_t* value) {
  uint64_t sum = *value;
  for (unsigned digit = 0; (digit = DigitOf(*at)) <= 9; ++at) sum = 10 * sum + digit;
  *value = sum;
  return at;
}

// The newline that ends the record, outside of quotes; null where it is not here yet.
const char* RecordEnd(const char* at, const char* end) {
  for (;;) {
    const char* const newline = Find(at, end, '\n');
    const char* const quote = Find(at, newline == nullptr ? end : newline, '"');
    if (quote == nullptr) return newline;
    const char* const closing = Find(quote + 1, end, '"');
    if (closing == nullptr) return nullptr;
    at = closing + 1;
  }
}

bool IsEmptyLine(const char* at, const char* record_end) {
  return at == record_end || *at == '\n' || (at[0] == '\r' && at[1] == '\n');
}

// A number that is not the quotient of two doubles; null where it is none.
[[gnu::noinline]] const char* ReadLong(const char* begin, const char* end, double* magnitude) {
  const auto [next, error] = std::from_chars(begin, end, *magnitude);
  return error == std::errc() ? next : nullptr;
}

// Ends where the digits of an unsigned decimal number do; null where there is none.
[[gnu::always_inline]] inline const char* ReadMagnitude(const char* at, const char* end, bool comma,
                                                        double* magnitude) {
  const char* const begin = at;
  uint64_t whole = 0;
  at = ReadDigits(at, &whole);
  auto digits = at - begin;
  std::ptrdiff_t scale = 0;
  const bool has_comma = comma && *at == ',';
  if (*at == '.' || has_comma) {
    const char* const point = ++at;
    at = ReadDigits(at, &whole);
    scale = at - point;
    digits += scale;
    if (has_comma && scale == 0) return nullptr;
  }
  if (digits == 0) return nullptr;
  const bool is_short = digits <= kDigitsMax && whole <= kExactWhole && scale <= kExactPower;
  if (is_short && *at != 'e' && *at != 'E') {
    *magnitude = static_cast<double>(whole) / kPowers[static_cast<size_t>(scale)];
    return at;
  }
  return has_comma ? nullptr : ReadLong(begin, end, magnitude);
}

// Ends behind the word; null where it is not here. Letters' case is no matter.
const char* ReadWord(const char* at, std::string_view word) {
  for (const char letter : word) {
    if ((*at | 0x20) != letter) return nullptr;
    ++at;
  }
  return at;
}

bool IsAscii(std::string_view text) {
  char all = 0;
  for (const char c : text) all = static_cast<char>(all | c);
  return all >= 0;
}

// Bytes that follow the first one of a character; -1 where it is none. The second one lies between
// `least` and `most` (RFC 3629).
int FollowersOf(unsigned char lead, unsigned char* least, unsigned char* most) {
  *least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  *most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (lead < 0x80) return 0;
  if (lead < 0xC2) return -1;
  if (lead < 0xE0) return 1;
  if (lead < 0xF0) return 2;
  return lead < 0xF5 ? 3 : -1;
}

bool IsUtf8(std::string_view text) {
  if (IsAscii(text)) return true;
  for (size_t at = 0; at < text.size();) {
    unsigned char least = 0;
    unsigned char most = 0;
    const int followers = FollowersOf(static_cast<unsigned char>(text[at]), &least, &most);
    if (followers < 0 || at + static_cast<size_t>(followers) >= text.size()) return false;
    ++at;
    for (int i = 0; i < followers; ++i, ++at) {
      const auto byte = static_cast<unsigned char>(text[at]);
      if (byte < least || byte > most) return false;
      least = 0x80;
      most = 0xBF;
    }
  }
  return true;
}

}  // namespace

TextRows::TextRows(TextRowsOptions options, std::shared_ptr<const TextIds> ids)
    : options_(std::move(options)),
      ids_(std::move(ids)),
      separator_(options_.separator.empty() ? ',' : options_.separator[0]),
      header_is_due_(options_.header) {
  for (const ColumnKind kind : options_.columns) {
    const bool is_code = kind == ColumnKind::kCode;
    if (is_code) codes_.emplace_back();
    if (kind == ColumnKind::kId) ++num_ids_;
    if (is_code || kind == ColumnKind::kWhole || kind == ColumnKind::kId) ++num_wholes_;
    if (kind == ColumnKind::kNumber || kind == ColumnKind::kWeight) ++num_numbers_;
    if (kind == ColumnKind::kText) row_texts_.emplace_back();
  }
  told_.resize(codes_.size());
}

// Ends at the text's end: a closing quote, or what separates fields.
inline const char* TextRows::ReadText(const char* at, const char* end, bool quoted,
                                      std::string_view* text) const {
  const char* const begin = at;
  if (quoted) {
    at = Find(at, end, '"');
    if (at == nullptr) return nullptr;
  } else {
    while (*at != separator_ && *at != '\n' && *at != '"') ++at;
  }
  if (!quoted && *at == '"') return nullptr;
  if (!quoted && *at == '\n' && at > begin && at[-1] == '\r') --at;
  *text = {begin, at};
  return quoted && text->find('\n') != std::string_view::npos ? nullptr : at;
}

// Ends behind the number; null where there is none, or one that `kind` may not be.
[[gnu::always_inline]] inline const char* TextRows::ReadNumber(const char* at, const char* end,
                                                               ColumnKind kind,
                                                               float* value) const {
  const bool is_negative = *at == '-';
  const bool is_signed = is_negative || *at == '+';
  at += is_signed;
  double magnitude = 0;
  const char* const next = ReadMagnitude(at, end, options_.decimal_commas, &magnitude);
  if (next == nullptr) {
    if (kind == ColumnKind::kWeight || is_signed) return nullptr;
    const char* const yes = ReadWord(at, "true");
    *value = yes == nullptr ? 0.0F : 1.0F;
    return yes == nullptr ? ReadWord(at, "false") : yes;
  }
  if (magnitude > std::numeric_limits<float>::max()) return nullptr;
  const auto rounded = static_cast<float>(magnitude);
  *value = is_negative ? -rounded : rounded;
  const bool is_lost = rounded == 0 && magnitude != 0;
  return kind == ColumnKind::kWeight && (is_negative || is_lost) ? nullptr : next;
}

// The begin of the next field, or of what follows the record; null where neither comes.
[[gnu::always_inline]] inline const char* TextRows::NextField(const char* at,
                                                              bool is_last_column) const {
  if (!is_last_column) return *at == separator_ ? at + 1 : nullptr;
  if (*at == '\n') return at + 1;
  return at[0] == '\r' && at[1] == '\n' ? at + 2 : nullptr;
}

// Reads a row whose every field is plain; ends behind its newline, null where it is another one.
const char* TextRows::ReadPlain(const char* at, const char* end, Row row) {
  auto codes = codes_.begin();
  const size_t num_columns = options_.columns.size();
  for (size_t column = 0; column < num_columns; ++column) {
    const bool quoted = *at == '"';
    at += quoted;
    std::string_view text;
    switch (const ColumnKind kind = options_.columns[column]) {
      case ColumnKind::kSkip:
        at = ReadText(at, end, quoted, &text);
        break;
      case ColumnKind::kText:
        at = ReadText(at, end, quoted, row.texts++);
        break;
      case ColumnKind::kNumber:
      case ColumnKind::kWeight:
        at = ReadNumber(at, end, kind, row.numbers++);
        break;
      case ColumnKind::kId:
        at = ReadText(at, end, quoted, row.ids++);
        break;
      case ColumnKind::kCode: {
        at = ReadText(at, end, quoted, &text);
        if (at == nullptr || text.size() > TextIds::kTextBytesMax) return nullptr;
        *row.wholes++ = (codes++)->NumberOf(text);
        break;
      }
      case ColumnKind::kWhole: {
        const char* const begin = at;
        uint64_t whole = 0;
        at = ReadDigits(at, &whole);
        const bool is_long = at - begin > kWholeDigitsMax || (*begin == '0' && at - begin > 1);
        if (at == begin || is_long || whole >= UINT32_MAX) return nullptr;
        *row.wholes++ = static_cast<uint32_t>(whole);
      }
    }
    if (at == nullptr || (quoted && *at != '"')) return nullptr;
    at = NextField(at + quoted, column + 1 == num_columns);
    if (at == nullptr) return nullptr;
  }
  return at;
}

TextBatch TextRows::Read(std::string_view more, bool is_last) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  text_.append(more);
  if (is_start_ && text_.size() < kMark.size() && !is_last) return {};
  size_t begin = is_start_ && text_.starts_with(kMark) ? kMark.size() : 0;
  is_start_ = false;
  // Ends every field, so that nothing need be asked at each byte.
  text_.push_back('\n');
  const char* const start = text_.data() + begin;
  const char* const end = text_.data() + text_.size() - 1;
  TextBatch batch;
  batch.first_line = line_;
  batch.texts.resize(row_texts_.size());
  batch.lines.reserve(rows_before_);
  batch.wholes.reserve(rows_before_ * num_wholes_);
  batch.numbers.reserve(rows_before_ * num_numbers_);
  const char* at = start;
  size_t room = 0;  // for rows
  while (at < end) {
    const size_t rows = batch.num_rows;
    if (rows == room) {
      room += kRowsAtOnce;
      batch.wholes.resize(room * num_wholes_);
      batch.numbers.resize(room * num_numbers_);
      row_ids_.resize(room * num_ids_);
    }
    const Row row = {batch.wholes.data() + rows * num_wholes_,
                     batch.numbers.data() + rows * num_numbers_, row_texts_.data(),
                     row_ids_.data() + rows * num_ids_};
    const bool is_plain = !header_is_due_ && !IsEmptyLine(at, end);
    const char* const next = is_plain ? ReadPlain(at, end, row) : nullptr;
    if (next != nullptr && (next <= end || is_last)) {
      Add(at, nullptr, &batch);
      at = next;
      continue;
    }
    const char* record_end = RecordEnd(at, end);
    if (record_end == nullptr && !is_last) break;
    if (record_end == nullptr) record_end = end;
    Add(at, record_end, &batch);
    at = record_end + 1;
  }
  at = std::min(at, end);
  rows_before_ = batch.num_rows + 1;
  batch.wholes.resize(batch.num_rows * num_wholes_);
  batch.numbers.resize(batch.num_rows * num_numbers_);
  batch.broken =
      !IsUtf8({start, at}) || static_cast<size_t>(end - at) > kRecordBytesMax || !FindIds(&batch);
  for (size_t column = 0; column < codes_.size(); ++column) {
    const TextIds& codes = codes_[column];
    batch.broken = batch.broken || codes.size() > kCodesMax;
    std::string& texts = batch.coded.emplace_back();
    for (size_t& next = told_[column]; next < codes.size(); ++next) {
      texts.append(codes.At(static_cast<uint32_t>(next))).push_back('\n');
    }
  }
  text_.pop_back();
  text_.erase(0, static_cast<size_t>(at - text_.data()));
  return batch;
}

bool TextRows::FindIds(TextBatch* batch) const {
  const size_t count = batch->num_rows * num_ids_;
  if (batch->odd.empty())
    return ids_ == nullptr || ids_->FindAll({row_ids_.data(), count}, batch->wholes.data());
  auto odd = batch->odd.begin();
  for (size_t row = 0; row < batch->num_rows; ++row) {
    if (odd != batch->odd.end() && *odd == row) {
      ++odd;
      continue;
    }
    for (size_t at = row * num_ids_; at < (row + 1) * num_ids_; ++at) {
      const std::optional<uint32_t> found = ids_->Find(row_ids_[at]);
      if (!found) return false;
      batch->wholes[at] = *found;
    }
  }
  return true;
}

// Adds the row at `at`. A plain one was read, and has no `record_end`.
void TextRows::Add(const char* at, const char* record_end, TextBatch* batch) {
  const uint64_t line = line_++;
  if (record_end != nullptr) {
    // Only quotes hold newlines.
    line_ += static_cast<uint64_t>(std::count(at, record_end, '\n'));
    if (IsEmptyLine(at, record_end)) return;
    const char* const text_end =
        record_end > at && record_end[-1] == '\r' ? record_end - 1 : record_end;
    if (std::exchange(header_is_due_, false)) {
      batch->header.emplace(at, text_end);
      return;
    }
    batch->odd.push_back(static_cast<uint32_t>(batch->num_rows));
    batch->odd_rows.emplace_back(at, text_end);
    std::fill_n(batch->wholes.data() + batch->num_rows * num_wholes_, num_wholes_, 0);
    std::fill_n(batch->numbers.data() + batch->num_rows * num_numbers_, num_numbers_, 0);
  }
  for (size_t i = 0; i < row_texts_.size(); ++i) {
    if (batch->num_rows > 0) batch->texts[i].push_back('\n');
    if (record_end == nullptr) batch->texts[i].append(row_texts_[i]);
  }
  batch->lines.push_back(static_cast<uint32_t>(line - batch->first_line));
  batch->last_line = line;
  ++batch->num_rows;
}

}  // namespace gnnd
