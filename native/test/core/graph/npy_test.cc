#include "core/graph/npy.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "test/support/npy_files.h"

namespace gnnd {
namespace {

using test::NpyBytes;
using test::NpyBytesWithHeader;
using test::TempFolder;
using test::WriteFile;

const char* kGoodDict = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";

// Opens a file "a.npy" of these bytes and returns why that fails.
Status Refusal(const std::string& bytes) {
  const TempFolder folder;
  WriteFile(folder / "a.npy", bytes);
  const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
  CHECK_FALSE(array.ok());
  return array.status();
}

void CheckRefused(const std::string& bytes, const std::string& reason) {
  const Status status = Refusal(bytes);
  CHECK(status.code() == Code::kDatasetCorrupt);
  CHECK_MESSAGE(status.message().starts_with("a.npy: "), status.message());
  CHECK_MESSAGE(status.message().find(reason) != std::string::npos, status.message());
}

template <typename T>
void CheckRoundTrip(const std::vector<T>& values, const std::vector<uint64_t>& shape) {
  const TempFolder folder;
  test::WriteNpy(folder / "a.npy", values, shape);
  Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
  REQUIRE(array.ok());
  CHECK(array->file() == "a.npy");
  CHECK(array->type() == NpyTypeOf<T>::kType);
  CHECK(array->shape() == shape);
  const NpyArray moved = std::move(*array);
  CHECK(std::ranges::equal(moved.values<T>(), values));
}

TEST_CASE("npy: every supported type is read back as it was written") {
  CheckRoundTrip<int32_t>({1, -2, 3}, {3});
  CheckRoundTrip<uint32_t>({1, 0xFFFFFFFF}, {2});
  CheckRoundTrip<int64_t>({-1, int64_t{1} << 40}, {2});
  CheckRoundTrip<float>({1.5F, -0.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3});
  CheckRoundTrip<Half>({Half{0x3C00}, Half{0x8000}, Half{0xFFFF}}, {3, 1});
  CheckRoundTrip<int64_t>({}, {0});
  CheckRoundTrip<float>({}, {0, 7});
}

TEST_CASE("npy: int32 may be read as uint32 without a copy") {
  const TempFolder folder;
  test::WriteNpy<int32_t>(folder / "a.npy", {7, -1});
  const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
  REQUIRE(array.ok());
  CHECK(array->values<uint32_t>()[0] == 7);
  CHECK(array->values<uint32_t>()[1] == 0xFFFFFFFF);
}

TEST_CASE("npy: versions 2.0 and 3.0 have a four-byte header length") {
  for (const char version : {'\x02', '\x03'}) {
    std::string text = kGoodDict;
    text.append(64 - (12 + text.size() + 1) % 64, ' ');
    text += '\n';
    std::string bytes = std::string("\x93NUMPY") + version + '\0';
    bytes += {static_cast<char>(text.size()), '\0', '\0', '\0'};
    bytes += text + std::string("\x05\0\0\0\x06\0\0\0", 8);
    const TempFolder folder;
    WriteFile(folder / "a.npy", bytes);
    const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
    REQUIRE(array.ok());
    CHECK(array->values<int32_t>()[1] == 6);
  }
}

TEST_CASE("npy: keys come in any order, with any spaces and either quote") {
  const std::string dict = "{ \"shape\":(1 , 2),'fortran_order' :False , \"descr\":\"<i4\"}";
  const TempFolder folder;
  WriteFile(folder / "a.npy", NpyBytesWithHeader(dict, std::string(8, '\x01')));
  const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
  REQUIRE(array.ok());
  CHECK(array->shape() == std::vector<uint64_t>{1, 2});
}

TEST_CASE("npy: a missing file is not found, and named") {
  const TempFolder folder;
  const Result<NpyArray> array = NpyArray::Open(folder / "none.npy");
  REQUIRE_FALSE(array.ok());
  CHECK(array.status().code() == Code::kNotFound);
  CHECK(array.status().message() == "none.npy: no such file");
}

TEST_CASE("npy: folders and pipes are refused and not waited for") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "folder.npy");
  REQUIRE(mkfifo((folder / "pipe.npy").c_str(), 0600) == 0);
  for (const char* name : {"folder.npy", "pipe.npy"}) {
    const Result<NpyArray> array = NpyArray::Open(folder / name);
    REQUIRE_FALSE(array.ok());
    CHECK(array.status().message() == std::string(name) + ": not a regular file");
  }
}

TEST_CASE("npy: every truncation of a file is refused, at whatever byte") {
  const std::string whole = NpyBytes<int64_t>({1, 2, 3});
  for (size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CheckRefused(whole.substr(0, length), length == 0 ? "empty" : "");
  }
}

TEST_CASE("npy: bytes after the array are refused, with both sizes") {
  CheckRefused(NpyBytes<float>({1, 2}) + "x",
               "bytes after the array: float32 (2,) takes 8 bytes, found 9");
}

TEST_CASE("npy: what is no array is refused") {
  CheckRefused("PK\x03\x04 a zip archive", "not a .npy file");
  std::string version = NpyBytes<float>({1});
  version[6] = '\x04';
  CheckRefused(version, "found 4.0");
}

TEST_CASE("npy: other element types, byte orders and layouts are refused by name") {
  const auto with = [](const std::string& descr, const std::string& order) {
    return NpyBytesWithHeader(
        "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': (2,), }",
        std::string(8, '\0'));
  };
  CheckRefused(with("'<f8'", "False"), "found '<f8'");
  CheckRefused(with("'>i4'", "False"), "found '>i4'");
  CheckRefused(with("'|O'", "False"), "found '|O'");
  CheckRefused(with("'<i4'", "True"), "Fortran order");
  CheckRefused(with("[('x', '<i4')]", "False"), "unreadable header");
}

TEST_CASE("npy: malformed headers are refused") {
  for (const char* dict :
       {"", "{", "{}", "[]", "{'descr': '<i4'}", "{'descr': '<i4, 'fortran_order': False}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), } x",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<i4', 'fortran_order': Maybe, 'shape': (2,)}",
        "{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    CAPTURE(dict);
    CheckRefused(NpyBytesWithHeader(dict, std::string(8, '\0')), "unreadable header");
  }
}

TEST_CASE("npy: a shape whose bytes overflow 64 bits is refused") {
  for (const char* shape : {"(4294967296, 4294967296)", "(4611686018427387904,)"}) {
    CheckRefused(NpyBytesWithHeader("{'descr': '<i4', 'fortran_order': False, 'shape': " +
                                        std::string(shape) + "}",
                                    std::string(8, '\0')),
                 "takes over 2^64 bytes");
  }
}

TEST_CASE("npy: an array that is not aligned to its elements is refused") {
  std::string text = kGoodDict;
  std::string bytes = std::string("\x93NUMPY\x01\0", 8);
  text.append(68 - 10 - text.size() + 1, ' ');  // the array would start at byte 69
  bytes += {static_cast<char>(text.size()), '\0'};
  CheckRefused(bytes + text + std::string(8, '\0'), "starts at byte 69");
}

TEST_CASE("npy: whatever one header byte becomes, a file is refused or read within its bounds") {
  const std::string good = NpyBytes<int64_t>({1, 2, 3});
  const size_t header_bytes = good.size() - 24;
  const TempFolder folder;
  int opened = 0;
  for (size_t at = 0; at < header_bytes; ++at) {
    for (const char value : {'\0', '\x7f', '\xff', '0', '9', '\'', '(', '}'}) {
      std::string bytes = good;
      bytes[at] = value;
      WriteFile(folder / "a.npy", bytes);
      const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
      if (!array.ok()) continue;
      ++opened;
      CHECK(array->size() * BytesOf(array->type()) == 24);
    }
  }
  CHECK(opened >= 1);  // at least the change that changes nothing
}

TEST_CASE("npy: what a header says is made printable and cut short in messages") {
  const Status status = Refusal(NpyBytesWithHeader("\x1b[31m" + std::string(500, 'x'), ""));
  CHECK(status.message().find('\x1b') == std::string::npos);
  CHECK(status.message().size() < 100);
}

TEST_CASE("npy: an expectation that is not met names both sides") {
  const TempFolder folder;
  test::WriteNpy<int32_t>(folder / "a.npy", {1, 2, 3});
  const Result<NpyArray> array = NpyArray::Open(folder / "a.npy");
  REQUIRE(array.ok());
  CHECK(array->Expect({NpyType::kUint32, NpyType::kInt32}, {3}).ok());
  const Status type = array->Expect({NpyType::kInt64, NpyType::kFloat32}, {3});
  CHECK(type.code() == Code::kDatasetCorrupt);
  CHECK(type.message() == "a.npy: expected int64 or float32 (3,), found int32 (3,)");
  const Status shape = array->Expect({NpyType::kInt32}, {3, 1});
  CHECK(shape.message() == "a.npy: expected int32 (3, 1), found int32 (3,)");
}

}  // namespace
}  // namespace gnnd
