#pragma once

#include <memory>

#include "core/device/device.h"
#include "node/tables.h"

namespace gnnd::node {

// The device that an executor works on; empty if that is the processor. It is opened before the
// segment, whose slots it registers.
struct OpenedDevice {
  std::unique_ptr<Device> device;
  Registrar own{};

  static Result<OpenedDevice> Open(const DeviceOptions& options) {
    OpenedDevice opened;
    if (options.plugin.empty()) return opened;
    const DevicePlugin* const plugin = GNND_VALUE(DevicePlugin::Load(options.plugin));
    // A process sees one device (src/devices/accelerator-environment.ts).
    opened.device = GNND_VALUE(Device::Open(*plugin, {0, options.budget_bytes}));
    opened.own = RegistrarOf(*opened.device);
    return opened;
  }

  const Registrar* registrar() const { return device == nullptr ? nullptr : &own; }
};

}  // namespace gnnd::node
