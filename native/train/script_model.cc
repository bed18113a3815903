#include "train/script_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <utility>

#include "core/base/check.h"
#include "core/base/checked_file.h"
#include "core/draw/philox.h"

namespace gnnd {
namespace {

constexpr uint32_t kMaxWidth = 1U << 18;  // as ManifestOf's

// The last line that says something: before it TorchScript shows where it was.
std::string LastLine(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r~<^.-") != std::string::npos) last = line;
  }
  const size_t start = last.find_first_not_of(" \t");
  return start == std::string::npos ? "it gave no reason" : last.substr(start);
}

std::string SaidBy(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  return LastLine(ours == nullptr ? error.what() : ours->what_without_backtrace());
}

std::string SizesOf(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes() << ", " << tensor.scalar_type();
  return text.str();
}

at::Tensor Int64Of(std::span<const uint32_t> values, uint32_t base) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::transform(values.begin(), values.end(), tensor.data_ptr<int64_t>(),
                 [base](uint32_t value) { return static_cast<int64_t>(value - base); });
  return tensor;
}

void SeedTorch(uint64_t seed) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

class ScriptModel::Impl {
 public:
  explicit Impl(const ScriptOptions& options) : options_(options) {}

  Status Load();
  void SetParameters(std::span<const float> parameters);
  at::Tensor Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block);

  ModelSpec spec;
  ParameterManifest manifest;
  std::vector<float> initial;
  std::vector<at::Tensor> parameters;
  torch::jit::Module module;

 private:
  Status Failed(const std::string& why) const {
    return Status(Code::kPluginFailed, "model " + options_.path + ": " + why);
  }
  Status CheckMembers();
  Status ListParameters();
  Status AddParameter(const std::string& name, const at::Tensor& tensor);
  void Try(bool weighted);
  at::Tensor TryLayer(uint32_t layer, const at::Tensor& x, bool weighted);

  ScriptOptions options_;
};

Status ScriptModel::Impl::Load() {
  const Result<std::string> bytes = ReadFrozenFile(options_.path, options_.sha256);
  if (!bytes.ok()) return bytes.status();
  try {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    std::istringstream stream(*bytes);
    module = torch::jit::load(stream, at::kCPU);
    GNND_TRY(CheckMembers());
    GNND_TRY(ListParameters());
    spec.type = ModelType::kScript;
    spec.num_layers = options_.num_layers;
    spec.in_dim = options_.in_dim;
    spec.out_dim = options_.out_dim;
  } catch (const std::exception& error) {
    return Failed("cannot be loaded: " + SaidBy(error));
  }
  try {
    module.train();
    Try(false);
    if (options_.weighted) Try(true);
  } catch (const ScriptError& error) {
    return Status(Code::kPluginFailed, error.what());
  } catch (const std::exception& error) {
    return Failed("cannot be trained: " + SaidBy(error));
  }
  return Status::Ok();
}

Status ScriptModel::Impl::CheckMembers() {
  if (!module.hasattr("num_layers") || !module.attr("num_layers").isInt()) {
    return Failed("has no attribute num_layers: int");
  }
  const int64_t layers = module.attr("num_layers").toInt();
  if (layers != options_.num_layers) {
    return Failed("num_layers is " + std::to_string(layers) + ", the job has " +
                  std::to_string(options_.num_layers) + " hops");
  }
  const auto method = module.find_method("layer");
  if (!method) return Failed("has no method layer(index, x, indptr, src, weight)");
  if (method->num_inputs() != 6) {
    return Failed("its method layer takes " + std::to_string(method->num_inputs() - 1) +
                  " arguments, expected index, x, indptr, src and weight");
  }
  for (const auto& buffer : module.named_buffers()) {
    return Failed("has a buffer, " + buffer.name +
                  ": only parameters are trained, stored and given back");
  }
  return Status::Ok();
}

Status ScriptModel::Impl::ListParameters() {
  for (const auto& parameter : module.named_parameters()) {
    GNND_TRY(AddParameter(parameter.name, parameter.value));
  }
  if (parameters.empty()) return Failed("has no parameters");
  initial.assign(manifest.num_floats, 0.0F);
  for (size_t t = 0; t < parameters.size(); ++t) {
    const ParameterTensor& tensor = manifest.tensors[t];
    std::copy_n(parameters[t].const_data_ptr<float>(), tensor.size(),
                initial.begin() + static_cast<int64_t>(tensor.offset));
  }
  return Status::Ok();
}

Status ScriptModel::Impl::AddParameter(const std::string& name, const at::Tensor& value) {
  if (value.scalar_type() != at::kFloat || !value.is_contiguous() || value.numel() == 0 ||
      value.numel() > INT32_MAX) {
    return Failed("parameter " + name + " is " + SizesOf(value) +
                  ", expected a contiguous float32 tensor");
  }
  for (const at::Tensor& other : parameters) {
    if (other.is_alias_of(value)) return Failed("parameter " + name + " shares its memory");
  }
  ParameterTensor tensor;
  tensor.name = name;
  tensor.rows = static_cast<uint32_t>(value.numel());
  tensor.is_bias = true;
  for (const int64_t size : value.sizes()) tensor.shape.push_back(static_cast<uint32_t>(size));
  Append(std::move(tensor), &manifest);
  parameters.push_back(value);
  parameters.back().requires_grad_(true);
  return Status::Ok();
}

// One tiny block of each layer, forward and backward; its rows are two with neighbours, one of them
// without.
at::Tensor ScriptModel::Impl::TryLayer(uint32_t layer, const at::Tensor& x, bool weighted) {
  const uint32_t indptr[] = {0, 3, 3};
  const uint32_t src[] = {2, 0, 3};
  const float weight[] = {1.0F, 0.5F, 2.0F};
  return Layer(layer, x, {indptr, src, weighted ? weight : nullptr});
}

void ScriptModel::Impl::Try(bool weighted) {
  SeedTorch(0);
  spec.widths.clear();
  const c10::AutoGradMode with_gradients(true);
  at::Tensor x = at::ones({4, options_.in_dim});
  for (uint32_t layer = 0; layer < options_.num_layers; ++layer) {
    at::Tensor out = TryLayer(layer, x, weighted);
    const int64_t width = out.dim() == 2 ? out.size(1) : 0;
    if (width < 1 || width > kMaxWidth) {
      throw ScriptError("model " + options_.path + ": layer " + std::to_string(layer) + " gave " +
                        SizesOf(out) + ", expected [2, columns], Float");
    }
    spec.widths.push_back(static_cast<uint32_t>(width));
    const bool last = layer + 1 == options_.num_layers;
    if (last && width != options_.out_dim) {
      throw ScriptError("model " + options_.path + ": layer " + std::to_string(layer) + " gave " +
                        std::to_string(width) + " columns, the dataset has " +
                        std::to_string(options_.out_dim) + " classes");
    }
    x = last ? out : at::cat({out, out}, 0);
  }
  const auto unused = torch::autograd::grad({x.sum()}, parameters, {}, std::nullopt, false,
                                            /*allow_unused=*/true);
  GNND_CHECK(unused.size() == parameters.size());
}

void ScriptModel::Impl::SetParameters(std::span<const float> values) {
  GNND_CHECK(values.size() == manifest.num_floats);
  for (size_t t = 0; t < parameters.size(); ++t) {
    const ParameterTensor& tensor = manifest.tensors[t];
    std::copy_n(values.begin() + static_cast<int64_t>(tensor.offset), tensor.size(),
                static_cast<float*>(parameters[t].mutable_data_ptr()));
  }
}

at::Tensor ScriptModel::Impl::Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block) {
  const auto failed = [&](const std::string& why) {
    return ScriptError("model " + options_.path + ": layer " + std::to_string(layer) + ": " + why);
  };
  const uint32_t first = block.indptr.front();
  const auto edges = static_cast<int64_t>(block.src.size());
  c10::IValue weight;
  if (block.weight != nullptr) {
    weight = at::from_blob(const_cast<float*>(block.weight), {edges}, at::kFloat).clone();
  }
  at::Tensor out;
  try {
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);  // of this thread
    out = module
              .get_method("layer")({static_cast<int64_t>(layer), x, Int64Of(block.indptr, first),
                                    Int64Of(block.src, 0), weight})
              .toTensor();
  } catch (const std::exception& error) {
    throw failed(SaidBy(error));
  }
  const auto rows = static_cast<int64_t>(block.indptr.size() - 1);
  const bool known = layer < spec.widths.size();
  if (out.dim() != 2 || out.size(0) != rows || out.scalar_type() != at::kFloat ||
      (known && out.size(1) != spec.widths[layer])) {
    const std::string columns = known ? std::to_string(spec.widths[layer]) : "columns";
    throw failed("gave " + SizesOf(out) + ", expected [" + std::to_string(rows) + ", " + columns +
                 "], Float");
  }
  return out;
}

ScriptModel::ScriptModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ScriptModel::~ScriptModel() = default;

Result<std::unique_ptr<ScriptModel>> ScriptModel::Load(const ScriptOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  GNND_TRY(impl->Load());
  return std::unique_ptr<ScriptModel>(new ScriptModel(std::move(impl)));
}

const ModelSpec& ScriptModel::spec() const { return impl_->spec; }
const ParameterManifest& ScriptModel::manifest() const { return impl_->manifest; }
std::span<const float> ScriptModel::initial_parameters() const { return impl_->initial; }
std::span<const at::Tensor> ScriptModel::parameters() const { return impl_->parameters; }

void ScriptModel::SetParameters(std::span<const float> parameters) {
  impl_->SetParameters(parameters);
}

void ScriptModel::BeginBatch(const BatchKey& key) {
  impl_->module.train();
  const PhiloxWords words =
      Philox(KeyOf(key.random_seed), CounterOf(Purpose::kScript, key.epoch, key.batch, 0, 0, 0));
  SeedTorch(uint64_t{words.word[1]} << 32 | words.word[0]);
}

void ScriptModel::BeginEvaluation() {
  impl_->module.eval();
  SeedTorch(0);
}

at::Tensor ScriptModel::Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block) {
  return impl_->Layer(layer, x, block);
}

at::Tensor ScriptModel::Forward(const Sample& sample, const at::Tensor& x) {
  at::Tensor h = x;
  const uint32_t layers = impl_->spec.num_layers;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const BlockView block = sample.block(layers - 1 - layer);
    h = Layer(layer, h,
              {block.indptr, block.src, block.weight.empty() ? nullptr : block.weight.data()});
  }
  return h;
}

}  // namespace gnnd
