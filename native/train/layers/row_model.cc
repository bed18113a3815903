#include "train/layers/row_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/model/row_manifest.h"
#include "train/ops/after_layer.h"
#include "train/ops/ops.h"
#include "train/ops/row_ops.h"

namespace gnnd {
namespace {

std::string At(const std::string& list, uint32_t index) { return list + std::to_string(index); }

// One forward pass for one batch.
class Pass {
 public:
  Pass(const Model& model, std::span<const at::Tensor> parameters, const RowBatch& batch,
       Workspace* workspace, std::vector<RunningValue>* running, const LayerTap& tap)
      : spec_(model.spec),
        manifest_(model.manifest),
        parameters_(parameters),
        batch_(batch),
        workspace_(workspace),
        running_(running),
        tap_(tap) {}

  at::Tensor Run() {
    const at::Tensor logits = Logits();
    Tell(spec_.num_layers - 1, logits);
    return logits;
  }

 private:
  at::Tensor Logits() {
    switch (spec_.type) {
      case ModelType::kSgc:
        return Linear(Input(batch_.tokens[0]), "lin");
      case ModelType::kSign:
        return spec_.variant == ModelVariant::kConcat ? ConcatSign() : FusedSign();
      default:
        return spec_.variant == ModelVariant::kDac24 ? Dac24() : Gated();
    }
  }

  void Tell(uint32_t layer, const at::Tensor& rows) const {
    if (tap_) tap_(layer, rows);
  }

  size_t IndexOf(const std::string& name) const {
    for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
      if (manifest_.tensors[i].name == name) return i;
    }
    GNND_CHECK(false);
    return 0;
  }
  const at::Tensor& Parameter(const std::string& name) const { return parameters_[IndexOf(name)]; }
  bool Has(const std::string& name) const {
    for (const ParameterTensor& tensor : manifest_.tensors) {
      if (tensor.name == name) return true;
    }
    return false;
  }

  DropoutSite Site(uint32_t place, float p) const {
    const BatchKey& key = batch_.key;
    return {
        {key.random_seed, key.epoch, key.batch, place}, batch_.nodes, batch_.training ? p : 0.0F};
  }

  at::Tensor Linear(const at::Tensor& x, const std::string& name) {
    AffineInput input;
    input.x = x.contiguous();
    input.weight = Parameter(name + ".weight");
    if (Has(name + ".bias")) input.bias = Parameter(name + ".bias");
    return Affine(input, workspace_);
  }

  // Drops input of all tokens together, so that each column of each hop has a draw of its own.
  at::Tensor Input(const at::Tensor& x) {
    return Dropout(x.contiguous(), Site(kInputMask, spec_.input_dropout), workspace_);
  }

  at::Tensor Norm(const at::Tensor& x, const std::string& name) {
    const at::Tensor& scale = Parameter(name + ".weight");
    const at::Tensor& shift = Parameter(name + ".bias");
    const size_t mean = IndexOf(name + ".running_mean");
    const size_t variance = IndexOf(name + ".running_var");
    if (!batch_.training) {
      return BatchNormBy(x, scale, shift, {parameters_[mean], parameters_[variance]}, workspace_);
    }
    BatchMoments moments;
    at::Tensor out = BatchNorm(x, scale, shift, &moments, workspace_);
    if (running_ != nullptr) {
      running_->push_back({mean, moments.mean});
      running_->push_back({variance, moments.variance});
    }
    return out;
  }

  // ---- SIGN ---------------------------------------------------------------------------------

  // The last `layers` layers.
  at::Tensor Perceptron(at::Tensor h, uint32_t layers) {
    const uint32_t below = spec_.num_layers - layers;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      h = Linear(h, At("lins.", layer));
      if (layer + 1 == layers) break;
      h = Norm(h, At("norms.", layer));
      h = ReluDropout(h, Site(kHiddenMask + below + layer, spec_.dropout), workspace_);
      Tell(below + layer, h);
    }
    return h;
  }

  at::Tensor FusedSign() { return Perceptron(Input(at::cat(batch_.tokens, 1)), spec_.num_layers); }

  at::Tensor ConcatSign() {
    const at::Tensor all = Input(at::cat(batch_.tokens, 1));
    const auto width = static_cast<int64_t>(spec_.in_dim);
    std::vector<at::Tensor> projected;
    for (uint32_t hop = 0; hop <= spec_.num_hops; ++hop) {
      std::vector<at::Tensor> sources;
      for (uint32_t op = 0; op < (hop == 0 ? 1 : spec_.num_operators); ++op) {
        const uint32_t token = hop == 0 ? 0 : 1 + op * spec_.num_hops + hop - 1;
        sources.push_back(all.narrow(1, token * width, width));
      }
      projected.push_back(Linear(at::cat(sources, 1), At("hops.", hop)));
    }
    at::Tensor h = PRelu(at::cat(projected, 1), Parameter("act.weight"), workspace_);
    h = Dropout(h, Site(kHiddenMask, spec_.dropout), workspace_);
    Tell(0, h);
    return Perceptron(h, spec_.num_layers - 1);
  }

  // ---- HOGA ---------------------------------------------------------------------------------

  // Attention of queries over tokens, [rows, tokens, width]; queries without that axis are one.
  at::Tensor Attend(const at::Tensor& queries, const at::Tensor& tokens, const std::string& name,
                    uint32_t place) {
    const int64_t width = spec_.hidden_dim;
    const at::Tensor& weight = Parameter(name + ".in_proj_weight");
    const at::Tensor& bias = Parameter(name + ".in_proj_bias");
    const auto project = [&](const at::Tensor& x, int64_t part) {
      AffineInput input;
      input.x = x.reshape({-1, width}).contiguous();
      input.weight = weight.narrow(0, part * width, width);
      input.bias = bias.narrow(0, part * width, width);
      return Affine(input, workspace_).view({x.size(0), -1, width});
    };
    TokenAttention attention;
    attention.query = project(queries, 0);
    attention.key = project(tokens, 1);
    attention.value = project(tokens, 2);
    attention.heads = spec_.heads;
    attention.dropout = Site(place, spec_.attention_dropout);
    const at::Tensor read = AttendTokens(attention, workspace_);
    return Linear(read.view({-1, width}), name + ".out_proj").view(queries.sizes());
  }

  // The tokens [rows, tokens, in_dim] after input dropout.
  at::Tensor Tokens() {
    const at::Tensor all = Input(at::stack(batch_.tokens, 1).view({Rows(), -1}));
    return all.view({Rows(), -1, spec_.in_dim});
  }

  int64_t Rows() const { return batch_.tokens[0].size(0); }

  // Dropout of tokens: all columns of all tokens are elements of the row's node.
  at::Tensor DropTokens(const at::Tensor& h, uint32_t place) {
    return Dropout(h.reshape({Rows(), -1}), Site(place, spec_.dropout), workspace_).view(h.sizes());
  }

  // The hidden tokens, [rows, tokens, width]. Dropout within perceptrons masks all hops of a node
  // with separate draws, so it runs on the hops side by side.
  at::Tensor HopTokens(const at::Tensor& z) {
    std::vector<at::Tensor> hops;
    const uint32_t tokens = TokensOf(spec_);
    for (uint32_t token = 0; token < tokens; ++token) hops.push_back(z.select(1, token));
    for (uint32_t layer = 0; layer + 1 < spec_.hop_layers; ++layer) {
      for (uint32_t token = 0; token < tokens; ++token) {
        const std::string name = At("hops.", token);
        at::Tensor h = Linear(hops[token], name + At(".lins.", layer));
        hops[token] = PRelu(h, Parameter(name + At(".acts.", layer) + ".weight"), workspace_);
      }
      const at::Tensor dropped = DropTokens(at::stack(hops, 1), kHopMask + layer);
      for (uint32_t token = 0; token < tokens; ++token) hops[token] = dropped.select(1, token);
    }
    for (uint32_t token = 0; token < tokens; ++token) {
      const std::string name = At("hops.", token);
      const std::string last =
          spec_.hop_layers == 0 ? name : name + At(".lins.", spec_.hop_layers - 1);
      hops[token] = Linear(hops[token], last);
    }
    return at::stack(hops, 1);
  }

  // For each token but the first the one before it: of the same operator, or hop 0.
  at::Tensor TokensBefore() const {
    std::vector<int64_t> before;
    for (uint32_t op = 0; op < spec_.num_operators; ++op) {
      for (uint32_t hop = 1; hop <= spec_.num_hops; ++hop) {
        before.push_back(hop == 1 ? 0 : 1 + op * spec_.num_hops + hop - 2);
      }
    }
    return at::tensor(before, at::kLong).to(batch_.tokens[0].device());
  }

  // Applies LayerNorm, ReLU and dropout to tokens.
  at::Tensor Finish(const at::Tensor& h, uint32_t layer) {
    const std::string name = At("layers.", layer) + ".norm";
    const at::Tensor rows = h.reshape({-1, spec_.hidden_dim}).contiguous();
    const at::Tensor normal =
        LayerNorm(rows, Parameter(name + ".weight"), Parameter(name + ".bias"), workspace_);
    // The columns of all tokens are elements of the row's node.
    const at::Tensor wide = normal.view({Rows(), -1});
    return ReluDropout(wide, Site(kHiddenMask + 1 + layer, spec_.dropout), workspace_)
        .view(h.sizes());
  }

  at::Tensor GatedLayer(const at::Tensor& h, uint32_t layer, const at::Tensor& before) {
    const std::string name = At("layers.", layer);
    const at::Tensor previous = at::index_select(h, 1, before);
    const at::Tensor gate =
        at::sigmoid(Linear(previous.reshape({-1, spec_.hidden_dim}), name + ".gate"))
            .view(previous.sizes());
    const at::Tensor read = Attend(h, h, name + ".attn", layer);
    const at::Tensor mixed = gate * read.narrow(1, 1, read.size(1) - 1) + (1 - gate) * previous;
    return Finish(at::cat({read.narrow(1, 0, 1), mixed}, 1), layer);
  }

  at::Tensor Gated() {
    const at::Tensor raw = batch_.tokens[0];
    at::Tensor h = DropTokens(HopTokens(Tokens()), kHiddenMask);
    const at::Tensor before = TokensBefore();
    for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) h = GatedLayer(h, layer, before);
    const at::Tensor own = h.select(1, 0).contiguous();
    const at::Tensor read = Attend(own.unsqueeze(1), h, "last", kLastAttention).squeeze(1);
    at::Tensor z = at::sigmoid(Linear(own, "last_gate")) * read;
    if (spec_.residual) {
      z = PRelu((z + Linear(raw, "res")).contiguous(), Parameter("res_act.weight"), workspace_);
      z = Dropout(z, Site(kReadOutMask, spec_.dropout), workspace_);
    }
    z = LayerNorm(z.contiguous(), Parameter("norm.weight"), Parameter("norm.bias"), workspace_);
    return Linear(z, "out");
  }

  at::Tensor Dac24() {
    const at::Tensor z = Tokens();
    const int64_t width = spec_.hidden_dim;
    at::Tensor h = Linear(z.reshape({-1, z.size(2)}), "lin").view({Rows(), -1, width});
    for (uint32_t layer = 0; layer < spec_.num_layers; ++layer) {
      const std::string name = At("layers.", layer);
      const at::Tensor gate = Linear(h.reshape({-1, width}), name + ".gate").view(h.sizes());
      h = Finish(gate * Attend(h, h, name + ".attn", layer), layer);
    }
    const at::Tensor own = h.select(1, 0);
    const int64_t hops = h.size(1) - 1;
    const at::Tensor others = h.narrow(1, 1, hops);
    const at::Tensor both = at::cat({own.unsqueeze(1).expand_as(others), others}, 2);
    const at::Tensor scores = Linear(both.reshape({-1, 2 * width}), "alpha").view({Rows(), hops});
    const at::Tensor share = at::softmax(scores, 1);
    at::Tensor y = own;
    for (int64_t hop = 0; hop < hops; ++hop) {
      y = y + share.narrow(1, hop, 1) * others.select(1, hop);
    }
    at::Tensor head = Norm(ReluDropout(Linear(y, "lin1"), DropoutSite(), workspace_), "bn");
    head = Dropout(head, Site(kReadOutMask, spec_.dropout), workspace_);
    return Linear(head, "lin2");
  }

  const ModelSpec& spec_;
  const ParameterManifest& manifest_;
  std::span<const at::Tensor> parameters_;
  const RowBatch& batch_;
  Workspace* workspace_;
  std::vector<RunningValue>* running_;
  const LayerTap& tap_;
};

}  // namespace

at::Tensor ForwardRows(const Model& model, std::span<const at::Tensor> parameters,
                       const RowBatch& batch, Workspace* workspace,
                       std::vector<RunningValue>* running, const LayerTap& tap) {
  const size_t wanted = model.spec.type == ModelType::kSgc ? 1 : TokensOf(model.spec);
  GNND_CHECK(batch.tokens.size() == wanted);
  return Pass(model, parameters, batch, workspace, running, tap).Run();
}

}  // namespace gnnd
