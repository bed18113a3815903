#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/batch/record.h"
#include "core/draw/philox.h"
#include "core/model/manifest.h"
#include "core/model/model_spec.h"

// The models in float64 on dense adjacency matrices, by torch's own operators and gradients: what
// the modules over blocks must equal. Slow and plain on purpose.

namespace gnnd::test {

// 0 or 1 / (1 - p) for every element of [nodes.size(), columns], drawn element by element.
inline at::Tensor MaskOf(const BatchKey& key, uint32_t layer, std::span<const uint32_t> nodes,
                         int64_t columns, float p) {
  at::Tensor mask = at::zeros({static_cast<int64_t>(nodes.size()), columns}, at::kDouble);
  auto cell = mask.accessor<double, 2>();
  for (int64_t r = 0; r < mask.size(0); ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const PhiloxCounter counter =
          CounterOf(Purpose::kDropout, key.epoch, key.batch, layer, nodes[static_cast<size_t>(r)],
                    static_cast<uint32_t>(c / 4));
      const float draw = UnitDraw(Philox(KeyOf(key.random_seed), counter).word[c % 4]);
      if (draw >= p) cell[r][c] = 1.0 / (1.0 - static_cast<double>(p));
    }
  }
  return mask;
}

// The block as a matrix [num_dst, num_src]: mean over edges (weighted where they have weights), or
// GCN's weights with the self-loop.
inline at::Tensor MatrixOf(const BlockView& block, ModelType type) {
  at::Tensor matrix = at::zeros({block.num_dst, block.num_src}, at::kDouble);
  auto cell = matrix.accessor<double, 2>();
  const auto weight = [&block](uint32_t e) {
    return block.weight.empty() ? 1.0 : static_cast<double>(block.weight[e]);
  };
  for (uint32_t d = 0; d < block.num_dst; ++d) {
    double sum = 0;
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) sum += weight(e);
    if (type == ModelType::kGcn) sum = 1;
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1] && sum > 0; ++e) {
      cell[d][block.src[e]] += weight(e) / sum;
    }
    if (type == ModelType::kGcn) cell[d][d] += static_cast<double>(block.self_weight[d]);
  }
  return matrix;
}

// How often each source is an edge of each destination, the destination itself once.
inline at::Tensor AttentionCounts(const BlockView& block) {
  at::Tensor counts = at::zeros({block.num_dst, block.num_src}, at::kDouble);
  auto cell = counts.accessor<double, 2>();
  for (uint32_t d = 0; d < block.num_dst; ++d) {
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
      if (block.src[e] != d) cell[d][block.src[e]] += 1;
    }
    cell[d][d] = 1;
  }
  return counts;
}

// Like AttentionCounts after dropout of one head's coefficients: sums of 0 or 1 / (1 - p).
inline at::Tensor AttentionMask(const BlockView& block, const BatchKey& key, uint32_t layer,
                                std::span<const uint32_t> nodes, uint32_t head,
                                const ModelSpec& spec) {
  at::Tensor mask = at::zeros({block.num_dst, block.num_src}, at::kDouble);
  auto cell = mask.accessor<double, 2>();
  const float p = spec.attention_dropout;
  for (uint32_t d = 0; d < block.num_dst; ++d) {
    const auto factor = [&](uint32_t position) {
      const uint32_t draw = position * spec.heads + head;
      const PhiloxCounter counter =
          CounterOf(Purpose::kAttentionDropout, key.epoch, key.batch, layer, nodes[d], draw / 4);
      const float unit = UnitDraw(Philox(KeyOf(key.random_seed), counter).word[draw % 4]);
      return unit >= p ? 1.0 / (1.0 - static_cast<double>(p)) : 0.0;
    };
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
      if (block.src[e] != d) cell[d][block.src[e]] += factor(e - block.indptr[d] + 1);
    }
    cell[d][d] = factor(0);
  }
  return mask;
}

// Edges as often as they are there, a destination's own among them: all, and after dropout of one
// head's coefficients.
struct EdgeCounts {
  EdgeCounts(const BlockView& block, const BatchKey& key, uint32_t layer,
             std::span<const uint32_t> nodes, uint32_t head, const ModelSpec& spec)
      : all(at::zeros({block.num_dst, block.num_src}, at::kDouble)), kept(at::zeros_like(all)) {
    auto of_all = all.accessor<double, 2>();
    auto of_kept = kept.accessor<double, 2>();
    const float p = spec.attention_dropout;
    for (uint32_t d = 0; d < block.num_dst; ++d) {
      for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
        const uint32_t draw = (e - block.indptr[d] + 1) * spec.heads + head;
        const PhiloxCounter counter =
            CounterOf(Purpose::kAttentionDropout, key.epoch, key.batch, layer, nodes[d], draw / 4);
        const float unit = UnitDraw(Philox(KeyOf(key.random_seed), counter).word[draw % 4]);
        of_all[d][block.src[e]] += 1;
        if (unit >= p) of_kept[d][block.src[e]] += 1.0 / (1.0 - static_cast<double>(p));
      }
    }
  }

  at::Tensor all;
  at::Tensor kept;
};

// A layer's tensors by the end of their names.
class NamedTensors {
 public:
  NamedTensors(const ModelSpec& spec, const std::vector<at::Tensor>& tensors, uint32_t layer) {
    const ParameterManifest manifest = *ManifestOf(spec);
    for (size_t t = 0; t < tensors.size(); ++t) {
      const ParameterTensor& tensor = manifest.tensors[t];
      if (tensor.layer != layer) continue;
      const size_t cut = tensor.name.find('.', tensor.name.find('.') + 1);
      const std::string list = tensor.name.substr(0, tensor.name.find('.'));
      tensors_[(list == "norms" ? "norm." : "") + tensor.name.substr(cut + 1)] = tensors[t];
    }
  }
  const at::Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  bool Has(const std::string& name) const { return tensors_.contains(name); }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

struct DenseLayer {
  const ModelSpec& spec;
  const Sample& sample;
  uint32_t layer;
  BlockView block;
  NamedTensors named;
};

inline at::Tensor DenseActivation(const ModelSpec& spec, const at::Tensor& z) {
  if (spec.activation == Activation::kElu) return at::elu(z);
  return spec.activation == Activation::kRelu ? z.relu() : at::leaky_relu(z, 0.01);
}

// Heads one by one, each with a full matrix of scores.
inline at::Tensor DenseAttention(const DenseLayer& at_layer, const at::Tensor& x) {
  const ModelSpec& spec = at_layer.spec;
  const NamedTensors& named = at_layer.named;
  const BlockView& block = at_layer.block;
  const bool v2 = spec.type == ModelType::kGatV2;
  const at::Tensor own = x.narrow(0, 0, block.num_dst);
  const at::Tensor source =
      v2 ? x.mm(named["lin_l.weight"].t()) + named["lin_l.bias"] : x.mm(named["lin.weight"].t());
  const at::Tensor destination = v2 ? own.mm(named["lin_r.weight"].t()) + named["lin_r.bias"]
                                    : own.mm(named["lin.weight"].t());
  const int64_t columns = source.size(1) / spec.heads;
  const at::Tensor counts = AttentionCounts(block);
  std::vector<at::Tensor> outputs;
  for (int64_t h = 0; h < spec.heads; ++h) {
    const at::Tensor from = source.narrow(1, h * columns, columns);
    const at::Tensor to = destination.narrow(1, h * columns, columns);
    at::Tensor score;
    if (v2) {
      const at::Tensor sum = at::leaky_relu(to.unsqueeze(1) + from.unsqueeze(0), 0.2);
      score = (sum * named["att"].select(0, h)).sum(2);
    } else {
      const at::Tensor left = (to * named["att_dst"].select(0, h)).sum(1);
      const at::Tensor right = (from * named["att_src"].select(0, h)).sum(1);
      score = at::leaky_relu(left.unsqueeze(1) + right.unsqueeze(0), 0.2);
    }
    const at::Tensor power = score.exp();
    at::Tensor share = power / (power * counts).sum(1, true);
    const BatchKey key = at_layer.sample.key();
    share = share * AttentionMask(block, key, at_layer.layer, at_layer.sample.nodes(),
                                  static_cast<uint32_t>(h), spec);
    outputs.push_back(share.mm(from));
  }
  const bool last = at_layer.layer + 1 == spec.num_layers;
  const at::Tensor joined = last ? at::stack(outputs).mean(0) : at::cat(outputs, 1);
  return joined + named["bias"];
}

// Attention to edges as they are by products of queries and keys, and the row itself.
inline at::Tensor DenseTransformer(const DenseLayer& at_layer, const at::Tensor& x) {
  const ModelSpec& spec = at_layer.spec;
  const NamedTensors& named = at_layer.named;
  const BlockView& block = at_layer.block;
  const auto linear = [&named](const at::Tensor& rows, const std::string& name) {
    return rows.mm(named[name + ".weight"].t()) + named[name + ".bias"];
  };
  const at::Tensor own = x.narrow(0, 0, block.num_dst);
  const at::Tensor key = linear(x, "lin_key");
  const at::Tensor value = linear(x, "lin_value");
  const at::Tensor query = linear(own, "lin_query");
  const int64_t columns = key.size(1) / spec.heads;
  const BatchKey batch = at_layer.sample.key();
  std::vector<at::Tensor> outputs;
  for (uint32_t h = 0; h < spec.heads; ++h) {
    const auto part = [&](const at::Tensor& rows) { return rows.narrow(1, h * columns, columns); };
    const at::Tensor power =
        (part(query).mm(part(key).t()) / std::sqrt(static_cast<double>(columns))).exp();
    const EdgeCounts counts(block, batch, at_layer.layer, at_layer.sample.nodes(), h, spec);
    const at::Tensor total = (power * counts.all).sum(1, true);
    const at::Tensor share = power * counts.kept / total.masked_fill(total == 0, 1);
    outputs.push_back(share.mm(part(value)));
  }
  const bool last = at_layer.layer + 1 == spec.num_layers;
  return (last ? at::stack(outputs).mean(0) : at::cat(outputs, 1)) + linear(own, "lin_skip");
}

inline at::Tensor DenseConvolution(const DenseLayer& at_layer, const at::Tensor& h) {
  const NamedTensors& named = at_layer.named;
  const at::Tensor matrix = MatrixOf(at_layer.block, at_layer.spec.type);
  if (at_layer.spec.type == ModelType::kGcn) {
    return matrix.mm(h).mm(named["lin.weight"].t()) + named["bias"];
  }
  const at::Tensor self = h.narrow(0, 0, at_layer.block.num_dst);
  at::Tensor neighbours = h;
  if (at_layer.spec.type == ModelType::kPinSage) {
    neighbours = (h.mm(named["lin.weight"].t()) + named["lin.bias"]).relu();
  }
  return matrix.mm(neighbours).mm(named["lin_l.weight"].t()) + named["lin_l.bias"] +
         self.mm(named["lin_r.weight"].t());
}

// A perceptron on sums over edges, weighted where they have weights, and the row itself.
inline at::Tensor DenseGin(const DenseLayer& at_layer, const at::Tensor& h) {
  const NamedTensors& named = at_layer.named;
  const BlockView& block = at_layer.block;
  at::Tensor sums = at::zeros({block.num_dst, block.num_src}, at::kDouble);
  auto cell = sums.accessor<double, 2>();
  for (uint32_t d = 0; d < block.num_dst; ++d) {
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
      cell[d][block.src[e]] += block.weight.empty() ? 1.0 : static_cast<double>(block.weight[e]);
    }
  }
  const at::Tensor z = sums.mm(h) + (1 + named["eps"]) * h.narrow(0, 0, block.num_dst);
  const at::Tensor hidden =
      DenseActivation(at_layer.spec, z.mm(named["nn.lins.0.weight"].t()) + named["nn.lins.0.bias"]);
  return hidden.mm(named["nn.lins.1.weight"].t()) + named["nn.lins.1.bias"];
}

inline at::Tensor DenseLayerOf(const DenseLayer& at_layer, const at::Tensor& h) {
  if (at_layer.spec.type == ModelType::kTransformer) return DenseTransformer(at_layer, h);
  if (at_layer.spec.type == ModelType::kGin) return DenseGin(at_layer, h);
  return IsAttention(at_layer.spec.type) ? DenseAttention(at_layer, h)
                                         : DenseConvolution(at_layer, h);
}

// Logits of the seeds; `x` are the raw features of the sample's nodes, all tensors float64.
inline at::Tensor DenseForward(const ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                               const Sample& sample, const at::Tensor& x) {
  at::Tensor h = x * MaskOf(sample.key(), 0, sample.nodes(), x.size(1), spec.input_dropout);
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const DenseLayer at_layer{spec, sample, layer, sample.block(spec.num_layers - 1 - layer),
                              NamedTensors(spec, parameters, layer)};
    const NamedTensors& named = at_layer.named;
    at::Tensor z = DenseLayerOf(at_layer, h);
    if (spec.residual) {
      const at::Tensor own = h.narrow(0, 0, at_layer.block.num_dst);
      z = z + (named.Has("res.weight") ? own.mm(named["res.weight"].t()) : own);
    }
    h = z;
    if (layer + 1 == spec.num_layers) break;
    if (spec.normalization == Normalization::kLayer) {
      h = at::layer_norm(h, {h.size(1)}, named["norm.weight"], named["norm.bias"], 1e-5);
    }
    h = DenseActivation(spec, h);
    if (NormalizationOf(spec) == Normalization::kL2) {
      h = h / (h * h).sum(1, true).clamp_min(1e-24).sqrt();
    }
    const auto nodes = sample.nodes().first(at_layer.block.num_dst);
    h = h * MaskOf(sample.key(), layer + 1, nodes, h.size(1), spec.dropout);
  }
  return h;
}

struct DenseResult {
  at::Tensor logits;
  double loss_sum;
  std::vector<at::Tensor> gradients;  // gradients of the loss summed over seeds, in manifest order
};

inline DenseResult DenseStep(const ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                             const Sample& sample, const at::Tensor& x, const at::Tensor& labels) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& parameter : parameters) {
    leaves.push_back(parameter.detach().to(at::kDouble).clone().requires_grad_(true));
  }
  const at::Tensor logits = DenseForward(spec, leaves, sample, x.to(at::kDouble));
  const at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
  return {logits.detach(), loss.item<double>(), torch::autograd::grad({loss}, leaves)};
}

// |a - b| / |b|; |a| where b is zero.
inline double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.to(at::kDouble).norm().item<double>();
  const double distance = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return scale == 0 ? distance : distance / scale;
}

// The same for gradients `b[i]` of one loss. Some cancel all but entirely (those of attention do
// where a softmax does not depend on them), so that what rounding leaves is compared with at least
// `floor` times the largest of the gradients' norms.
inline double GradientError(const at::Tensor& a, const std::vector<at::Tensor>& b, size_t i,
                            double floor) {
  double largest = 0;
  for (const at::Tensor& gradient : b) largest = std::max(largest, gradient.norm().item<double>());
  const double scale = std::max(b[i].norm().item<double>(), floor * largest);
  const double distance = (a.to(at::kDouble) - b[i]).norm().item<double>();
  return scale == 0 ? distance : distance / scale;
}

}  // namespace gnnd::test
