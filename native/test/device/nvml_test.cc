#include "cuda/runtime/nvml.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "include/gnnd/device_plugin.h"
#include "test/device/support.h"

// Questions to NVML, answered by a library in its place (fake_nvml.cc).

namespace gnnd::cuda {
namespace {

constexpr const char* kPci = "0000:17:00.0";

std::string FakeNvml() { return test::BesideBinary("gnnd_fake_nvml.so"); }

TEST_CASE("the instances of a GPU are all those that there are") {
  Nvml nvml(FakeNvml().c_str());
  REQUIRE(nvml.problem().empty());
  std::vector<MigInstance> found;
  REQUIRE(nvml.Instances(kPci, &found));
  REQUIRE(found.size() == 2);
  CHECK(found[0].uuid == "MIG-00000001");
  CHECK(found[0].name == "A GPU MIG 1g.10gb");
  CHECK(found[0].total_bytes == 10'000);
  CHECK(found[1].uuid == "MIG-00000003");
  CHECK(found[1].total_bytes == ~uint64_t{0});
  bool is_on = false;
  CHECK(nvml.IsMigOn(kPci, &is_on));
  CHECK(is_on);
}

TEST_CASE("a GPU that is not split has no instances, one that is unknown no answer") {
  setenv("FAKE_NVML", "off", 1);
  Nvml nvml(FakeNvml().c_str());
  std::vector<MigInstance> found(1);
  CHECK(nvml.Instances(kPci, &found));
  CHECK(found.empty());
  unsetenv("FAKE_NVML");
  CHECK_FALSE(nvml.Instances("none", &found));
}

TEST_CASE("what lies between two GPUs is NVLink, PCIe, or the bridge between the host's nodes") {
  Nvml nvml(FakeNvml().c_str());
  const auto kind_to = [&](const char* other) {
    uint32_t kind = 0;
    REQUIRE(nvml.LinkKind(kPci, other, &kind));
    return kind;
  };
  CHECK(kind_to("0100:65:00.0") == GNND_LINK_NVLINK);
  CHECK(kind_to("0200:65:00.0") == GNND_LINK_PCIE);
  CHECK(kind_to("0300:65:00.0") == GNND_LINK_HOST_BUS);
  uint32_t kind = 0;
  CHECK_FALSE(nvml.LinkKind(kPci, "none", &kind));
}

TEST_CASE("without NVML nothing is known, and it is said why") {
  Nvml nvml("libgnnd-no-such-library.so");
  CHECK(nvml.problem().find("libgnnd-no-such-library.so") != std::string::npos);
  std::vector<MigInstance> found;
  CHECK_FALSE(nvml.Instances(kPci, &found));
}

}  // namespace
}  // namespace gnnd::cuda
