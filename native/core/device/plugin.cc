#include "core/device/plugin.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

namespace gnnd {
namespace {

Status Failed(const std::string& path, const std::string& why) {
  return Status(Code::kPluginFailed, "device plug-in " + path + ": " + why);
}

Result<const gnnd_device_plugin*> TableIn(const std::string& path) {
  // Local: neither its symbols nor those of its libraries meet torch's.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const said = dlerror();
    return Failed(path, said == nullptr ? "cannot be loaded" : said);
  }
  const auto get =
      reinterpret_cast<gnnd_device_plugin_get_fn>(dlsym(handle, GNND_DEVICE_PLUGIN_SYMBOL));
  if (get == nullptr) return Failed(path, "exports no function " GNND_DEVICE_PLUGIN_SYMBOL);
  const gnnd_device_plugin* const table = get();
  if (table == nullptr) return Failed(path, GNND_DEVICE_PLUGIN_SYMBOL " returned NULL");
  if (table->abi_version != GNND_DEVICE_ABI_VERSION || table->table_bytes != sizeof *table) {
    return Failed(path, "was built for version " + std::to_string(table->abi_version) +
                            " of gnnd/device_plugin.h, this gnnd has version " +
                            std::to_string(GNND_DEVICE_ABI_VERSION) + ": build both together");
  }
  return table;
}

}  // namespace

Result<const DevicePlugin*> DevicePlugin::Load(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<DevicePlugin>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(path); found != loaded.end()) return found->second.get();
  const gnnd_device_plugin* const table = GNND_VALUE(TableIn(path));
  auto plugin = std::unique_ptr<DevicePlugin>(new DevicePlugin(path, table));
  return loaded.emplace(path, std::move(plugin)).first->second.get();
}

std::string DevicePlugin::FileOf(const std::string& folder, const std::string& kind) {
  return folder + "/gnnd_" + kind + ".so";
}

Status StatusOf(const gnnd_device_error& error) {
  std::string message = error.message;
  if (error.remedy[0] != '\0') message += "; " + std::string(error.remedy);
  switch (error.code) {
    case GNND_DEVICE_OK:
      return Status::Ok();
    case GNND_DEVICE_OVER_BUDGET:
    case GNND_DEVICE_OUT_OF_MEMORY:
      return Status(Code::kDeviceMemory, message);
    case GNND_DEVICE_LOST:
      return Status(Code::kDeviceLost, message);
    case GNND_DEVICE_BAD_ARGUMENT:
    case GNND_DEVICE_NOT_REGISTERED:
      return Status(Code::kInternal, message);
    default:
      return Status(error.sticky != 0 ? Code::kDeviceFailed : Code::kDeviceUnavailable, message);
  }
}

}  // namespace gnnd
