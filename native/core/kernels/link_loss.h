#pragma once

#include <cstdint>
#include <span>

#include "core/item/link_choices.h"

// Losses of links, by their scores and those of their negatives.

namespace gnnd {

struct LinkLossOptions {
  LinkLoss loss = LinkLoss::kBce;
  double temperature = 1;  // divides scores; read for kSoftmax only
};

// The scores of one link and of its negatives.
template <typename T>
struct LinkScores {
  std::span<const T> scores;
  size_t link = 0;                    // the place of the link's own; all others are negatives
  const uint8_t* left_out = nullptr;  // [scores.size()]: 1 = no negative; null: none is left out
};

// The loss of a link, whose mean over a batch is the batch's:
//   kBce          the mean over the link and its negatives of binary cross-entropy;
//   kBceBalanced  that of the link, plus the mean over its negatives;
//   kBpr          the mean over its negatives of -log sigmoid(link - negative);
//   kSoftmax      -log of its share in the softmax of all, by log-sum-exp.
// A link without negatives has the first two's own term, and 0 of the others. NaN where a score is.
// With `grad` (like scores) also the gradient, 0 where negatives are left out. T: float, double.
template <typename T>
double LossOfLink(const LinkLossOptions& options, const LinkScores<T>& link, T* grad);

extern template double LossOfLink(const LinkLossOptions&, const LinkScores<float>&, float*);
extern template double LossOfLink(const LinkLossOptions&, const LinkScores<double>&, double*);

}  // namespace gnnd
