#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "include/gnnd/device_plugin.h"

// The host's side of include/gnnd/device_plugin.h: a loaded shared object with devices. Executors
// and the probe load plug-ins; the daemon never does.

namespace gnnd {

// Lives as long as the process: a loaded device library is never unloaded.
class DevicePlugin {
 public:
  // kPluginFailed names a file that cannot be loaded, lacks the symbol, or has another version.
  static Result<const DevicePlugin*> Load(const std::string& path);

  // The path of the plug-in of `kind`, "cuda" or "sim", in a folder.
  static std::string FileOf(const std::string& folder, const std::string& kind);

  const gnnd_device_plugin& table() const { return *table_; }
  const std::string& path() const { return path_; }

 private:
  DevicePlugin(std::string path, const gnnd_device_plugin* table)
      : path_(std::move(path)), table_(table) {}

  std::string path_;
  const gnnd_device_plugin* table_;
};

// A device's error as a Status: kDeviceMemory if memory or a budget ran out, kDeviceLost or
// kDeviceFailed if the process has to end, otherwise kDeviceUnavailable. The message ends with the
// remedy.
Status StatusOf(const gnnd_device_error& error);

}  // namespace gnnd
