#include "train/layers/link_head.h"

#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>

#include <algorithm>

#include "core/base/check.h"
#include "train/ops/affine.h"
#include "train/ops/after_layer.h"
#include "train/ops/operators.h"
#include "train/ops/pairs.h"
#include "train/ops/parallel.h"

namespace gnnd {
namespace {

at::Tensor Product(const at::Tensor& x, const at::Tensor& weight, Workspace* workspace) {
  AffineInput input;
  input.x = x;
  input.weight = weight;
  return Affine(input, workspace);
}

// Heads whose score is a scalar product of what they make of each end.
class Dot : public PairHead {
 public:
  at::Tensor OfEach(const HeadContext& at, const at::Tensor& sources,
                    const at::Tensor& destinations, int64_t each) const override {
    return DotsOfRows(OfSources(at, sources), OfDestinations(at, destinations), each, at.workspace);
  }
  at::Tensor OfAll(const HeadContext& at, const at::Tensor& sources,
                   const at::Tensor& destinations) const override {
    return Product(OfSources(at, sources), OfDestinations(at, destinations), at.workspace);
  }
  at::Tensor Prepared(const HeadContext& at, const at::Tensor& sources) const override {
    return OfSources(at, sources);
  }
  at::Tensor RankedBy(const HeadContext& at, const at::Tensor& prepared,
                      const at::Tensor& destinations) const override {
    return Product(OfDestinations(at, destinations), prepared, at.workspace);
  }
  uint64_t CostOfPair(uint64_t dim) const override { return dim; }

 protected:
  virtual at::Tensor OfSources(const HeadContext&, const at::Tensor& rows) const { return rows; }
  virtual at::Tensor OfDestinations(const HeadContext&, const at::Tensor& rows) const {
    return rows;
  }
};

class Cosine final : public Dot {
  at::Tensor OfSources(const HeadContext& at, const at::Tensor& rows) const override {
    return Normalize(rows, at.workspace);
  }
  at::Tensor OfDestinations(const HeadContext& at, const at::Tensor& rows) const override {
    return Normalize(rows, at.workspace);
  }
};

class DistMult final : public Dot {
  at::Tensor OfSources(const HeadContext& at, const at::Tensor& rows) const override {
    return rows.mul(at[TensorRole::kPairProduct]);
  }
};

class Bilinear final : public Dot {
  at::Tensor OfSources(const HeadContext& at, const at::Tensor& rows) const override {
    return Product(rows, at[TensorRole::kPairSource], at.workspace);
  }
};

// A perceptron with one hidden layer over the product of both rows and the rows themselves.
class Mlp final : public PairHead {
 public:
  at::Tensor OfEach(const HeadContext& at, const at::Tensor& sources,
                    const at::Tensor& destinations, int64_t each) const override {
    return Outputs(at, sources, destinations, each).view({sources.size(0), each});
  }

  at::Tensor OfPairs(const HeadContext& at, const at::Tensor& sources,
                     const at::Tensor& destinations) const override {
    return Outputs(at, sources, destinations, 1);
  }

  at::Tensor OfAll(const HeadContext&, const at::Tensor&, const at::Tensor&) const override {
    GNND_CHECK(false);
    return {};
  }
  at::Tensor Prepared(const HeadContext&, const at::Tensor& sources) const override {
    return sources;
  }

  // For one source u, the hidden layer of v is (P diag(u) + D) v + (S u + b): a product like any.
  at::Tensor RankedBy(const HeadContext& at, const at::Tensor& prepared,
                      const at::Tensor& destinations) const override {
    const int64_t width = prepared.size(1);
    const int64_t sources = prepared.size(0);
    Workspace* const workspace = at.workspace;
    AffineInput fixed;
    fixed.x = prepared;
    fixed.weight = at[TensorRole::kPairSource];
    fixed.bias = at[TensorRole::kPairBias];
    const at::Tensor offsets = Affine(fixed, workspace);
    const at::Tensor scores = EmptyIn(workspace, prepared, destinations.size(0), sources);
    const at::Tensor hidden = EmptyIn(workspace, prepared, destinations.size(0), width);
    const at::Tensor weight = EmptyIn(workspace, prepared, width, width);
    for (int64_t s = 0; s < sources; ++s) {
      const at::Tensor u = prepared[s];
      weight.copy_(at[TensorRole::kPairProduct]);
      weight.mul_(u).add_(at[TensorRole::kPairDestination]);
      workspace->operators().affine({destinations, weight, {}, {}, {}, offsets[s], hidden},
                                    workspace);
      ReadOut(at, hidden, scores.data_ptr<float>() + s, static_cast<uint64_t>(sources));
    }
    return scores;
  }

  uint64_t CostOfPair(uint64_t dim) const override { return dim * dim; }

 private:
  // [n * each, head_outputs] of n sources with `each` destinations of their own.
  static at::Tensor Outputs(const HeadContext& at, const at::Tensor& sources,
                            const at::Tensor& destinations, int64_t each) {
    const auto repeated = [each](const at::Tensor& rows) {
      const int64_t n = rows.size(0);
      const int64_t d = rows.size(1);
      return rows.unsqueeze(1).expand({n, each, d}).reshape({n * each, d});
    };
    AffineInput input;
    input.x = repeated(sources).mul(destinations);
    input.weight = at[TensorRole::kPairProduct];
    input.x_self = destinations;
    input.weight_self = at[TensorRole::kPairDestination];
    input.bias = at[TensorRole::kPairBias];
    input.addend =
        repeated(Product(sources, at[TensorRole::kPairSource], at.workspace)).contiguous();
    AffineInput out;
    out.x = at::relu(Affine(input, at.workspace));
    out.weight = at[TensorRole::kPairOut];
    out.bias = at[TensorRole::kPairOutBias];
    return Affine(out, at.workspace);
  }

  // Writes o . relu(row) + c of each hidden row to every `stride`th place.
  static void ReadOut(const HeadContext& at, const at::Tensor& hidden, float* to, uint64_t stride) {
    const auto columns = static_cast<uint32_t>(hidden.size(1));
    float* const rows = hidden.data_ptr<float>();
    const float* const out = at[TensorRole::kPairOut].const_data_ptr<float>();
    const float bias = *at[TensorRole::kPairOutBias].const_data_ptr<float>();
    ParallelRows(static_cast<uint32_t>(hidden.size(0)), 256, [&](uint32_t begin, uint32_t end) {
      for (uint64_t r = begin; r < end; ++r) {
        float* const row = rows + r * columns;
        for (uint32_t c = 0; c < columns; ++c) row[c] = row[c] > 0.0F ? row[c] : 0.0F;
        to[r * stride] = DotOfRows(row, out, columns) + bias;
      }
    });
  }
};

}  // namespace

const PairHead& HeadOf(LinkHead head) {
  static const Dot dot;
  static const Cosine cosine;
  static const DistMult dist_mult;
  static const Bilinear bilinear;
  static const Mlp mlp;
  switch (head) {
    case LinkHead::kDot:
      return dot;
    case LinkHead::kCosine:
      return cosine;
    case LinkHead::kDistMult:
      return dist_mult;
    case LinkHead::kBilinear:
      return bilinear;
    case LinkHead::kMlp:
      break;
  }
  return mlp;
}

}  // namespace gnnd
