#include "core/graph/array_copy.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gnnd {
namespace {

class Files {
 public:
  Files() : folder_("/tmp/gnnd-array-copy-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Files() { std::filesystem::remove_all(folder_); }

  template <typename T>
  std::string Write(const std::string& name, const std::vector<T>& values) const {
    std::ofstream(Path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(T)));
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

// Copies all of it in steps; returns their number.
int CopyAll(ArrayCopy* copy, uint64_t step) {
  int steps = 0;
  bool more = true;
  while (more) {
    const Result<bool> stepped = copy->Step(step);
    REQUIRE(stepped.ok());
    more = *stepped;
    ++steps;
  }
  return steps;
}

std::string Sum(const std::string& bytes) {
  return HexOf(Sha256(Sha256::Speed::kPlain).Add(std::as_bytes(std::span(bytes))).Finish());
}

TEST_CASE("array copy: elements arrive whole, hashed once, whatever the steps") {
  const Files files;
  std::vector<uint32_t> nodes(3 * ArrayCopy::kChunkBytes / 4 + 1234);
  for (uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = i * 7 % 1000;
  const uint64_t bytes = nodes.size() * sizeof(uint32_t);
  const std::string source = files.Write("source", nodes);
  const std::string skipped = files.Read("source").substr(8);
  for (const uint64_t step : {bytes, ArrayCopy::kChunkBytes, ArrayCopy::kChunkBytes + 4}) {
    const std::string target = files.Write<char>("target", {'h', 'e', 'a', 'd'});
    // The right to write is checked when the file is opened.
    std::filesystem::permissions(
        target, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    const UniqueFd fd(open(target.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(fd.valid());
    std::filesystem::permissions(target, std::filesystem::perms::owner_read);
    auto copy = ArrayCopy::Open({source, 8, bytes - 8, fd.get(), 4, ElementRule::kNodes, 1000});
    REQUIRE(copy.ok());
    CHECK(CopyAll(copy->get(), step) == static_cast<int>((bytes - 8 + step - 1) / step));
    const ArrayCopied copied = (*copy)->Finish();
    CHECK(copied.clean);
    CHECK(copied.sha256 == Sum(skipped));
    CHECK(files.Read("target") == "head" + skipped);
  }
}

TEST_CASE("array copy: without a target it reads, and says which nodes were named") {
  const Files files;
  const std::string source = files.Write<uint32_t>("source", {5, 64, 5, 127});
  auto copy = ArrayCopy::Open({source, 0, 16, -1, 0, ElementRule::kNodes, 128});
  REQUIRE(copy.ok());
  CHECK(CopyAll(copy->get(), 1 << 20) == 1);
  CHECK((*copy)->Finish().clean);
  const std::vector<uint32_t> asked = {5, 6, 63, 64, 127};
  CHECK((*copy)->CountUnnamed(asked) == 2);
}

TEST_CASE("array copy: an element that breaks its rule is seen, wherever it stands") {
  const Files files;
  const auto is_clean = [&](const std::string& path, uint64_t bytes, ElementRule rule) {
    auto copy = ArrayCopy::Open({path, 0, bytes, -1, 0, rule, 10});
    REQUIRE(copy.ok());
    CopyAll(copy->get(), 1 << 30);
    return (*copy)->Finish().clean;
  };
  for (const uint64_t at : {uint64_t{0}, ArrayCopy::kChunkBytes / 4, ArrayCopy::kChunkBytes / 2}) {
    std::vector<uint32_t> nodes(ArrayCopy::kChunkBytes / 2 + 1, 9);
    std::vector<uint32_t> floats(nodes.size(), 0x7F7FFFFF);  // the largest finite number
    std::vector<uint16_t> halves(nodes.size(), 0xFBFF);
    CHECK(is_clean(files.Write("n", nodes), nodes.size() * 4, ElementRule::kNodes));
    CHECK(is_clean(files.Write("f", floats), nodes.size() * 4, ElementRule::kFiniteFloat32));
    CHECK(is_clean(files.Write("h", halves), nodes.size() * 2, ElementRule::kFiniteFloat16));
    nodes[at] = 10;
    floats[at] = 0xFFC00000;  // a NaN
    halves[at] = 0x7C00;      // infinity
    CHECK_FALSE(is_clean(files.Write("n", nodes), nodes.size() * 4, ElementRule::kNodes));
    CHECK_FALSE(is_clean(files.Write("f", floats), nodes.size() * 4, ElementRule::kFiniteFloat32));
    CHECK_FALSE(is_clean(files.Write("h", halves), nodes.size() * 2, ElementRule::kFiniteFloat16));
    CHECK(is_clean(files.Path("f"), nodes.size() * 4, ElementRule::kAny));
  }
}

TEST_CASE("array copy: a source that ends early, and files that are not there") {
  const Files files;
  const std::string source = files.Write<uint32_t>("source", {1, 2});
  auto copy = ArrayCopy::Open({source, 0, 16, -1, 0, ElementRule::kAny, 0});
  REQUIRE(copy.ok());
  CHECK((*copy)->Step(16).status().code() == Code::kDatasetCorrupt);
  CHECK(ArrayCopy::Open({files.Path("none"), 0, 8, -1, 0, ElementRule::kAny, 0}).status().code() ==
        Code::kIo);
  const UniqueFd read_only(open(source.c_str(), O_RDONLY | O_CLOEXEC));
  auto refused = ArrayCopy::Open({source, 0, 8, read_only.get(), 0, ElementRule::kAny, 0});
  REQUIRE(refused.ok());
  CHECK((*refused)->Step(8).status().message().starts_with("the copy of source cannot be written"));
}

}  // namespace
}  // namespace gnnd
