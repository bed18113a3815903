#include "core/model/model_spec.h"

#include <doctest/doctest.h>

#include <limits>

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
  CHECK(names(message([](ModelSpec& spec) { spec.type = static_cast<ModelType>(7); }), "type"));
}

}  // namespace
}  // namespace gnnd
