#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/base/mapping.h"
#include "core/base/memfd.h"
#include "test/device/support.h"

// The table, through its RAII types, on simulated devices: accounts, checks and the pinned ring are
// the CUDA plug-in's own code.

namespace gnnd {
namespace {

using test::Check;
using test::Get;
using test::SimPlugin;

constexpr DevicePurpose kWork = DevicePurpose::kWorkspace;
constexpr uint64_t kMiB = uint64_t{1} << 20;

template <typename T>
DeviceView<const T> ConstView(const DeviceBuffer<T>& buffer) {
  return {buffer.data(), buffer.size()};
}

std::vector<uint32_t> Counted(uint64_t size) {
  std::vector<uint32_t> values(size);
  std::iota(values.begin(), values.end(), 7U);
  return values;
}

TEST_CASE("devices have names that no other has, and those that are visible are listed") {
  const SimPlugin plugin(
      SimPlugin::Environment{{"GNND_SIM_DEVICES", "3"}, {"GNND_SIM_MEMORY", "1000000"}});
  const auto devices = Get(Device::List(*plugin));
  REQUIRE(devices.size() == 3);
  CHECK(std::set<std::string>{devices[0].uuid, devices[1].uuid, devices[2].uuid}.size() == 3);
  CHECK(devices[1].total_bytes == 1'000'000);
  CHECK(devices[1].memory_kind == GNND_MEMORY_HOST);
  const SimPlugin second(
      SimPlugin::Environment{{"GNND_SIM_DEVICES", "3"}, {"GNND_SIM_VISIBLE", devices[2].uuid}});
  const auto seen = Get(Device::List(*second));
  REQUIRE(seen.size() == 1);
  CHECK(std::string(seen[0].uuid) == devices[2].uuid);
}

TEST_CASE("a host without a usable device answers why") {
  for (const auto& [native, words] : std::map<std::string, std::string>{
           {"35", "update NVIDIA's driver"}, {"100", "CUDA_VISIBLE_DEVICES"}}) {
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_SYSTEM", native}});
    const auto devices = Device::List(*plugin);
    REQUIRE(!devices.ok());
    CHECK(devices.status().code() == Code::kDeviceUnavailable);
    CHECK(devices.status().message().find(words) != std::string::npos);
  }
}

TEST_CASE("the arena keeps to its budget, by purpose, and gives back what goes") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open({.budget_bytes = 4096});
  auto topology = Get(DeviceBuffer<uint32_t>::Allocate(*device, 500, DevicePurpose::kTopology));
  {
    const auto cache = Get(DeviceBuffer<std::byte>::Allocate(*device, 1, DevicePurpose::kCache));
    const auto memory = Get(device->Memory());
    CHECK(memory.used_bytes[GNND_PURPOSE_TOPOLOGY] == 2048);
    CHECK(memory.used_bytes[GNND_PURPOSE_CACHE] == 256);
  }
  const auto refused = DeviceBuffer<std::byte>::Allocate(*device, 2049, kWork);
  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == Code::kDeviceMemory);
  CHECK(refused.status().message().find("allocating 2049 bytes, 2048 bytes of a budget of 4096") ==
        0);
  CHECK(!DeviceBuffer<uint64_t>::Allocate(*device, UINT64_MAX / 2, kWork).ok());
  const auto rest = Get(DeviceBuffer<std::byte>::Allocate(*device, 2048, kWork));
  topology = {};
  const auto memory = Get(device->Memory());
  CHECK(memory.used_bytes[GNND_PURPOSE_TOPOLOGY] == 0);
  CHECK(memory.used_bytes[GNND_PURPOSE_WORKSPACE] == 2048);
  CHECK(memory.peak_bytes == 4096);
}

TEST_CASE("two processes' budgets may exceed a device: then the device says so") {
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_MEMORY", "8192"}});
  const auto one = plugin.Open({.budget_bytes = 8192});
  const auto other = plugin.Open({.budget_bytes = 8192});
  const auto most = Get(DeviceBuffer<std::byte>::Allocate(*one, 8000, kWork));
  const auto refused = DeviceBuffer<std::byte>::Allocate(*other, 4096, kWork);
  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == Code::kDeviceMemory);
  CHECK(refused.status().message().find("nvidia-smi") != std::string::npos);
}

TEST_CASE("nothing is 0 bytes, and an empty buffer is no memory") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const auto none = Get(DeviceBuffer<uint32_t>::Allocate(*device, 0, kWork));
  CHECK(none.data() == nullptr);
  const auto stream = Get(DeviceStream::Create(*device));
  Check(stream->StageIn(none.view(), std::span<const uint32_t>()));
  Check(stream->Fill(nullptr, 0, 0));
}

TEST_CASE("staged copies are right at every size around the ring's pieces") {
  const SimPlugin plugin(SimPlugin::Environment{});
  // Eight pieces of 4 KiB.
  const auto device = plugin.Open({.staging_bytes = 8 * 4096});
  const auto stream = Get(DeviceStream::Create(*device));
  for (const uint64_t words : {1ULL, 1023ULL, 1024ULL, 1025ULL, 8ULL * 1024, 8ULL * 1024 + 1,
                               16ULL * 1024 - 1, 40ULL * 1024 + 3}) {
    const std::vector<uint32_t> values = Counted(words);
    const auto buffer = Get(DeviceBuffer<uint32_t>::Allocate(*device, words, kWork));
    Check(stream->StageIn(buffer.view(), std::span(values)));
    std::vector<uint32_t> back(words);
    Check(stream->StageOut(std::span(back), ConstView(buffer)));
    CHECK(back == values);
  }
  CHECK(Get(device->Memory()).staging_bytes == 8 * 4096);
}

TEST_CASE("asynchronous copies take registered memory alone, and name what is not") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const auto stream = Get(DeviceStream::Create(*device));
  const Mapping host = Get(Mapping::Anonymous(3 * kMiB));
  const std::span<std::byte> bytes(host.data(), host.size());
  std::fill(bytes.begin(), bytes.end(), std::byte{5});
  const auto buffer = Get(DeviceBuffer<std::byte>::Allocate(*device, 3 * kMiB, kWork));
  const Status refused = stream->CopyIn(buffer.view(), std::span<const std::byte>(bytes));
  CHECK(refused.code() == Code::kInternal);
  CHECK(refused.message().find("is not registered") != std::string::npos);

  const auto registered = Get(HostRegistration::Register(*device, bytes));
  // A GPU may see it elsewhere.
  CHECK((registered->seen() == host.data() || !test::IsHostMemory(*device)));
  CHECK(Get(device->Memory()).registered_bytes == 3 * kMiB);
  CHECK(!HostRegistration::Register(*device, bytes.subspan(4096, 4096)).ok());
  // A copy over the borders of pieces, which the simulated device has every MiB and refuses to
  // cross.
  const std::span<const std::byte> most = bytes.subspan(100, 3 * kMiB - 100);
  Check(stream->CopyIn({buffer.data(), most.size()}, most));
  std::vector<std::byte> back(most.size());
  Check(stream->StageOut(std::span(back), {buffer.data(), back.size()}));
  CHECK(std::ranges::equal(back, most));
  CHECK(!stream->CopyIn(buffer.view(), std::span<const std::byte>(host.data() + 1, 3 * kMiB)).ok());
}

TEST_CASE("memory that may only be read is refused; protecting it afterwards is not") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const UniqueFd fd = Get(CreateMemfd("gnnd-test", 2 * kPageBytes));
  const Mapping read_only = Get(Mapping::Map(fd.get(), false));
  const std::span<std::byte> unwritable(read_only.data(), read_only.size());
  if (const auto refused = HostRegistration::Register(*device, unwritable); !refused.ok()) {
    CHECK(refused.status().code() == Code::kDeviceUnavailable);
    CHECK(refused.status().message().find("pinned ring") != std::string::npos);
  } else {
    CHECK(!test::IsHostMemory(*device));  // there are GPUs that take it
  }
  CHECK(Get(device->Memory()).registered_bytes == 0);

  const Mapping writable = Get(Mapping::Map(fd.get(), true));
  const std::span<std::byte> bytes(writable.data(), writable.size());
  const auto registered = Get(HostRegistration::Register(*device, bytes));
  Check(Protect(bytes, Protection::kReadOnly));
  const auto stream = Get(DeviceStream::Create(*device));
  const auto buffer = Get(DeviceBuffer<std::byte>::Allocate(*device, bytes.size(), kWork));
  Check(stream->CopyIn(buffer.view(), std::span<const std::byte>(bytes)));
  Check(stream->Synchronize());
}

TEST_CASE("streams run in their order, and beside each other in any that events allow") {
  std::set<std::string> orders;
  for (int seed = 0; seed < 12; ++seed) {
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_SEED", std::to_string(seed)}});
    const auto device = plugin.Open();
    const auto one = Get(DeviceStream::Create(*device));
    const auto two = Get(DeviceStream::Create(*device, true));
    const auto buffer = Get(DeviceBuffer<uint8_t>::Allocate(*device, 2, kWork));
    // Which of two unordered writes is last differs; what an event orders never does.
    Check(one->Fill(buffer.data(), 1, 1));
    Check(two->Fill(buffer.data(), 2, 1));
    const auto event = Get(DeviceEvent::Create(*device));
    Check(one->Fill(buffer.data() + 1, 3, 1));
    Check(event->Record(*one));
    Check(two->Wait(*event));
    Check(two->Fill(buffer.data() + 1, 4, 1));
    Check(two->Synchronize());
    Check(one->Synchronize());
    std::vector<uint8_t> seen(2);
    Check(one->StageOut(std::span(seen), ConstView(buffer)));
    CHECK(seen[1] == 4);
    orders.insert(std::to_string(seen[0]));
  }
  CHECK(orders == std::set<std::string>{"1", "2"});
}

TEST_CASE("nothing runs before somebody waits, and a query sooner or later says yes") {
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_SEED", "1"}});
  const auto device = plugin.Open();
  const auto stream = Get(DeviceStream::Create(*device));
  const auto begin = Get(DeviceEvent::Create(*device, true));
  const auto end = Get(DeviceEvent::Create(*device, true));
  const auto buffer = Get(DeviceBuffer<uint8_t>::Allocate(*device, 16, kWork));
  CHECK(Get(begin->HasHappened()));
  Check(begin->Record(*stream));
  Check(stream->Fill(buffer.data(), 1, 16));
  Check(end->Record(*stream));
  CHECK(!end->Since(*begin).ok());
  int asked = 0;
  while (!Get(end->HasHappened())) ++asked;
  CHECK(asked == 2);
  CHECK(Get(end->Since(*begin)) < 60'000'000'000);
}

TEST_CASE("fresh memory holds no zeros, and memory that went under a copy is a fault") {
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_SEED", "1"}});
  const auto device = plugin.Open();
  const auto stream = Get(DeviceStream::Create(*device));
  auto buffer = Get(DeviceBuffer<uint8_t>::Allocate(*device, 100, kWork));
  std::vector<uint8_t> seen(100);
  Check(stream->StageOut(std::span(seen), ConstView(buffer)));
  CHECK(std::ranges::count(seen, 0) == 0);

  Check(stream->Fill(buffer.data(), 1, 100));
  buffer = {};
  const Status fault = stream->Synchronize();
  CHECK(fault.code() == Code::kDeviceFailed);
}

TEST_CASE("memory runs out at the call that the script says, and once is once") {
  const std::string once =
      std::filesystem::temp_directory_path() / ("gnnd-once-" + std::to_string(getpid()));
  for (const bool is_first : {true, false}) {
    const SimPlugin plugin(
        SimPlugin::Environment{{"GNND_SIM_FAULT", "memory:2"}, {"GNND_SIM_FAULT_ONCE", once}});
    const auto device = plugin.Open();
    const auto one = Get(DeviceBuffer<uint8_t>::Allocate(*device, 8, kWork));
    const auto two = DeviceBuffer<uint8_t>::Allocate(*device, 8, kWork);
    CHECK(two.ok() != is_first);
    if (!two.ok()) CHECK(two.status().code() == Code::kDeviceMemory);
    CHECK(DeviceBuffer<uint8_t>::Allocate(*device, 8, kWork).ok());
  }
  std::filesystem::remove(once);
}

TEST_CASE("a sticky error is answered from then on, by whatever is asked") {
  for (const auto& [fault, code] : std::map<std::string, Code>{{"launch:2", Code::kDeviceFailed},
                                                               {"lost:2", Code::kDeviceLost}}) {
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
    const auto device = plugin.Open();
    const auto stream = Get(DeviceStream::Create(*device));
    const auto event = Get(DeviceEvent::Create(*device));
    const auto buffer = Get(DeviceBuffer<uint8_t>::Allocate(*device, 8, kWork));
    Check(stream->Fill(buffer.data(), 1, 8));
    Check(stream->Synchronize());
    // Asynchronous: the call that causes it succeeds.
    Check(stream->Fill(buffer.data(), 2, 8));
    CHECK(stream->Synchronize().code() == code);
    CHECK(stream->Fill(buffer.data(), 3, 8).code() == code);
    CHECK(event->Record(*stream).code() == code);
    CHECK(device->Memory().status().code() == code);
    CHECK(DeviceBuffer<uint8_t>::Allocate(*device, 8, kWork).status().code() == code);
    gnnd_device_error error{};
    CHECK(plugin.table().stream_synchronize(stream->get(), &error) != GNND_DEVICE_OK);
    CHECK(error.sticky == 1);
    // Closing it all is still allowed.
  }
}

TEST_CASE("registering that is refused leaves nothing registered") {
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", "register:3"}});
  const auto device = plugin.Open();
  const Mapping host = Get(Mapping::Anonymous(4 * kMiB));
  const std::span<std::byte> bytes(host.data(), host.size());
  // The third of its four pieces.
  CHECK(!HostRegistration::Register(*device, bytes).ok());
  CHECK(Get(device->Memory()).registered_bytes == 0);
  CHECK(HostRegistration::Register(*device, bytes).ok());
}

TEST_CASE("what the table lacks is named, and a caller of another version is refused") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const Status lacks = device->Needs(static_cast<void (*)()>(nullptr), "attention");
  CHECK(lacks.code() == Code::kDeviceUnavailable);
  CHECK(lacks.message().find("has no kernel attention") != std::string::npos);
  const gnnd_device_config config{GNND_DEVICE_ABI_VERSION + 1, 0, 0, 0};
  gnnd_device* opened = nullptr;
  gnnd_device_error error{};
  CHECK(plugin.table().open(&config, &opened, &error) == GNND_DEVICE_BAD_ARGUMENT);
  CHECK(opened == nullptr);
  CHECK(!Device::Open(*plugin, {.index = 9999}).ok());
}

TEST_CASE("a file that is no device plug-in is refused by name") {
  const auto missing = DevicePlugin::Load("/nonexistent/gnnd_cuda.so");
  REQUIRE(!missing.ok());
  CHECK(missing.status().code() == Code::kPluginFailed);
  CHECK(missing.status().message().find("/nonexistent/gnnd_cuda.so") != std::string::npos);
}

TEST_CASE("what torch takes without asking is gone from the device, and told as taken beside us") {
  const SimPlugin plugin(
      SimPlugin::Environment{{"GNND_SIM_MEMORY", "1000000"}, {"GNND_SIM_RESERVE", "300000"}});
  const auto device = plugin.Open();
  const auto stream = Get(DeviceStream::Create(*device));
  const gnnd_device_plugin& table = plugin.table();
  gnnd_device_error error{};
  const auto beside = [&] { return Get(device->Use()).beside_bytes; };
  {
    const auto most =
        Get(DeviceBuffer<std::byte>::Allocate(*device, 800'000, DevicePurpose::kCache));
    CHECK(beside() == 0);
    // No room beside such a cache.
    CHECK(table.begin_foreign(stream->get(), &error) == GNND_DEVICE_OUT_OF_MEMORY);
  }
  CHECK(table.begin_foreign(stream->get(), &error) == GNND_DEVICE_OK);
  CHECK(beside() == 300'000);
  CHECK(table.begin_foreign(stream->get(), &error) == GNND_DEVICE_OK);
  const auto some = Get(DeviceBuffer<std::byte>::Allocate(*device, 500'000, DevicePurpose::kCache));
  CHECK(beside() == 300'000);
  CHECK(Get(device->Memory()).free_bytes < 200'000);
  CHECK(
      DeviceBuffer<std::byte>::Allocate(*device, 300'000, DevicePurpose::kCache).status().code() ==
      Code::kDeviceMemory);
}

}  // namespace
}  // namespace gnnd
