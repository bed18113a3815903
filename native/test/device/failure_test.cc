#include "cuda/plugin/failure.h"

#include <doctest/doctest.h>

#include <string>

namespace gnnd::cuda {
namespace {

constexpr uint32_t kRuntime = 13000;

std::string Remedy(int native, uint32_t driver) {
  return RemedyOf(CodeOf(native, driver), driver, kRuntime);
}

TEST_CASE("one number means no driver, or one that is too old: the driver's version tells") {
  CHECK(CodeOf(35, 0) == GNND_DEVICE_NO_DRIVER);
  CHECK(CodeOf(35, 12040) == GNND_DEVICE_DRIVER_TOO_OLD);
  CHECK(Remedy(35, 0).find("install NVIDIA's driver (580") == 0);
  CHECK(Remedy(35, 12040) ==
        "update NVIDIA's driver to 580 or later; it serves CUDA 12.4, this plug-in needs 13.0");
}

TEST_CASE("each way to have no usable GPU has a code and a remedy of its own") {
  CHECK(CodeOf(100, 13000) == GNND_DEVICE_NO_DEVICE);
  CHECK(CodeOf(46, 13000) == GNND_DEVICE_UNAVAILABLE);
  CHECK(CodeOf(802, 13000) == GNND_DEVICE_NOT_READY);
  CHECK(CodeOf(803, 13000) == GNND_DEVICE_DRIVER_MISMATCH);
  CHECK(CodeOf(209, 13000) == GNND_DEVICE_NO_KERNEL_IMAGE);
  CHECK(Remedy(100, 13000).find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  CHECK(Remedy(46, 13000).find("nvidia-smi -c DEFAULT") != std::string::npos);
  CHECK(Remedy(802, 13000).find("nvidia-fabricmanager") != std::string::npos);
  CHECK(Remedy(803, 13000).find("restart the host") != std::string::npos);
  CHECK(Remedy(209, 13000).find("build gnnd on this host") != std::string::npos);
}

TEST_CASE("registering is refused where the same number means another thing elsewhere") {
  for (const int native : {1, 2, 712, 801}) {
    CHECK(CodeOf(native, 13000, Doing::kRegistering) == GNND_DEVICE_REGISTER_REFUSED);
  }
  CHECK(CodeOf(1, 13000) == GNND_DEVICE_BAD_ARGUMENT);
  CHECK(CodeOf(2, 13000) == GNND_DEVICE_OUT_OF_MEMORY);
  CHECK(CodeOf(801, 13000) == GNND_DEVICE_NOT_SUPPORTED);
}

TEST_CASE("what ends a process is sticky, what a call may try again is not") {
  for (const int native : {214, 226, 700, 702, 709, 710, 715, 716, 719, 999, kBrokenKernel}) {
    CHECK_MESSAGE(IsSticky(native), native);
  }
  for (const int native : {0, 1, 2, 35, 46, 100, 209, 600, 712, 801, 802, kOverBudget}) {
    CHECK_MESSAGE(!IsSticky(native), native);
  }
}

TEST_CASE("an answer has what was tried, what was said, and fits its places") {
  gnnd_device_error error{};
  Failure failure{2, Doing::kAnything, "allocating 7 bytes", "out of memory", 13000, kRuntime};
  CHECK(Tell(failure, &error) == GNND_DEVICE_OUT_OF_MEMORY);
  CHECK(std::string(error.message) == "allocating 7 bytes: out of memory (2)");
  CHECK(error.native_code == 2);
  CHECK(error.sticky == 0);
  failure.what = std::string(5000, 'x');
  Tell(failure, &error);
  CHECK(std::string(error.message).size() == sizeof error.message - 1);
  CHECK(Tell(failure, nullptr) == GNND_DEVICE_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace gnnd::cuda
