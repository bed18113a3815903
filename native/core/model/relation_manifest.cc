#include "core/model/relation_manifest.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

namespace gnnd {
namespace {

constexpr uint32_t kMaxColumns = 1U << 18;  // dropout numbers groups of 4 columns with 16 bits
constexpr size_t kMaxTypes = 64;            // a record has no more (core/batch/sample.h)
constexpr size_t kMaxRelations = 256;
constexpr uint32_t kMaxHeads = 64;

Status Invalid(const std::string& what) { return Status(Code::kInvalidArgument, what); }

// Numbers the tensors, and describes them where a manifest is given.
class Builder {
 public:
  explicit Builder(ParameterManifest* manifest) : manifest_(manifest) {}

  // `parts` matrices of [rows, cols], one below the other; a dimension of its own if there are
  // several or `is_list`.
  uint32_t Matrices(const std::string& name, uint32_t layer, uint32_t parts, uint32_t rows,
                    uint32_t cols, bool is_list) {
    ParameterTensor tensor;
    tensor.name = name;
    tensor.layer = layer;
    tensor.rows = parts * rows;
    tensor.cols = cols;
    tensor.shape = {rows, cols};
    if (is_list) tensor.shape.insert(tensor.shape.begin(), parts);
    tensor.fan = rows + cols;
    return Put(std::move(tensor));
  }
  uint32_t Matrix(const std::string& name, uint32_t layer, uint32_t rows, uint32_t cols) {
    return Matrices(name, layer, 1, rows, cols, /*is_list=*/false);
  }

  uint32_t Vector(const std::string& name, uint32_t layer, uint32_t size, float fill,
                  TensorRole role) {
    ParameterTensor tensor;
    tensor.name = name;
    tensor.layer = layer;
    tensor.rows = size;
    tensor.shape = {size};
    tensor.is_bias = true;
    tensor.fill = fill;
    tensor.role = role;
    return Put(std::move(tensor));
  }

  // torch.nn.Linear.
  RelationTensors::Linear Linear(const std::string& name, uint32_t layer, uint32_t rows,
                                 uint32_t cols) {
    const uint32_t weight = Matrix(name + ".weight", layer, rows, cols);
    return {weight, Vector(name + ".bias", layer, rows, 0.0F, TensorRole::kBias)};
  }

 private:
  uint32_t Put(ParameterTensor tensor) {
    if (manifest_ != nullptr) Append(std::move(tensor), manifest_);
    return next_++;
  }

  ParameterManifest* manifest_;
  uint32_t next_ = 0;
};

// One layer of a model, whose tensors count as stage layer + 1: the projection is the first.
class LayerBuilder {
 public:
  LayerBuilder(const ModelSpec& spec, uint32_t layer, const RelationNeeds& needs, Builder* add)
      : spec_(spec), layer_(layer), needs_(needs), add_(*add) {
    tensors_.types.resize(spec.graph.types.size());
    tensors_.relations.resize(spec.graph.relations.size());
    const bool is_last = layer + 1 == spec.num_layers;
    const bool is_attention = spec.type == ModelType::kHgt;
    out_ = is_last && !is_attention ? spec.out_dim : spec.hidden_dim;
    is_hidden_ = !is_last || is_attention;
  }

  RelationTensors::Layer Build() {
    switch (spec_.type) {
      case ModelType::kRsage:
        AddMatrices();
        AddRoots();
        break;
      case ModelType::kRgcn:
        spec_.bases == 0 ? AddMatrices() : AddBases();
        ShareRoot();
        break;
      default:
        AddAttention();
    }
    AddNorms();
    return std::move(tensors_);
  }

 private:
  std::string At(const std::string& name) const {
    return "convs." + std::to_string(layer_) + "." + name;
  }
  std::string OfType(uint32_t type, const char* name) const {
    return At(spec_.graph.types[type].name + "." + name);
  }
  uint32_t stage() const { return layer_ + 1; }

  // Calls body(relation, its tensors) for those that the layer takes.
  template <typename Body>
  void ForRelations(const Body& body) {
    for (uint32_t r = 0; r < tensors_.relations.size(); ++r) {
      if (needs_.Takes(layer_, r)) body(r, &tensors_.relations[r]);
    }
  }
  // Calls body(type, its tensors) for those whose rows the layer gives.
  template <typename Body>
  void ForTypes(const Body& body) {
    for (uint32_t t = 0; t < tensors_.types.size(); ++t) {
      if (needs_.Rows(layer_ + 1, t)) body(t, &tensors_.types[t]);
    }
  }

  void AddMatrices() {
    ForRelations([this](uint32_t r, RelationTensors::OfRelation* mine) {
      const std::string name = NameOf(spec_.graph, spec_.graph.relations[r]);
      mine->weight = add_.Matrix(At(name + ".weight"), stage(), out_, spec_.hidden_dim);
    });
  }

  void AddBases() {
    uint32_t taken = 0;
    ForRelations([&](uint32_t, RelationTensors::OfRelation* mine) { mine->row = taken++; });
    tensors_.bases = add_.Matrices(At("weight"), stage(), spec_.bases, out_, spec_.hidden_dim,
                                   /*is_list=*/true);
    tensors_.shares = add_.Matrix(At("comp"), stage(), taken, spec_.bases);
  }

  void AddRoots() {
    ForTypes([this](uint32_t t, RelationTensors::OfType* mine) {
      mine->root.weight = add_.Matrix(OfType(t, "root.weight"), stage(), out_, spec_.hidden_dim);
      mine->root.bias = add_.Vector(OfType(t, "bias"), stage(), out_, 0.0F, TensorRole::kBias);
    });
  }

  void ShareRoot() {
    RelationTensors::Linear root;
    root.weight = add_.Matrix(At("root"), stage(), out_, spec_.hidden_dim);
    root.bias = add_.Vector(At("bias"), stage(), out_, 0.0F, TensorRole::kBias);
    for (RelationTensors::OfType& mine : tensors_.types) mine.root = root;
  }

  RelationTensors::Linear Square(uint32_t type, const char* name) {
    return add_.Linear(OfType(type, name), stage(), spec_.hidden_dim, spec_.hidden_dim);
  }

  void AddAttention() {
    std::vector<bool> is_source(tensors_.types.size());
    std::vector<bool> attends(tensors_.types.size());
    ForRelations([&](uint32_t r, RelationTensors::OfRelation*) {
      is_source[spec_.graph.relations[r].source] = true;
      attends[spec_.graph.relations[r].destination] = true;
    });
    for (uint32_t t = 0; t < tensors_.types.size(); ++t) {
      RelationTensors::OfType* const mine = &tensors_.types[t];
      if (is_source[t]) {
        mine->key = Square(t, "k");
        mine->value = Square(t, "v");
      }
      if (!attends[t]) continue;
      mine->query = Square(t, "q");
      mine->out = Square(t, "a");
      mine->skip = add_.Vector(OfType(t, "skip"), stage(), 1, 1.0F, TensorRole::kSkip);
    }
    ForRelations([this](uint32_t r, RelationTensors::OfRelation* mine) {
      const std::string name = At(NameOf(spec_.graph, spec_.graph.relations[r]) + ".");
      const uint32_t columns = spec_.hidden_dim / spec_.heads;
      mine->key = add_.Matrices(name + "a_rel", stage(), spec_.heads, columns, columns, true);
      mine->value = add_.Matrices(name + "m_rel", stage(), spec_.heads, columns, columns, true);
      mine->prior = add_.Vector(name + "p_rel", stage(), spec_.heads, 1.0F, TensorRole::kNormScale);
    });
  }

  void AddNorms() {
    if (spec_.normalization != Normalization::kLayer || !is_hidden_) return;
    ForTypes([this](uint32_t t, RelationTensors::OfType* mine) {
      const std::string name =
          "norms." + std::to_string(layer_) + "." + spec_.graph.types[t].name + ".";
      mine->norm_scale = add_.Vector(name + "weight", stage(), out_, 1.0F, TensorRole::kNormScale);
      mine->norm_shift = add_.Vector(name + "bias", stage(), out_, 0.0F, TensorRole::kNormShift);
    });
  }

  const ModelSpec& spec_;
  const uint32_t layer_;
  const RelationNeeds& needs_;
  Builder& add_;
  uint32_t out_;
  bool is_hidden_;  // whether activation and normalisation follow
  RelationTensors::Layer tensors_;
};

RelationTensors BuildAll(const ModelSpec& spec, ParameterManifest* manifest) {
  Builder add(manifest);
  const RelationNeeds needs(spec);
  RelationTensors tensors;
  tensors.inputs.resize(spec.graph.types.size());
  for (uint32_t t = 0; t < tensors.inputs.size(); ++t) {
    const ModelGraph::Type& type = spec.graph.types[t];
    if (!needs.Rows(0, t)) continue;
    tensors.inputs[t] = add.Linear("lin_in." + type.name, 0, spec.hidden_dim, type.in_dim);
  }
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    tensors.layers.push_back(LayerBuilder(spec, layer, needs, &add).Build());
  }
  if (spec.type == ModelType::kHgt) {
    tensors.outputs = add.Linear("lin_out", spec.num_layers + 1, spec.out_dim, spec.hidden_dim);
  }
  return tensors;
}

Status CheckGraph(const ModelGraph& graph) {
  if (graph.types.empty() || graph.types.size() > kMaxTypes) {
    return Invalid("a model over relations has " + std::to_string(graph.types.size()) +
                   " types, must have 1 to " + std::to_string(kMaxTypes));
  }
  if (graph.relations.size() > kMaxRelations) {
    return Invalid("a model has " + std::to_string(graph.relations.size()) +
                   " relations, and at most " + std::to_string(kMaxRelations));
  }
  std::unordered_set<std::string> names;
  for (const ModelGraph::Type& type : graph.types) {
    if (type.name.empty() || !names.insert(type.name).second) {
      return Invalid("two types are called \"" + type.name + "\", or one is called nothing");
    }
    if (type.in_dim < 1 || type.in_dim > kMaxColumns) {
      return Invalid("in_dim of " + type.name + " is " + std::to_string(type.in_dim) +
                     ", must be in 1.." + std::to_string(kMaxColumns));
    }
  }
  bool is_reached = false;
  for (const ModelGraph::Relation& relation : graph.relations) {
    if (relation.source >= graph.types.size() || relation.destination >= graph.types.size()) {
      return Invalid("relation " + relation.name + " joins types that are not there");
    }
    if (relation.name.empty() || !names.insert(NameOf(graph, relation)).second) {
      return Invalid("two relations are called \"" + NameOf(graph, relation) +
                     "\", or one is called nothing");
    }
    is_reached = is_reached || relation.destination == 0;
  }
  return is_reached ? Status::Ok() : Invalid("no relation leads to " + graph.types[0].name);
}

Status CheckAttention(const ModelSpec& spec) {
  if (spec.type != ModelType::kHgt) {
    if (spec.heads != 1) return Invalid("heads must be 1 in a model without attention");
    if (spec.attention_dropout == 0.0F) return Status::Ok();
    return Invalid("attention_dropout must be 0 in a model without attention");
  }
  if (spec.heads < 1 || spec.heads > kMaxHeads) {
    return Invalid("heads is " + std::to_string(spec.heads) + ", must be in 1..64");
  }
  if (spec.hidden_dim % spec.heads != 0) {
    return Invalid("hidden_dim must be a multiple of heads");
  }
  if (spec.activation != Activation::kRelu) {
    return Invalid("activation of HGT is within its layers, and always GELU");
  }
  return spec.residual ? Invalid("residual of HGT is the gate of its layers") : Status::Ok();
}

}  // namespace

RelationNeeds::RelationNeeds(const ModelSpec& spec)
    : rows_(spec.num_layers + 1, std::vector<bool>(spec.graph.types.size())),
      relations_(spec.graph.relations) {
  rows_.back()[0] = true;
  for (uint32_t layer = spec.num_layers; layer-- > 0;) {
    rows_[layer] = rows_[layer + 1];  // a layer reads the rows themselves, too
    for (uint32_t r = 0; r < relations_.size(); ++r) {
      if (Takes(layer, r)) rows_[layer][relations_[r].source] = true;
    }
  }
}

RelationTensors RelationTensors::Of(const ModelSpec& spec) { return BuildAll(spec, nullptr); }

Status CheckRelationSpec(const ModelSpec& spec) {
  GNND_TRY(CheckGraph(spec.graph));
  GNND_TRY(CheckAttention(spec));
  if (spec.type != ModelType::kRgcn && spec.bases != 0) {
    return Invalid("bases are of an R-GCN alone");
  }
  if (spec.bases > spec.graph.relations.size()) {
    return Invalid("bases is " + std::to_string(spec.bases) + ", and there are " +
                   std::to_string(spec.graph.relations.size()) + " relations");
  }
  if (spec.head) return Invalid("a model over relations learns nodes, not links");
  return Status::Ok();
}

void AddRelationTensors(const ModelSpec& spec, ParameterManifest* manifest) {
  BuildAll(spec, manifest);
}

std::string NameOf(const ModelGraph& graph, const ModelGraph::Relation& relation) {
  return graph.types[relation.source].name + "__" + relation.name + "__" +
         graph.types[relation.destination].name;
}

}  // namespace gnnd
