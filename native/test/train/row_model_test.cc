#include "train/layers/row_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/optimizer.h"
#include "core/model/row_manifest.h"
#include "test/train/dense_reference.h"
#include "train/ops/parallel.h"

// SGC, SIGN and HOGA against their formulas, written with torch's own operators in float64.

namespace gnnd {
namespace {

constexpr int64_t kRows = 70;  // more than one group of sums
constexpr uint32_t kClasses = 4;

struct Case {
  std::string name;
  ModelSpec spec;
};

ModelSpec SpecOf(ModelType type, ModelVariant variant, uint32_t operators, uint32_t hops) {
  ModelSpec spec;
  spec.type = type;
  spec.variant = variant;
  spec.num_operators = operators;
  spec.num_hops = hops;
  spec.in_dim = 5;
  spec.hidden_dim = 12;
  spec.out_dim = kClasses;
  spec.num_layers = type == ModelType::kSign ? 3 : 1;
  if (type == ModelType::kHoga) spec.heads = 3;
  return spec;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const float dropout : {0.0F, 0.3F}) {
    for (const uint32_t hops : {1U, 3U}) {
      for (const uint32_t operators : {1U, 2U}) {
        const std::string name = " hops " + std::to_string(hops) + " operators " +
                                 std::to_string(operators) + " dropout " + std::to_string(dropout);
        const auto add = [&](const char* what, ModelSpec spec) {
          spec.dropout = dropout;
          spec.input_dropout = dropout / 2;
          if (spec.type == ModelType::kHoga) spec.attention_dropout = dropout;
          cases.push_back({what + name, spec});
        };
        add("SGC", SpecOf(ModelType::kSgc, ModelVariant::kNone, operators, hops));
        add("SIGN fused", SpecOf(ModelType::kSign, ModelVariant::kFused, operators, hops));
        add("SIGN concat", SpecOf(ModelType::kSign, ModelVariant::kConcat, operators, hops));
        ModelSpec gated = SpecOf(ModelType::kHoga, ModelVariant::kGated, operators, hops);
        add("HOGA gated", gated);
        gated.num_layers = 2;
        gated.hop_layers = 3;
        gated.hop_hidden_dim = 7;
        gated.residual = true;
        add("HOGA gated deep", gated);
        ModelSpec dac = SpecOf(ModelType::kHoga, ModelVariant::kDac24, operators, hops);
        dac.num_layers = 2;
        add("HOGA dac24", dac);
      }
    }
  }
  return cases;
}

struct Fixture {
  explicit Fixture(const ModelSpec& spec) : model(spec) {
    std::mt19937_64 random(11);
    std::normal_distribution<float> normal;
    parameters.resize(model.manifest.num_floats);
    InitGlorot(model.manifest, 5, 1.0, parameters);
    for (const ParameterTensor& tensor : model.manifest.tensors) {
      if (!tensor.is_bias) continue;
      for (uint64_t i = 0; i < tensor.size(); ++i) {
        const float value = normal(random);
        const bool variance = tensor.name.ends_with("running_var");
        parameters[tensor.offset + i] = variance ? std::abs(value) + 0.1F : value;
      }
    }
    const uint32_t count = spec.type == ModelType::kSgc ? 1 : TokensOf(spec);
    for (uint32_t t = 0; t < count; ++t) {
      at::Tensor token = at::empty({kRows, static_cast<int64_t>(spec.in_dim)}, at::kFloat);
      for (int64_t i = 0; i < token.numel(); ++i) token.data_ptr<float>()[i] = normal(random);
      tokens.push_back(token);
    }
    for (uint32_t r = 0; r < kRows; ++r) nodes.push_back(3 * r + 1);
  }

  std::vector<at::Tensor> Parameters(at::ScalarType type) const {
    std::vector<at::Tensor> tensors;
    for (const ParameterTensor& t : model.manifest.tensors) {
      const auto flat = at::from_blob(const_cast<float*>(parameters.data()) + t.offset,
                                      {static_cast<int64_t>(t.size())}, at::kFloat);
      const auto shaped = t.is_bias ? flat : flat.view({t.rows, t.cols});
      tensors.push_back(shaped.to(type).clone().requires_grad_(true));
    }
    return tensors;
  }

  RowBatch Batch(at::ScalarType type, bool training = true) const {
    RowBatch batch;
    for (const at::Tensor& token : tokens) batch.tokens.push_back(token.to(type));
    batch.key = {77, 2, 9};
    batch.nodes = nodes.data();
    batch.training = training;
    return batch;
  }

  Model model;
  std::vector<float> parameters;
  std::vector<at::Tensor> tokens;
  std::vector<uint32_t> nodes;
};

// The formulas of SGC, SIGN and HOGA, token by token.
class Reference {
 public:
  Reference(const Fixture& fixture, std::vector<at::Tensor> parameters, bool training)
      : fixture_(fixture),
        spec_(fixture.model.spec),
        p_(std::move(parameters)),
        batch_(fixture.Batch(at::kDouble, training)) {}

  at::Tensor Run() {
    if (spec_.type == ModelType::kSgc) {
      return Linear(batch_.tokens[0] * Mask(0, spec_.in_dim, spec_.input_dropout), "lin");
    }
    const at::Tensor raw = batch_.tokens[0];
    const auto count = static_cast<int64_t>(batch_.tokens.size());
    const at::Tensor all =
        at::cat(batch_.tokens, 1) *
        Mask(0, spec_.in_dim * static_cast<uint32_t>(count), spec_.input_dropout);
    for (int64_t t = 0; t < count; ++t) {
      batch_.tokens[static_cast<size_t>(t)] = all.narrow(1, t * spec_.in_dim, spec_.in_dim);
    }
    if (spec_.type == ModelType::kSign) return Sign(all);
    return spec_.variant == ModelVariant::kDac24 ? Dac24() : Gated(raw);
  }

  const std::vector<at::Tensor>& parameters() const { return p_; }

 private:
  const at::Tensor& P(const std::string& name) const {
    for (size_t i = 0; i < p_.size(); ++i) {
      if (fixture_.model.manifest.tensors[i].name == name) return p_[i];
    }
    FAIL(name);
    return p_[0];
  }
  at::Tensor Mask(uint32_t place, uint32_t columns, float p) const {
    if (p == 0.0F || !batch_.training) return at::ones({kRows, columns}, at::kDouble);
    return test::MaskOf(batch_.key, place, fixture_.nodes, columns, p);
  }
  // The mask of token `t`: a node's elements are the columns of all tokens, one after the other.
  at::Tensor TokenMask(uint32_t place, int64_t t, int64_t count) const {
    return Mask(place, static_cast<uint32_t>(count) * static_cast<uint32_t>(Width(place)),
                spec_.dropout)
        .narrow(1, t * Width(place), Width(place));
  }
  int64_t Width(uint32_t place) const {
    return place >= kHopMask ? spec_.hop_hidden_dim : spec_.hidden_dim;
  }
  at::Tensor Linear(const at::Tensor& x, const std::string& name, bool bias = true) const {
    const at::Tensor product = at::matmul(x, P(name + ".weight").t());
    return bias ? product + P(name + ".bias") : product;
  }
  at::Tensor BatchNorm(const at::Tensor& x, const std::string& name) const {
    const bool training = batch_.training;
    return at::batch_norm(x, P(name + ".weight"), P(name + ".bias"),
                          P(name + ".running_mean").detach().clone(),
                          P(name + ".running_var").detach().clone(), training, 0.1, 1e-5, false);
  }

  at::Tensor Perceptron(at::Tensor h, uint32_t layers, uint32_t place) {
    for (uint32_t i = 0; i < layers; ++i) {
      h = Linear(h, "lins." + std::to_string(i));
      if (i + 1 == layers) break;
      h = at::relu(BatchNorm(h, "norms." + std::to_string(i)));
      h = h * Mask(place + i, spec_.hidden_dim, spec_.dropout);
    }
    return h;
  }

  at::Tensor Sign(const at::Tensor& all) {
    if (spec_.variant == ModelVariant::kFused) return Perceptron(all, spec_.num_layers, 1);
    std::vector<at::Tensor> projected;
    for (uint32_t hop = 0; hop <= spec_.num_hops; ++hop) {
      std::vector<at::Tensor> sources;
      for (uint32_t op = 0; op < (hop == 0 ? 1 : spec_.num_operators); ++op) {
        sources.push_back(batch_.tokens[hop == 0 ? 0 : op * spec_.num_hops + hop]);
      }
      projected.push_back(Linear(at::cat(sources, 1), "hops." + std::to_string(hop), false));
    }
    at::Tensor h = at::prelu(at::cat(projected, 1), P("act.weight"));
    h = h * Mask(1, static_cast<uint32_t>(h.size(1)), spec_.dropout);
    return Perceptron(h, spec_.num_layers - 1, 2);
  }

  // One query against all tokens, head by head.
  at::Tensor Attention(const at::Tensor& query, uint32_t q, uint32_t queries,
                       const std::vector<at::Tensor>& tokens, const std::string& name,
                       uint32_t place) {
    const int64_t width = spec_.hidden_dim;
    const int64_t head_width = width / spec_.heads;
    const at::Tensor& w = P(name + ".in_proj_weight");
    const at::Tensor& b = P(name + ".in_proj_bias");
    const auto project = [&](const at::Tensor& x, int64_t part) {
      return at::matmul(x, w.narrow(0, part * width, width).t()) + b.narrow(0, part * width, width);
    };
    std::vector<at::Tensor> heads;
    for (uint32_t head = 0; head < spec_.heads; ++head) {
      const auto of_head = [&](const at::Tensor& x) {
        return x.narrow(1, head * head_width, head_width);
      };
      std::vector<at::Tensor> scores;
      for (const at::Tensor& token : tokens) {
        scores.push_back((of_head(project(query, 0)) * of_head(project(token, 1))).sum(1) /
                         std::sqrt(static_cast<double>(head_width)));
      }
      const at::Tensor share = at::softmax(at::stack(scores, 1), 1);
      at::Tensor sum = at::zeros({kRows, head_width}, at::kDouble);
      for (size_t t = 0; t < tokens.size(); ++t) {
        const uint64_t element =
            (uint64_t{head} * queries + q) * tokens.size() + static_cast<uint64_t>(t);
        sum = sum + (share.select(1, static_cast<int64_t>(t)) * AttentionMask(place, element))
                            .unsqueeze(1) *
                        of_head(project(tokens[t], 2));
      }
      heads.push_back(sum);
    }
    return Linear(at::cat(heads, 1), name + ".out_proj");
  }

  at::Tensor AttentionMask(uint32_t place, uint64_t element) const {
    at::Tensor mask = at::ones({kRows}, at::kDouble);
    if (spec_.attention_dropout == 0.0F || !batch_.training) return mask;
    for (int64_t r = 0; r < kRows; ++r) {
      const PhiloxCounter counter =
          CounterOf(Purpose::kAttentionDropout, batch_.key.epoch, batch_.key.batch, place,
                    fixture_.nodes[static_cast<size_t>(r)], static_cast<uint32_t>(element / 4));
      const float draw = UnitDraw(Philox(KeyOf(batch_.key.random_seed), counter).word[element % 4]);
      const double scale = 1.0 / (1.0 - static_cast<double>(spec_.attention_dropout));
      mask.data_ptr<double>()[r] = draw >= spec_.attention_dropout ? scale : 0.0;
    }
    return mask;
  }

  at::Tensor LayerNorm(const at::Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {x.size(1)}, P(name + ".weight"), P(name + ".bias"), 1e-5);
  }

  at::Tensor Gated(const at::Tensor& raw) {
    const auto count = static_cast<int64_t>(batch_.tokens.size());
    std::vector<at::Tensor> h = batch_.tokens;
    for (int64_t t = 0; t < count; ++t) {
      at::Tensor& token = h[static_cast<size_t>(t)];
      const std::string name = "hops." + std::to_string(t);
      for (uint32_t i = 0; i + 1 < spec_.hop_layers; ++i) {
        token = Linear(token, name + ".lins." + std::to_string(i));
        token = at::prelu(token, P(name + ".acts." + std::to_string(i) + ".weight"));
        token = token * TokenMask(11 + i, t, count);
      }
      token = spec_.hop_layers == 0
                  ? Linear(token, name, false)
                  : Linear(token, name + ".lins." + std::to_string(spec_.hop_layers - 1));
      token = token * TokenMask(1, t, count);
    }
    for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) {
      const std::string name = "layers." + std::to_string(layer);
      std::vector<at::Tensor> next;
      for (int64_t t = 0; t < count; ++t) {
        const auto q = static_cast<uint32_t>(t);
        at::Tensor read =
            Attention(h[q], q, static_cast<uint32_t>(count), h, name + ".attn", layer);
        if (t > 0) {
          const bool first_hop = (t - 1) % spec_.num_hops == 0;
          const at::Tensor& before = h[first_hop ? 0 : static_cast<size_t>(t - 1)];
          const at::Tensor gate = at::sigmoid(Linear(before, name + ".gate", false));
          read = gate * read + (1 - gate) * before;
        }
        next.push_back(at::relu(LayerNorm(read, name + ".norm")) * TokenMask(2 + layer, t, count));
      }
      h = next;
    }
    at::Tensor z =
        at::sigmoid(Linear(h[0], "last_gate", false)) * Attention(h[0], 0, 1, h, "last", 9);
    if (spec_.residual) {
      z = at::prelu(z + Linear(raw, "res", false), P("res_act.weight"));
      z = z * Mask(10, spec_.hidden_dim, spec_.dropout);
    }
    return Linear(LayerNorm(z, "norm"), "out", false);
  }

  at::Tensor Dac24() {
    const auto count = static_cast<int64_t>(batch_.tokens.size());
    std::vector<at::Tensor> h;
    for (const at::Tensor& token : batch_.tokens) h.push_back(Linear(token, "lin"));
    for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) {
      const std::string name = "layers." + std::to_string(layer);
      std::vector<at::Tensor> next;
      for (int64_t t = 0; t < count; ++t) {
        const auto q = static_cast<uint32_t>(t);
        const at::Tensor read =
            Linear(h[q], name + ".gate", false) *
            Attention(h[q], q, static_cast<uint32_t>(count), h, name + ".attn", layer);
        next.push_back(at::relu(LayerNorm(read, name + ".norm")) * TokenMask(2 + layer, t, count));
      }
      h = next;
    }
    std::vector<at::Tensor> scores;
    for (size_t t = 1; t < h.size(); ++t) {
      scores.push_back(Linear(at::cat({h[0], h[t]}, 1), "alpha", false).squeeze(1));
    }
    const at::Tensor share = at::softmax(at::stack(scores, 1), 1);
    at::Tensor y = h[0];
    for (size_t t = 1; t < h.size(); ++t) {
      y = y + share.select(1, static_cast<int64_t>(t) - 1).unsqueeze(1) * h[t];
    }
    at::Tensor head = BatchNorm(at::relu(Linear(y, "lin1")), "bn");
    return Linear(head * Mask(10, spec_.hidden_dim, spec_.dropout), "lin2");
  }

  const Fixture& fixture_;
  const ModelSpec& spec_;
  std::vector<at::Tensor> p_;
  RowBatch batch_;
};

double Worst(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor wide = found.to(at::kDouble);
  return ((wide - expected).abs() / (expected.abs() + 1)).max().item<double>();
}

at::Tensor LossOf(const at::Tensor& logits) {
  at::Tensor labels = at::arange(logits.size(0), at::kLong).remainder(kClasses);
  return at::nll_loss(at::log_softmax(logits, 1), labels, {}, at::Reduction::Sum);
}

std::vector<at::Tensor> GradientsOf(const at::Tensor& logits,
                                    const std::vector<at::Tensor>& parameters) {
  return torch::autograd::grad({LossOf(logits)}, parameters, {}, std::nullopt, false, true);
}

}  // namespace

TEST_CASE("row models: logits and gradients equal the formulas in float64") {
  for (const Case& c : Cases()) {
    CAPTURE(c.name);
    const Fixture fixture(c.spec);
    Reference reference(fixture, fixture.Parameters(at::kDouble), true);
    const at::Tensor expected = reference.Run();
    const std::vector<at::Tensor> slopes = GradientsOf(expected, reference.parameters());
    for (const auto& [type, bound] : {std::pair{at::kDouble, 1e-9}, std::pair{at::kFloat, 2e-3}}) {
      Workspace workspace;
      const std::vector<at::Tensor> parameters = fixture.Parameters(type);
      const at::Tensor logits =
          ForwardRows(fixture.model, parameters, fixture.Batch(type), &workspace, nullptr);
      CHECK(logits.sizes() == at::IntArrayRef({kRows, kClasses}));
      CHECK(Worst(logits, expected) < bound);
      const std::vector<at::Tensor> found = GradientsOf(logits, parameters);
      for (size_t i = 0; i < found.size(); ++i) {
        CAPTURE(fixture.model.manifest.tensors[i].name);
        CHECK(found[i].defined() == slopes[i].defined());
        if (found[i].defined() && slopes[i].defined()) CHECK(Worst(found[i], slopes[i]) < bound);
      }
    }
  }
}

TEST_CASE("row models: evaluation has no dropout and takes running values") {
  for (const Case& c : Cases()) {
    if (c.spec.dropout == 0.0F) continue;
    CAPTURE(c.name);
    const Fixture fixture(c.spec);
    const c10::NoGradGuard none;
    const at::Tensor expected = Reference(fixture, fixture.Parameters(at::kDouble), false).Run();
    Workspace workspace;
    const at::Tensor logits = ForwardRows(fixture.model, fixture.Parameters(at::kDouble),
                                          fixture.Batch(at::kDouble, false), &workspace, nullptr);
    CHECK(Worst(logits, expected) < 1e-9);
  }
}

TEST_CASE("row models: running values follow batches as torch's do, through the optimizer") {
  const Fixture fixture(SpecOf(ModelType::kSign, ModelVariant::kFused, 1, 2));
  Workspace workspace;
  std::vector<RunningValue> running;
  const std::vector<at::Tensor> parameters = fixture.Parameters(at::kFloat);
  ForwardRows(fixture.model, parameters, fixture.Batch(at::kFloat), &workspace, &running);
  CHECK(running.size() == 4);
  // The gradient that a Trainer hands in, and the optimizer's result.
  const ParameterManifest& manifest = fixture.model.manifest;
  std::vector<float> gradient(manifest.num_floats, 0.5F);
  for (const RunningValue& value : running) {
    const ParameterTensor& tensor = manifest.tensors[value.index];
    for (uint64_t i = 0; i < tensor.size(); ++i) {
      const float now = fixture.parameters[tensor.offset + i];
      gradient[tensor.offset + i] =
          static_cast<float>(kRows) * (now - value.value.data_ptr<float>()[i]);
    }
  }
  OptimizerOptions options;
  options.weight_decay = 0.1;
  options.clip_norm = 1e-3;
  std::vector<float> memory(OptimizerFloats(manifest));
  std::vector<float> out(manifest.num_floats);
  std::vector<float> memory_out(memory.size());
  const std::span<const float> gradients[] = {gradient};
  RunOptimizer(manifest, options,
               {gradients, kRows, 1, fixture.parameters, memory, out, memory_out});
  // The first layer's, from its definition.
  const at::Tensor h =
      at::linear(at::cat(fixture.tokens, 1), parameters[0].detach(), parameters[1].detach());
  at::Tensor mean = parameters[4].detach().clone();
  at::Tensor variance = parameters[5].detach().clone();
  REQUIRE(manifest.tensors[4].name == "norms.0.running_mean");
  at::batch_norm(h, {}, {}, mean, variance, true, 0.1, 1e-5, false);
  for (int64_t i = 0; i < mean.numel(); ++i) {
    const auto at = static_cast<uint64_t>(i);
    CHECK(out[manifest.tensors[4].offset + at] ==
          doctest::Approx(mean.data_ptr<float>()[i]).epsilon(1e-5));
    CHECK(out[manifest.tensors[5].offset + at] ==
          doctest::Approx(variance.data_ptr<float>()[i]).epsilon(1e-5));
  }
}

TEST_CASE("row models: threads decide no bit") {
  for (const Case& c : Cases()) {
    if (c.spec.dropout == 0.0F || c.spec.num_operators == 2) continue;
    CAPTURE(c.name);
    const Fixture fixture(c.spec);
    std::vector<at::Tensor> first;
    for (const uint32_t threads : {1U, 2U, 3U}) {
      UseTeamOf(threads);
      Workspace workspace;
      const std::vector<at::Tensor> parameters = fixture.Parameters(at::kFloat);
      const at::Tensor logits =
          ForwardRows(fixture.model, parameters, fixture.Batch(at::kFloat), &workspace, nullptr);
      std::vector<at::Tensor> all = {logits.detach().clone()};
      for (const at::Tensor& grad : GradientsOf(logits, parameters)) {
        all.push_back(grad.defined() ? grad.clone() : at::zeros({1}));
      }
      if (first.empty()) first = all;
      for (size_t i = 0; i < all.size(); ++i) CHECK(all[i].equal(first[i]));
    }
    UseTeamOf(1);
  }
}

TEST_CASE("row models: a batch of one row keeps its dimension") {
  for (const Case& c : Cases()) {
    CAPTURE(c.name);
    const Fixture fixture(c.spec);
    RowBatch batch = fixture.Batch(at::kFloat);
    for (at::Tensor& token : batch.tokens) token = token.narrow(0, 0, 1).contiguous();
    Workspace workspace;
    const std::vector<at::Tensor> parameters = fixture.Parameters(at::kFloat);
    const at::Tensor logits = ForwardRows(fixture.model, parameters, batch, &workspace, nullptr);
    CHECK(logits.sizes() == at::IntArrayRef({1, kClasses}));
    CHECK(logits.isfinite().all().item<bool>());
    GradientsOf(logits, parameters);
  }
}

TEST_CASE("row models: SIGN's first layer is the sum of its hops' projections") {
  ModelSpec spec = SpecOf(ModelType::kSign, ModelVariant::kFused, 1, 3);
  spec.num_layers = 1;
  const Fixture fixture(spec);
  Workspace workspace;
  const c10::NoGradGuard none;
  const std::vector<at::Tensor> p = fixture.Parameters(at::kDouble);
  const at::Tensor found =
      ForwardRows(fixture.model, p, fixture.Batch(at::kDouble), &workspace, nullptr);
  at::Tensor sum = p[1].clone().expand({kRows, kClasses});
  for (int64_t hop = 0; hop <= 3; ++hop) {
    const at::Tensor projection = p[0].narrow(1, hop * spec.in_dim, spec.in_dim);
    sum =
        sum + at::matmul(fixture.tokens[static_cast<size_t>(hop)].to(at::kDouble), projection.t());
  }
  CHECK(Worst(found, sum) < 1e-12);
}

}  // namespace gnnd
