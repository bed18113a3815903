#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/device/device.h"

namespace gnnd::test {

// A plug-in that was built beside this binary.
inline std::string DevicePluginPath(const std::string& kind) {
  const auto binary = std::filesystem::read_symlink("/proc/self/exe");
  return DevicePlugin::FileOf(binary.parent_path(), kind);
}

// gnnd_sim as a process with these variables has it: a copy of the file, because a plug-in that was
// loaded stays, and reads its script once. Without any the plug-in of GNND_TEST_DEVICE, where that
// is set: what plans no fault runs on a GPU as it is (bench/gpu-check).
class SimPlugin {
 public:
  using Environment = std::map<std::string, std::string>;

  explicit SimPlugin(const Environment& environment) {
    static int count = 0;
    const char* const asked = std::getenv("GNND_TEST_DEVICE");
    if (environment.empty() && asked != nullptr && std::string(asked) != "sim") {
      plugin_ = Loaded(DevicePluginPath(asked));
      return;
    }
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    folder_ = std::filesystem::temp_directory_path() /
              ("gnnd-sim-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directory(folder_);
    const std::string copy = folder_ / "gnnd_sim.so";
    std::filesystem::copy_file(DevicePluginPath("sim"), copy);
    plugin_ = Loaded(copy);
    for (const auto& [name, value] : environment) unsetenv(name.c_str());
  }
  SimPlugin(const SimPlugin&) = delete;
  SimPlugin& operator=(const SimPlugin&) = delete;
  ~SimPlugin() {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  const DevicePlugin& operator*() const { return *plugin_; }
  const gnnd_device_plugin& table() const { return plugin_->table(); }

  std::unique_ptr<Device> Open(const Device::Options& options = {}) const {
    auto device = Device::Open(*plugin_, options);
    REQUIRE_MESSAGE(device.ok(), device.status().message());
    return std::move(*device);
  }

 private:
  static const DevicePlugin* Loaded(const std::string& path) {
    const auto loaded = DevicePlugin::Load(path);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    return *loaded;
  }

  std::filesystem::path folder_;  // of the copy; empty where there is none
  const DevicePlugin* plugin_ = nullptr;
};

// Whether matrix products are the processor's. A GPU's are cuBLAS's, in another order.
inline bool HasProcessorsProducts() {
  const char* const asked = std::getenv("GNND_TEST_DEVICE");
  return asked == nullptr || std::string(asked) == "sim";
}

// The value, or the end of the test case with the message.
template <typename T>
T Get(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  return std::move(*result);
}
inline void Check(const Status& status) { REQUIRE_MESSAGE(status.ok(), status.message()); }

}  // namespace gnnd::test
