#include "core/device/device.h"

namespace gnnd {
namespace {

// One call of the table, whose last argument is where errors go.
template <typename Function, typename... Arguments>
Status Call(Function* function, Arguments... arguments) {
  gnnd_device_error error{};
  return function(arguments..., &error) == GNND_DEVICE_OK ? Status::Ok() : StatusOf(error);
}

Status Add(void* context, std::span<std::byte> pages, std::byte** seen) {
  const auto& device = *static_cast<const Device*>(context);
  void* at = nullptr;
  GNND_TRY(Call(device.table().register_host, device.get(), static_cast<void*>(pages.data()),
                static_cast<uint64_t>(pages.size()), &at));
  *seen = static_cast<std::byte*>(at);
  return Status::Ok();
}

void Remove(void* context, std::span<std::byte> pages) {
  const auto& device = *static_cast<const Device*>(context);
  static_cast<void>(device.table().unregister_host(device.get(), pages.data(), nullptr));
}

}  // namespace

Result<std::vector<gnnd_device_info>> Device::List(const DevicePlugin& plugin) {
  gnnd_device_system system{};
  GNND_TRY(Call(plugin.table().system, &system));
  std::vector<gnnd_device_info> devices(system.devices);
  for (uint32_t index = 0; index < system.devices; ++index) {
    GNND_TRY(Call(plugin.table().info, index, &devices[index]));
  }
  return devices;
}

Result<std::unique_ptr<Device>> Device::Open(const DevicePlugin& plugin, const Options& options) {
  gnnd_device_info info{};
  GNND_TRY(Call(plugin.table().info, options.index, &info));
  const gnnd_device_config config{GNND_DEVICE_ABI_VERSION, options.index, options.budget_bytes,
                                  options.staging_bytes};
  gnnd_device* device = nullptr;
  GNND_TRY(Call(plugin.table().open, &config, &device));
  return std::unique_ptr<Device>(new Device(plugin, device, info));
}

Result<DeviceUse> Device::Use() const {
  const gnnd_device_memory memory = GNND_VALUE(Memory());
  const uint64_t* const used = memory.used_bytes;
  return DeviceUse{used[GNND_PURPOSE_TOPOLOGY],  used[GNND_PURPOSE_CACHE],
                   used[GNND_PURPOSE_WORKSPACE], used[GNND_PURPOSE_MODEL],
                   memory.copied_in_bytes,       memory.copied_out_bytes,
                   memory.registered_bytes,      memory.beside_bytes};
}

Result<gnnd_device_memory> Device::Memory() const {
  gnnd_device_memory memory{};
  GNND_TRY(Call(table().memory, device_, &memory));
  return memory;
}

std::string Device::kind() const {
  return std::string(table().name) + " " + std::to_string(info_.architecture) + "/" +
         std::to_string(info_.multiprocessors) + (info_.mig == 1 ? " MIG " : " ") + table().build;
}

Result<SharedDeviceBuffer> SharedDeviceBuffer::Allocate(const Device& device, uint64_t bytes,
                                                        DevicePurpose purpose) {
  SharedDeviceBuffer buffer;
  void* memory = nullptr;
  GNND_TRY(Call(device.table().allocate_shared, device.get(), bytes, static_cast<uint32_t>(purpose),
                &memory, &buffer.handle_));
  buffer.device_ = &device;
  buffer.data_ = static_cast<std::byte*>(memory);
  return buffer;
}

SharedDeviceBuffer::~SharedDeviceBuffer() {
  if (device_ != nullptr) device_->table().release(device_->get(), data_);
}

Result<OpenedDeviceMemory> OpenedDeviceMemory::Open(const Device& device,
                                                    const gnnd_device_handle& handle) {
  OpenedDeviceMemory opened;
  void* memory = nullptr;
  GNND_TRY(Call(device.table().open_shared, device.get(), &handle, &memory));
  opened.device_ = &device;
  opened.data_ = static_cast<std::byte*>(memory);
  return opened;
}

OpenedDeviceMemory::~OpenedDeviceMemory() {
  if (device_ != nullptr) device_->table().close_shared(device_->get(), data_);
}

Result<std::unique_ptr<DeviceStream>> DeviceStream::Create(const Device& device, bool is_high) {
  gnnd_device_stream* stream = nullptr;
  const uint32_t priority = is_high ? GNND_PRIORITY_HIGH : GNND_PRIORITY_NORMAL;
  GNND_TRY(Call(device.table().stream_create, device.get(), priority, &stream));
  return std::unique_ptr<DeviceStream>(new DeviceStream(device, stream));
}

Result<std::unique_ptr<DeviceStream>> DeviceStream::Adopt(const Device& device,
                                                          void* native_stream) {
  gnnd_device_stream* stream = nullptr;
  GNND_TRY(Call(device.table().stream_adopt, device.get(), native_stream, &stream));
  return std::unique_ptr<DeviceStream>(new DeviceStream(device, stream));
}

Status DeviceStream::Synchronize() { return Call(device_.table().stream_synchronize, stream_); }

Status DeviceStream::Wait(const DeviceEvent& event) {
  return Call(device_.table().stream_wait, stream_, event.get());
}

Status DeviceStream::Copy(void* to, const void* from, uint64_t bytes, uint32_t direction) {
  return Call(device_.table().copy, stream_, to, from, bytes, direction);
}

Status DeviceStream::Stage(void* to, const void* from, uint64_t bytes, uint32_t direction) {
  return Call(device_.table().copy_staged, stream_, to, from, bytes, direction);
}

Status DeviceStream::Fill(void* to, uint8_t byte, uint64_t bytes) {
  return Call(device_.table().fill, stream_, to, byte, bytes);
}

Result<std::unique_ptr<DeviceEvent>> DeviceEvent::Create(const Device& device, bool is_timed) {
  gnnd_device_event* event = nullptr;
  GNND_TRY(Call(device.table().event_create, device.get(), is_timed ? 1U : 0U, &event));
  return std::unique_ptr<DeviceEvent>(new DeviceEvent(device, event));
}

Status DeviceEvent::Record(DeviceStream& stream) {
  return Call(device_.table().event_record, event_, stream.get());
}

Result<bool> DeviceEvent::HasHappened() {
  gnnd_device_error error{};
  const uint32_t code = device_.table().event_query(event_, &error);
  if (code == GNND_DEVICE_OK || code == GNND_DEVICE_UNFINISHED) return code == GNND_DEVICE_OK;
  return StatusOf(error);
}

Status DeviceEvent::Synchronize() { return Call(device_.table().event_synchronize, event_); }

Result<uint64_t> DeviceEvent::Since(const DeviceEvent& begin) {
  uint64_t ns = 0;
  GNND_TRY(Call(device_.table().event_elapsed, begin.get(), event_, &ns));
  return ns;
}

Result<std::unique_ptr<HostRegistration>> HostRegistration::Register(const Device& device,
                                                                     std::span<std::byte> memory) {
  void* seen = nullptr;
  GNND_TRY(Call(device.table().register_host, device.get(), static_cast<void*>(memory.data()),
                uint64_t{memory.size()}, &seen));
  return std::unique_ptr<HostRegistration>(
      new HostRegistration(device, memory, static_cast<std::byte*>(seen)));
}

Registrar RegistrarOf(const Device& device) { return {const_cast<Device*>(&device), Add, Remove}; }

}  // namespace gnnd
