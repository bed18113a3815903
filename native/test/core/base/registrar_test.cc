#include "core/base/registrar.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <utility>
#include <vector>

#include "core/base/memfd.h"
#include "test/support/fake_registrar.h"

namespace gnnd {
namespace {

struct Memory {
  explicit Memory(uint64_t pages) : fd(std::move(*CreateMemfd("gnnd-test", pages * kPageBytes))) {
    mapping = std::move(*Mapping::Map(fd.get(), true));
  }
  std::span<std::byte> pages(uint64_t from, uint64_t count) const {
    return {mapping.data() + from * kPageBytes, count * kPageBytes};
  }

  UniqueFd fd;
  Mapping mapping;
};

TEST_CASE("ranges are registered in pieces, and no longer when their object is gone") {
  const Memory memory(16);
  test::FakeRegistrar device;
  device.most_bytes = 3 * kPageBytes;
  const std::vector<std::span<std::byte>> ranges = {memory.pages(0, 7), memory.pages(9, 2)};
  {
    Result<Registration> first = Registration::Of(device.hook(), ranges);
    REQUIRE(first.ok());
    CHECK(device.ranges.size() == 4);
    CHECK(device.bytes() == 9 * kPageBytes);
    CHECK(first->bytes() == 9 * kPageBytes);
    const Registration moved = std::move(*first);
    CHECK(device.ranges.size() == 4);
    CHECK(moved.bytes() == 9 * kPageBytes);
    CHECK(moved.seen() == nullptr);  // two ranges
  }
  CHECK(device.ranges.empty());
}

TEST_CASE("one range is seen as one by kernels, whatever its pieces, or not at all") {
  const Memory memory(16);
  test::FakeRegistrar device;
  device.most_bytes = 3 * kPageBytes;
  const std::span<std::byte> range = memory.pages(1, 7);
  {
    Result<Registration> one = Registration::Of(device.hook(), std::span(&range, 1));
    REQUIRE(one.ok());
    const Registration moved = std::move(*one);
    CHECK(moved.seen() == device.SeenAt(range.data()));
  }
  device.scatters = true;
  const Result<Registration> apart = Registration::Of(device.hook(), std::span(&range, 1));
  REQUIRE(apart.ok());
  CHECK(apart->bytes() == range.size());
  CHECK(apart->seen() == nullptr);
}

TEST_CASE("a range that is refused leaves none registered, and says why") {
  const Memory memory(16);
  test::FakeRegistrar device;
  const auto refused = [&](std::vector<std::span<std::byte>> ranges) {
    const Result<Registration> registration = Registration::Of(device.hook(), ranges);
    CHECK(device.ranges.empty());
    return registration.status().message();
  };
  CHECK(refused({memory.pages(0, 4), memory.pages(3, 2)}) ==
        "registering 8192 bytes with the device: overlap");
  CHECK(refused({memory.pages(0, 1), memory.pages(2, 1).subspan(8)}).find("whole pages") !=
        std::string::npos);
  device.refuses_after = 1;
  CHECK(refused({memory.pages(0, 1), memory.pages(1, 1)}).find("not supported") !=
        std::string::npos);
  device.refuses_after = 100;
  REQUIRE(Protect(memory.pages(4, 1), Protection::kReadOnly).ok());
  CHECK(refused({memory.pages(3, 3)}).find("not mapped for writing") != std::string::npos);
}

TEST_CASE("what is registered stays so when it is protected, and is lost to a punched hole") {
  const Memory memory(4);
  test::FakeRegistrar device;
  const std::span<std::byte> pages = memory.pages(0, 2);
  const Result<Registration> registration = Registration::Of(device.hook(), std::span(&pages, 1));
  REQUIRE(registration.ok());
  REQUIRE(Protect(pages, Protection::kReadOnly).ok());
  CHECK_FALSE(test::IsWritable(pages.data()));
  const Result<Mapping> other = Mapping::Map(memory.fd.get(), true);
  REQUIRE(other.ok());
  other->data()[5] = std::byte{7};
  CHECK(device.Sees(pages.data() + 5) == std::byte{7});
  // Why nothing may punch there: the device goes on with a page that nobody else sees.
  REQUIRE(fallocate(memory.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPageBytes) ==
          0);
  other->data()[5] = std::byte{9};
  CHECK(pages[5] == std::byte{9});
  CHECK(device.Sees(pages.data() + 5) == std::byte{7});
}

}  // namespace
}  // namespace gnnd
