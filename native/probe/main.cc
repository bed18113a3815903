#include <sys/resource.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/device/plugin.h"
#include "probe/json.h"

// gnnd_probe FILE [--open|--rates]: prints the devices that a device plug-in finds on this host as
// one JSON object; with --rates the bytes a second that devices read of each other's memory and of
// the host's. It is a separate process, so that a driver that hangs or crashes harms nobody else.
// With --open it opens each device for a moment and registers a page: only that shows whether
// another process has it exclusively, and how much memory is free. Exits with 0 whenever there is
// an answer.

namespace gnnd {
namespace {

const char* NameOf(uint32_t code) {
  switch (code) {
    case GNND_DEVICE_OK:
      return "OK";
    case GNND_DEVICE_NO_DRIVER:
      return "NO_DRIVER";
    case GNND_DEVICE_DRIVER_TOO_OLD:
      return "DRIVER_TOO_OLD";
    case GNND_DEVICE_DRIVER_MISMATCH:
      return "DRIVER_MISMATCH";
    case GNND_DEVICE_NOT_READY:
      return "NOT_READY";
    case GNND_DEVICE_NO_DEVICE:
      return "NO_DEVICE";
    case GNND_DEVICE_UNAVAILABLE:
      return "UNAVAILABLE";
    case GNND_DEVICE_NO_KERNEL_IMAGE:
      return "NO_KERNEL_IMAGE";
    case GNND_DEVICE_OUT_OF_MEMORY:
      return "OUT_OF_MEMORY";
    case GNND_DEVICE_REGISTER_REFUSED:
      return "REGISTER_REFUSED";
    case GNND_DEVICE_LOST:
      return "LOST";
    default:
      return "FAILED";
  }
}

std::string AnswerOf(uint32_t code, const gnnd_device_error& error) {
  return Object()
      .Text("code", NameOf(code))
      .Text("message", code == GNND_DEVICE_OK ? "" : error.message)
      .Text("remedy", code == GNND_DEVICE_OK ? "" : error.remedy)
      .Done();
}

std::string ProcessesOf(const gnnd_device_plugin& table, uint32_t index) {
  std::array<gnnd_device_process, 256> processes;
  uint32_t count = 0;
  if (table.processes(index, processes.data(), processes.size(), &count, nullptr) != 0) {
    return "null";
  }
  std::vector<std::string> items;
  for (uint32_t k = 0; k < count && k < processes.size(); ++k) {
    const gnnd_device_process& process = processes[k];
    items.push_back(Object()
                        .Number("pid", process.pid)
                        .Known("bytes", process.bytes, GNND_UNKNOWN_BYTES)
                        .Done());
  }
  return ListOf(items);
}

std::string InstancesOf(const gnnd_device_plugin& table, uint32_t index) {
  std::array<gnnd_device_instance, 64> instances;
  uint32_t count = 0;
  if (table.instances(index, instances.data(), instances.size(), &count, nullptr) != 0) return "[]";
  std::vector<std::string> items;
  for (uint32_t k = 0; k < count && k < instances.size(); ++k) {
    const gnnd_device_instance& instance = instances[k];
    items.push_back(Object()
                        .Text("uuid", instance.uuid)
                        .Text("name", instance.name)
                        .Known("total_bytes", instance.total_bytes, GNND_UNKNOWN_BYTES)
                        .Done());
  }
  return ListOf(items);
}

// Opens the device, and registers a page as a slot is registered.
void TryOut(const gnnd_device_plugin& table, uint32_t index, gnnd_device_info* info,
            Object* object) {
  gnnd_device_error error{};
  gnnd_device* device = nullptr;
  const gnnd_device_config config{GNND_DEVICE_ABI_VERSION, index, 0, 0};
  const uint32_t code = table.open(&config, &device, &error);
  object->Raw("opened", AnswerOf(code, error));
  if (code != GNND_DEVICE_OK) return;
  gnnd_device_memory memory{};
  if (table.memory(device, &memory, nullptr) == GNND_DEVICE_OK) {
    info->free_bytes = memory.free_bytes;
  }
  const Result<Mapping> page = Mapping::Anonymous(kPageBytes, {.huge_pages = false});
  if (page.ok()) {
    void* seen = nullptr;
    const uint32_t registered =
        table.register_host(device, page->data(), kPageBytes, &seen, &error);
    object->Raw("registered", AnswerOf(registered, error));
    if (registered == GNND_DEVICE_OK) table.unregister_host(device, page->data(), nullptr);
  }
  table.close(device);
}

std::string DeviceOf(const gnnd_device_plugin& table, uint32_t index, bool is_opening) {
  gnnd_device_info info{};
  gnnd_device_error error{};
  Object object;
  object.Number("index", index);
  const uint32_t code = table.info(index, &info, &error);
  object.Raw("answer", AnswerOf(code, error));
  // Lists processes before this one has a context itself.
  object.Raw("processes", ProcessesOf(table, index));
  object.Raw("instances", InstancesOf(table, index));
  if (code == GNND_DEVICE_OK && is_opening) TryOut(table, index, &info, &object);
  return object.Text("name", info.name)
      .Text("uuid", info.uuid)
      .Text("pci", info.pci)
      .Number("architecture", info.architecture)
      .Number("multiprocessors", info.multiprocessors)
      .Number("total_bytes", info.total_bytes)
      .Known("free_bytes", info.free_bytes, GNND_UNKNOWN_BYTES)
      .Known("compute_mode", info.compute_mode, GNND_UNKNOWN)
      .Known("mig", info.mig, GNND_UNKNOWN)
      .Known("mps", info.mps, GNND_UNKNOWN)
      .Known("can_register", info.can_register, GNND_UNKNOWN)
      .Known("can_register_read_only", info.can_register_read_only, GNND_UNKNOWN)
      .Known("pageable_access", info.pageable_access, GNND_UNKNOWN)
      .Known("time_limit", info.time_limit, GNND_UNKNOWN)
      .Known("copy_engines", info.copy_engines, GNND_UNKNOWN)
      .Text("memory", info.memory_kind == GNND_MEMORY_HOST ? "HOST" : "DEVICE")
      .Known("numa_node", static_cast<uint32_t>(info.numa_node), GNND_UNKNOWN)
      .Done();
}

std::string LinksOf(const gnnd_device_plugin& table, uint32_t devices) {
  std::vector<std::string> links;
  for (uint32_t from = 0; from < devices; ++from) {
    for (uint32_t to = 0; to < devices; ++to) {
      gnnd_device_link link{};
      if (from == to || table.link(from, to, &link, nullptr) != GNND_DEVICE_OK) continue;
      links.push_back(Object()
                          .Number("from", from)
                          .Number("to", to)
                          .Number("access", link.access)
                          .Known("rank", link.rank, GNND_UNKNOWN)
                          .Number("atomics", link.atomics)
                          .Known("kind", link.kind, GNND_UNKNOWN)
                          .Done());
    }
  }
  return ListOf(links);
}

// Bytes a second that devices read of the host's memory and over each kind of link, measured on the
// first pair of devices that it joins.
std::string RatesOf(const gnnd_device_plugin& table, uint32_t devices) {
  constexpr const char* kNames[] = {"", "NVLINK", "PCIE", "HOST_BUS"};
  Object rates;
  std::array<bool, std::size(kNames)> known{};
  uint64_t rate = 0;
  if (devices > 0 && table.link_rate(0, GNND_HOST_MEMORY, &rate, nullptr) == GNND_DEVICE_OK) {
    rates.Number("HOST", rate);
  }
  for (uint32_t from = 0; from < devices; ++from) {
    for (uint32_t to = 0; to < devices; ++to) {
      gnnd_device_link link{};
      if (from == to || table.link(from, to, &link, nullptr) != GNND_DEVICE_OK) continue;
      if (link.access != 1 || link.kind >= known.size() || known[link.kind]) continue;
      if (table.link_rate(from, to, &rate, nullptr) != GNND_DEVICE_OK) continue;
      known[link.kind] = true;
      rates.Number(kNames[link.kind], rate);
    }
  }
  return rates.Done();
}

std::string Probe(const std::string& path, bool is_opening) {
  const Result<const DevicePlugin*> plugin = DevicePlugin::Load(path);
  if (!plugin.ok()) {
    gnnd_device_error error{};
    plugin.status().message().copy(error.message, sizeof error.message - 1);
    return Object().Raw("answer", AnswerOf(GNND_DEVICE_INTERNAL, error)).Done();
  }
  const gnnd_device_plugin& table = (*plugin)->table();
  gnnd_device_system system{};
  gnnd_device_error error{};
  const uint32_t code = table.system(&system, &error);
  std::vector<std::string> devices;
  for (uint32_t index = 0; index < system.devices; ++index) {
    devices.push_back(DeviceOf(table, index, is_opening));
  }
  return Object()
      .Raw("answer", AnswerOf(code, error))
      .Text("kind", table.name)
      .Text("build", table.build)
      .Number("driver_version", system.driver_version)
      .Number("runtime_version", system.runtime_version)
      .Text("monitor", system.monitor)
      .Raw("devices", ListOf(devices))
      .Raw("links", LinksOf(table, system.devices))
      .Done();
}

std::string Measured(const std::string& path) {
  const Result<const DevicePlugin*> plugin = DevicePlugin::Load(path);
  gnnd_device_system system{};
  if (!plugin.ok() || (*plugin)->table().system(&system, nullptr) != GNND_DEVICE_OK) return "{}";
  return RatesOf((*plugin)->table(), system.devices);
}

}  // namespace
}  // namespace gnnd

int main(int argc, char** argv) {
  const auto asks = [&](const char* flag) { return argc == 3 && std::strcmp(argv[2], flag) == 0; };
  const bool is_opening = asks("--open");
  if (argc < 2 || argc > 3 || (argc == 3 && !is_opening && !asks("--rates"))) {
    static_cast<void>(std::fputs("usage: gnnd_probe FILE [--open|--rates]\n", stderr));
    return 2;
  }
  // A driver that crashes must not leave a core file in the caller's folder.
  const rlimit none{};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));
  const bool is_measuring = argc == 3 && !is_opening;
  std::puts((is_measuring ? gnnd::Measured(argv[1]) : gnnd::Probe(argv[1], is_opening)).c_str());
  return 0;
}
