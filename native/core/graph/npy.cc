#include "core/graph/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace gnnd {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kPrefixBytes = 8;  // magic, major, minor

struct TypeFacts {
  NpyType type;
  std::string_view name;
  std::string_view descr;
  uint64_t bytes;
};

constexpr std::array<TypeFacts, 7> kTypes = {{
    {NpyType::kInt32, "int32", "<i4", 4},
    {NpyType::kUint32, "uint32", "<u4", 4},
    {NpyType::kInt64, "int64", "<i8", 8},
    {NpyType::kFloat32, "float32", "<f4", 4},
    {NpyType::kFloat16, "float16", "<f2", 2},
    {NpyType::kUint16, "uint16", "<u2", 2},
    {NpyType::kUint8, "uint8", "|u1", 1},
}};

const TypeFacts& FactsOf(NpyType type) { return kTypes[static_cast<size_t>(type)]; }

// The fields of a header's text, not judged yet.
struct HeaderFields {
  std::string descr;
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

// Reads the header's text: a Python dict literal with the keys 'descr' (a string), 'fortran_order'
// (True or False) and 'shape' (a tuple of integers), in any order.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  std::optional<HeaderFields> Parse() {
    HeaderFields fields;
    unsigned seen = 0;
    if (!Take('{')) return std::nullopt;
    while (!Take('}')) {
      std::string key;
      if (!String(&key) || !Take(':')) return std::nullopt;
      unsigned bit = 0;
      if (key == "descr") {
        bit = String(&fields.descr) ? 1 : 0;
      } else if (key == "fortran_order") {
        bit = Bool(&fields.fortran_order) ? 2 : 0;
      } else if (key == "shape") {
        bit = Tuple(&fields.shape) ? 4 : 0;
      }
      if (bit == 0 || (seen & bit) != 0) return std::nullopt;
      seen |= bit;
      if (!Take(',') && !Peek('}')) return std::nullopt;
    }
    SkipSpace();
    if (!rest_.empty() || seen != 7) return std::nullopt;
    return fields;
  }

 private:
  void SkipSpace() {
    const size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
  }

  bool Peek(char wanted) {
    SkipSpace();
    return !rest_.empty() && rest_.front() == wanted;
  }

  bool Take(char wanted) {
    if (!Peek(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool String(std::string* value) {
    const char quote = Peek('"') ? '"' : '\'';
    if (!Take(quote)) return false;
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return false;
    *value = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool Bool(bool* value) {
    SkipSpace();
    for (const auto& [word, meaning] : {std::pair<std::string_view, bool>{"True", true},
                                        std::pair<std::string_view, bool>{"False", false}}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      *value = meaning;
      return true;
    }
    return false;
  }

  bool Number(uint64_t* value) {
    SkipSpace();
    size_t digits = 0;
    *value = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      if (__builtin_mul_overflow(*value, uint64_t{10}, value) ||
          __builtin_add_overflow(*value, static_cast<uint64_t>(rest_[digits] - '0'), value)) {
        return false;
      }
    }
    rest_.remove_prefix(digits);
    return digits > 0;
  }

  bool Tuple(std::vector<uint64_t>* values) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      if (!Number(&values->emplace_back())) return false;
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

std::string ShapeText(std::span<const uint64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

// Shortens a file's text and makes it printable, for use in a message: a file may contain anything.
std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 32;
  std::string quoted = "'";
  for (const char c : text.substr(0, kShown)) quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > kShown ? "...'" : "'");
}

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

Status OpenFile(const std::string& path, const std::string& file, UniqueFd* owner) {
  // Non-blocking, so that a pipe in the place of a file is refused instead of waited for.
  *owner = UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!owner->valid() && errno == ENOENT) {
    return Status(Code::kNotFound, file + ": no such file");
  }
  struct stat info{};
  if (!owner->valid() || fstat(owner->get(), &info) != 0) {
    return SystemError(Code::kIo, file + ": cannot be opened");
  }
  if (!S_ISREG(info.st_mode)) return Status(Code::kDatasetCorrupt, file + ": not a regular file");
  return Status::Ok();
}

// Offset and length of the header's text within the file.
struct HeaderPlace {
  uint64_t at = 0;
  uint64_t length = 0;
};

// On error the message lacks the file's name.
Result<HeaderPlace> FindHeader(std::span<const std::byte> bytes) {
  const auto corrupt = [](std::string message) {
    return Status(Code::kDatasetCorrupt, std::move(message));
  };
  if (bytes.empty()) return corrupt("the file is empty, expected a .npy array");
  const size_t compared = bytes.size() < kMagic.size() ? bytes.size() : kMagic.size();
  if (std::memcmp(bytes.data(), kMagic.data(), compared) != 0) {
    return corrupt("not a .npy file: it does not start with \\x93NUMPY");
  }
  const std::string truncated =
      "truncated within the header: the file has " + std::to_string(bytes.size()) + " bytes";
  if (bytes.size() < kPrefixBytes) return corrupt(truncated);
  const auto major = std::to_integer<unsigned>(bytes[6]);
  const auto minor = std::to_integer<unsigned>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return corrupt("expected .npy version 1.0, 2.0 or 3.0, found " + std::to_string(major) + "." +
                   std::to_string(minor));
  }
  const uint64_t length_bytes = major == 1 ? 2 : 4;
  HeaderPlace place;
  place.at = kPrefixBytes + length_bytes;
  if (bytes.size() < place.at) return corrupt(truncated);
  place.length = LittleEndian(bytes.subspan(kPrefixBytes, length_bytes));
  if (bytes.size() - place.at < place.length) return corrupt(truncated);
  return place;
}

}  // namespace

std::string_view NameOf(NpyType type) { return FactsOf(type).name; }

uint64_t BytesOf(NpyType type) { return FactsOf(type).bytes; }

Result<NpyArray> NpyArray::Open(const std::string& path) {
  NpyArray array;
  array.file_ = path.substr(path.find_last_of('/') + 1);
  const auto corrupt = [&array](const std::string& message) {
    return Status(Code::kDatasetCorrupt, array.file_ + ": " + message);
  };
  UniqueFd owner;
  GNND_TRY(OpenFile(path, array.file_, &owner));
  Result<Mapping> mapping = Mapping::Map(owner.get(), false);
  if (!mapping.ok()) return Status(Code::kIo, array.file_ + ": " + mapping.status().message());
  array.mapping_ = std::move(*mapping);

  const std::span<const std::byte> bytes = array.mapping_.bytes();
  const Result<HeaderPlace> place = FindHeader(bytes);
  if (!place.ok()) return corrupt(place.status().message());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + place->at,
                              place->length);
  std::optional<HeaderFields> fields = HeaderParser(text).Parse();
  if (!fields) return corrupt("unreadable header " + Quoted(text));

  const TypeFacts* facts = nullptr;
  for (const TypeFacts& known : kTypes) {
    if (known.descr == fields->descr) facts = &known;
  }
  if (facts == nullptr) {
    return corrupt("expected elements of type '<i4', '<u4', '<i8', '<f4', '<f2' or '|u1', found " +
                   Quoted(fields->descr));
  }
  if (fields->fortran_order) return corrupt("expected C order, found Fortran order");

  uint64_t size = 1;
  uint64_t data_bytes = 0;
  bool overflow = false;
  for (const uint64_t extent : fields->shape) {
    overflow = overflow || __builtin_mul_overflow(size, extent, &size);
  }
  overflow = overflow || __builtin_mul_overflow(size, facts->bytes, &data_bytes);
  const uint64_t data_at = place->at + place->length;
  const uint64_t found_bytes = bytes.size() - data_at;
  if (overflow || found_bytes != data_bytes) {
    const bool trailing = !overflow && found_bytes > data_bytes;
    return corrupt(std::string(trailing ? "bytes after the array" : "truncated") + ": " +
                   std::string(facts->name) + " " + ShapeText(fields->shape) + " takes " +
                   (overflow ? "over 2^64" : std::to_string(data_bytes)) + " bytes, found " +
                   std::to_string(found_bytes));
  }
  if (data_at % facts->bytes != 0) {
    return corrupt("the array starts at byte " + std::to_string(data_at) +
                   ", not at a multiple of its elements' size");
  }
  array.type_ = facts->type;
  array.shape_ = std::move(fields->shape);
  array.size_ = size;
  array.data_at_ = data_at;
  return array;
}

Status NpyArray::Expect(std::initializer_list<NpyType> types,
                        std::initializer_list<uint64_t> shape) const {
  bool type_fits = false;
  std::string names;
  for (const NpyType type : types) {
    type_fits = type_fits || type == type_;
    names += (names.empty() ? "" : " or ") + std::string(NameOf(type));
  }
  const bool shape_fits = std::equal(shape.begin(), shape.end(), shape_.begin(), shape_.end());
  if (type_fits && shape_fits) return Status::Ok();
  return Status(Code::kDatasetCorrupt, file_ + ": expected " + names + " " +
                                           ShapeText({shape.begin(), shape.size()}) + ", found " +
                                           std::string(NameOf(type_)) + " " + ShapeText(shape_));
}

std::string NpyHeader(NpyType type, std::span<const uint64_t> shape, uint64_t alignment) {
  constexpr size_t kFixed = kPrefixBytes + 2;
  std::string text = "{'descr': '" + std::string(FactsOf(type).descr) +
                     "', 'fortran_order': False, 'shape': " + ShapeText(shape) + ", }";
  // Spaces and a newline pad the header, so that the elements start at a multiple of `alignment`.
  const size_t total = RoundUp(kFixed + text.size() + 1, alignment);
  text.append(total - kFixed - text.size() - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace gnnd
