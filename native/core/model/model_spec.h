#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/item/link_choices.h"
#include "core/model/model_kind.h"

// A model as data, and the place of each of its parameters in the flat parameter vector of the job
// segment. Knows no torch: the daemon sizes segments and names tensors with it.

namespace gnnd {

// Variants of SIGN and HOGA.
enum class ModelVariant : uint32_t { kNone = 1, kFused = 2, kConcat = 3, kGated = 4, kDac24 = 5 };

// Applied after every layer but the last. ELU has alpha 1, leaky ReLU slope 0.01.
enum class Activation : uint32_t { kRelu = 1, kElu = 2, kLeakyRelu = 3 };

// Normalisation of hidden layers' rows: kLayer before the activation, kL2 (division by the
// Euclidean norm) after it. PinSAGE's hidden rows always have norm 1.
enum class Normalization : uint32_t { kNone = 1, kL2 = 2, kLayer = 3 };

// The type in which training keeps inputs, hidden rows, their gradients, and the weights' copies in
// products. Sums, parameters, their gradients and evaluation are always float32. With kTf32
// everything is float32, and a GPU's products round their factors to TF32.
enum class Precision : uint32_t { kFloat32 = 1, kBfloat16 = 2, kTf32 = 3 };

// The types of nodes and the relations of a model over several; none of other models. Type 0 is
// that of the nodes whose rows the model gives.
struct ModelGraph {
  struct Type {
    std::string name;
    uint32_t in_dim = 0;  // columns of its input rows
  };
  // Rows of `destination` aggregate rows of `source`, both indices of types.
  struct Relation {
    uint32_t source = 0;
    std::string name;
    uint32_t destination = 0;
  };
  std::vector<Type> types{};
  std::vector<Relation> relations{};
};

struct ModelSpec {
  ModelType type = ModelType::kGraphSage;
  uint32_t num_layers = 2;
  uint32_t in_dim = 0;  // feature columns
  uint32_t hidden_dim = 256;
  uint32_t out_dim = 0;        // classes, labels or targets
  float dropout = 0.0F;        // on hidden layers' outputs
  float input_dropout = 0.0F;  // on input features

  // For models with attention. Hidden layers concatenate their heads of hidden_dim / heads columns
  // each; the last layer has as many heads of out_dim columns and averages them.
  uint32_t heads = 1;
  float attention_dropout = 0.0F;  // on attention coefficients

  Activation activation = Activation::kRelu;
  Normalization normalization = Normalization::kNone;
  // Adds the layer's input to its output, through a projection where widths differ; models with
  // attention always project (as torch_geometric's GAT does).
  bool residual = false;

  // For models over rows. A row holds X, and B X to B^num_hops X for each of num_operators B.
  ModelVariant variant = ModelVariant::kNone;
  uint32_t num_operators = 0;
  uint32_t num_hops = 0;
  uint32_t hop_layers = 0;  // kGated: layers of each hop's perceptron; 0 = a projection
  uint32_t hop_hidden_dim = 128;

  // For models over relations. Their input rows are projected to hidden_dim, so that in_dim is 0.
  ModelGraph graph{};
  uint32_t bases = 0;  // R-GCN: matrices of which those of relations are sums; 0 = one a relation

  // kScript: columns of each layer's output, the last one out_dim; no other option is read.
  std::vector<uint32_t> widths{};

  // If the model learns links: how the last layer's rows, of out_dim columns, become scores of
  // pairs. Its tensors follow those of the layers.
  std::optional<LinkHead> head{};
  // What the head gives of a pair: one score, or the classes, labels or numbers that are learnt.
  uint32_t head_outputs = 1;
};

// The normalisation that the model's hidden layers actually have.
inline Normalization NormalizationOf(const ModelSpec& spec) {
  return KindOf(spec.type).has_unit_rows ? Normalization::kL2 : spec.normalization;
}

// One tensor of the model. Names and shapes are those of torch_geometric's models of the same kind,
// so that a checkpoint loads with load_state_dict: weights are [out, in].
struct ParameterTensor {
  std::string name;
  uint32_t rows = 0;            // out; 1-d tensors have cols = 0
  uint32_t cols = 0;            // in
  uint32_t layer = 0;           // 0 is the layer nearest the input features; a head's: num_layers
  bool is_bias = false;         // 1-d, and initially `fill` everywhere
  std::vector<uint32_t> shape;  // in the state dict; rows * cols elements
  TensorRole role = TensorRole::kWeight;
  float fill = 0.0F;    // initial value of a bias
  uint32_t fan = 0;     // fan-in + fan-out for its Glorot-uniform initial values; 0 for biases
  uint64_t offset = 0;  // in floats from the start of the parameter vector; a multiple of 16

  uint64_t size() const { return static_cast<uint64_t>(rows) * (cols == 0 ? 1 : cols); }
};

struct ParameterManifest {
  std::vector<ParameterTensor> tensors;
  uint64_t num_floats = 0;         // padded total; padding is always zero
  std::vector<uint32_t> widths{};  // for scripts: columns of each layer's output
};

// Appends a tensor, whose name and rows, cols or shape are set, on the next cache line.
void Append(ParameterTensor tensor, ParameterManifest* manifest);

// Widths of a layer's input and output; heads that are averaged count once in `out`.
struct LayerShape {
  uint32_t in;
  uint32_t out;
};
LayerShape ShapeOf(const ModelSpec& spec, uint32_t layer);
uint32_t SizeOf(LayerSize size, const ModelSpec& spec, uint32_t layer);

// Whether layer `layer` has a residual projection; a residual without one adds the input itself.
bool HasResidualProjection(const ModelSpec& spec, uint32_t layer);

}  // namespace gnnd
