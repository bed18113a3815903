#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "test/device/support.h"

// The CUDA plug-in on a host without a driver: it loads, and says what is missing. With a driver,
// bench/gpu-check takes over.

namespace gnnd {
namespace {

const DevicePlugin* LoadCuda() {
  const std::string path = test::DevicePluginPath("cuda");
  if (!std::filesystem::exists(path)) {
    MESSAGE("SKIPPED: the CUDA plug-in (no nvcc when this was built)");
    return nullptr;
  }
  const DevicePlugin* const plugin = test::Get(DevicePlugin::Load(path));
  // A driver's files would not tell: a container may have GPUs and hide them.
  gnnd_device_system system{};
  if (plugin->table().system(&system, nullptr) == GNND_DEVICE_OK || system.driver_version != 0) {
    MESSAGE("SKIPPED: the CUDA plug-in without a driver (there is one)");
    return nullptr;
  }
  return plugin;
}

TEST_CASE("without a driver the CUDA plug-in loads, declines and says what to do") {
  const DevicePlugin* const plugin = LoadCuda();
  if (plugin == nullptr) return;
  gnnd_device_system system{};
  gnnd_device_error error{};
  CHECK(plugin->table().system(&system, &error) == GNND_DEVICE_NO_DRIVER);
  CHECK(system.driver_version == 0);
  CHECK(system.runtime_version >= 12000);
  CHECK(system.devices == 0);
  CHECK(error.sticky == 0);
  CHECK(error.native_code == 35);
  CHECK(std::string(error.remedy).find("install NVIDIA's driver") == 0);
  const auto devices = Device::List(*plugin);
  CHECK(devices.status().code() == Code::kDeviceUnavailable);
  CHECK(devices.status().message().find("cudaErrorInsufficientDriver") != std::string::npos);
}

TEST_CASE("without a driver no function of the plug-in does more than answer") {
  const DevicePlugin* const plugin = LoadCuda();
  if (plugin == nullptr) return;
  const gnnd_device_plugin& table = plugin->table();
  gnnd_device_info info{};
  gnnd_device_link link{};
  uint32_t count = 7;
  gnnd_device_error error{};
  CHECK(table.info(0, &info, &error) == GNND_DEVICE_NO_DRIVER);
  CHECK(table.link(0, 1, &link, &error) == GNND_DEVICE_NO_DRIVER);
  CHECK(table.processes(0, nullptr, 0, &count, &error) == GNND_DEVICE_NOT_SUPPORTED);
  CHECK(count == 0);
  CHECK(std::string(error.message).find("libnvidia-ml.so.1") != std::string::npos);
  CHECK(!Device::Open(*plugin, {}).ok());
}

}  // namespace
}  // namespace gnnd
