#include <torch/script.h>

// Torch has a macro of this name, and so has doctest.
#undef CHECK

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/sha256.h"
#include "evaluate.h"
#include "partition.h"
#include "test/support/record_builder.h"
#include "train/layers/script_model.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

using test::Partition;
using test::TestRecord;

// GraphSAGE with means, as docs/formats/checkpoint.md has it, in TorchScript.
const std::string kSage = R"(
def layer(self, index: int, x: Tensor, indptr: Tensor, src: Tensor,
          weight: Optional[Tensor]) -> Tensor:
    rows = indptr.numel() - 1
    dst = torch.repeat_interleave(torch.arange(rows), indptr[1:] - indptr[:-1])
    w = torch.ones(src.numel()) if weight is None else weight
    total = torch.zeros(rows).index_add(0, dst, w).clamp(min=1e-12)
    drawn = x.index_select(0, src) * w.unsqueeze(1)
    mean = torch.zeros(rows, x.size(1)).index_add(0, dst, drawn) / total.unsqueeze(1)
    own = x[:rows]
    if index == 0:
        h = torch.relu(torch.mm(mean, self.w0.t()) + torch.mm(own, self.s0.t()) + self.b0)
        return torch.dropout(h, 0.5, self.training) if self.drop else h
    return torch.mm(mean, self.w1.t()) + torch.mm(own, self.s1.t()) + self.b1
)";

constexpr uint32_t kIn = 8;
constexpr uint32_t kHidden = 16;
constexpr uint32_t kClasses = 4;

// A module with GraphSAGE's tensors in the order of ours, initially Glorot-like.
torch::jit::Module Module(const std::string& program, int64_t num_layers, bool drop = false) {
  torch::jit::Module module("Model");
  const auto parameter = [&module](const std::string& name, at::IntArrayRef sizes, float value) {
    module.register_parameter(name, at::full(sizes, value), /*is_buffer=*/false);
  };
  parameter("w0", {kHidden, kIn}, 0.1F);
  parameter("b0", {kHidden}, 0.0F);
  parameter("s0", {kHidden, kIn}, 0.2F);
  parameter("w1", {kClasses, kHidden}, 0.3F);
  parameter("b1", {kClasses}, 0.0F);
  parameter("s1", {kClasses, kHidden}, 0.4F);
  module.register_attribute("num_layers", c10::IntType::get(), num_layers);
  module.register_attribute("drop", c10::BoolType::get(), drop);
  module.register_attribute("training", c10::BoolType::get(), true);
  if (!program.empty()) module.define(program);
  return module;
}

// A file of its own, removed at the end.
class File {
 public:
  explicit File(const torch::jit::Module& module)
      : path_(std::filesystem::temp_directory_path() / ("gnnd-script-" + std::to_string(getpid()) +
                                                        "-" + std::to_string(++count_) + ".pt")) {
    module.save(path_);
    std::ifstream file(path_, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    sha256_ = HexOf(Sha256().Add(std::as_bytes(std::span(bytes))).Finish());
  }
  ~File() { std::filesystem::remove(path_); }

  ScriptOptions Options(bool weighted = false) const {
    return {path_, sha256_, 2, kIn, kClasses, weighted};
  }
  const std::string& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_;
  std::string sha256_;
};

std::string RefusalOf(const torch::jit::Module& module, bool weighted = false) {
  const File file(module);
  const auto model = ScriptModel::Load(file.Options(weighted));
  REQUIRE_FALSE(model.ok());
  CHECK(model.status().code() == Code::kPluginFailed);
  const std::string& message = model.status().message();
  CHECK(message.find("model " + file.path() + ": ") == 0);
  CHECK(message.find('\n') == std::string::npos);
  return message;
}

bool Contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

std::unique_ptr<TorchWork> WorkOf(const TrainOptions& options) {
  auto work = TorchWork::Create(options);
  REQUIRE_MESSAGE(work.ok(), work.status().message());
  return std::move(*work);
}

TrainOptions ScriptOptionsOf(const Partition& data, const File& file) {
  TrainOptions options = data.Options(ModelType::kScript);
  options.script = file.Options();
  return options;
}

std::vector<float> GradientOf(TorchWork& work, const TestRecord& record,
                              const std::vector<float>& parameters) {
  std::vector<float> gradient(parameters.size());
  BatchReport report;
  const Sample sample = record.view();
  ExtractReport extracted;
  REQUIRE(work.Extract(sample, 0, &extracted).ok());
  const Status status = work.ComputeGradient(sample, 0, {.floats = parameters}, gradient, &report);
  REQUIRE_MESSAGE(status.ok(), status.message());
  CHECK(report.sums.items == sample.num_seeds());
  return gradient;
}

TestRecord Batch(const Partition& data, uint32_t batch) {
  const std::vector<uint32_t> seeds(data.train.begin() + batch * 20,
                                    data.train.begin() + batch * 20 + 20);
  return TestRecord(data.graph, {{17, 0, batch}, seeds, {5, 3}, false});
}

void CheckClose(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::abs(a[i] - b[i]) <= 1e-4F * (1 + std::abs(b[i])));
  }
}

TEST_CASE("a script with GraphSAGE's formula has its gradients, evaluation and logits") {
  const Partition data(300, 4, kIn, 3);
  const File file(Module(kSage, 2));
  const auto script = WorkOf(ScriptOptionsOf(data, file));
  const auto ours = WorkOf(data.Options(ModelType::kGraphSage));

  // The tensors are as large and in the same order, so the vectors are laid out alike.
  REQUIRE(script->manifest().tensors.size() == ours->manifest().tensors.size());
  REQUIRE(script->manifest().num_floats == ours->manifest().num_floats);
  CHECK(script->manifest().tensors[0].name == "w0");
  const std::vector<uint32_t> shape = {kHidden, kIn};
  CHECK(script->manifest().tensors[0].shape == shape);
  std::vector<float> parameters(ours->manifest().num_floats);
  ours->InitParameters(parameters);

  for (uint32_t batch = 0; batch < 3; ++batch) {
    const TestRecord record = Batch(data, batch);
    CheckClose(GradientOf(*script, record, parameters), GradientOf(*ours, record, parameters));
  }
  const auto alive = [] { return true; };
  test::EvalReport of_script;
  test::EvalReport of_ours;
  REQUIRE(test::Evaluate(*script, parameters, alive, &of_script).ok());
  REQUIRE(test::Evaluate(*ours, parameters, alive, &of_ours).ok());
  CHECK(of_script.val_nodes == of_ours.val_nodes);
  CHECK(of_script.test_correct == of_ours.test_correct);
  CHECK(of_script.val_loss_sum == doctest::Approx(of_ours.val_loss_sum).epsilon(1e-4));

  const std::vector<uint32_t> nodes = {3, 7, 299};
  CheckClose(test::LogitsOf(*script, parameters, nodes), test::LogitsOf(*ours, parameters, nodes));
}

TEST_CASE("evaluation weighs by edge weights where there are some") {
  const Partition data(300, 4, kIn, 4);
  std::vector<float> edge_weights(data.graph.indices.size());
  for (size_t e = 0; e < edge_weights.size(); ++e) edge_weights[e] = static_cast<float>(e % 5);
  const File file(Module(kSage, 2));
  TrainOptions options = ScriptOptionsOf(data, file);
  TrainOptions of_ours = data.Options(ModelType::kGraphSage);
  options.edge_weights = of_ours.edge_weights = edge_weights;
  const auto script = WorkOf(options);
  const auto ours = WorkOf(of_ours);
  std::vector<float> parameters(ours->manifest().num_floats);
  ours->InitParameters(parameters);
  test::EvalReport in_parts;
  test::EvalReport expected;
  REQUIRE(test::Evaluate(*script, parameters, [] { return true; }, &in_parts).ok());
  REQUIRE(test::Evaluate(*ours, parameters, [] { return true; }, &expected).ok());
  CHECK(in_parts.test_nodes == expected.test_nodes);
  CHECK(in_parts.val_loss_sum == doctest::Approx(expected.val_loss_sum).epsilon(1e-4));
}

TEST_CASE("a script starts from the values in its file") {
  const Partition data(60, 4, kIn, 3);
  const File file(Module(kSage, 2));
  const auto work = WorkOf(ScriptOptionsOf(data, file));
  std::vector<float> parameters(work->manifest().num_floats, -1.0F);
  work->InitParameters(parameters);
  CHECK(parameters[0] == 0.1F);
  CHECK(parameters[work->manifest().tensors[5].offset] == 0.4F);
  const ParameterTensor& last_bias = work->manifest().tensors[4];
  CHECK(parameters[last_bias.offset + last_bias.size()] == 0.0F);  // padding
}

TEST_CASE("a batch's gradient is the same bits whatever ran before it, dropout included") {
  const Partition data(300, 4, kIn, 3);
  const File file(Module(kSage, 2, /*drop=*/true));
  const auto work = WorkOf(ScriptOptionsOf(data, file));
  std::vector<float> parameters(work->manifest().num_floats);
  work->InitParameters(parameters);
  const std::vector<float> first = GradientOf(*work, Batch(data, 0), parameters);
  CHECK(GradientOf(*work, Batch(data, 1), parameters) != first);
  // Many runs: an interpreter that optimises would have changed its mind by now.
  for (uint32_t batch = 0; batch < 8; ++batch) GradientOf(*work, Batch(data, batch), parameters);
  test::EvalReport report;
  REQUIRE(test::Evaluate(*work, parameters, [] { return true; }, &report).ok());
  CHECK(GradientOf(*work, Batch(data, 0), parameters) == first);
  const auto other = WorkOf(ScriptOptionsOf(data, file));
  CHECK(GradientOf(*other, Batch(data, 0), parameters) == first);
  // Without dropout the gradient differs; evaluation never drops anything.
  const File calm(Module(kSage, 2));
  const auto plain = WorkOf(ScriptOptionsOf(data, calm));
  CHECK(GradientOf(*plain, Batch(data, 0), parameters) != first);
  test::EvalReport calm_report;
  REQUIRE(test::Evaluate(*plain, parameters, [] { return true; }, &calm_report).ok());
  CHECK(calm_report.val_loss_sum == report.val_loss_sum);
}

TEST_CASE("two threads give the same bits each time") {
  const Partition data(6000, 4, kIn, 5);
  // Large enough for torch to split it; the gradient of x[src] adds rows up by index.
  std::string indexed = kSage;
  const std::string select = "x.index_select(0, src)";
  indexed.replace(indexed.find(select), select.size(), "x[src]");
  const File file(Module(indexed, 2));
  TrainOptions options = ScriptOptionsOf(data, file);
  options.threads = 2;
  const auto work = WorkOf(options);
  std::vector<float> parameters(work->manifest().num_floats);
  work->InitParameters(parameters);
  const TestRecord record(data.graph, {{17, 0, 0}, data.train, {8, 8}, false});
  REQUIRE(record.view().num_edges() * kIn > 100'000);
  const std::vector<float> first = GradientOf(*work, record, parameters);
  for (uint32_t run = 0; run < 10; ++run) {
    REQUIRE(GradientOf(*work, record, parameters) == first);
  }
}

TEST_CASE("a script against its contract is refused before anything is trained, in one line") {
  const std::string head =
      "def layer(self, index: int, x: Tensor, indptr: Tensor, src: Tensor, weight: "
      "Optional[Tensor]) -> Tensor:\n";
  const auto body = [&](const std::string& line) { return Module(head + "    " + line + "\n", 2); };
  Contains(RefusalOf(Module("", 2)), "has no method layer(index, x, indptr, src, weight)");
  Contains(RefusalOf(Module("def layer(self, x: Tensor) -> Tensor:\n    return x\n", 2)),
           "takes 1 arguments");
  Contains(RefusalOf(Module(kSage, 3)), "num_layers is 3, the job has 2 hops");
  Contains(RefusalOf(body("return x")), "layer 0: gave [4, 8], Float, expected [2, columns]");
  Contains(RefusalOf(body("return torch.mm(x[:2], self.w0.t())")),
           "layer 1: RuntimeError: mat1 and mat2 shapes cannot be multiplied");
  Contains(RefusalOf(body("return torch.mm(torch.mm(x[:2, :1], self.w0[:1]), self.s0.t())")),
           "gave 16 columns, the dataset has 4 classes");
  Contains(RefusalOf(body("assert index > 8, \"not today\"\n    return x")), "not today");
  Contains(RefusalOf(body("return torch.zeros(2, 4)")), "cannot be trained");
  // Weights are tried only where records have them.
  const std::string unweighted = kSage;
  torch::jit::Module module =
      Module(head + "    assert weight is None\n" + kSage.substr(kSage.find("    rows")), 2);
  {
    const File file(module);
    CHECK(ScriptModel::Load(file.Options(false)).ok());
  }
  Contains(RefusalOf(module, /*weighted=*/true), "layer 0: ");
  torch::jit::Module buffered = Module(kSage, 2);
  buffered.register_buffer("running", at::zeros({2}));
  Contains(RefusalOf(buffered), "has a buffer, running");
  torch::jit::Module doubles = Module(kSage, 2);
  doubles.register_parameter("d", at::zeros({2}, at::kDouble), /*is_buffer=*/false);
  Contains(RefusalOf(doubles), "parameter d is [2], Double");
}

TEST_CASE("a file that is no script, or another than was frozen, is refused by name") {
  const std::string path =
      std::filesystem::temp_directory_path() / ("gnnd-script-" + std::to_string(getpid()) + ".pt");
  std::ofstream(path, std::ios::binary) << "no archive";
  const std::string sha256 = "9b2bb8d3b0c1e6b3";
  const auto other = ScriptModel::Load({path, sha256, 2, kIn, kClasses, false});
  CHECK(other.status().code() == Code::kPluginFailed);
  Contains(other.status().message(), "the job was created with " + sha256);
  std::filesystem::remove(path);
}

TEST_CASE("a script that fails in the middle of training ends the batch with its own words") {
  const Partition data(300, 4, kIn, 3);
  const std::string fails = kSage.substr(0, kSage.find("    own")) +
                            "    assert rows <= 2, \"too many rows\"\n" +
                            kSage.substr(kSage.find("    own"));
  const File file(Module(fails, 2));
  const auto work = WorkOf(ScriptOptionsOf(data, file));
  std::vector<float> parameters(work->manifest().num_floats);
  std::vector<float> gradient(parameters.size());
  BatchReport report;
  const TestRecord record = Batch(data, 0);
  const Sample sample = record.view();
  ExtractReport extracted;
  REQUIRE(work->Extract(sample, 0, &extracted).ok());
  const Status status = work->ComputeGradient(sample, 0, {.floats = parameters}, gradient, &report);
  CHECK(status.code() == Code::kPluginFailed);
  Contains(status.message(), "too many rows");
  test::EvalReport eval;
  CHECK(
      test::Evaluate(*work, parameters, [] { return true; }, &eval).code() == Code::kPluginFailed);
}

}  // namespace
}  // namespace gnnd
