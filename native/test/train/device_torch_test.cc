#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "device_data.h"
#include "test/device/support.h"
#include "train/ops/device_operators.h"
#include "train/ops/device_stream.h"
#include "train/ops/torch_failure.h"
#include "train/ops/workspace.h"
#include "train/work/torch_work.h"

// Torch's computing on a device, and its failures there: a simulated device stands in for its
// allocator, cuBLAS and CUDA.

namespace gnnd {
namespace {

using test::Data;
using test::Get;
using test::HasProcessorsProducts;
using test::SimPlugin;

// Trains until something fails, or a hundred batches; what the device answers from then on goes to
// `after`.
Status TrainUntilItFails(const Data& data, const SimPlugin& plugin, ModelType model,
                         Status* after) {
  const auto device = plugin.Open();
  TrainOptions options = data.Options(model, false);
  options.device.device = device.get();
  const auto work = Get(TorchWork::Create(options));
  std::vector<float> parameters(work->manifest().num_floats);
  std::vector<float> gradient(parameters.size());
  work->InitParameters(parameters);
  Status status;
  for (uint64_t version = 0; status.ok() && version < 100; ++version) {
    ExtractReport extracted;
    BatchReport report;
    status = work->Extract(data.samples.front(), 0, &extracted);
    if (!status.ok()) break;
    status =
        work->ComputeGradient(data.samples.front(), 0, {version, 0, parameters}, gradient, &report);
  }
  ExtractReport extracted;
  *after = work->Extract(data.samples.front(), 1, &extracted);
  return status;
}

TEST_CASE("what torch throws on a device is told as the device's own failure") {
  Data data(23);
  data.AddSamples(false);
  struct Thrown {
    std::string fault;
    Code code;
    Code after;  // the code of later calls on the same device
    std::string says;
  };
  const std::string field = "resources.device_memory_bytes";
  const std::vector<Thrown> cases = {
      {"torch-memory", Code::kDeviceMemory, Code::kOk, field},
      {"torch-error:2", Code::kDeviceMemory, Code::kOk, field},
      {"torch-error:700", Code::kDeviceFailed, Code::kDeviceFailed, "(700)"},
      {"torch-error:719", Code::kDeviceFailed, Code::kDeviceFailed, "(719)"},
      {"torch-error:709", Code::kDeviceLost, Code::kDeviceLost, "(709)"},
      {"torch-error:209", Code::kDeviceUnavailable, Code::kOk, "(209)"},
  };
  for (const Thrown& thrown : cases) {
    // The fault hits forward and backward of the first batch, and a later batch.
    for (const char* const product : {":1", ":5", ":40"}) {
      for (const ModelType model : {ModelType::kGraphSage, ModelType::kGat}) {
        CAPTURE(thrown.fault);
        CAPTURE(product);
        const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", thrown.fault + product}});
        Status after;
        const Status status = TrainUntilItFails(data, plugin, model, &after);
        CHECK(status.code() == thrown.code);
        CHECK(status.message().find(thrown.says) != std::string::npos);
        CHECK(status.message().find("torch: CUDA error") == 0);
        CHECK(after.code() == thrown.after);
      }
    }
  }
}

// Counts what torch asks of its allocator on the processor while it lives.
class AllocationCount final : public c10::Allocator {
 public:
  AllocationCount() : before_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, 99); }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  ~AllocationCount() override { c10::SetCPUAllocator(before_, 99); }

  c10::DataPtr allocate(size_t bytes) override {
    count_ += bytes > 0 ? 1 : 0;
    return before_->allocate(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    before_->copy_data(to, from, bytes);
  }
  uint32_t count() const { return count_; }

 private:
  c10::Allocator* before_;
  uint32_t count_ = 0;
};

TEST_CASE("products as a GPU has them leave torch's bits, and lie in the workspace alone") {
  if (!HasProcessorsProducts()) return;
  const SimPlugin plugin(SimPlugin::Environment{});
  const auto device = plugin.Open();
  const auto stream =
      Get(TrainStream::Create(*device, TrainStream::Use::kCompute, DeviceOperators()));
  const c10::InferenceMode without_gradients;
  at::manual_seed(5);
  const at::Tensor weight = at::randn({5, 7});
  const at::Tensor weight_self = at::randn({7, 5}).t();  // the layout that backward passes
  const at::Tensor bias = at::randn({5});
  const std::pair<at::ScalarType, at::ScalarType> kinds[] = {
      {at::kFloat, at::kFloat}, {at::kBFloat16, at::kBFloat16}, {at::kBFloat16, at::kFloat}};
  for (const auto& [rows, sums] : kinds) {
    const at::Tensor x = at::randn({9, 7}).to(rows);
    const at::Tensor x_self = at::randn({9, 7}).to(rows);
    const at::Tensor addend = at::randn({9, 5}).to(sums);
    at::Tensor expected = x.mm(weight.to(rows).t());
    expected.addmm_(x_self, weight_self.to(rows).t());
    expected = expected.to(sums);
    expected.add_(addend);
    expected.add_(bias);
    const at::Tensor grad = at::randn({9, 5}).to(rows);
    const at::Tensor transposed = grad.t().mm(x).to(at::kFloat);
    const at::Tensor out = at::empty_like(expected);
    const at::Tensor out_transposed = at::empty_like(transposed);
    Workspace workspace(stream->train_device());
    uint32_t allocated = 0;
    {
      const AllocationCount counting;
      AffineOfTorch({x, weight, x_self, weight_self, addend, bias, out}, &workspace);
      TransposedOfTorch(grad, x, out_transposed, &workspace);
      allocated = counting.count();
    }
    // A bias of another type than the sums' is cast by a GPU's kernel as it reads it, and copied by
    // the processor's.
    if (sums == at::kFloat) CHECK(allocated == 0);
    CHECK(at::equal(out, expected));
    CHECK(at::equal(out_transposed, transposed));
    // Sums that are added to in place.
    const at::Tensor sum = addend.clone();
    AffineOfTorch({x, weight, x_self, weight_self, sum, bias, sum}, &workspace);
    CHECK(at::allclose(sum, expected, 0.0, rows == at::kFloat ? 1e-5 : 0.1));
  }
}

TEST_CASE("cuBLAS that has no memory, or works on a broken device, is told as just that") {
  const c10::SourceLocation here{"", "", 0};
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_FAULT", "launch:1"}});
  const auto device = plugin.Open({.budget_bytes = uint64_t{1} << 20});
  const auto told = [&](const char* words) {
    return StatusOfTorch(c10::Error(here, words), device.get(), Code::kInternal);
  };
  const Status handle = told("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate");
  CHECK(handle.code() == Code::kDeviceMemory);
  CHECK(handle.message().find("of a budget of 1048576 are in use") != std::string::npos);
  CHECK(told("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling").code() == Code::kDeviceMemory);
  const char* const failed = "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling";
  CHECK(told(failed).code() == Code::kInternal);
  const auto stream = Get(DeviceStream::Create(*device));
  const auto memory = Get(DeviceBuffer<float>::Allocate(*device, 8, DevicePurpose::kModel));
  static_cast<void>(stream->Fill(memory.data(), 0, memory.bytes()));
  CHECK(stream->Synchronize().code() == Code::kDeviceFailed);
  CHECK(told(failed).code() == Code::kDeviceFailed);
  CHECK(StatusOfTorch(c10::Error(here, failed), nullptr, Code::kInternal).code() ==
        Code::kInternal);
}

TEST_CASE("a GPU without a torch that has CUDA is refused with a sentence") {
  if (!HasProcessorsProducts()) return;
  const Data data(25);
  const SimPlugin plugin(SimPlugin::Environment{{"GNND_SIM_KIND", "1"}});
  const auto device = plugin.Open();
  TrainOptions options = data.Options(ModelType::kGraphSage, false);
  options.device.device = device.get();
  const Status status = TorchWork::Create(options).status();
  CHECK(status.code() == Code::kDeviceUnavailable);
  CHECK(status.message().find("built with CUDA") != std::string::npos);
}

}  // namespace
}  // namespace gnnd
