#include "core/base/contain.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace gnnd {
namespace {

// The Status of a thread whose work throws this error.
template <typename Error>
Status ThrownBy(const Error& error, Code thrown = Code::kInternal) {
  return Contained([&]() -> Status { throw error; }, thrown);
}

}  // namespace

TEST_CASE("what returns is handed on, as a Status or as a Result") {
  CHECK(Contained([] { return Status::Ok(); }).ok());
  CHECK(Contained([] { return Status(Code::kIo, "x"); }).code() == Code::kIo);
  CHECK(*Contained([]() -> Result<std::string> { return std::string("made"); }) == "made");
}

TEST_CASE("memory or a thread that is not to be had is a failed allocation") {
  CHECK(ThrownBy(std::bad_alloc()).code() == Code::kShmAllocationFailed);
  const auto no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
  CHECK(ThrownBy(std::system_error(no_thread)).code() == Code::kShmAllocationFailed);
  const Result<int> result = Contained([]() -> Result<int> {
    std::vector<char> all(size_t{1} << 62);
    return static_cast<int>(all.size());
  });
  CHECK(result.status().code() == Code::kShmAllocationFailed);
}

TEST_CASE("anything else that is thrown keeps its sentence") {
  const Status status = ThrownBy(std::runtime_error("a sentence"), Code::kPluginFailed);
  CHECK(status.code() == Code::kPluginFailed);
  CHECK(status.message() == "unexpected: a sentence");
  CHECK(ThrownBy(std::logic_error("")).code() == Code::kInternal);
  CHECK(ThrownBy(42).code() == Code::kInternal);
}

}  // namespace gnnd
