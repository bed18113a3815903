#include "train/layers/script_model.h"

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

constexpr uint32_t kMaxWidth = 1U << 18;  // as in ManifestOf

// The last line with text: TorchScript prints the error's location before it.
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

// The module, in this file because its header would bring all of TorchScript to every includer.
class Script final : public ScriptModel {
 public:
  explicit Script(const ScriptOptions& options) : options_(options) {}

  Status Read();
  void BeginBatch(const BatchKey& key) override;
  void BeginEvaluation() override;
  at::Tensor Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block) override;

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
  torch::jit::Module module_;
};

Status Script::Read() {
  const std::string bytes = GNND_VALUE(ReadFrozenFile(options_.path, options_.sha256));
  try {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    std::istringstream stream(bytes);
    module_ = torch::jit::load(stream, at::kCPU);
    GNND_TRY(CheckMembers());
    GNND_TRY(ListParameters());
    spec_.type = ModelType::kScript;
    spec_.num_layers = options_.num_layers;
    spec_.in_dim = options_.in_dim;
    spec_.out_dim = options_.out_dim;
  } catch (const std::exception& error) {
    return Failed("cannot be loaded: " + SaidBy(error));
  }
  try {
    module_.train();
    Try(false);
    if (options_.weighted) Try(true);
  } catch (const ScriptError& error) {
    return Status(Code::kPluginFailed, error.what());
  } catch (const std::exception& error) {
    return Failed("cannot be trained: " + SaidBy(error));
  }
  return Status::Ok();
}

Status Script::CheckMembers() {
  if (!module_.hasattr("num_layers") || !module_.attr("num_layers").isInt()) {
    return Failed("has no attribute num_layers: int");
  }
  const int64_t layers = module_.attr("num_layers").toInt();
  if (layers != options_.num_layers) {
    return Failed("num_layers is " + std::to_string(layers) + ", the job has " +
                  std::to_string(options_.num_layers) + " hops");
  }
  const auto method = module_.find_method("layer");
  if (!method) return Failed("has no method layer(index, x, indptr, src, weight)");
  if (method->num_inputs() != 6) {
    return Failed("its method layer takes " + std::to_string(method->num_inputs() - 1) +
                  " arguments, expected index, x, indptr, src and weight");
  }
  for (const auto& buffer : module_.named_buffers()) {
    return Failed("has a buffer, " + buffer.name +
                  ": only parameters are trained, stored and given back");
  }
  return Status::Ok();
}

Status Script::ListParameters() {
  for (const auto& parameter : module_.named_parameters()) {
    GNND_TRY(AddParameter(parameter.name, parameter.value));
  }
  if (parameters_.empty()) return Failed("has no parameters");
  initial_.assign(manifest_.num_floats, 0.0F);
  for (size_t t = 0; t < parameters_.size(); ++t) {
    const ParameterTensor& tensor = manifest_.tensors[t];
    std::copy_n(parameters_[t].const_data_ptr<float>(), tensor.size(),
                initial_.begin() + static_cast<int64_t>(tensor.offset));
  }
  return Status::Ok();
}

Status Script::AddParameter(const std::string& name, const at::Tensor& value) {
  if (value.scalar_type() != at::kFloat || !value.is_contiguous() || value.numel() == 0 ||
      value.numel() > INT32_MAX) {
    return Failed("parameter " + name + " is " + SizesOf(value) +
                  ", expected a contiguous float32 tensor");
  }
  for (const at::Tensor& other : parameters_) {
    if (other.is_alias_of(value)) return Failed("parameter " + name + " shares its memory");
  }
  ParameterTensor tensor;
  tensor.name = name;
  tensor.rows = static_cast<uint32_t>(value.numel());
  tensor.is_bias = true;
  for (const int64_t size : value.sizes()) tensor.shape.push_back(static_cast<uint32_t>(size));
  Append(std::move(tensor), &manifest_);
  parameters_.push_back(value);
  parameters_.back().requires_grad_(true);
  return Status::Ok();
}

// Runs one tiny block through a layer, forward and backward; one of its two rows has no neighbours.
at::Tensor Script::TryLayer(uint32_t layer, const at::Tensor& x, bool weighted) {
  const uint32_t indptr[] = {0, 3, 3};
  const uint32_t src[] = {2, 0, 3};
  const float weight[] = {1.0F, 0.5F, 2.0F};
  return Layer(layer, x, {indptr, src, weighted ? weight : nullptr});
}

void Script::Try(bool weighted) {
  SeedTorch(0);
  spec_.widths.clear();
  const c10::AutoGradMode with_gradients(true);
  at::Tensor x = at::ones({4, options_.in_dim});
  for (uint32_t layer = 0; layer < options_.num_layers; ++layer) {
    at::Tensor out = TryLayer(layer, x, weighted);
    const int64_t width = out.dim() == 2 ? out.size(1) : 0;
    if (width < 1 || width > kMaxWidth) {
      throw ScriptError("model " + options_.path + ": layer " + std::to_string(layer) + " gave " +
                        SizesOf(out) + ", expected [2, columns], Float");
    }
    spec_.widths.push_back(static_cast<uint32_t>(width));
    const bool last = layer + 1 == options_.num_layers;
    if (last && width != options_.out_dim) {
      throw ScriptError("model " + options_.path + ": layer " + std::to_string(layer) + " gave " +
                        std::to_string(width) + " columns, the dataset has " +
                        std::to_string(options_.out_dim) + " classes");
    }
    x = last ? out : at::cat({out, out}, 0);
  }
  const auto unused = torch::autograd::grad({x.sum()}, parameters_, {}, std::nullopt, false,
                                            /*allow_unused=*/true);
  GNND_CHECK(unused.size() == parameters_.size());
}

at::Tensor Script::Layer(uint32_t layer, const at::Tensor& x, const ScriptBlock& block) {
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
    const torch::jit::GraphOptimizerEnabledGuard as_written(false);  // for this thread
    out = module_
              .get_method("layer")({static_cast<int64_t>(layer), x, Int64Of(block.indptr, first),
                                    Int64Of(block.src, 0), weight})
              .toTensor();
  } catch (const std::exception& error) {
    throw failed(SaidBy(error));
  }
  const auto rows = static_cast<int64_t>(block.indptr.size() - 1);
  const bool known = layer < spec_.widths.size();
  if (out.dim() != 2 || out.size(0) != rows || out.scalar_type() != at::kFloat ||
      (known && out.size(1) != spec_.widths[layer])) {
    const std::string columns = known ? std::to_string(spec_.widths[layer]) : "columns";
    throw failed("gave " + SizesOf(out) + ", expected [" + std::to_string(rows) + ", " + columns +
                 "], Float");
  }
  return out;
}

void Script::BeginBatch(const BatchKey& key) {
  module_.train();
  const PhiloxWords words =
      Philox(KeyOf(key.random_seed), CounterOf(Purpose::kScript, key.epoch, key.batch, 0, 0, 0));
  SeedTorch(uint64_t{words.word[1]} << 32 | words.word[0]);
}

void Script::BeginEvaluation() {
  module_.eval();
  SeedTorch(0);
}

}  // namespace

Result<std::unique_ptr<ScriptModel>> ScriptModel::Load(const ScriptOptions& options) {
  auto script = std::make_unique<Script>(options);
  GNND_TRY(script->Read());
  return std::unique_ptr<ScriptModel>(std::move(script));
}

void ScriptModel::SetParameters(std::span<const float> values) {
  GNND_CHECK(values.size() == manifest_.num_floats);
  for (size_t t = 0; t < parameters_.size(); ++t) {
    const ParameterTensor& tensor = manifest_.tensors[t];
    std::copy_n(values.begin() + static_cast<int64_t>(tensor.offset), tensor.size(),
                static_cast<float*>(parameters_[t].mutable_data_ptr()));
  }
}

at::Tensor ScriptModel::Forward(const Sample& sample, const at::Tensor& x, const LayerTap& tap) {
  at::Tensor h = x;
  for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) {
    const BlockView block = sample.block(spec_.num_layers - 1 - layer);
    h = Layer(layer, h,
              {block.indptr, block.src, block.weight.empty() ? nullptr : block.weight.data()});
    if (tap) tap(layer, h);
  }
  return h;
}

}  // namespace gnnd
