#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/optimizer.h"
#include "test/train/pyg_files.h"
#include "test/train/typed_reference.h"
#include "train/layers/relational.h"

// Models over relations as gnnd_pyg_export writes them: graph/x_TYPE.npy and
// graph/SOURCE__RELATION__DESTINATION.npy, [2, edges], and a folder for each model.

namespace gnnd::test {

inline const std::vector<uint32_t> kExportedDims = {7, 5, 11};

inline TypedGraph ExportedGraph(std::mt19937_64* random) {
  TypedGraph graph{{40, 15, 9}, {}};
  const auto add = [&](uint32_t src_type, uint32_t dst_type, uint64_t max_degree) {
    TypedGraph::Relation relation{src_type, dst_type, {}};
    for (uint32_t v = 0; v < graph.num_nodes[dst_type]; ++v) {
      std::vector<uint32_t> row((*random)() % (max_degree + 1));
      for (uint32_t& u : row) u = static_cast<uint32_t>((*random)() % graph.num_nodes[src_type]);
      relation.rows.AddRow(row);
    }
    graph.relations.push_back(std::move(relation));
  };
  add(1, 0, 4);
  add(0, 0, 6);
  add(0, 1, 5);
  add(2, 1, 3);
  add(1, 0, 2);
  add(1, 2, 3);
  return graph;
}

struct TypedExport {
  std::string name;
  ModelSpec spec;
};

inline std::vector<TypedExport> TypedExports(const ModelGraph& graph) {
  std::vector<TypedExport> exports;
  const auto add = [&](ModelType type, const char* more, auto&& change) {
    ModelSpec spec;
    spec.type = type;
    spec.hidden_dim = 24;
    spec.out_dim = 5;
    spec.dropout = 0.5F;  // must not matter
    if (type == ModelType::kHgt) spec.heads = 4;
    spec.graph = graph;
    change(&spec);
    exports.push_back({std::string(KindOf(type).name) + more, spec});
  };
  for (const ModelType type : {ModelType::kRsage, ModelType::kRgcn, ModelType::kHgt}) {
    const bool is_hgt = type == ModelType::kHgt;
    add(type, "", [](ModelSpec*) {});
    add(type, "-one-layer", [](ModelSpec* spec) { spec->num_layers = 1; });
    add(type, "-all-options", [&](ModelSpec* spec) {
      spec->num_layers = 3;
      spec->normalization = Normalization::kLayer;
      if (is_hgt) return;
      spec->activation = Activation::kElu;
      spec->residual = true;
    });
    add(type, "-l2", [](ModelSpec* spec) { spec->normalization = Normalization::kL2; });
  }
  add(ModelType::kRgcn, "-bases", [](ModelSpec* spec) { spec->bases = 3; });
  return exports;
}

inline void WriteTypedJson(const Folder& path, const ModelSpec& spec) {
  static constexpr const char* kTypes[] = {"RSAGE", "RGCN", "HGT"};
  static constexpr const char* kActivations[] = {"", "RELU", "ELU", "LEAKY_RELU"};
  static constexpr const char* kNormalizations[] = {"", "NONE", "L2", "LAYER"};
  const auto number = static_cast<uint32_t>(spec.type) - static_cast<uint32_t>(ModelType::kRsage);
  std::ofstream file(path);
  file << "{\"type\":\"" << kTypes[number] << "\",\"hidden_dim\":" << spec.hidden_dim
       << ",\"layers\":" << spec.num_layers << ",\"out_dim\":" << spec.out_dim
       << ",\"heads\":" << spec.heads << ",\"bases\":" << spec.bases << ",\"activation\":\""
       << kActivations[static_cast<uint32_t>(spec.activation)] << "\",\"normalization\":\""
       << kNormalizations[static_cast<uint32_t>(spec.normalization)]
       << "\",\"residual\":" << (spec.residual ? "true" : "false") << ",\"graph\":{\"types\":[";
  const ModelGraph& graph = spec.graph;
  for (size_t t = 0; t < graph.types.size(); ++t) {
    file << (t == 0 ? "" : ",") << "{\"name\":\"" << graph.types[t].name
         << "\",\"in_dim\":" << graph.types[t].in_dim << "}";
  }
  file << "],\"relations\":[";
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const ModelGraph::Relation& relation = graph.relations[r];
    file << (r == 0 ? "" : ",") << "{\"source\":\"" << graph.types[relation.source].name
         << "\",\"name\":\"" << relation.name << "\",\"destination\":\""
         << graph.types[relation.destination].name << "\"}";
  }
  file << "]}}\n";
  GNND_CHECK(file.good());
}

// The logits of all nodes of type 0 with their whole neighbourhoods.
inline std::vector<float> WholeLogits(const Model& model, const std::vector<float>& parameters,
                                      const TypedGraph& graph,
                                      const std::vector<std::vector<float>>& features) {
  std::vector<uint32_t> seeds(graph.num_nodes[0]);
  for (uint32_t v = 0; v < seeds.size(); ++v) seeds[v] = v;
  const TypedSample sample(graph, {1, 0, 0}, seeds, model.spec.num_layers, -1);
  std::vector<std::vector<float>> rows(features.size());
  std::vector<at::Tensor> inputs;
  for (uint32_t t = 0; t < features.size(); ++t) {
    const uint32_t dim = kExportedDims[t];
    for (const uint32_t node : sample.view().nodes(t)) {
      const auto from = features[t].begin() + static_cast<int64_t>(node) * dim;
      rows[t].insert(rows[t].end(), from, from + dim);
    }
    const auto height = static_cast<int64_t>(sample.view().nodes(t).size());
    inputs.push_back(height == 0 ? at::Tensor() : ViewOf(rows[t].data(), height, dim));
  }
  Workspace workspace;
  const at::NoGradGuard no_gradients;
  const at::Tensor logits =
      ForwardTyped(model, ViewsOf(model.manifest, parameters, at::kCPU), sample.view(), inputs,
                   /*trains=*/false, &workspace);
  const auto* first = logits.const_data_ptr<float>();
  return {first, first + logits.numel()};
}

inline Status ExportTypedModels(const Folder& folder) {
  std::mt19937_64 random(21);
  std::normal_distribution<float> normal;
  const TypedGraph graph = ExportedGraph(&random);
  const ModelGraph described = ModelGraphOf(graph, kExportedDims);
  std::filesystem::create_directories(folder / "graph");
  std::vector<std::vector<float>> features;
  for (uint32_t t = 0; t < kExportedDims.size(); ++t) {
    features.emplace_back(uint64_t{graph.num_nodes[t]} * kExportedDims[t]);
    for (float& value : features.back()) value = normal(random);
    WriteNpy<float>(folder / "graph" / ("x_" + described.types[t].name + ".npy"), "<f4",
                    features.back(), kExportedDims[t]);
  }
  for (size_t r = 0; r < graph.relations.size(); ++r) {
    const Graph& rows = graph.relations[r].rows;
    std::vector<int64_t> ends(rows.indices.begin(), rows.indices.end());
    for (size_t v = 0; v + 1 < rows.indptr.size(); ++v) {
      ends.insert(ends.end(), rows.indptr[v + 1] - rows.indptr[v], static_cast<int64_t>(v));
    }
    WriteNpy<int64_t>(folder / "graph" / (NameOf(described, described.relations[r]) + ".npy"),
                      "<i8", ends, rows.indices.size());
  }
  for (const TypedExport& each : TypedExports(described)) {
    const Model model(each.spec);
    std::vector<float> parameters(model.manifest.num_floats);
    InitGlorot(model.manifest, random(), 1.0, parameters);
    for (const ParameterTensor& tensor : model.manifest.tensors) {
      if (!tensor.is_bias) continue;
      for (uint64_t i = 0; i < tensor.size(); ++i) parameters[tensor.offset + i] += normal(random);
    }
    std::filesystem::create_directories(folder / each.name);
    WriteSafetensors(folder / each.name / "model.safetensors", model.manifest, parameters);
    const std::vector<float> logits = WholeLogits(model, parameters, graph, features);
    WriteNpy<float>(folder / each.name / "logits.npy", "<f4", logits, each.spec.out_dim);
    WriteTypedJson(folder / each.name / "model.json", each.spec);
  }
  return Status::Ok();
}

}  // namespace gnnd::test
