// Writes models with random parameters as torch_geometric would load them, and the logits that
// exact prediction gives on a small random graph.
//
//   gnnd_pyg_export OUT_DIR
//
// OUT_DIR/graph gets indptr.npy, indices.npy and features.npy (in-neighbours by row); every other
// folder is a model: model.safetensors, logits.npy and model.json. OUT_DIR/typed is the same for
// models over relations (pyg_typed_export.h). test/process/checkpoint has the other side.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "test/support/block_types.h"
#include "test/support/record_builder.h"
#include "test/train/pyg_files.h"
#include "test/train/pyg_typed_export.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

using test::Folder;
using test::WriteNpy;
using test::WriteSafetensors;

constexpr uint32_t kNodes = 60;
constexpr uint32_t kFeatures = 13;
constexpr uint32_t kClasses = 5;

struct Export {
  std::string name;
  ModelSpec spec;
};

std::vector<Export> Exports() {
  std::vector<Export> exports;
  const auto add = [&exports](ModelType type, const char* more, auto&& change) {
    ModelSpec spec;
    spec.type = type;
    spec.in_dim = kFeatures;
    spec.hidden_dim = 24;
    spec.out_dim = kClasses;
    spec.dropout = 0.5F;  // must not matter
    if (IsAttention(type)) spec.heads = 4;
    change(&spec);
    exports.push_back({std::string(KindOf(type).name) + more, spec});
  };
  const auto plain = [](ModelSpec*) {};
  const auto everything = [](ModelSpec* spec) {
    spec->heads = 3;
    spec->num_layers = 3;
    spec->activation = Activation::kElu;
    spec->normalization = Normalization::kLayer;
    spec->residual = true;
  };
  const auto normalised = [](ModelSpec* spec) {
    spec->num_layers = 3;
    spec->activation = Activation::kLeakyRelu;
    spec->normalization = Normalization::kLayer;
  };
  const auto unit = [](ModelSpec* spec) { spec->normalization = Normalization::kL2; };
  const auto one_layer = [](ModelSpec* spec) { spec->num_layers = 1; };
  for (const ModelType type : test::BlockTypes()) {
    add(type, "", plain);
    add(type, "-one-layer", one_layer);
    if (!KindOf(type).has_unit_rows) add(type, "-layer-norm", normalised);
  }
  add(ModelType::kGraphSage, "-l2", unit);
  add(ModelType::kGat, "-all-options", everything);
  add(ModelType::kGatV2, "-all-options", everything);
  return exports;
}

// Writes the file from which the Python side makes its model, as in the daemon's exports.
void WriteModelJson(const Folder& path, const Export& model) {
  static constexpr const char* kActivations[] = {"", "RELU", "ELU", "LEAKY_RELU"};
  static constexpr const char* kNormalizations[] = {"", "NONE", "L2", "LAYER"};
  const ModelSpec& spec = model.spec;
  std::string type = KindOf(spec.type).name;
  std::ranges::transform(type, type.begin(), [](unsigned char c) { return std::toupper(c); });
  std::ofstream file(path);
  file << "{\"type\":\"" << type << "\",\"in_dim\":" << spec.in_dim
       << ",\"hidden_dim\":" << spec.hidden_dim << ",\"layers\":" << spec.num_layers
       << ",\"out_dim\":" << spec.out_dim << ",\"heads\":" << spec.heads << ",\"activation\":\""
       << kActivations[static_cast<uint32_t>(spec.activation)] << "\",\"normalization\":\""
       << kNormalizations[static_cast<uint32_t>(NormalizationOf(spec))]
       << "\",\"residual\":" << (spec.residual ? "true" : "false") << "}\n";
  GNND_CHECK(file.good());
}

// Isolated nodes and repeated edges, but no self-loops: torch_geometric's GCN takes those for the
// ones that it adds.
test::TestGraph RandomGraph(std::mt19937_64* random) {
  std::vector<std::vector<uint32_t>> rows(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) {
    const uint64_t degree = v % 9 == 0 ? 0 : 1 + (*random)() % 8;
    for (uint64_t k = 0; k < degree; ++k) {
      const auto u = static_cast<uint32_t>((*random)() % kNodes);
      if (u != v) rows[v].push_back(u);
    }
  }
  return test::GraphOf(rows);
}

Status ExportModel(const Folder& folder, const Export& model, const TrainOptions& data,
                   std::mt19937_64* random) {
  TrainOptions options = data;
  options.model = model.spec;
  options.random_seed = (*random)();
  auto work = TorchWork::Create(options);
  if (!work.ok()) return work.status();
  const ParameterManifest& manifest = (*work)->manifest();
  std::vector<float> parameters(manifest.num_floats);
  (*work)->InitParameters(parameters);
  std::normal_distribution<float> normal;
  for (const ParameterTensor& tensor : manifest.tensors) {
    if (!tensor.is_bias) continue;
    for (uint64_t i = 0; i < tensor.size(); ++i) parameters[tensor.offset + i] += normal(*random);
  }
  std::vector<uint32_t> nodes(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) nodes[v] = v;
  std::vector<float> logits;
  const auto append = [&](std::span<const uint32_t> part, const float* part_logits) {
    logits.insert(logits.end(), part_logits, part_logits + part.size() * kClasses);
    return Status::Ok();
  };
  GNND_TRY((*work)->Predict(parameters, nodes, [] { return true; }, append));
  std::filesystem::create_directories(folder);
  WriteSafetensors(folder / "model.safetensors", manifest, parameters);
  WriteNpy<float>(folder / "logits.npy", "<f4", logits, kClasses);
  WriteModelJson(folder / "model.json", model);
  return Status::Ok();
}

Status ExportAll(const Folder& folder) {
  std::mt19937_64 random(20);
  std::normal_distribution<float> normal;
  const test::TestGraph graph = RandomGraph(&random);
  std::vector<float> features(uint64_t{kNodes} * kFeatures);
  for (float& value : features) value = normal(random);
  const std::vector<int32_t> labels(kNodes, 0);
  std::filesystem::create_directories(folder / "graph");
  WriteNpy<uint64_t>(folder / "graph" / "indptr.npy", "<u8", graph.indptr, 0);
  WriteNpy<uint32_t>(folder / "graph" / "indices.npy", "<u4", graph.indices, 0);
  WriteNpy<float>(folder / "graph" / "features.npy", "<f4", features, kFeatures);
  TrainOptions data;
  data.features = RowTable(features, kFeatures);
  data.targets.labels = labels;
  data.topology = graph.view();
  for (const Export& model : Exports()) {
    GNND_TRY(ExportModel(folder / model.name, model, data, &random));
  }
  return test::ExportTypedModels(folder / "typed");
}

}  // namespace
}  // namespace gnnd

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gnnd_pyg_export OUT_DIR\n");
    return 2;
  }
  const gnnd::Status status = gnnd::ExportAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
