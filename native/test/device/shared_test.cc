#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "core/kernels/row_tiers.h"
#include "test/device/memory.h"

// Device memory that one device's executor shares and another's reads.

namespace gnnd {
namespace {

using test::Arrays;
using test::Check;
using test::Get;
using test::SimPlugin;

constexpr uint64_t kBlock = uint64_t{2} << 20;

// Three devices of which the first two are linked, kernels late and in any order.
SimPlugin Linked(const char* seed = "1") {
  return SimPlugin(SimPlugin::Environment{{"GNND_SIM_DEVICES", "3"},
                                          {"GNND_SIM_PEERS", "0-1:NVLINK"},
                                          {"GNND_SIM_RATES", "HOST:7,NVLINK:90"},
                                          {"GNND_SIM_SEED", seed}});
}

std::vector<uint32_t> Numbers(uint32_t count, uint32_t first) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

SharedDeviceBuffer Shared(const Device& device, const std::vector<uint32_t>& words) {
  SharedDeviceBuffer buffer = Get(
      SharedDeviceBuffer::Allocate(device, words.size() * sizeof(uint32_t), DevicePurpose::kCache));
  const auto stream = Get(DeviceStream::Create(device));
  Check(
      stream->StageIn<uint32_t>({reinterpret_cast<uint32_t*>(buffer.data()), words.size()}, words));
  Check(stream->Synchronize());
  return buffer;
}

// Rows of one word each, of these ranks, as a kernel of the device reads them.
std::vector<uint32_t> SomeRows(const Device& device, const void* rows, uint32_t count) {
  Arrays arrays(device);
  const std::vector<uint32_t> ranks{99, 0, 50, 7};
  gnnd_device_gather args{};
  args.ranks = arrays.Put(ranks);
  args.count = ranks.size();
  args.row_bytes = sizeof(uint32_t);
  args.out_stride = sizeof(uint32_t);
  AddPrefix(&args.tiers, count, rows);
  auto* const out = arrays.Room<uint32_t>(ranks.size());
  args.out = out;
  arrays.Call(arrays.table().gather, args);
  return arrays.Take(out, ranks.size());
}
// Some of the numbers from 1000 on.
const std::vector<uint32_t> kSomeRows{1099, 1000, 1050, 1007};

TEST_CASE("a device's kernels read the rows that a linked one shares") {
  for (const char* const seed : {"1", "2", "3"}) {
    const SimPlugin plugin = Linked(seed);
    const auto reader = plugin.Open({.index = 0});
    const auto owner = plugin.Open({.index = 1});
    constexpr uint32_t kRows = 100;
    const SharedDeviceBuffer shared = Shared(*owner, Numbers(kRows, 1000));
    const OpenedDeviceMemory opened = Get(OpenedDeviceMemory::Open(*reader, shared.handle()));
    CHECK(opened.data() != shared.data());
    CHECK(SomeRows(*reader, opened.data(), kRows) == kSomeRows);
  }
}

// The part that one GPU can show: bench/gpu-check runs it there.
TEST_CASE("shared memory that was opened is read after its owner has released it") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto owner = plugin.Open();
  const auto reader = plugin.Open();
  constexpr uint32_t kRows = 100;
  std::optional<SharedDeviceBuffer> shared = Shared(*owner, Numbers(kRows, 1000));
  const OpenedDeviceMemory opened = Get(OpenedDeviceMemory::Open(*reader, shared->handle()));
  for (const bool is_there : {true, false}) {
    if (!is_there) shared.reset();
    CHECK(SomeRows(*reader, opened.data(), kRows) == kSomeRows);
  }
}

TEST_CASE("shared memory is counted in whole blocks, and what is opened is not") {
  const SimPlugin plugin = Linked();
  const auto reader = plugin.Open({.index = 0});
  const auto owner = plugin.Open({.index = 1, .budget_bytes = 3 * kBlock});
  const auto cached = [](const Device& device) {
    return Get(device.Memory()).used_bytes[GNND_PURPOSE_CACHE];
  };
  {
    const SharedDeviceBuffer shared = Shared(*owner, Numbers(10, 0));
    CHECK(cached(*owner) == kBlock);
    const OpenedDeviceMemory opened = Get(OpenedDeviceMemory::Open(*reader, shared.handle()));
    CHECK(cached(*reader) == 0);
    CHECK(SharedDeviceBuffer::Allocate(*owner, 2 * kBlock + 1, DevicePurpose::kCache)
              .status()
              .code() == Code::kDeviceMemory);
  }
  CHECK(cached(*owner) == 0);
}

TEST_CASE("who is gone, or not linked, cannot be opened; what was opened stays readable") {
  const SimPlugin plugin = Linked();
  const auto reader = plugin.Open({.index = 0});
  const auto stranger = plugin.Open({.index = 2});
  const auto owner = plugin.Open({.index = 1});
  std::optional<SharedDeviceBuffer> shared = Shared(*owner, Numbers(4, 5));
  const gnnd_device_handle handle = shared->handle();
  const OpenedDeviceMemory opened = Get(OpenedDeviceMemory::Open(*reader, handle));
  CHECK(OpenedDeviceMemory::Open(*stranger, handle).status().code() == Code::kDeviceUnavailable);
  shared.reset();
  CHECK(reinterpret_cast<const uint32_t*>(opened.data())[3] == 8);
  // The number of its descriptor may belong to another file by now.
  const SharedDeviceBuffer other = Shared(*owner, Numbers(4, 100));
  CHECK(OpenedDeviceMemory::Open(*reader, handle).status().code() == Code::kInternal);
  gnnd_device_error error{};
  void* memory = nullptr;
  CHECK(plugin.table().open_shared(reader->get(), &handle, &memory, &error) ==
        GNND_DEVICE_BAD_ARGUMENT);
  CHECK(error.sticky == 0);
}

// A process that shares these words of device 1, until it is killed.
class Owner {
 public:
  Owner(const SimPlugin& plugin, const std::vector<uint32_t>& words) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      const auto device = plugin.Open({.index = 1});
      const SharedDeviceBuffer shared = Shared(*device, words);
      const gnnd_device_handle& handle = shared.handle();
      if (write(ends[1], &handle, sizeof handle) != sizeof handle) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    REQUIRE(read(ends[0], &handle_, sizeof handle_) == sizeof handle_);
    close(ends[0]);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { Kill(); }

  const gnnd_device_handle& handle() const { return handle_; }
  void Stop() {
    REQUIRE(kill(pid_, SIGSTOP) == 0);
    REQUIRE(waitpid(pid_, nullptr, WUNTRACED) == pid_);  // all of its threads
  }
  // Until nothing is left of it.
  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    CHECK(waitpid(pid_, nullptr, 0) == pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  gnnd_device_handle handle_{};
};

TEST_CASE("rows of a process that is killed are read to the end, at whatever point it dies") {
  enum class Killed {
    kBeforeOpening,
    kBeforeReading,
    kWhileReading,
    kAfterReading,
    kBeforeClosing
  };
  constexpr uint32_t kRows = 1000;
  const std::vector<uint32_t> ranks{999, 0, 500, 7};
  for (const char* const seed : {"1", "2", "3"}) {
    for (const Killed killed :
         {Killed::kBeforeOpening, Killed::kBeforeReading, Killed::kWhileReading,
          Killed::kAfterReading, Killed::kBeforeClosing}) {
      CAPTURE(static_cast<int>(killed));
      const SimPlugin plugin = Linked(seed);
      Owner owner(plugin, Numbers(kRows, 1000));
      const auto at = [&](Killed point) {
        if (killed == point) owner.Kill();
      };
      const auto reader = plugin.Open({.index = 0});
      at(Killed::kBeforeOpening);
      gnnd_device_error error{};
      void* memory = nullptr;
      const uint32_t code =
          plugin.table().open_shared(reader->get(), &owner.handle(), &memory, &error);
      CHECK(code == (killed == Killed::kBeforeOpening ? GNND_DEVICE_BAD_ARGUMENT : GNND_DEVICE_OK));
      CHECK(error.sticky == 0);
      // No peer shares these rows, so the host's are read.
      const std::vector<uint32_t> host = Numbers(kRows, 1000);
      const SharedDeviceBuffer own = Shared(*reader, host);
      const void* const rows = code == GNND_DEVICE_OK ? memory : own.data();
      at(Killed::kBeforeReading);
      Arrays arrays(*reader);
      gnnd_device_gather args{};
      args.ranks = arrays.Put(ranks);
      args.count = ranks.size();
      args.row_bytes = sizeof(uint32_t);
      args.out_stride = sizeof(uint32_t);
      AddPrefix(&args.tiers, kRows, rows);
      auto* const out = arrays.Room<uint32_t>(ranks.size());
      args.out = out;
      const auto stream = Get(DeviceStream::Create(*reader));
      for (int batch = 0; batch < 3; ++batch) {
        CHECK(plugin.table().gather(stream->get(), &args, &error) == GNND_DEVICE_OK);
      }
      at(Killed::kWhileReading);
      Check(stream->Synchronize());
      at(Killed::kAfterReading);
      CHECK(arrays.Take(out, ranks.size()) == std::vector<uint32_t>{1999, 1000, 1500, 1007});
      at(Killed::kBeforeClosing);
      if (code == GNND_DEVICE_OK) plugin.table().close_shared(reader->get(), memory);
      // The device is as good as before.
      Check(DeviceStream::Create(*reader).status());
    }
  }
}

TEST_CASE("a process that is stopped keeps nobody waiting for its rows for long") {
  const SimPlugin plugin = Linked();
  Owner owner(plugin, Numbers(10, 0));
  owner.Stop();
  const auto reader = plugin.Open({.index = 0});
  CHECK(OpenedDeviceMemory::Open(*reader, owner.handle()).status().message().find("is gone") !=
        std::string::npos);
}

TEST_CASE("memory that was shared stays with its readers when it is released, and is free else") {
  const SimPlugin plugin = Linked();
  const auto reader = plugin.Open({.index = 0});
  const auto owner = plugin.Open({.index = 1});
  const uint64_t free_bytes = Get(owner->Memory()).free_bytes;
  std::optional<SharedDeviceBuffer> shared = Shared(*owner, Numbers(1000, 1));
  const OpenedDeviceMemory opened = Get(OpenedDeviceMemory::Open(*reader, shared->handle()));
  CHECK(Get(owner->Memory()).free_bytes < free_bytes);
  shared.reset();
  CHECK(Get(owner->Memory()).free_bytes == free_bytes);
  CHECK(reinterpret_cast<const uint32_t*>(opened.data())[999] == 1000);
}

TEST_CASE("what links carry is told as the script has it") {
  const SimPlugin plugin = Linked();
  uint64_t rate = 0;
  CHECK(plugin.table().link_rate(0, 1, &rate, nullptr) == GNND_DEVICE_OK);
  CHECK(rate == 90'000'000'000);
  CHECK(plugin.table().link_rate(2, GNND_HOST_MEMORY, &rate, nullptr) == GNND_DEVICE_OK);
  CHECK(rate == 7'000'000'000);
  CHECK(plugin.table().link_rate(0, 2, &rate, nullptr) == GNND_DEVICE_NOT_SUPPORTED);
}

}  // namespace
}  // namespace gnnd
