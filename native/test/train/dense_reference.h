#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/philox.h"
#include "core/model/model_spec.h"
#include "core/sample/record.h"

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

// The block as a matrix [num_dst, num_src]: mean over edges, or weights with the self-loop.
inline at::Tensor MatrixOf(const BlockView& block, ModelType type) {
  at::Tensor matrix = at::zeros({block.num_dst, block.num_src}, at::kDouble);
  auto cell = matrix.accessor<double, 2>();
  for (uint32_t d = 0; d < block.num_dst; ++d) {
    const double degree = block.indptr[d + 1] - block.indptr[d];
    for (uint32_t e = block.indptr[d]; e < block.indptr[d + 1]; ++e) {
      cell[d][block.src[e]] +=
          type == ModelType::kGcn ? static_cast<double>(block.weight[e]) : 1.0 / degree;
    }
    if (type == ModelType::kGcn) cell[d][d] += static_cast<double>(block.self_weight[d]);
  }
  return matrix;
}

// Logits of the seeds; `x` are the raw features of the record's nodes, all tensors float64.
inline at::Tensor DenseForward(const ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                               const RecordView& record, const at::Tensor& x) {
  at::Tensor h = x * MaskOf(record.key(), 0, record.nodes(), x.size(1), spec.input_dropout);
  for (uint32_t layer = 0; layer < spec.num_layers; ++layer) {
    const BlockView block = record.block(spec.num_layers - 1 - layer);
    const at::Tensor sum = MatrixOf(block, spec.type).mm(h);
    if (spec.type == ModelType::kGraphSage) {
      const at::Tensor self = h.narrow(0, 0, block.num_dst);
      h = sum.mm(parameters[3 * layer].t()) + parameters[3 * layer + 1] +
          self.mm(parameters[3 * layer + 2].t());
    } else {
      h = sum.mm(parameters[2 * layer + 1].t()) + parameters[2 * layer];
    }
    if (layer + 1 == spec.num_layers) break;
    const auto nodes = record.nodes().first(block.num_dst);
    h = h.relu() * MaskOf(record.key(), layer + 1, nodes, h.size(1), spec.dropout);
  }
  return h;
}

struct DenseResult {
  at::Tensor logits;
  double loss_sum;
  std::vector<at::Tensor> gradients;  // of the loss summed over seeds, in manifest order
};

inline DenseResult DenseStep(const ModelSpec& spec, const std::vector<at::Tensor>& parameters,
                             const RecordView& record, const at::Tensor& x,
                             const at::Tensor& labels) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& parameter : parameters) {
    leaves.push_back(parameter.detach().to(at::kDouble).clone().requires_grad_(true));
  }
  const at::Tensor logits = DenseForward(spec, leaves, record, x.to(at::kDouble));
  const at::Tensor loss = at::cross_entropy_loss(logits, labels, {}, at::Reduction::Sum);
  return {logits.detach(), loss.item<double>(), torch::autograd::grad({loss}, leaves)};
}

// |a - b| / |b|; |a| where b is zero.
inline double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  const double scale = b.to(at::kDouble).norm().item<double>();
  const double distance = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return scale == 0 ? distance : distance / scale;
}

}  // namespace gnnd::test
