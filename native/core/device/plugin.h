#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "include/gnnd/device_plugin.h"

// The other side of include/gnnd/device_plugin.h: a shared object with devices, loaded. Executors
// and the probe do that; the daemon never.

namespace gnnd {

// Of the process's life: a device library that was loaded is not taken out again.
class DevicePlugin {
 public:
  // kPluginFailed, naming the file: it cannot be loaded, has no such symbol, or another version.
  static Result<const DevicePlugin*> Load(const std::string& path);

  // "cuda" or "sim": the file of this kind in a folder.
  static std::string FileOf(const std::string& folder, const std::string& kind);

  const gnnd_device_plugin& table() const { return *table_; }
  const std::string& path() const { return path_; }

 private:
  DevicePlugin(std::string path, const gnnd_device_plugin* table)
      : path_(std::move(path)), table_(table) {}

  std::string path_;
  const gnnd_device_plugin* table_;
};

// What a device answered, as a Status: kDeviceMemory where memory or a budget ran out, kDeviceLost
// and kDeviceFailed where the process is to end, kDeviceUnavailable else. The message ends with the
// remedy.
Status StatusOf(const gnnd_device_error& error);

}  // namespace gnnd
