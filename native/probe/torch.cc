#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <sys/resource.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "probe/json.h"

// gnnd_torch_probe: prints where the libtorch of Trainers can compute, as one JSON object: its
// version, the version of CUDA that it was built for (0: none), and for each GPU that it sees
// whether a small product comes out right. It is a separate process like gnnd_probe, and apart from
// that because loading libtorch takes a second. Exits with 0 whenever there is an answer.

namespace gnnd {
namespace {

std::string AnswerOf(const std::string& code, const std::string& message) {
  return Object().Text("code", code).Text("message", message).Done();
}

// A product through cuBLAS: needs torch's kernels for this architecture, and a library that loads.
std::string Try(int index) {
  try {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
    const at::Tensor ones = at::ones({64, 64}, at::TensorOptions().device(device));
    const float sum = ones.mm(ones).sum().item<float>();
    if (sum == 64.0F * 64.0F * 64.0F) return AnswerOf("OK", "");
    return AnswerOf("FAILED", "a product of ones is " + std::to_string(sum));
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return AnswerOf("FAILED", text.substr(0, text.find('\n')));
  } catch (const std::exception& error) {
    return AnswerOf("FAILED", error.what());
  }
}

std::string Probe() {
  // Asks for the build's property, because hasCUDA() is also false if the driver shows it no GPU.
  const bool has_cuda = at::globalContext().hasCUDART();
  std::vector<std::string> devices;
  const int count = has_cuda ? torch::cuda::device_count() : 0;
  for (int index = 0; index < count; ++index) devices.push_back(Try(index));
  const long version = has_cuda ? at::globalContext().versionCUDART() : 0;
  return Object()
      .Text("torch", TORCH_VERSION)
      .Number("cuda", static_cast<uint64_t>(version))
      .Raw("devices", ListOf(devices))
      .Done();
}

}  // namespace
}  // namespace gnnd

int main() {
  const rlimit none{};
  static_cast<void>(setrlimit(RLIMIT_CORE, &none));
  std::puts(gnnd::Probe().c_str());
  return 0;
}
