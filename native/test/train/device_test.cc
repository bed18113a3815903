#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "agree.h"
#include "core/base/mapping.h"
#include "core/kernels/row_tiers.h"
#include "core/metric/metric.h"
#include "device_data.h"
#include "test/device/support.h"
#include "test/support/block_types.h"
#include "train/device/device_extraction.h"
#include "training_loop.h"
#include "undo_torch_check.h"

// A Trainer on a simulated device beside one on the processor: extraction, forward, backward and
// losses run as kernels there, and leave the same bits.

namespace gnnd {
namespace {

using test::Agree;
using test::Data;
using test::Get;
using test::HasProcessorsProducts;
using test::kCached;
using test::kDim;
using test::kNodes;
using test::kTierRows;
using test::Loop;
using test::Rejoin;
using test::SimPlugin;
using test::TestRecord;

const std::vector<ModelType> kModels = test::DeviceBlockTypes();

// The results of training.
struct Trained {
  std::vector<std::vector<float>> gradients;
  std::vector<double> losses;
  std::vector<uint64_t> correct;
  std::vector<TierTraffic> traffic;
  uint64_t bus_rows = 0;
  uint64_t staged_rows = 0;
  uint64_t cache_rows = 0;
  std::vector<float> parameters;
};

void Step(Loop* loop, const Sample& sample, const TrainOptions& options, Trained* trained) {
  const BatchReport report = loop->Step(sample);
  trained->gradients.push_back(loop->gradient());
  trained->losses.push_back(report.sums.loss);
  trained->correct.push_back(report.sums.counts[kCorrect]);
  trained->traffic.push_back(loop->extracted().traffic);
  trained->bus_rows += loop->extracted().bus_rows;
  trained->staged_rows += loop->extracted().staged_rows;
  trained->cache_rows = loop->extracted().cache_rows;
  trained->parameters = loop->parameters();
  CHECK(loop->extracted().bus_bytes == loop->extracted().bus_rows * options.features.row_bytes());
  CHECK(report.sums.items == sample.num_seeds());
}

// Trains on a device and beside it on the processor.
std::pair<Trained, Trained> Train(const Data& data, const TrainOptions& on_device,
                                  const TrainOptions& on_cpu) {
  Trained there;
  Trained here;
  Loop device(on_device);
  Loop cpu(on_cpu);
  for (const Sample& sample : data.samples) {
    Step(&device, sample, on_device, &there);
    Step(&cpu, sample, on_cpu, &here);
    Rejoin(&device, cpu);
  }
  return {there, here};
}

void CheckSame(const Trained& device, const Trained& cpu, Precision precision) {
  // A product that is rounded to bfloat16 before what is added to it turns signs further on: with
  // torch's products on the processor in the place of a GPU's, gradients were off by up to 0.19.
  const double part = precision == Precision::kBfloat16 ? 0.3 : 1e-4;
  REQUIRE(device.gradients.size() == cpu.gradients.size());
  for (size_t i = 0; i < cpu.gradients.size(); ++i) {
    CAPTURE(i);
    CHECK(Agree(device.gradients[i], cpu.gradients[i], part));
    if (HasProcessorsProducts()) {
      CHECK(device.losses[i] == cpu.losses[i]);
      CHECK(device.correct[i] == cpu.correct[i]);
    } else {
      CHECK(device.losses[i] == doctest::Approx(cpu.losses[i]).epsilon(0.02));
    }
    CHECK(std::memcmp(&device.traffic[i], &cpu.traffic[i], sizeof(TierTraffic)) == 0);
  }
  CHECK(device.cache_rows == cpu.cache_rows);
  if (HasProcessorsProducts()) CHECK(device.parameters == cpu.parameters);
}

// Registered memory with the features' rows in an order.
struct HostRows {
  HostRows(const Device& device, const RowTable& table, std::span<const uint32_t> nodes)
      : memory(Get(Mapping::Anonymous(RoundUp(nodes.size() * table.row_bytes(), kPageBytes)))) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::memcpy(memory.data() + i * table.row_bytes(), table.row(nodes[i]), table.row_bytes());
    }
    rows = RowTable(table.type(), {memory.data(), nodes.size() * table.row_bytes()}, table.dim());
    registration = Get(HostRegistration::Register(device, std::span(memory.data(), memory.size())));
  }

  Mapping memory;
  RowTable rows;
  std::unique_ptr<HostRegistration> registration;
};

enum class Host { kStaged, kRankedStaged, kRanked, kWhole };

void CheckModel(const Data& data, const Device& device, const TrainOptions& options,
                uint64_t cached, Host host) {
  CAPTURE(static_cast<uint32_t>(options.model.type));
  CAPTURE(cached);
  CAPTURE(static_cast<int>(host));
  std::vector<uint32_t> all(kNodes);
  std::iota(all.begin(), all.end(), 0U);
  const HostRows whole(device, options.features, all);
  const HostRows ranked(device, options.features, std::span(data.order).first(kTierRows));
  TrainOptions on_cpu = options;
  on_cpu.features = whole.rows;  // near which the processor's cache finds room
  TrainOptions on_device = on_cpu;
  on_cpu.cache_rows = cached;
  on_device.device.device = &device;
  on_device.device.cache_bytes = cached * options.features.row_bytes();
  if (host == Host::kRanked || host == Host::kRankedStaged) {
    on_cpu.host_features = on_device.host_features = ranked.rows;
  }
  if (host == Host::kRanked) on_device.device.features_seen = ranked.registration->seen();
  if (host == Host::kWhole) on_device.device.features_seen = whole.registration->seen();
  const auto [device_trained, cpu_trained] = Train(data, on_device, on_cpu);
  CheckSame(device_trained, cpu_trained, options.precision);
  // How the rows came that the cache does not hold.
  const bool has_tier = host == Host::kRanked && cached < kTierRows;
  CHECK((device_trained.bus_rows > 0) == (host == Host::kWhole || has_tier));
  CHECK((device_trained.staged_rows > 0) == (host != Host::kWhole));
  const auto memory = Get(device.Memory());
  CHECK(memory.used_bytes[GNND_PURPOSE_CACHE] == 0);  // given back with the Trainer
  CHECK(memory.used_bytes[GNND_PURPOSE_WORKSPACE] == 0);
  CHECK(memory.used_bytes[GNND_PURPOSE_MODEL] == 0);
}

TEST_CASE("every model has the processor's gradients, losses and reports on a device") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const ModelType type : kModels) {
    Data data(3);
    data.AddSamples(type == ModelType::kGcn);
    const TrainOptions options = data.Options(type, false);
    CheckModel(data, *device, options, 0, Host::kStaged);
    CheckModel(data, *device, options, kCached, Host::kStaged);
  }
}

TEST_CASE("wherever features lie and whatever their type, batches are the processor's") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Data data(5);
  data.AddSamples(false);
  for (const bool is_half : {false, true}) {
    for (const Host host : {Host::kStaged, Host::kRankedStaged, Host::kRanked, Host::kWhole}) {
      TrainOptions options = data.Options(ModelType::kGraphSage, is_half);
      CheckModel(data, *device, options, kCached, host);
      options.model.input_dropout = 0.3F;  // rows are gathered, never aggregated as they are
      CheckModel(data, *device, options, 0, host);
    }
  }
  // A cache beyond the host's tier, and one that holds everything.
  CheckModel(data, *device, data.Options(ModelType::kGatV2, false), kTierRows + 20, Host::kRanked);
  CheckModel(data, *device, data.Options(ModelType::kPinSage, true), kNodes, Host::kStaged);
}

TEST_CASE("labels, numbers and weighted classes are learnt with the processor's bits") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Data data(9);
  data.AddSamples(false);
  std::vector<uint8_t> bits;
  std::vector<float> numbers;
  for (uint32_t i = 0; i < kNodes * 4; ++i) {
    bits.push_back(i % 11 == 5 ? kUnknownLabel : static_cast<uint8_t>(i % 3 == 0));
    numbers.push_back(i % 7 == 2 ? std::nanf("") : static_cast<float>(i % 13));
  }
  const std::vector<float> weights = {2, 0.5F, 1, 3};
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  options.targets.weights = weights;
  CheckModel(data, *device, options, kCached, Host::kStaged);
  options.targets = {.task = Task::kMultiLabel, .width = 4, .label_bits = bits, .weights = weights};
  CheckModel(data, *device, options, kCached, Host::kStaged);
  options.targets = {.task = Task::kRegression, .width = 4, .values = numbers};
  CheckModel(data, *device, options, kCached, Host::kStaged);
}

TEST_CASE("whatever follows and joins layers has the processor's bits") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  Data data(7);
  data.AddSamples(true);  // with weights, means are weighted
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGat}) {
    for (const Activation activation :
         {Activation::kRelu, Activation::kElu, Activation::kLeakyRelu}) {
      for (const Normalization normalization :
           {Normalization::kNone, Normalization::kL2, Normalization::kLayer}) {
        CAPTURE(static_cast<uint32_t>(activation));
        CAPTURE(static_cast<uint32_t>(normalization));
        TrainOptions options = data.Options(type, false);
        options.model.activation = activation;
        options.model.normalization = normalization;
        options.model.residual = activation == Activation::kElu;
        CheckModel(data, *device, options, kCached, Host::kStaged);
      }
    }
  }
}

TEST_CASE("in bfloat16, too, a device has the processor's bits where it has its products") {
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const ModelType type : kModels) {
    Data data(9);
    data.AddSamples(type == ModelType::kGcn);
    for (const bool is_half : {false, true}) {
      TrainOptions options = data.Options(type, is_half);
      options.precision = Precision::kBfloat16;
      CheckModel(data, *device, options, kCached, Host::kStaged);
    }
  }
}

TEST_CASE("blocks that share their rows are copied once and stay what they are") {
  Data data(11);
  const TestRecord record(data.partition.graph, {{17, 0, 0}, {1, 2, 3, 60}, {3, 3}, false});
  const Sample whole = record.view();
  // Both blocks lie within one matrix: the first is a prefix of it.
  const BlockView last = whole.block(1);
  BlockView first = last;
  first.num_dst = whole.block(0).num_dst;
  first.num_src = last.num_dst;
  first.indptr = last.indptr.first(first.num_dst + 1);
  first.src = last.src.first(first.indptr.back());
  // Sources of the prefix are all within its own rows, or it would be no block.
  std::vector<uint32_t> src(last.src.begin(), last.src.end());
  for (uint32_t e = 0; e < first.src.size(); ++e) src[e] %= first.num_src;
  first.src = std::span<const uint32_t>(src).first(first.src.size());
  BlockView second = last;
  second.src = src;
  Sample shared(whole.kind(), whole.key());
  shared.AddNodes(whole.nodes(), whole.num_seeds(), {});
  shared.AddBlock(first);
  shared.AddBlock(second);
  shared.SetSharesRows(true);
  data.samples.push_back(shared);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGatV2}) {
    CheckModel(data, *device, data.Options(type, false), 0, Host::kStaged);
  }
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  options.device.device = device.get();
  const auto work = Get(TorchWork::Create(options));
  const uint64_t before = Get(device->Memory()).copied_in_bytes;
  ExtractReport report;
  REQUIRE(work->Extract(shared, 0, &report).ok());
  // Nodes, one matrix, labels; rows that the host gathers.
  const uint64_t words = shared.nodes().size() + second.indptr.size() + second.src.size() +
                         shared.num_seeds() + shared.nodes().size() * kDim;
  CHECK(Get(device->Memory()).copied_in_bytes - before == words * sizeof(uint32_t));
}

TEST_CASE("a record in a registered slot leaves what one in any memory does") {
  const SimPlugin plugin = SimPlugin::InOrder(3);
  const auto device = plugin.Open();
  Data data(12);
  const TestRecord record(data.partition.graph, {{17, 0, 0}, {1, 2, 3, 60}, {3, 3}, true});
  const std::span<const std::byte> bytes = record.bytes();
  const Mapping slot = Get(Mapping::Anonymous(RoundUp(bytes.size(), kPageBytes)));
  std::copy(bytes.begin(), bytes.end(), slot.data());
  const auto registered =
      Get(HostRegistration::Register(*device, std::span(slot.data(), slot.size())));
  data.samples.push_back(Get(OpenRecord(std::span(slot.data(), slot.size()))));
  for (const ModelType type : {ModelType::kGcn, ModelType::kGat}) {
    CheckModel(data, *device, data.Options(type, false), kCached, Host::kStaged);
  }
}

TEST_CASE("extraction beside training leaves the same, in any order that streams allow") {
  Data data(13);
  data.AddSamples(false);
  std::vector<const Sample*> samples;
  for (const Sample& sample : data.samples) samples.push_back(&sample);
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  Loop on_cpu(options);
  on_cpu.StepAhead(samples);
  for (int seed = 0; seed < 4; ++seed) {
    const SimPlugin plugin = SimPlugin::InOrder(seed);
    const auto device = plugin.Open();
    options.device.device = device.get();
    options.device.cache_bytes = 256 * 20;
    Loop on_device(options);
    on_device.StepAhead(samples);
    CHECK(Agree(on_device.parameters(), on_cpu.parameters(), 1e-2));
  }
}

TEST_CASE("rows that wait for the bus leave multiprocessors to training, rows of devices do not") {
  const std::vector<std::byte> kept(64);
  const std::vector<std::byte> host(64);
  gnnd_device_gather all{};
  all.count = 100;
  AddPrefix(&all.tiers, 4, kept.data());
  AddPrefix(&all.tiers, 9, host.data());
  all.tiers.by_node = host.data();
  const uint32_t positions[] = {3, 9};

  const auto both = GathersOf(all, /*host_place=*/1, /*kept_rows=*/98, /*bus_rows=*/2, positions);
  REQUIRE(both.size() == 2);
  CHECK(both[0].blocks == 0);
  CHECK(both[0].count == 100);
  CHECK(SpotOf(both[0].tiers, 3).index == 0);
  CHECK(SpotOf(both[0].tiers, 8).index == kNoSpot);
  CHECK(both[0].tiers.by_node == nullptr);
  CHECK(both[1].blocks >= 16);
  CHECK(both[1].blocks <= 32);
  CHECK(both[1].count == 2);
  CHECK(both[1].positions == positions);
  CHECK(SpotOf(both[1].tiers, 8).index == 1);

  const auto none_over_bus = GathersOf(all, 1, 100, 0, nullptr);
  REQUIRE(none_over_bus.size() == 1);
  CHECK(none_over_bus[0].blocks == 0);
  const auto none_kept = GathersOf(all, 1, 0, 100, nullptr);
  REQUIRE(none_kept.size() == 1);
  CHECK(none_kept[0].blocks > 0);
  CHECK(none_kept[0].positions == nullptr);
}

TEST_CASE("parameters are copied to a device when they are new, gradients from it always") {
  Data data(15);
  data.AddSamples(false);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  options.device.device = device.get();
  const auto work = Get(TorchWork::Create(options));
  std::vector<float> parameters(work->manifest().num_floats);
  std::vector<float> gradient(parameters.size());
  work->InitParameters(parameters);
  const uint64_t bytes = parameters.size() * sizeof(float);
  const Sample& sample = data.samples.front();
  ExtractReport extracted;
  REQUIRE(work->Extract(sample, 0, &extracted).ok());
  const auto compute = [&](uint64_t version, uint64_t lag) {
    const auto before = Get(device->Memory());
    BatchReport report;
    REQUIRE(work->ComputeGradient(sample, 0, {version, lag, parameters}, gradient, &report).ok());
    const auto after = Get(device->Memory());
    CHECK(after.copied_out_bytes - before.copied_out_bytes >= bytes);
    return after.copied_in_bytes - before.copied_in_bytes;
  };
  CHECK(compute(4, 0) == bytes);
  CHECK(compute(4, 0) == 0);
  CHECK(compute(4, 1) == bytes);
  CHECK(compute(5, 1) == bytes);
  CHECK(compute(5, 1) == 0);
}

TEST_CASE("what is over a device's budget ends with its sizes, and all memory comes back") {
  Data data(17);
  data.AddSamples(false);
  const SimPlugin plugin(SimPlugin::Environment{});
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  const auto ends = [&](uint64_t budget, uint64_t cache) {
    const auto device = plugin.Open({.budget_bytes = budget});
    options.device = DeviceOptions();
    options.device.device = device.get();
    options.device.cache_bytes = cache;
    Status status;
    {
      const auto work = TorchWork::Create(options);
      status = work.status();
      if (work.ok()) {
        std::vector<float> parameters((*work)->manifest().num_floats);
        std::vector<float> gradient(parameters.size());
        ExtractReport extracted;
        BatchReport report;
        status = (*work)->Extract(data.samples.front(), 0, &extracted);
        if (status.ok()) {
          status = (*work)->ComputeGradient(data.samples.front(), 0, {0, 0, parameters}, gradient,
                                            &report);
        }
      }
    }
    CHECK(status.code() == Code::kDeviceMemory);
    CHECK(status.message().find("of a budget of " + std::to_string(budget)) != std::string::npos);
    const auto memory = Get(device->Memory());
    for (const uint64_t used : memory.used_bytes) CHECK(used == 0);
  };
  ends(uint64_t{1} << 20, uint64_t{1} << 21);  // a cache of all nodes fits, no workspace does
  ends(8192, uint64_t{1} << 21);               // nor does the cache
  ends(4096, 0);                               // nor do parameters
  ends(uint64_t{3} << 20, 0);                  // one workspace does, the second does not
}

TEST_CASE("a device that is lost or faults in mid-epoch says so, at once and from then on") {
  Data data(19);
  data.AddSamples(false);
  for (const auto& [fault, code] : std::vector<std::pair<std::string, Code>>{
           {"lost:90", Code::kDeviceLost}, {"launch:90", Code::kDeviceFailed}}) {
    const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", fault}});
    const auto device = plugin.Open();
    TrainOptions options = data.Options(ModelType::kGat, false);
    options.device.device = device.get();
    const auto work = Get(TorchWork::Create(options));
    std::vector<float> parameters(work->manifest().num_floats);
    std::vector<float> gradient(parameters.size());
    work->InitParameters(parameters);
    Status status;
    uint64_t version = 0;
    while (status.ok() && version < 100) {
      ExtractReport extracted;
      BatchReport report;
      status = work->Extract(data.samples.front(), 0, &extracted);
      if (!status.ok()) break;
      status = work->ComputeGradient(data.samples.front(), 0, {version++, 0, parameters}, gradient,
                                     &report);
    }
    CHECK(status.code() == code);
    ExtractReport extracted;
    CHECK(work->Extract(data.samples.front(), 1, &extracted).code() == code);
  }
}

TEST_CASE("what a device cannot train is refused before it begins") {
  Data data(21);
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  options.device.device = device.get();
  options.cache_rows = 10;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
  options.cache_rows = 0;
  std::vector<uint32_t> beyond = {kNodes};
  options.hot_order = beyond;
  options.device.cache_bytes = 4096;
  CHECK(TorchWork::Create(options).status().code() == Code::kInvalidArgument);
}

}  // namespace
}  // namespace gnnd
