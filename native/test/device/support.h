#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/device/device.h"

namespace gnnd::test {

// A file that was built beside this binary.
inline std::filesystem::path BesideBinary(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

// A plug-in that was.
inline std::string DevicePluginPath(const std::string& kind) {
  return DevicePlugin::FileOf(BesideBinary(""), kind);
}

// gnnd_sim as a process with these variables has it: a copy of the file, because a plug-in that was
// loaded stays, and reads its script once. Without any the plug-in that GNND_TEST_DEVICE names by
// its path, where that is set: what assumes no simulated device runs on a GPU as it is
// (bench/gpu-check).
class SimPlugin {
 public:
  using Environment = std::map<std::string, std::string>;

  explicit SimPlugin(const Environment& environment) {
    const char* const asked = std::getenv("GNND_TEST_DEVICE");
    if (environment.empty() && asked != nullptr) {
      plugin_ = Loaded(asked);
    } else {
      Simulate(environment);
    }
  }
  // Streams run in the order of this number; those of a GPU in its own.
  static SimPlugin InOrder(uint64_t seed) {
    if (std::getenv("GNND_TEST_DEVICE") != nullptr) return SimPlugin(Environment{});
    return SimPlugin(Environment{{"GNND_SIM_SEED", std::to_string(seed)}});
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
  void Simulate(const Environment& environment) {
    static int count = 0;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    folder_ = std::filesystem::temp_directory_path() /
              ("gnnd-sim-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directory(folder_);
    const std::string copy = folder_ / "gnnd_sim.so";
    std::filesystem::copy_file(DevicePluginPath("sim"), copy);
    plugin_ = Loaded(copy);
    for (const auto& [name, value] : environment) unsetenv(name.c_str());
  }
  static const DevicePlugin* Loaded(const std::string& path) {
    const auto loaded = DevicePlugin::Load(path);
    REQUIRE_MESSAGE(loaded.ok(), loaded.status().message());
    return *loaded;
  }

  std::filesystem::path folder_;  // folder of the copy; empty if there is none
  const DevicePlugin* plugin_ = nullptr;
};

// Whether the processor may follow pointers to a device's memory. Matrix products are the
// processor's there; a GPU's are cuBLAS's, in another order.
inline bool IsHostMemory(const Device& device) {
  return device.info().memory_kind == GNND_MEMORY_HOST;
}
inline bool HasProcessorsProducts() {
  static const bool has = [] {
    const char* const products = std::getenv("GNND_SIM_PRODUCTS");
    if (products != nullptr && std::string(products) == "TORCH") return false;
    return IsHostMemory(*SimPlugin(SimPlugin::Environment{}).Open());
  }();
  return has;
}

// The value, or the end of the test case with the message.
template <typename T>
T Get(Result<T> result) {
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  return std::move(*result);
}
inline void Check(const Status& status) { REQUIRE_MESSAGE(status.ok(), status.message()); }

}  // namespace gnnd::test
