#include "train/layers/model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/loss.h"
#include "core/kernels/optimizer.h"
#include "core/metric/metric.h"
#include "core/model/manifest.h"
#include "test/support/block_types.h"
#include "test/support/record_builder.h"
#include "test/train/dense_reference.h"
#include "train/work/torch_work.h"

namespace gnnd {
namespace {

using test::DenseForward;
using test::DenseResult;
using test::DenseStep;
using test::GradientError;
using test::RelativeError;
using test::TestGraph;
using test::TestRecord;

constexpr uint32_t kNodes = 40;

// Random in-neighbour lists with isolated nodes, self-loops and repeated edges.
TestGraph OddGraph(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint32_t>> rows(kNodes);
  for (uint32_t v = 0; v < kNodes; ++v) {
    if (v % 7 == 0) continue;  // no in-neighbours
    const uint64_t degree = 1 + random() % 9;
    for (uint64_t k = 0; k < degree; ++k) {
      rows[v].push_back(static_cast<uint32_t>(random() % kNodes));
    }
    if (v % 3 == 0) rows[v].push_back(v);
    if (v % 4 == 0) rows[v].push_back(rows[v][0]);
  }
  return test::GraphOf(rows);
}

struct Case {
  ModelSpec spec;
  std::vector<int32_t> fanouts;
  uint64_t seed = 0;
  bool weighted = false;
  std::string name;
};

const std::vector<ModelType> kAllTypes = test::BlockTypes();

// All models, 1 to 3 layers, with and without dropout, sampled and full neighbourhoods, narrowing
// and widening layers.
std::vector<Case> PlainCases() {
  std::vector<Case> cases;
  uint64_t seed = 100;
  for (const ModelType type : kAllTypes) {
    for (uint32_t layers = 1; layers <= 3; ++layers) {
      for (const int32_t fanout : {-1, 3}) {
        for (const bool narrowing : {false, true}) {
          for (const float dropout : {0.0F, 0.3F}) {
            Case c;
            c.spec.type = type;
            c.spec.num_layers = layers;
            c.spec.in_dim = narrowing ? 67 : 5;
            c.spec.hidden_dim = narrowing ? 6 : IsAttention(type) ? 33 : 19;
            c.spec.out_dim = 4;
            c.spec.dropout = dropout;
            c.spec.input_dropout = dropout / 2;
            if (IsAttention(type)) {
              c.spec.heads = 3;
              c.spec.attention_dropout = dropout;
            }
            c.fanouts.assign(layers, fanout);
            c.seed = ++seed;
            c.name = std::string(KindOf(type).name) + " layers " + std::to_string(layers) +
                     " fanout " + std::to_string(fanout) +
                     (narrowing ? " narrowing" : " widening") + " dropout " +
                     std::to_string(dropout);
            cases.push_back(c);
          }
        }
      }
    }
  }
  return cases;
}

// Every activation and normalisation with and without residual, on every model; edge weights on
// those that can have them.
std::vector<Case> OptionCases() {
  std::vector<Case> cases;
  uint64_t seed = 900;
  for (const ModelType type : kAllTypes) {
    for (uint32_t option = 0; option < 18; ++option) {
      Case c;
      c.spec.type = type;
      c.spec.num_layers = 3;
      c.spec.in_dim = 10;
      c.spec.hidden_dim = option % 2 == 0 ? 16 : 10;
      c.spec.out_dim = 4;
      c.spec.dropout = option % 4 < 2 ? 0.4F : 0.0F;
      if (IsAttention(type)) c.spec.heads = 2;
      c.spec.activation = static_cast<Activation>(1 + option % 3);
      c.spec.normalization = static_cast<Normalization>(1 + option / 3 % 3);
      c.spec.residual = option >= 9;
      if (KindOf(type).has_unit_rows && c.spec.normalization == Normalization::kLayer) continue;
      c.weighted = KindOf(type).gathering == Gathering::kMean;
      c.fanouts = {3, 4, -1};
      c.seed = ++seed;
      c.name = std::string(KindOf(type).name) + " option " + std::to_string(option);
      cases.push_back(c);
    }
  }
  return cases;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = PlainCases();
  for (const Case& c : OptionCases()) cases.push_back(c);
  return cases;
}

// The data of a case: a record, features of all nodes, labels, parameters with non-zero biases.
struct Fixture {
  explicit Fixture(const Case& c)
      : graph(OddGraph(c.seed)),
        record(graph, {{c.seed, 2, 5},
                       {9, 0, 21, 33, 14},
                       c.fanouts,
                       c.spec.type == ModelType::kGcn || c.weighted}),
        manifest(*ManifestOf(c.spec)) {
    std::mt19937_64 random(c.seed);
    std::normal_distribution<float> normal;
    features.resize(uint64_t{kNodes} * c.spec.in_dim);
    for (float& value : features) value = normal(random);
    for (uint32_t v = 0; v < kNodes; ++v)
      labels.push_back(static_cast<int32_t>(v % c.spec.out_dim));
    parameters.resize(manifest.num_floats);
    InitGlorot(manifest, c.seed, 1.0, parameters);
    for (const ParameterTensor& tensor : manifest.tensors) {
      if (!tensor.is_bias) continue;
      for (uint64_t i = 0; i < tensor.size(); ++i) parameters[tensor.offset + i] = normal(random);
    }
  }

  std::vector<at::Tensor> Parameters(at::ScalarType type) const {
    std::vector<at::Tensor> tensors;
    for (const ParameterTensor& t : manifest.tensors) {
      const auto flat = at::from_blob(const_cast<float*>(parameters.data()) + t.offset,
                                      {static_cast<int64_t>(t.size())}, at::kFloat);
      const auto shaped = t.is_bias ? flat : flat.view({t.rows, t.cols});
      tensors.push_back(shaped.to(type).clone().requires_grad_(true));
    }
    return tensors;
  }

  // Rows of the record's nodes.
  at::Tensor X(at::ScalarType type) const {
    const Sample sample = record.view();
    const auto dim = static_cast<int64_t>(features.size() / kNodes);
    at::Tensor x = at::empty({static_cast<int64_t>(sample.nodes().size()), dim}, at::kFloat);
    for (size_t r = 0; r < sample.nodes().size(); ++r) {
      std::copy_n(features.data() + sample.nodes()[r] * static_cast<uint64_t>(dim), dim,
                  x.data_ptr<float>() + static_cast<int64_t>(r) * dim);
    }
    return x.to(type);
  }

  at::Tensor SeedLabels() const {
    const Sample sample = record.view();
    at::Tensor seeds = at::empty({sample.num_seeds()}, at::kLong);
    for (uint32_t i = 0; i < sample.num_seeds(); ++i) {
      seeds.data_ptr<int64_t>()[i] = labels[sample.nodes()[i]];
    }
    return seeds;
  }

  TestGraph graph;
  TestRecord record;
  ParameterManifest manifest;
  std::vector<float> features;
  std::vector<int32_t> labels;
  std::vector<float> parameters;
};

// See GradientError: attention's gradients cancel, and so does that of one number for all rows.
double FloorOf(const Case& c) {
  const Gathering gathering = KindOf(c.spec.type).gathering;
  if (gathering == Gathering::kDot)
    return 0.05;  // gradients of keys and queries cancel almost
                  // entirely
  return IsAttention(c.spec.type) || gathering == Gathering::kSum ? 0.02 : 0.0;
}

struct Found {
  at::Tensor logits;
  std::vector<at::Tensor> gradients;
};

// Runs the case with input rows of type `rows` and parameters of type `type`.
Found RunModules(const Case& c, const Fixture& fixture, at::ScalarType rows, at::ScalarType type) {
  const Sample sample = fixture.record.view();
  Workspace workspace;
  const auto leaves = fixture.Parameters(type);
  const at::Tensor mask =
      test::MaskOf(sample.key(), 0, sample.nodes(), c.spec.in_dim, c.spec.input_dropout);
  BottomInput input;
  input.x = (fixture.X(type) * mask.to(type)).to(rows).contiguous();
  Found found;
  found.logits = ForwardBlocks(Model(c.spec), leaves, sample, input, &workspace);
  const at::Tensor loss =
      at::cross_entropy_loss(found.logits, fixture.SeedLabels(), {}, at::Reduction::Sum);
  for (const at::Tensor& gradient : torch::autograd::grad({loss}, leaves)) {
    found.gradients.push_back(gradient.clone());
  }
  found.logits = found.logits.clone();
  return found;
}

DenseResult ExpectedOf(const Case& c, const Fixture& fixture, at::ScalarType type) {
  return DenseStep(c.spec, fixture.Parameters(type), fixture.record.view(), fixture.X(type),
                   fixture.SeedLabels());
}

void CheckModules(const Case& c, at::ScalarType type, double tolerance) {
  INFO(c.name);
  const Fixture fixture(c);
  const DenseResult expected = ExpectedOf(c, fixture, type);
  const Found found = RunModules(c, fixture, type, type);
  CHECK((found.logits.scalar_type() == type));
  CHECK(RelativeError(found.logits, expected.logits) < tolerance);
  for (size_t t = 0; t < found.gradients.size(); ++t) {
    INFO(fixture.manifest.tensors[t].name);
    CHECK(GradientError(found.gradients[t], expected.gradients, t, FloorOf(c)) < tolerance);
  }
}

// The cosine between all parameters, as one vector each.
double CosineOf(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double product = 0;
  double squares[2] = {};
  for (size_t t = 0; t < a.size(); ++t) {
    const at::Tensor left = a[t].to(at::kDouble).flatten();
    const at::Tensor right = b[t].to(at::kDouble).flatten();
    product += left.dot(right).item<double>();
    squares[0] += left.dot(left).item<double>();
    squares[1] += right.dot(right).item<double>();
  }
  return product / std::sqrt(squares[0] * squares[1]);
}

TEST_CASE("in float64 the modules equal the dense reference to 1e-10") {
  for (const Case& c : Cases()) CheckModules(c, at::kDouble, 1e-10);
}

TEST_CASE("in float32 the modules equal the dense float64 reference to 1e-5") {
  for (const Case& c : Cases()) CheckModules(c, at::kFloat, 1e-5);
}

// Each row is rounded to 8 bits of precision between layers: an element's gradient may be lost
// where terms cancel, their direction is not. But for a row that a ReLU leaves nearly empty and a
// normalisation blows up: one draw in forty or fewer has one, so the middle one of three counts.
TEST_CASE(
    "on rows in bfloat16 logits are near the dense float64 reference, and gradients go there") {
  for (const Case& base : Cases()) {
    INFO(base.name);
    std::array<double, 3> cosines{};
    for (double& cosine : cosines) {
      Case c = base;
      c.seed += 1000 * static_cast<uint64_t>(&cosine - cosines.data());
      const Fixture fixture(c);
      const DenseResult expected = ExpectedOf(c, fixture, at::kDouble);
      const Found found = RunModules(c, fixture, at::kBFloat16, at::kFloat);
      CHECK((found.logits.scalar_type() == at::kFloat));
      CHECK(RelativeError(found.logits, expected.logits) < 0.03);
      cosine = CosineOf(found.gradients, expected.gradients);
    }
    std::sort(cosines.begin(), cosines.end());
    CHECK(cosines[1] > 0.98);
  }
}

TEST_CASE("a Trainer's gradient equals the dense float64 reference to 1e-5") {
  for (const Case& c : Cases()) {
    INFO(c.name);
    const Fixture fixture(c);
    TrainOptions options;
    options.model = c.spec;
    options.features = RowTable(fixture.features, c.spec.in_dim);
    options.targets.labels = fixture.labels;
    options.topology = fixture.graph.view();
    auto work = TorchWork::Create(options);
    REQUIRE(work.ok());
    const Sample sample = fixture.record.view();
    std::vector<float> gradient(fixture.manifest.num_floats, -1.0F);
    BatchReport report;
    ExtractReport extracted;
    REQUIRE((*work)->Extract(sample, 0, &extracted).ok());
    REQUIRE((*work)
                ->ComputeGradient(sample, 0, {.floats = fixture.parameters}, gradient, &report)
                .ok());

    const DenseResult expected = DenseStep(c.spec, fixture.Parameters(at::kDouble), sample,
                                           fixture.X(at::kDouble), fixture.SeedLabels());
    CHECK(report.sums.items == 5);
    CHECK(report.sums.loss == doctest::Approx(expected.loss_sum).epsilon(1e-5));
    const auto right = expected.logits.argmax(1).eq(fixture.SeedLabels()).sum().item<int64_t>();
    CHECK(report.sums.counts[kCorrect] == static_cast<uint64_t>(right));
    std::vector<float> padding = gradient;
    for (size_t t = 0; t < fixture.manifest.tensors.size(); ++t) {
      const ParameterTensor& tensor = fixture.manifest.tensors[t];
      INFO(tensor.name);
      const auto size = static_cast<int64_t>(tensor.size());
      const auto mine = at::from_blob(gradient.data() + tensor.offset, {size}, at::kFloat);
      CHECK(GradientError(mine.view_as(expected.gradients[t]), expected.gradients, t, FloorOf(c)) <
            1e-5);
      std::fill_n(padding.begin() + static_cast<int64_t>(tensor.offset), size, 0.0F);
    }
    CHECK(std::count(padding.begin(), padding.end(), 0.0F) == static_cast<int64_t>(padding.size()));
  }
}

// The weights that a TestRecord's edges carry, for the whole graph.
std::vector<float> EdgeWeightsOf(const TestGraph& graph) {
  const TopologyView topology = graph.view();
  const auto norm = [&](uint32_t v) {
    return 1.0 / std::sqrt(static_cast<double>(topology.degree(v)) + 1.0);
  };
  std::vector<float> weights;
  for (uint32_t v = 0; v < topology.num_nodes(); ++v) {
    for (uint64_t e = topology.indptr[v]; e < topology.indptr[v + 1]; ++e) {
      weights.push_back(static_cast<float>(norm(topology.indices[e]) * norm(v)));
    }
  }
  return weights;
}

TEST_CASE("prediction equals the dense reference on full neighbourhoods, however little memory") {
  for (Case c : Cases()) {
    if (c.fanouts[0] != -1 && c.name.find("option") == std::string::npos) continue;
    INFO(c.name);
    std::fill(c.fanouts.begin(), c.fanouts.end(), -1);
    const Fixture fixture(c);
    ModelSpec quiet = c.spec;
    quiet.dropout = quiet.input_dropout = quiet.attention_dropout = 0;
    const at::Tensor expected = DenseForward(quiet, fixture.Parameters(at::kDouble),
                                             fixture.record.view(), fixture.X(at::kDouble));
    const auto edge_weights = EdgeWeightsOf(fixture.graph);
    TrainOptions options;
    options.model = c.spec;
    options.features = RowTable(fixture.features, c.spec.in_dim);
    options.targets.labels = fixture.labels;
    options.topology = fixture.graph.view();
    if (c.weighted) options.edge_weights = edge_weights;
    const std::vector<uint32_t> nodes = {0, 9, 14, 21, 33};
    const std::vector<int64_t> rows = {1, 0, 4, 2, 3};  // rows of the record's seeds
    for (const char* folder : {"", "/tmp"}) {
      options.eval_place = {-1, 1, folder};  // memory, or a file
      auto work = TorchWork::Create(options);
      REQUIRE(work.ok());
      std::vector<float> logits;
      double progress = 0;
      const auto alive = [&] {
        CHECK((*work)->predicted() >= progress);
        progress = (*work)->predicted();
        return true;
      };
      const auto append = [&](std::span<const uint32_t> part, const float* part_logits) {
        logits.insert(logits.end(), part_logits, part_logits + part.size() * c.spec.out_dim);
        return Status::Ok();
      };
      REQUIRE((*work)->Predict(fixture.parameters, nodes, alive, append).ok());
      REQUIRE(logits.size() == nodes.size() * c.spec.out_dim);
      CHECK((*work)->predicted() == doctest::Approx(1));
      const auto mine = at::from_blob(
          logits.data(), {static_cast<int64_t>(nodes.size()), c.spec.out_dim}, at::kFloat);
      const auto order = at::tensor(rows, at::kLong);
      CHECK(RelativeError(mine, expected.index_select(0, order)) < 1e-5);
    }
  }
}

TEST_CASE("the cases cover both orders of transforming and aggregating") {
  uint32_t transform_first = 0;
  uint32_t layers = 0;
  for (const Case& c : PlainCases()) {
    if (c.spec.type != ModelType::kGraphSage && c.spec.type != ModelType::kGcn) continue;
    const Fixture fixture(c);
    for (uint32_t layer = 0; layer < c.spec.num_layers; ++layer) {
      const BlockView block = fixture.record.view().block(c.spec.num_layers - 1 - layer);
      const LayerShape shape = ShapeOf(c.spec, layer);
      ++layers;
      if (TransformFirst(block.num_dst, block.num_src, block.src.size(), shape.in, shape.out)) {
        ++transform_first;
      }
    }
  }
  CHECK(transform_first > 10);
  CHECK(layers - transform_first > 10);
}

TEST_CASE("aggregating straight from the feature store gives the bits of gathering rows first") {
  for (const ModelType type : {ModelType::kGraphSage, ModelType::kGcn}) {
    Case c;
    c.spec.type = type;
    c.spec.num_layers = 1;
    c.spec.in_dim = 37;
    c.spec.out_dim = 4;
    c.fanouts = {3};
    const Fixture fixture(c);
    const Sample sample = fixture.record.view();
    const BlockView block = sample.block(0);
    std::vector<uint32_t> index;
    for (const uint32_t s : block.src) index.push_back(sample.nodes()[s]);
    Workspace workspace;
    const BlockOperand<float> operand(block, ReductionOf(c.spec), &workspace);
    const at::Tensor gathered = operand.Aggregate(fixture.X(at::kFloat));
    std::vector<float> fused(block.num_dst * c.spec.in_dim);
    const RowTable table(fixture.features, c.spec.in_dim);
    operand.AggregateFromTable(table, index.data(), sample.nodes().data(), fused.data());
    CHECK(std::equal(fused.begin(), fused.end(), gathered.const_data_ptr<float>()));
  }
}

TEST_CASE("shares of a mean are summed and not divided by their sum, in both directions") {
  const std::vector<uint32_t> indptr = {0, 2, 3, 3};
  const std::vector<uint32_t> src = {3, 4, 1};
  const std::vector<float> weight = {0.25F, 1.5F, 0.75F};
  BlockView block;
  block.num_dst = 3;
  block.num_src = 5;
  block.indptr = indptr;
  block.src = src;
  block.weight = weight;
  ModelSpec spec;
  Workspace workspace;
  BlockOperand<double> operand(block, ReductionOf(spec, true), &workspace);
  const at::Tensor x = at::arange(1, 11, at::kDouble).view({5, 2});
  const at::Tensor sums = operand.Aggregate(x);
  const at::Tensor expected = at::zeros({3, 2}, at::kDouble);
  expected[0].copy_(x[3] * 0.25 + x[4] * 1.5);
  expected[1].copy_(x[1] * 0.75);
  CHECK(at::equal(sums, expected));
  // Own rows' gradients come on top: GraphSAGE reads them, too.
  const at::Tensor grad = at::ones({3, 2}, at::kDouble);
  const at::Tensor back = operand.AggregateTransposed(grad, grad * 2);
  const at::Tensor wanted = at::zeros({5, 2}, at::kDouble);
  for (int64_t row : {0, 1, 2}) wanted[row].fill_(2);
  wanted[1].add_(0.75);
  wanted[3].add_(0.25);
  wanted[4].add_(1.5);
  CHECK(at::equal(back, wanted));
  CHECK(ReductionOf(spec) == Reduction::kMean);
}

TEST_CASE("loss and its gradient are those of softmax cross-entropy, also for large logits") {
  const std::vector<double> logits = {1000.0, 998.0, -2000.0};
  std::vector<double> grad(3);
  const double loss = CrossEntropy<double>(logits, 1, grad.data());
  CHECK(loss == doctest::Approx(2.0 + std::log1p(std::exp(-2.0))));
  CHECK(grad[0] == doctest::Approx(1.0 / (1.0 + std::exp(-2.0))));
  CHECK(grad[0] + grad[1] + grad[2] == doctest::Approx(0.0));
  CHECK(std::isnan(CrossEntropy<float>(std::vector<float>{0.0F, std::nanf("")}, 0, nullptr)));
  CHECK(ArgMax<float>(std::vector<float>{1.0F, 3.0F, 3.0F}) == 1);
}

}  // namespace
}  // namespace gnnd
