// Measures a device's rates beside their bounds: copies, gathers of feature rows, sampling.
//
//   device_bench PLUGIN copy|gather|sample [small|full]
//
// PLUGIN is gnnd_cuda.so, or gnnd_sim.so as a trial (small; its rates mean nothing).
//   copy    on the device, to it and from it, over registered memory
//   gather  random rows from device memory, beside the device's own copy; and from registered host
//           memory, beside the copy to the device
//   sample  uniform, 15/10/5, batches of 8,000, 2.4 M nodes, 124 M entries: edges a
//           second of the kernels alone, and with each record in its registered slot
// Prints one line of JSON per result: {"name", "value", "unit"}. Device times come from events;
// medians of rounds.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/mapping.h"
#include "core/batch/layout.h"
#include "core/device/device.h"
#include "core/kernels/row_tiers.h"
#include "core/sample/device_sampler.h"
#include "power_law_graph.h"

namespace gnnd::bench {
namespace {

constexpr int kRounds = 9;

[[noreturn]] void Fail(const Status& status) {
  std::fprintf(stderr, "device_bench: %s\n", status.message().c_str());
  std::exit(1);
}
void Check(const Status& status) {
  if (!status.ok()) Fail(status);
}
template <typename T>
T Get(Result<T> result) {
  if (!result.ok()) Fail(result.status());
  return std::move(*result);
}

void Say(const std::string& name, double value, const char* unit) {
  std::printf("{\"name\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"}\n", name.c_str(), value, unit);
  std::fflush(stdout);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Host memory that the device can read and write.
struct Registered {
  Registered(const Device& device, uint64_t bytes)
      : pages(Get(Mapping::Anonymous(RoundUp(bytes, kPageBytes)))),
        registration(Get(HostRegistration::Register(device, {pages.data(), pages.size()}))) {}

  Mapping pages;
  std::unique_ptr<HostRegistration> registration;  // ends first
};

class Bench {
 public:
  Bench(const DevicePlugin& plugin, bool is_full)
      : is_full_(is_full), device_(Get(Device::Open(plugin, {}))) {
    stream_ = Get(DeviceStream::Create(*device_));
    begin_ = Get(DeviceEvent::Create(*device_, true));
    end_ = Get(DeviceEvent::Create(*device_, true));
    std::printf("{\"name\": \"device\", \"value\": \"%s\", \"unit\": \"\"}\n",
                device_->info().name);
  }

  void Copy() {
    const uint64_t bytes = is_full_ ? uint64_t{1} << 30 : uint64_t{1} << 20;
    const auto from = Memory(bytes);
    const auto to = Memory(bytes);
    Registered host(*device_, bytes);
    const auto copied = [&](const char* name, void* target, const void* source, uint32_t way) {
      const double ns = Time([&] {
        gnnd_device_error error{};
        if (device_->table().copy(stream_->get(), target, source, bytes, way, &error) != 0) {
          Fail(StatusOf(error));
        }
      });
      Say(name, static_cast<double>(bytes) / ns, "GB/s");
    };
    copied("copy on the device, bytes read", to.data(), from.data(), GNND_COPY_ON_DEVICE);
    copied("copy to the device", to.data(), host.pages.data(), GNND_COPY_TO_DEVICE);
    copied("copy from the device", host.pages.data(), from.data(), GNND_COPY_TO_HOST);
  }

  void Gather() {
    const uint64_t table_bytes = is_full_ ? uint64_t{4} << 30 : uint64_t{1} << 20;
    for (const uint32_t row_bytes : {128U, 200U, 400U, 512U, 1024U, 4096U}) {
      const uint64_t rows = table_bytes / row_bytes;
      const uint64_t count = std::min<uint64_t>(rows, is_full_ ? 600'000 : 1'000);
      std::mt19937_64 random(7);
      std::vector<uint32_t> drawn(count);
      for (uint32_t& node : drawn) node = static_cast<uint32_t>(random() % rows);
      auto nodes =
          Get(DeviceBuffer<uint32_t>::Allocate(*device_, count, DevicePurpose::kWorkspace));
      Check(stream_->StageIn<uint32_t>(nodes.view(), drawn));
      const auto out = Memory(count * row_bytes);
      const double moved = static_cast<double>(count) * row_bytes;
      const std::string text = "rows of " + std::to_string(row_bytes) + " B";
      {
        const auto cache = Memory(table_bytes);
        gnnd_device_gather args = GatherOf(nodes.data(), count, row_bytes, out.data());
        args.ranks = nodes.data();
        AddPrefix(&args.tiers, rows, cache.data());
        const double rate = moved / Time([&] { Run(args); });
        const double limit =
            moved / Time([&] {
              gnnd_device_error error{};
              device_->table().copy(stream_->get(), out.data(), cache.data(), count * row_bytes,
                                    GNND_COPY_ON_DEVICE, &error);
            });
        Say("gather, device, " + text, rate, "GB/s");
        Say("gather, device, " + text + ", of a copy of its bytes", rate / limit, "");
      }
      const Registered host(*device_, std::min<uint64_t>(table_bytes, uint64_t{2} << 30));
      const uint64_t host_rows = host.pages.size() / row_bytes;
      for (uint32_t& node : drawn) node %= static_cast<uint32_t>(host_rows);
      Check(stream_->StageIn<uint32_t>(nodes.view(), drawn));
      gnnd_device_gather args = GatherOf(nodes.data(), count, row_bytes, out.data());
      args.tiers.by_node = host.registration->seen();
      const double rate = moved / Time([&] { Run(args); });
      const double limit = moved / Time([&] {
                             gnnd_device_error error{};
                             device_->table().copy(stream_->get(), out.data(), host.pages.data(),
                                                   count * row_bytes, GNND_COPY_TO_DEVICE, &error);
                           });
      Say("gather, host memory, " + text, rate, "GB/s");
      Say("gather, host memory, " + text + ", of a copy of its bytes", rate / limit, "");
    }
  }

  void Sample() {
    const uint32_t num_nodes = is_full_ ? 2'400'000 : 2'000;
    const uint64_t num_edges = is_full_ ? 124'000'000 : 40'000;
    const uint32_t batch_size = is_full_ ? 8'000 : 64;
    const int batches = is_full_ ? 64 : 6;
    const Graph graph = PowerLawGraph(num_nodes, num_edges);
    SamplerOptions options;
    options.fanouts = {15, 10, 5};
    const RecordLayout layout =
        Get(RecordLayout::Of(LimitsOf(num_nodes, graph.view().num_edges(), batch_size, options)));
    std::vector<uint32_t> train(num_nodes);
    for (uint32_t v = 0; v < num_nodes; ++v) train[v] = v;
    for (const bool is_registered : {true, false}) {
      const auto sampler = Get(DeviceSampler::Create(*device_, graph.view(), options, layout,
                                                     {7, train, batch_size, 2}));
      const uint64_t slot_bytes = RoundUp(layout.slot_bytes(), kPageBytes);
      const Mapping pages = Get(Mapping::Anonymous(2 * slot_bytes));
      std::unique_ptr<HostRegistration> registration;
      if (is_registered) {
        registration = Get(HostRegistration::Register(*device_, {pages.data(), 2 * slot_bytes}));
      }
      const auto slot = [&](uint32_t b) {
        return std::span<std::byte>(pages.data() + b % 2 * slot_bytes, slot_bytes);
      };
      uint64_t edges = 0;
      uint64_t kernel_ns = 0;
      uint64_t bytes = 0;
      std::chrono::steady_clock::time_point start;
      Check(sampler->Start(0, 0, slot(0)));
      for (uint32_t b = 0; b < static_cast<uint32_t>(batches); ++b) {
        // The first batches warm up.
        if (b == 2) {
          start = std::chrono::steady_clock::now();
          edges = kernel_ns = bytes = 0;
        }
        if (b + 1 < static_cast<uint32_t>(batches)) Check(sampler->Start(0, b + 1, slot(b + 1)));
        gnnd_device_sample_report report{};
        Check(sampler->Finish(&report));
        for (uint32_t h = 0; h < 3; ++h) edges += report.hops[h].num_edges;
        kernel_ns += report.sample_ns;
        bytes += report.direct_bytes + report.staged_bytes;
      }
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const std::string where = is_registered ? ", record in a registered slot" : ", staged";
      if (is_registered) {
        Say("sampling, kernels alone",
            1e9 * static_cast<double>(edges) / static_cast<double>(kernel_ns), "edges/s");
      }
      Say("sampling" + where, static_cast<double>(edges) / seconds, "edges/s");
      Say("records" + where, static_cast<double>(bytes) / seconds / 1e9, "GB/s");
    }
  }

 private:
  DeviceBuffer<std::byte> Memory(uint64_t bytes) {
    return Get(DeviceBuffer<std::byte>::Allocate(*device_, bytes, DevicePurpose::kWorkspace));
  }

  static gnnd_device_gather GatherOf(const uint32_t* nodes, uint64_t count, uint32_t row_bytes,
                                     void* out) {
    gnnd_device_gather args{};
    args.nodes = nodes;
    args.count = count;
    args.row_bytes = row_bytes;
    args.out = out;
    args.out_stride = row_bytes;
    return args;
  }

  void Run(const gnnd_device_gather& args) {
    gnnd_device_error error{};
    if (device_->table().gather(stream_->get(), &args, &error) != 0) Fail(StatusOf(error));
  }

  // Median nanoseconds of the work on the device.
  double Time(const std::function<void()>& work) {
    work();
    Check(stream_->Synchronize());
    std::vector<double> ns;
    for (int round = 0; round < kRounds; ++round) {
      Check(begin_->Record(*stream_));
      work();
      Check(end_->Record(*stream_));
      Check(end_->Synchronize());
      ns.push_back(static_cast<double>(std::max<uint64_t>(1, Get(end_->Since(*begin_)))));
    }
    return Median(std::move(ns));
  }

  bool is_full_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> begin_;
  std::unique_ptr<DeviceEvent> end_;
};

int Main(int argc, char** argv) {
  const std::string_view what = argc > 2 ? argv[2] : "";
  const std::string_view size = argc > 3 ? argv[3] : "full";
  const bool is_known = what == "copy" || what == "gather" || what == "sample";
  if (!is_known || (size != "small" && size != "full")) {
    std::fprintf(stderr, "usage: device_bench PLUGIN copy|gather|sample [small|full]\n");
    return 2;
  }
  Bench bench(*Get(DevicePlugin::Load(argv[1])), size == "full");
  if (what == "copy") bench.Copy();
  if (what == "gather") bench.Gather();
  if (what == "sample") bench.Sample();
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) { return gnnd::bench::Main(argc, argv); }
