#include "core/model/manifest.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace gnnd {
namespace {

ModelSpec SpecOf(ModelType type, uint32_t num_layers) {
  ModelSpec spec;
  spec.type = type;
  spec.num_layers = num_layers;
  spec.in_dim = 10;
  spec.hidden_dim = 7;
  spec.out_dim = 3;
  return spec;
}

TEST_CASE("a GraphSAGE layer has weights and bias for neighbours and weights for itself") {
  const auto manifest = ManifestOf(SpecOf(ModelType::kGraphSage, 2));
  REQUIRE(manifest.ok());
  const auto& tensors = manifest->tensors;
  REQUIRE(tensors.size() == 6);
  CHECK(tensors[0].name == "convs.0.lin_l.weight");
  CHECK(tensors[1].name == "convs.0.lin_l.bias");
  CHECK(tensors[2].name == "convs.0.lin_r.weight");
  CHECK(tensors[3].name == "convs.1.lin_l.weight");
  CHECK(tensors[0].rows == 7);
  CHECK(tensors[0].cols == 10);
  CHECK(tensors[1].is_bias);
  CHECK(tensors[1].size() == 7);
  CHECK(tensors[3].rows == 3);
  CHECK(tensors[3].cols == 7);
  CHECK(tensors[3].layer == 1);
}

TEST_CASE("a GCN layer has a bias and weights") {
  const auto manifest = ManifestOf(SpecOf(ModelType::kGcn, 3));
  REQUIRE(manifest.ok());
  REQUIRE(manifest->tensors.size() == 6);
  CHECK(manifest->tensors[0].name == "convs.0.bias");
  CHECK(manifest->tensors[1].name == "convs.0.lin.weight");
  CHECK(manifest->tensors[3].rows == 7);
  CHECK(manifest->tensors[3].cols == 7);
  CHECK(manifest->tensors[5].rows == 3);
}

// "name [rows, cols]" of every tensor; cols of vectors are left out.
std::vector<std::string> TensorsOf(const ModelSpec& spec) {
  const auto manifest = ManifestOf(spec);
  REQUIRE(manifest.ok());
  std::vector<std::string> list;
  for (const ParameterTensor& tensor : manifest->tensors) {
    std::string shape;
    for (const uint32_t size : tensor.shape) {
      shape.append(shape.empty() ? "" : ", ").append(std::to_string(size));
    }
    list.push_back(tensor.name + " [" + shape + "]");
  }
  return list;
}

TEST_CASE("GAT concatenates heads in hidden layers and averages wide ones in the last") {
  ModelSpec spec = SpecOf(ModelType::kGat, 2);
  spec.hidden_dim = 8;
  spec.heads = 4;
  const std::vector<std::string> expected = {
      "convs.0.att_src [1, 4, 2]",  "convs.0.att_dst [1, 4, 2]", "convs.0.bias [8]",
      "convs.0.lin.weight [8, 10]", "convs.1.att_src [1, 4, 3]", "convs.1.att_dst [1, 4, 3]",
      "convs.1.bias [3]",           "convs.1.lin.weight [12, 8]"};
  CHECK(TensorsOf(spec) == expected);
}

TEST_CASE("GATv2 has weights and biases for sources and destinations, and its own residual") {
  ModelSpec spec = SpecOf(ModelType::kGatV2, 1);
  spec.heads = 2;
  spec.residual = true;
  const std::vector<std::string> expected = {
      "convs.0.att [1, 2, 3]",        "convs.0.bias [3]",
      "convs.0.lin_l.weight [6, 10]", "convs.0.lin_l.bias [6]",
      "convs.0.lin_r.weight [6, 10]", "convs.0.lin_r.bias [6]",
      "convs.0.res.weight [3, 10]"};
  CHECK(TensorsOf(spec) == expected);
}

TEST_CASE("PinSAGE projects neighbours; residuals project only where widths differ") {
  ModelSpec spec = SpecOf(ModelType::kPinSage, 2);
  spec.hidden_dim = 10;
  spec.residual = true;
  const std::vector<std::string> expected = {
      "convs.0.lin.weight [10, 10]",   "convs.0.lin.bias [10]",
      "convs.0.lin_l.weight [10, 10]", "convs.0.lin_l.bias [10]",
      "convs.0.lin_r.weight [10, 10]", "convs.1.lin.weight [10, 10]",
      "convs.1.lin.bias [10]",         "convs.1.lin_l.weight [3, 10]",
      "convs.1.lin_l.bias [3]",        "convs.1.lin_r.weight [3, 10]",
      "convs.1.res.weight [3, 10]"};
  CHECK(TensorsOf(spec) == expected);
}

TEST_CASE("layer normalisation has a scale that starts at one and a shift, but not at the logits") {
  ModelSpec spec = SpecOf(ModelType::kGcn, 2);
  spec.normalization = Normalization::kLayer;
  const std::vector<std::string> expected = {"convs.0.bias [7]",   "convs.0.lin.weight [7, 10]",
                                             "norms.0.weight [7]", "norms.0.bias [7]",
                                             "convs.1.bias [3]",   "convs.1.lin.weight [3, 7]"};
  CHECK(TensorsOf(spec) == expected);
  CHECK(ManifestOf(spec)->tensors[2].fill == 1.0F);
  CHECK(ManifestOf(spec)->tensors[3].fill == 0.0F);
}

TEST_CASE("tensors start on cache lines and do not overlap") {
  const auto manifest = ManifestOf(SpecOf(ModelType::kGraphSage, 8));
  REQUIRE(manifest.ok());
  uint64_t end = 0;
  for (const ParameterTensor& tensor : manifest->tensors) {
    CHECK(tensor.offset % 16 == 0);
    CHECK(tensor.offset >= end);
    CHECK(tensor.offset < end + 16);
    end = tensor.offset + tensor.size();
  }
  CHECK(manifest->num_floats >= end);
  CHECK(manifest->num_floats % 16 == 0);
}

TEST_CASE("a model that cannot be is refused with the field's name") {
  const auto message = [](auto&& change) {
    ModelSpec spec = SpecOf(ModelType::kGcn, 2);
    change(spec);
    const auto manifest = ManifestOf(spec);
    REQUIRE_FALSE(manifest.ok());
    CHECK(manifest.status().code() == Code::kInvalidArgument);
    return manifest.status().message();
  };
  const auto names = [](const std::string& text, const char* field) {
    return text.find(field) != std::string::npos;
  };
  CHECK(names(message([](ModelSpec& spec) { spec.num_layers = 0; }), "num_layers"));
  CHECK(names(message([](ModelSpec& spec) { spec.num_layers = 9; }), "num_layers"));
  CHECK(names(message([](ModelSpec& spec) { spec.in_dim = 0; }), "in_dim"));
  CHECK(names(message([](ModelSpec& spec) { spec.hidden_dim = 0; }), "hidden_dim"));
  CHECK(names(message([](ModelSpec& spec) { spec.out_dim = 0; }), "out_dim"));
  CHECK(names(message([](ModelSpec& spec) { spec.dropout = 1.0F; }), "dropout"));
  CHECK(names(message([](ModelSpec& spec) {
                spec.input_dropout = std::numeric_limits<float>::quiet_NaN();
              }),
              "input_dropout"));
  CHECK(names(message([](ModelSpec& spec) { spec.type = static_cast<ModelType>(99); }), "type"));
  CHECK(names(message([](ModelSpec& spec) { spec.heads = 2; }), "heads"));
  CHECK(
      names(message([](ModelSpec& spec) { spec.attention_dropout = 0.1F; }), "attention_dropout"));
  CHECK(names(message([](ModelSpec& spec) {
                spec.type = ModelType::kGat;
                spec.heads = 3;
              }),
              "hidden_dim"));
  CHECK(names(message([](ModelSpec& spec) {
                spec.type = ModelType::kGat;
                spec.heads = 0;
              }),
              "heads"));
  CHECK(names(message([](ModelSpec& spec) { spec.activation = static_cast<Activation>(0); }),
              "activation"));
  CHECK(names(message([](ModelSpec& spec) { spec.normalization = static_cast<Normalization>(0); }),
              "normalization"));
  CHECK(names(message([](ModelSpec& spec) {
                spec.type = ModelType::kPinSage;
                spec.normalization = Normalization::kLayer;
              }),
              "normalization"));
}

}  // namespace
}  // namespace gnnd
