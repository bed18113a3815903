#include "core/kernels/link_loss.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/exp.h"

namespace gnnd {
namespace {

// log(1 + exp(x)), without overflow; and its slope, sigmoid(x).
template <typename T>
struct Softplus {
  explicit Softplus(T x) : decay(static_cast<double>(ExpOfNonPositive(x > 0 ? -x : x))) {
    const auto given = static_cast<double>(x);
    value = (given > 0 ? given : 0) + std::log1p(decay);
    slope = given > 0 ? 1 / (1 + decay) : decay / (1 + decay);
    if (std::isnan(given)) value = slope = given;
  }
  double decay;  // exp(-|x|)
  double value;
  double slope;
};

template <typename T>
class OneLink {
 public:
  OneLink(const LinkScores<T>& link, T* grad) : link_(link), grad_(grad) {
    for (size_t i = 0; i < link.scores.size(); ++i) negatives_ += IsNegative(i) ? 1 : 0;
    if (grad != nullptr) std::fill_n(grad, link.scores.size(), T{});
  }

  double Bce() const { return Balanced(1.0 / static_cast<double>(1 + negatives_), Mean(1)); }
  double BceBalanced() const { return Balanced(1, Mean(0)); }

  double Bpr() const {
    const double share = Mean(0);
    double loss = 0;
    double slope = 0;
    for (size_t i = 0; i < link_.scores.size(); ++i) {
      if (!IsNegative(i)) continue;
      const Softplus<T> term(link_.scores[i] - link_.scores[link_.link]);
      loss += term.value;
      slope += term.slope;
      Slope(i, share * term.slope);
    }
    Slope(link_.link, -share * slope);
    return share * loss;
  }

  double Softmax(double temperature) const {
    const auto scale = static_cast<T>(1 / temperature);
    T largest = link_.scores[link_.link];
    for (size_t i = 0; i < link_.scores.size(); ++i) {
      if (IsNegative(i) && !(link_.scores[i] <= largest)) largest = link_.scores[i];
    }
    const auto power = [&](size_t i) {
      return static_cast<double>(ExpOfNonPositive((link_.scores[i] - largest) * scale));
    };
    double sum = power(link_.link);
    for (size_t i = 0; i < link_.scores.size(); ++i) {
      if (IsNegative(i)) sum += power(i);
    }
    if (grad_ != nullptr) {
      const double share = 1 / (sum * temperature);
      for (size_t i = 0; i < link_.scores.size(); ++i) {
        if (IsNegative(i)) Slope(i, share * power(i));
      }
      Slope(link_.link, share * power(link_.link) - 1 / temperature);
    }
    return std::log(sum) - static_cast<double>((link_.scores[link_.link] - largest) * scale);
  }

 private:
  bool IsNegative(size_t i) const {
    return i != link_.link && (link_.left_out == nullptr || link_.left_out[i] == 0);
  }
  // The weight of a negative in a mean over the negatives and `others`; 0 if there are none.
  double Mean(uint64_t others) const {
    const uint64_t all = negatives_ + others;
    return all == 0 ? 0 : 1 / static_cast<double>(all);
  }
  void Slope(size_t i, double slope) const {
    if (grad_ != nullptr) grad_[i] = static_cast<T>(slope);
  }

  double Balanced(double of_link, double of_negative) const {
    const Softplus<T> own(-link_.scores[link_.link]);
    Slope(link_.link, -of_link * own.slope);
    double loss = 0;
    for (size_t i = 0; i < link_.scores.size(); ++i) {
      if (!IsNegative(i)) continue;
      const Softplus<T> term(link_.scores[i]);
      loss += term.value;
      Slope(i, of_negative * term.slope);
    }
    return of_link * own.value + of_negative * loss;
  }

  const LinkScores<T>& link_;
  T* const grad_;
  uint64_t negatives_ = 0;
};

}  // namespace

template <typename T>
double LossOfLink(const LinkLossOptions& options, const LinkScores<T>& link, T* grad) {
  const OneLink<T> one(link, grad);
  switch (options.loss) {
    case LinkLoss::kBce:
      return one.Bce();
    case LinkLoss::kBceBalanced:
      return one.BceBalanced();
    case LinkLoss::kBpr:
      return one.Bpr();
    case LinkLoss::kSoftmax:
      break;
  }
  return one.Softmax(options.temperature);
}

template double LossOfLink(const LinkLossOptions&, const LinkScores<float>&, float*);
template double LossOfLink(const LinkLossOptions&, const LinkScores<double>&, double*);

}  // namespace gnnd
