#include "train/layers/link_head.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/kernels/link_loss.h"
#include "core/model/manifest.h"
#include "train/layers/layer.h"
#include "train/ops/pairs.h"

namespace gnnd {
namespace {

constexpr LinkHead kHeads[] = {LinkHead::kDot, LinkHead::kCosine, LinkHead::kDistMult,
                               LinkHead::kBilinear, LinkHead::kMlp};

ModelSpec SpecOf(LinkHead head, uint32_t dim) {
  ModelSpec spec;
  spec.num_layers = 1;
  spec.in_dim = 3;
  spec.out_dim = dim;
  spec.head = head;
  return spec;
}

at::Tensor Random(std::mt19937_64* random, int64_t rows, int64_t columns, at::ScalarType type) {
  std::normal_distribution<double> normal;
  at::Tensor tensor =
      columns == 0 ? at::zeros({rows}, at::kDouble) : at::zeros({rows, columns}, at::kDouble);
  for (int64_t i = 0; i < tensor.numel(); ++i) tensor.data_ptr<double>()[i] = normal(*random);
  return tensor.to(type);
}

// A head's tensors with random values.
struct RandomHead {
  RandomHead(LinkHead of, uint32_t dim, uint64_t seed, at::ScalarType type)
      : model(SpecOf(of, dim)), head(HeadOf(of)) {
    std::mt19937_64 random(seed);
    for (const ParameterTensor& tensor : model.manifest.tensors) {
      all.push_back(Random(&random, tensor.rows, tensor.cols, type));
    }
  }
  LayerParameters Parameters() const { return ParametersOf(model, all, 1); }

  Model model;
  const PairHead& head;
  std::vector<at::Tensor> all;
};

// A batch of links over some rows, with negatives of each or those of the batch.
struct Batch {
  static constexpr int64_t kRows = 9;
  static constexpr int64_t kEach = 4;  // a destination and three negatives
  std::vector<uint32_t> sources = {0, 3, 3, 8};
  std::vector<uint32_t> destinations = {1, 2, 5, 5, 6, 0, 3, 7, 2, 2, 2, 4, 8, 1, 0, 6};
  bool in_batch = false;

  at::Tensor Scores(const RandomHead& head, const at::Tensor& rows, Workspace* workspace) const {
    const LayerParameters parameters = head.Parameters();
    const HeadContext at{parameters, workspace};
    const at::Tensor from = RowsAt(rows, sources, workspace);
    const at::Tensor to = RowsAt(rows, destinations, workspace);
    return in_batch ? head.head.OfAll(at, from, to) : head.head.OfEach(at, from, to, kEach);
  }
};

// The loss of a batch and the gradient of its sum for all of `leaves`.
double LossAndGradients(const Batch& batch, const RandomHead& head, const at::Tensor& rows,
                        LinkLoss loss, std::vector<at::Tensor>* gradients) {
  Workspace workspace;
  const at::Tensor scores = batch.Scores(head, rows, &workspace).contiguous();
  const auto columns = static_cast<size_t>(scores.size(1));
  at::Tensor slopes = at::zeros(scores.sizes(), at::kDouble);
  double sum = 0;
  for (size_t link = 0; link < batch.sources.size(); ++link) {
    const std::span<const double> row(scores.const_data_ptr<double>() + link * columns, columns);
    sum += LossOfLink<double>({loss, 0.5}, {row, batch.in_batch ? link : 0, nullptr},
                              slopes.data_ptr<double>() + link * columns);
  }
  if (gradients == nullptr) return sum;
  std::vector<at::Tensor> leaves = {rows};
  for (const at::Tensor& tensor : head.all) {
    if (tensor.requires_grad()) leaves.push_back(tensor);
  }
  *gradients = torch::autograd::grad({scores}, leaves, {slopes});
  for (at::Tensor& gradient : *gradients) gradient = gradient.contiguous().clone();
  return sum;
}

}  // namespace

TEST_CASE("gradients of heads and losses are the differences of losses, in float64") {
  for (const LinkHead of : kHeads) {
    for (const bool in_batch : {false, true}) {
      if (in_batch && of == LinkHead::kMlp) continue;
      for (const LinkLoss loss : {LinkLoss::kBce, LinkLoss::kSoftmax}) {
        CAPTURE(static_cast<int>(of));
        CAPTURE(in_batch);
        RandomHead head(of, 5, 7, at::kDouble);
        std::mt19937_64 random(5);
        at::Tensor rows = Random(&random, Batch::kRows, 5, at::kDouble);
        Batch batch;
        batch.in_batch = in_batch;
        if (in_batch) batch.destinations.resize(batch.sources.size());
        rows.requires_grad_(true);
        std::vector<at::Tensor> leaves = {rows};
        for (size_t t = 0; t < head.all.size(); ++t) {
          const bool is_head = head.model.manifest.tensors[t].layer == 1;
          head.all[t].requires_grad_(is_head);
          if (is_head) leaves.push_back(head.all[t]);
        }
        std::vector<at::Tensor> gradients;
        LossAndGradients(batch, head, rows, loss, &gradients);
        REQUIRE(gradients.size() == leaves.size());
        const c10::AutoGradMode without(false);
        for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
          auto* const values = leaves[leaf].data_ptr<double>();
          for (int64_t i = 0; i < leaves[leaf].numel(); ++i) {
            constexpr double kStep = 1e-6;
            const double before = values[i];
            values[i] = before + kStep;
            const double more = LossAndGradients(batch, head, rows, loss, nullptr);
            values[i] = before - kStep;
            const double less = LossAndGradients(batch, head, rows, loss, nullptr);
            values[i] = before;
            CHECK(gradients[leaf].const_data_ptr<double>()[i] ==
                  doctest::Approx((more - less) / (2 * kStep)).epsilon(1e-5));
          }
        }
      }
    }
  }
}

TEST_CASE("rankings score pairs as batches do, and equal rows tie") {
  const c10::AutoGradMode without_gradients(false);
  for (const LinkHead of : kHeads) {
    for (const uint32_t sources : {1U, 3U, 128U}) {
      CAPTURE(static_cast<int>(of));
      CAPTURE(sources);
      constexpr int64_t kDim = 24;
      constexpr int64_t kNodes = 301;
      RandomHead head(of, kDim, 3, at::kFloat);
      std::mt19937_64 random(9);
      const at::Tensor rows = Random(&random, kNodes, kDim, at::kFloat);
      rows[300].copy_(rows[2]);
      Workspace workspace;
      const LayerParameters parameters = head.Parameters();
      const HeadContext at{parameters, &workspace};
      const at::Tensor from = rows.narrow(0, 10, sources).contiguous();
      const at::Tensor ranked =
          head.head.RankedBy(at, head.head.Prepared(at, from), rows).contiguous();
      REQUIRE(ranked.size(0) == kNodes);
      REQUIRE(ranked.size(1) == sources);
      for (uint32_t s = 0; s < sources; ++s) {
        const at::Tensor each = head.head.OfEach(at, from.narrow(0, s, 1), rows, kNodes);
        for (int64_t node = 0; node < kNodes; ++node) {
          const float score = ranked[node][s].item<float>();
          CHECK(score == doctest::Approx(each[0][node].item<float>()).epsilon(1e-3));
        }
        CHECK(ranked[300][s].item<float>() == ranked[2][s].item<float>());
      }
    }
  }
}

}  // namespace gnnd
