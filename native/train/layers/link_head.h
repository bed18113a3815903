#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/item/link_choices.h"
#include "train/layers/exact.h"
#include "train/ops/workspace.h"

namespace gnnd {

// A head's tensors, by role, and the memory that it computes in.
struct HeadContext {
  const LayerParameters& parameters;
  Workspace* workspace;

  const at::Tensor& operator[](TensorRole role) const { return parameters[role]; }
};

// How the rows of two nodes, of the width d of a model's last layer, become the score of the pair:
// source u and destination v. Stateless; the tensors are the manifest's (core/model/manifest.cc).
//
//   DOT       u . v                    COSINE    u / |u| . v / |v|
//   DISTMULT  (u * r) . v              BILINEAR  (W u) . v
//   MLP       o . relu(P (u * v) + S u + D v + b) + c
class PairHead {
 public:
  virtual ~PairHead() = default;

  // Training, in float32 or float64: the scores of each source with destinations of its own.
  // sources [n, d], destinations [n * each, d], those of a source one after the other; [n, each].
  virtual at::Tensor OfEach(const HeadContext& at, const at::Tensor& sources,
                            const at::Tensor& destinations, int64_t each) const = 0;
  // The same of pairs that have more outputs than a score: [n, head_outputs] of n sources and as
  // many destinations.
  virtual at::Tensor OfPairs(const HeadContext& at, const at::Tensor& sources,
                             const at::Tensor& destinations) const {
    return OfEach(at, sources, destinations, 1);
  }
  // Training: the scores of each source with all destinations, [sources, destinations]. Not MLP,
  // for which the spec's rules refuse it.
  virtual at::Tensor OfAll(const HeadContext& at, const at::Tensor& sources,
                           const at::Tensor& destinations) const = 0;

  // Evaluation, in float32 without gradients: what RankedBy takes of sources, like them.
  virtual at::Tensor Prepared(const HeadContext& at, const at::Tensor& sources) const = 0;
  // Evaluation: the scores of destinations with all prepared sources, [destinations, sources], at
  // the rate of matrix products. A pair's bits depend on its two rows and the number of sources
  // alone, so that equal rows tie.
  virtual at::Tensor RankedBy(const HeadContext& at, const at::Tensor& prepared,
                              const at::Tensor& destinations) const = 0;
  // Multiply-adds of RankedBy for each pair, roughly.
  virtual uint64_t CostOfPair(uint64_t dim) const = 0;
};

// The only place that chooses a head.
const PairHead& HeadOf(LinkHead head);

}  // namespace gnnd
