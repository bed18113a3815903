#include "train/layers/relational.h"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/optimizer.h"
#include "test/train/typed_reference.h"
#include "train/ops/parallel.h"
#include "train/ops/relation_ops.h"

namespace gnnd {
namespace {

using test::GradientError;
using test::RelativeError;
using test::TypedGraph;
using test::TypedReference;
using test::TypedSample;

struct Case {
  ModelSpec spec;
  int32_t fanout = -1;
  uint64_t seed = 0;
  std::string name;
};

// Types 0 to 3, of which the last one is reached by nothing; relations within a type and between
// types, one of them twice, one of `rare` edges a row at most.
TypedGraph OddGraph(uint64_t seed, uint64_t rare = 0) {
  TypedGraph graph = test::RandomTypedGraph(seed, {30, 12, 9, 5}, 0, 0);
  std::mt19937_64 random(seed);
  const auto add = [&](uint32_t src_type, uint32_t dst_type, uint64_t max_degree) {
    TypedGraph::Relation relation{src_type, dst_type, {}};
    for (uint32_t v = 0; v < graph.num_nodes[dst_type]; ++v) {
      std::vector<uint32_t> row(max_degree == 0 ? 0 : random() % (max_degree + 1));
      for (uint32_t& u : row) u = static_cast<uint32_t>(random() % graph.num_nodes[src_type]);
      relation.rows.AddRow(row);
    }
    graph.relations.push_back(std::move(relation));
  };
  add(1, 0, 4);
  add(0, 0, 5);
  add(0, 1, 4);
  add(2, 1, 3);
  add(1, 0, 2);
  add(0, 3, 3);
  add(2, 0, rare);
  add(3, 3, 2);
  return graph;
}

const std::vector<uint32_t> kInDims = {7, 5, 11, 3};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  uint64_t seed = 40;
  for (const ModelType type : {ModelType::kRsage, ModelType::kRgcn, ModelType::kHgt}) {
    const bool is_hgt = type == ModelType::kHgt;
    for (uint32_t option = 0; option < 24; ++option) {
      Case c;
      c.seed = ++seed;
      c.spec.type = type;
      c.spec.num_layers = 1 + option % 3;
      c.spec.hidden_dim = option % 2 == 0 ? 12 : 18;
      c.spec.out_dim = 4;
      c.spec.dropout = option % 4 == 3 ? 0.4F : 0.0F;
      c.spec.normalization = static_cast<Normalization>(1 + option / 3 % 3);
      if (is_hgt) {
        c.spec.heads = 3;
        c.spec.attention_dropout = c.spec.dropout;
      } else {
        c.spec.activation = static_cast<Activation>(1 + option / 5 % 3);
        c.spec.residual = option % 5 == 2;
      }
      if (type == ModelType::kRgcn) c.spec.bases = option % 3;
      c.spec.graph = test::ModelGraphOf(OddGraph(c.seed), kInDims);
      c.fanout = option % 8 < 4 ? 2 : -1;
      c.name = std::string(KindOf(type).name) + " option " + std::to_string(option);
      cases.push_back(c);
    }
  }
  return cases;
}

struct Fixture {
  explicit Fixture(const Case& c)
      : graph(OddGraph(c.seed)),
        sample(graph, {c.seed, 3, 7}, {4, 0, 21, 13}, c.spec.num_layers, c.fanout),
        model(c.spec) {
    std::vector<float> floats(model.manifest.num_floats);
    InitGlorot(model.manifest, c.seed, 1.0, floats);
    std::mt19937_64 random(c.seed);
    std::normal_distribution<float> normal;
    for (const ParameterTensor& tensor : model.manifest.tensors) {
      const auto size = static_cast<int64_t>(tensor.size());
      at::Tensor values = at::from_blob(floats.data() + tensor.offset, {size}, at::kFloat).clone();
      if (tensor.is_bias) {
        for (int64_t i = 0; i < size; ++i) values.data_ptr<float>()[i] += normal(random);
      } else {
        values = values.view({tensor.rows, tensor.cols});
      }
      parameters.push_back(values);
    }
    for (uint32_t t = 0; t < kInDims.size(); ++t) {
      const auto nodes = static_cast<int64_t>(sample.view().nodes(t).size());
      at::Tensor x;
      if (nodes > 0) {
        x = at::empty({nodes, kInDims[t]}, at::kFloat);
        for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = normal(random);
      }
      inputs.push_back(x);
    }
  }

  std::vector<at::Tensor> Leaves(at::ScalarType type) const {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& tensor : parameters) {
      leaves.push_back(tensor.to(type).clone().requires_grad_(true));
    }
    return leaves;
  }
  std::vector<at::Tensor> Inputs(at::ScalarType type) const {
    std::vector<at::Tensor> rows;
    for (const at::Tensor& x : inputs) rows.push_back(x.defined() ? x.to(type) : x);
    return rows;
  }

  TypedGraph graph;
  TypedSample sample;
  Model model;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> inputs;
};

struct Found {
  at::Tensor logits;
  std::vector<at::Tensor> gradients;
};

Found WithGradients(const at::Tensor& logits, const std::vector<at::Tensor>& leaves) {
  const at::Tensor slopes = at::arange(logits.numel(), logits.options()).sin().view_as(logits);
  Found found{logits.detach().clone(), {}};
  const auto grads = torch::autograd::grad({logits}, leaves, {slopes}, std::nullopt, false, true);
  for (size_t t = 0; t < leaves.size(); ++t) {
    found.gradients.push_back(grads[t].defined() ? grads[t].clone() : at::zeros_like(leaves[t]));
  }
  return found;
}

Found Run(const Fixture& fixture, at::ScalarType type) {
  Workspace workspace;
  const std::vector<at::Tensor> leaves = fixture.Leaves(type);
  return WithGradients(ForwardTyped(fixture.model, leaves, fixture.sample.view(),
                                    fixture.Inputs(type), /*trains=*/true, &workspace),
                       leaves);
}

Found Expected(const Fixture& fixture) {
  const std::vector<at::Tensor> leaves = fixture.Leaves(at::kDouble);
  TypedReference reference(fixture.model.spec, leaves, fixture.sample.view(), /*trains=*/true);
  return WithGradients(reference.Logits(fixture.Inputs(at::kDouble)), leaves);
}

void CheckCase(const Case& c, at::ScalarType type, double tolerance) {
  INFO(c.name);
  const Fixture fixture(c);
  const Found expected = Expected(fixture);
  const Found found = Run(fixture, type);
  CHECK((found.logits.scalar_type() == type));
  CHECK(RelativeError(found.logits, expected.logits) < tolerance);
  for (size_t t = 0; t < found.gradients.size(); ++t) {
    INFO(fixture.model.manifest.tensors[t].name);
    CHECK(GradientError(found.gradients[t], expected.gradients, t, 0.02) < tolerance);
  }
}

TEST_CASE("in float64 models over relations equal the dense reference to 1e-10") {
  for (const Case& c : Cases()) CheckCase(c, at::kDouble, 1e-10);
}

TEST_CASE("in float32 models over relations equal the dense float64 reference to 2e-5") {
  for (const Case& c : Cases()) CheckCase(c, at::kFloat, 2e-5);
}

TEST_CASE("every tensor of a model over relations gets a gradient from whole neighbourhoods") {
  for (Case c : Cases()) {
    if (c.spec.dropout > 0) continue;
    c.fanout = -1;
    INFO(c.name);
    Fixture fixture(c);
    Workspace workspace;
    const std::vector<at::Tensor> leaves = fixture.Leaves(at::kDouble);
    std::vector<uint32_t> seeds(fixture.graph.num_nodes[0]);
    for (uint32_t v = 0; v < seeds.size(); ++v) seeds[v] = v;
    const TypedSample whole(OddGraph(c.seed, 2), {1, 0, 0}, seeds, c.spec.num_layers, -1);
    std::vector<at::Tensor> inputs;
    for (uint32_t t = 0; t < kInDims.size(); ++t) {
      const auto nodes = static_cast<int64_t>(whole.view().nodes(t).size());
      inputs.push_back(at::ones({nodes, kInDims[t]}, at::kDouble));
    }
    const at::Tensor logits =
        ForwardTyped(fixture.model, leaves, whole.view(), inputs, true, &workspace);
    const auto grads = torch::autograd::grad({logits.sum()}, leaves, {}, std::nullopt, false, true);
    for (size_t t = 0; t < grads.size(); ++t) {
      INFO(fixture.model.manifest.tensors[t].name);
      CHECK(grads[t].defined());
    }
  }
}

TEST_CASE("threads decide no bit of a model over relations") {
  for (const Case& c : Cases()) {
    INFO(c.name);
    const Fixture fixture(c);
    UseTeamOf(1);
    const Found one = Run(fixture, at::kFloat);
    UseTeamOf(3);
    const Found three = Run(fixture, at::kFloat);
    UseTeamOf(1);
    CHECK(at::equal(one.logits, three.logits));
    for (size_t t = 0; t < one.gradients.size(); ++t) {
      CHECK(at::equal(one.gradients[t], three.gradients[t]));
    }
  }
}

// An exact evaluation: all rows of a source's type in one matrix, rows in parts.
TEST_CASE("layers by parts over whole matrices give the logits of the sample with all neighbours") {
  for (Case c : Cases()) {
    c.fanout = -1;
    INFO(c.name);
    const Fixture fixture(c);
    const Sample& sample = fixture.sample.view();
    TypedReference reference(c.spec, fixture.Leaves(at::kDouble), sample, /*trains=*/false);
    const at::Tensor expected = reference.Logits(fixture.Inputs(at::kDouble)).detach();
    const at::NoGradGuard no_gradients;
    Workspace workspace;
    const uint32_t layers = c.spec.num_layers;
    const RelationNeeds needs(c.spec);
    std::vector<at::Tensor> rows;
    for (uint32_t t = 0; t < kInDims.size(); ++t) {
      const RelationalContext context{.model = fixture.model,
                                      .type = t,
                                      .parameters = fixture.parameters,
                                      .workspace = &workspace};
      const bool needed = needs.Rows(0, t) && fixture.inputs[t].defined();
      rows.push_back(needed ? ProjectInput(context, fixture.inputs[t]) : at::Tensor());
    }
    for (uint32_t layer = 0; layer < layers; ++layer) {
      std::vector<at::Tensor> next(rows.size());
      for (uint32_t t = 0; t < rows.size(); ++t) {
        if (!needs.Rows(layer + 1, t)) continue;
        if (!rows[t].defined()) continue;
        std::vector<RelationInput> relations;
        int64_t count = rows[t].size(0);
        for (uint32_t b = 0; b < sample.num_blocks(); ++b) {
          const BlockView& block = sample.block(b);
          if (block.hop + 1 + layer != layers || block.dst_type != t) continue;
          count = block.num_dst;
          if (!needs.Takes(layer, block.relation)) continue;
          // Of a relation without edges nothing is read.
          const at::Tensor x = block.src.empty() ? at::Tensor() : rows[block.src_type];
          relations.push_back({block.relation, block, x});
          if (x.defined()) relations.back().block.num_src = static_cast<uint32_t>(x.size(0));
        }
        const RelationalContext context{.model = fixture.model,
                                        .layer = layer,
                                        .type = t,
                                        .parameters = fixture.parameters,
                                        .workspace = &workspace};
        next[t] = ForwardRelations(context, relations, rows[t].narrow(0, 0, count));
      }
      rows = next;
    }
    CHECK(RelativeError(rows[0], expected) < 2e-5);
  }
}

TEST_CASE("a model over relations has no tensor of what cannot reach the learnt type") {
  Case c = Cases()[0];
  const ParameterManifest manifest = *ManifestOf(c.spec);
  for (const ParameterTensor& tensor : manifest.tensors) {
    INFO(tensor.name);
    CHECK(tensor.name.find("type3") == std::string::npos);
  }
  c.spec.num_layers = 2;
  std::vector<std::string> names;
  const ParameterManifest two_layers = *ManifestOf(c.spec);
  for (const ParameterTensor& tensor : two_layers.tensors) names.push_back(tensor.name);
  const std::vector<std::string> expected = {"lin_in.type0.weight",
                                             "lin_in.type0.bias",
                                             "lin_in.type1.weight",
                                             "lin_in.type1.bias",
                                             "lin_in.type2.weight",
                                             "lin_in.type2.bias",
                                             "convs.0.type1__r0__type0.weight",
                                             "convs.0.type0__r1__type0.weight",
                                             "convs.0.type0__r2__type1.weight",
                                             "convs.0.type2__r3__type1.weight",
                                             "convs.0.type1__r4__type0.weight",
                                             "convs.0.type2__r6__type0.weight",
                                             "convs.0.type0.root.weight",
                                             "convs.0.type0.bias",
                                             "convs.0.type1.root.weight",
                                             "convs.0.type1.bias",
                                             "convs.0.type2.root.weight",
                                             "convs.0.type2.bias",
                                             "convs.1.type1__r0__type0.weight",
                                             "convs.1.type0__r1__type0.weight",
                                             "convs.1.type1__r4__type0.weight",
                                             "convs.1.type2__r6__type0.weight",
                                             "convs.1.type0.root.weight",
                                             "convs.1.type0.bias"};
  CHECK(names == expected);
}

TEST_CASE("a model over relations that cannot be is refused by the name of what is wrong") {
  const auto refused = [](ModelType type, const std::string& what, auto&& change) {
    Case c;
    c.spec.type = type;
    c.spec.hidden_dim = 12;
    c.spec.out_dim = 4;
    c.spec.graph = test::ModelGraphOf(OddGraph(1), kInDims);
    REQUIRE(ManifestOf(c.spec).ok());
    change(&c.spec);
    const auto manifest = ManifestOf(c.spec);
    REQUIRE(!manifest.ok());
    INFO(manifest.status().message());
    CHECK(manifest.status().message().find(what) != std::string::npos);
  };
  const ModelType sage = ModelType::kRsage;
  const ModelType hgt = ModelType::kHgt;
  refused(sage, "in_dim of type2", [](ModelSpec* spec) { spec->graph.types[2].in_dim = 0; });
  refused(sage, "called \"type1\"", [](ModelSpec* spec) { spec->graph.types[2].name = "type1"; });
  refused(sage, "called \"type1__r0__type0\"",
          [](ModelSpec* spec) { spec->graph.relations[4].name = "r0"; });
  refused(sage, "types that are not there",
          [](ModelSpec* spec) { spec->graph.relations[0].source = 4; });
  refused(sage, "no relation leads to type0", [](ModelSpec* spec) {
    for (auto& relation : spec->graph.relations) relation.destination = 1;
  });
  refused(sage, "bases", [](ModelSpec* spec) { spec->bases = 1; });
  refused(ModelType::kRgcn, "bases is 9", [](ModelSpec* spec) { spec->bases = 9; });
  refused(sage, "heads", [](ModelSpec* spec) { spec->heads = 2; });
  refused(hgt, "multiple of heads", [](ModelSpec* spec) { spec->heads = 5; });
  refused(hgt, "activation", [](ModelSpec* spec) { spec->activation = Activation::kElu; });
  refused(hgt, "residual", [](ModelSpec* spec) { spec->residual = true; });
  refused(sage, "not links", [](ModelSpec* spec) { spec->head = LinkHead::kDot; });
}

TEST_CASE("types of equal ids drop others than type 0, whose draws are those of one type") {
  CHECK(SeedOfType(17, 0) == 17);
  CHECK(SeedOfType(17, 1) != SeedOfType(17, 2));
  const PhiloxKey key = RelationKey(KeyOf(17), 2);
  CHECK(KeyOf(SeedOfType(17, 2)).lo == key.lo);
  CHECK(KeyOf(SeedOfType(17, 2)).hi == key.hi);
}

TEST_CASE("the error function in float32 is the library's to 5e-7") {
  for (float x = -7.0F; x < 7.0F; x += 1e-3F) {
    CHECK(std::abs(ErrorFunction(x) - std::erf(x)) < 5e-7);
  }
}

}  // namespace
}  // namespace gnnd
