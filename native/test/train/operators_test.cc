#include "train/ops/operators.h"

#include <ATen/Functions.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "partition.h"
#include "train/ops/ops.h"
#include "training_loop.h"

namespace gnnd {
namespace {

using test::Loop;
using test::Partition;
using test::SameBits;
using test::TestRecord;

std::map<std::string, int>& Calls() {
  static std::map<std::string, int> calls;
  return calls;
}

// A second device: the CPU's operators, counted, on memory of its own.
class CountingDevice {
 public:
  CountingDevice() {
    Calls().clear();
    device.operators = &operators_;
    device.context = this;
    device.allocate = [](void* self, uint64_t bytes) {
      void* memory = std::aligned_alloc(64, bytes);
      if (memory == nullptr) throw std::bad_alloc();
      static_cast<CountingDevice*>(self)->chunks[memory] = bytes;
      return memory;
    };
    device.release = [](void* self, void* memory, uint64_t bytes) {
      auto& held = static_cast<CountingDevice*>(self)->chunks;
      CHECK(held.at(memory) == bytes);
      held.erase(memory);
      std::free(memory);
    };
    Wrap();
  }

  bool Holds(const void* address) const {
    const auto* at = static_cast<const std::byte*>(address);
    return std::any_of(chunks.begin(), chunks.end(), [at](const auto& chunk) {
      const auto* begin = static_cast<const std::byte*>(chunk.first);
      return begin <= at && at < begin + chunk.second;
    });
  }

  TrainDevice device;
  std::map<void*, uint64_t> chunks;

 private:
  void Wrap();

  Operators operators_ = CpuOperators();
};

// An entry of a table that counts itself and then does what the CPU's does.
template <auto kEntry, typename Table, const Table& (*kTable)()>
struct Counted;

template <typename Table, typename Return, typename... Arguments,
          Return (*Table::*kEntry)(Arguments...), const Table& (*kTable)()>
struct Counted<kEntry, Table, kTable> {
  static inline const char* name = "";
  static Return Call(Arguments... arguments) {
    ++Calls()[name];
    return (kTable().*kEntry)(arguments...);
  }
  static void Into(Table* table, const char* as) {
    name = as;
    table->*kEntry = &Call;
  }
};

template <typename T>
const RowOperators<T>& CpuRowsOf() {
  return CpuOperators().rows<T>();
}
template <typename T>
const AttentionOperators<T>& CpuAttentionOf() {
  return CpuOperators().attention<T>();
}

template <typename T>
const FinishOperators<T>& CpuFinishOf() {
  return CpuOperators().finish<T>();
}

template <typename T>
void WrapRows(RowOperators<T>* table) {
  using Table = RowOperators<T>;
  Counted<&Table::sum_edges, Table, &CpuRowsOf<T>>::Into(table, "sum_edges");
  Counted<&Table::sum_floats, Table, &CpuRowsOf<T>>::Into(table, "sum_floats");
  Counted<&Table::sum_halves, Table, &CpuRowsOf<T>>::Into(table, "sum_halves");
  Counted<&Table::mean_scales, Table, &CpuRowsOf<T>>::Into(table, "mean_scales");
  Counted<&Table::scale_weights, Table, &CpuRowsOf<T>>::Into(table, "scale_weights");
  Counted<&Table::transpose, Table, &CpuRowsOf<T>>::Into(table, "transpose");
  Counted<&Table::weights, Table, &CpuRowsOf<T>>::Into(table, "weights");
  Counted<&Table::dropout, Table, &CpuRowsOf<T>>::Into(table, "dropout");
  Counted<&Table::dropout_gradient, Table, &CpuRowsOf<T>>::Into(table, "dropout_gradient");
  Counted<&Table::sum_rows, Table, &CpuRowsOf<T>>::Into(table, "sum_rows");
}

void WrapAttention(AttentionOperators<float>* table) {
  using Table = AttentionOperators<float>;
  constexpr auto kCpu = &CpuAttentionOf<float>;
  Counted<&Table::scores, Table, kCpu>::Into(table, "scores");
  Counted<&Table::pass, Table, kCpu>::Into(table, "pass");
  Counted<&Table::drop, Table, kCpu>::Into(table, "drop");
  Counted<&Table::aggregate, Table, kCpu>::Into(table, "aggregate");
  Counted<&Table::transpose, Table, kCpu>::Into(table, "transpose_edges");
  Counted<&Table::aggregate_transposed, Table, kCpu>::Into(table, "aggregate_transposed");
  Counted<&Table::backward_of_sums, Table, kCpu>::Into(table, "backward_of_sums");
  Counted<&Table::score_gradients, Table, kCpu>::Into(table, "score_gradients");
  Counted<&Table::add_outer, Table, kCpu>::Into(table, "add_outer");
  Counted<&Table::vector_gradients, Table, kCpu>::Into(table, "vector_gradients");
}

void WrapFinish(FinishOperators<float>* table) {
  using Table = FinishOperators<float>;
  constexpr auto kCpu = &CpuFinishOf<float>;
  Counted<&Table::activate, Table, kCpu>::Into(table, "activate");
  Counted<&Table::activation_gradient, Table, kCpu>::Into(table, "activation_gradient");
  Counted<&Table::layer_norm, Table, kCpu>::Into(table, "layer_norm");
  Counted<&Table::layer_norm_gradient, Table, kCpu>::Into(table, "layer_norm_gradient");
  Counted<&Table::normalize, Table, kCpu>::Into(table, "normalize");
  Counted<&Table::normalize_gradient, Table, kCpu>::Into(table, "normalize_gradient");
}

void CountingDevice::Wrap() {
  WrapRows(&operators_.of_float);
  WrapRows(&operators_.of_bfloat16);
  WrapAttention(&operators_.attention_of_float);
  WrapFinish(&operators_.finish_of_float);
  constexpr auto kCpu = &CpuOperators;
  Counted<&Operators::narrow, Operators, kCpu>::Into(&operators_, "narrow");
  Counted<&Operators::widen, Operators, kCpu>::Into(&operators_, "widen");
  Counted<&Operators::affine, Operators, kCpu>::Into(&operators_, "affine");
  Counted<&Operators::transposed_product, Operators, kCpu>::Into(&operators_, "transposed_product");
  Counted<&Operators::loss, Operators, kCpu>::Into(&operators_, "loss");
  Counted<&Operators::update, Operators, kCpu>::Into(&operators_, "update");
}

// Two steps; the last gradient and the parameters.
struct Trained {
  std::vector<float> gradient;
  std::vector<float> parameters;
  double loss = 0;
};
Trained Train(const Partition& data, const TrainOptions& options) {
  Loop loop(options);
  Trained trained;
  const bool weighted = options.model.type == ModelType::kGcn;
  for (uint32_t batch = 0; batch < 2; ++batch) {
    const TestRecord record(data.graph, {{17, 0, batch}, data.train, {5, 3}, weighted});
    trained.loss = loop.Step(record).sums.loss;
  }
  trained.gradient = loop.gradient();
  trained.parameters = loop.parameters();
  return trained;
}

TEST_CASE("the same autograd functions reach the operators of whatever device a Trainer has") {
  struct Expected {
    ModelType type;
    Precision precision;
    std::vector<const char*> called;
  };
  const std::vector<const char*> rows = {"sum_edges", "transpose",          "dropout",
                                         "affine",    "dropout_gradient",   "sum_rows",
                                         "loss",      "transposed_product", "update"};
  const auto with = [&rows](std::vector<const char*> more) {
    more.insert(more.end(), rows.begin(), rows.end());
    return more;
  };
  const std::vector<const char*> attention = {
      "pass",   "aggregate", "transpose_edges",    "aggregate_transposed",
      "affine", "loss",      "transposed_product", "update"};
  std::vector<const char*> gat = attention;
  gat.insert(gat.end(), {"scores", "score_gradients", "add_outer", "vector_gradients"});
  std::vector<const char*> gatv2 = attention;
  gatv2.insert(gatv2.end(), {"backward_of_sums"});
  const Expected cases[] = {
      {ModelType::kGraphSage, Precision::kFloat32, with({"mean_scales"})},
      {ModelType::kGraphSage, Precision::kBfloat16, with({"mean_scales", "narrow", "widen"})},
      {ModelType::kGcn, Precision::kFloat32, with({"weights"})},
      {ModelType::kGat, Precision::kFloat32, gat},
      {ModelType::kGatV2, Precision::kFloat32, gatv2},
  };
  const Partition data(600, 4, 12, 6);
  for (const Expected& it : cases) {
    INFO("model ", static_cast<int>(it.type), " precision ", static_cast<int>(it.precision));
    TrainOptions options = data.Options(it.type);
    options.precision = it.precision;
    options.model.heads = IsAttention(it.type) ? 2 : 1;
    options.model.dropout = 0.3F;
    options.model.input_dropout = 0.1F;
    const Trained on_cpu = Train(data, options);
    CountingDevice counting;
    options.operators = &counting.device;
    const Trained on_device = Train(data, options);
    for (const char* name : it.called) {
      INFO(name);
      CHECK(Calls()[name] > 0);
    }
    CHECK(Calls()["update"] == 2);
    CHECK(Calls()["loss"] == 2);
    CHECK(SameBits(on_cpu.gradient, on_device.gradient));
    CHECK(SameBits(on_cpu.parameters, on_device.parameters));
    CHECK(on_cpu.loss == on_device.loss);
    CHECK(counting.chunks.empty());  // given back with the Trainer
  }
}

TEST_CASE("what an operator leaves lies in its device's memory") {
  CountingDevice counting;
  const Partition data(200, 4, 8, 6);
  const TestRecord record(data.graph, {{17, 0, 0}, data.train, {5, 3}, false});
  const BlockView block = record.view().block(1);
  Workspace workspace(counting.device);
  at::Tensor x = EmptyIn(&workspace, at::zeros({1}), block.num_src, 8);
  x.fill_(0.5);
  x.requires_grad_(true);
  const auto [sum, self] = Aggregate(x, block, Reduction::kMean, true, &workspace);
  CHECK(counting.Holds(x.const_data_ptr()));
  CHECK(counting.Holds(sum.const_data_ptr()));
  CHECK(self.const_data_ptr() == x.const_data_ptr());
  const auto grads = torch::autograd::grad({sum}, {x}, {at::ones_like(sum)});
  CHECK(counting.Holds(grads[0].const_data_ptr()));
  CHECK(Calls()["sum_edges"] == 2);
  CHECK(Calls()["transpose"] == 1);
}

}  // namespace
}  // namespace gnnd
