#include "core/kernels/link_loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace gnnd {
namespace {

using doctest::Approx;

constexpr LinkLoss kLosses[] = {LinkLoss::kBce, LinkLoss::kBceBalanced, LinkLoss::kBpr,
                                LinkLoss::kSoftmax};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The losses by their formulas, of scores that these do not overflow for.
double Expected(const LinkLossOptions& options, double link, const std::vector<double>& negatives) {
  const auto count = static_cast<double>(negatives.size());
  double sum = 0;
  switch (options.loss) {
    case LinkLoss::kBce:
    case LinkLoss::kBceBalanced:
      for (const double negative : negatives) sum -= std::log(1 - Sigmoid(negative));
      if (options.loss == LinkLoss::kBce) return (sum - std::log(Sigmoid(link))) / (1 + count);
      return sum / count - std::log(Sigmoid(link));
    case LinkLoss::kBpr:
      for (const double negative : negatives) sum -= std::log(Sigmoid(link - negative));
      return sum / count;
    case LinkLoss::kSoftmax:
      for (const double negative : negatives) sum += std::exp(negative / options.temperature);
      break;
  }
  const double own = std::exp(link / options.temperature);
  return -std::log(own / (own + sum));
}

struct Row {
  std::vector<double> scores;
  std::vector<uint8_t> left_out;
  size_t link = 0;

  std::vector<double> Negatives() const {
    std::vector<double> negatives;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (i != link && left_out[i] == 0) negatives.push_back(scores[i]);
    }
    return negatives;
  }
  double Loss(const LinkLossOptions& options, std::vector<double>* grad = nullptr) const {
    if (grad != nullptr) grad->assign(scores.size(), std::numeric_limits<double>::quiet_NaN());
    return LossOfLink<double>(options, {scores, link, left_out.data()},
                              grad == nullptr ? nullptr : grad->data());
  }
};

Row RandomRow(std::mt19937* random) {
  std::normal_distribution<double> normal(0, 2);
  Row row;
  row.scores.resize(2 + (*random)() % 9);
  row.left_out.resize(row.scores.size());
  for (double& score : row.scores) score = normal(*random);
  for (uint8_t& left_out : row.left_out) left_out = (*random)() % 4 == 0 ? 1 : 0;
  row.link = (*random)() % row.scores.size();
  row.left_out[row.link == 0 ? 1 : 0] = 0;  // at least one negative
  return row;
}

TEST_CASE("losses of links are their formulas, and gradients the differences of losses") {
  std::mt19937 random(3);
  for (const LinkLoss loss : kLosses) {
    for (const double temperature : {1.0, 0.25}) {
      const LinkLossOptions options{loss, temperature};
      CAPTURE(static_cast<int>(loss));
      for (int i = 0; i < 50; ++i) {
        Row row = RandomRow(&random);
        std::vector<double> grad;
        const double found = row.Loss(options, &grad);
        CHECK(found == Approx(Expected(options, row.scores[row.link], row.Negatives())));
        for (size_t at = 0; at < row.scores.size(); ++at) {
          constexpr double kStep = 1e-5;
          Row more = row;
          Row less = row;
          more.scores[at] += kStep;
          less.scores[at] -= kStep;
          const double slope = (more.Loss(options) - less.Loss(options)) / (2 * kStep);
          CHECK(grad[at] == Approx(slope).epsilon(1e-6));
          if (at != row.link && row.left_out[at] != 0) CHECK(grad[at] == 0);
        }
      }
    }
  }
}

TEST_CASE("floats agree with doubles, and large scores do not overflow") {
  for (const LinkLoss loss : kLosses) {
    const LinkLossOptions options{loss, 0.5};
    for (const float size : {0.3F, 10.0F, 200.0F, 3e4F}) {
      CAPTURE(static_cast<int>(loss));
      CAPTURE(size);
      const std::vector<float> scores = {size, -size, 0.5F * size, 2 * size};
      const std::vector<double> wide(scores.begin(), scores.end());
      std::vector<float> grad(4);
      std::vector<double> wide_grad(4);
      const double found = LossOfLink<float>(options, {scores, 0, nullptr}, grad.data());
      const double expected = LossOfLink<double>(options, {wide, 0, nullptr}, wide_grad.data());
      CHECK(std::isfinite(found));
      CHECK(found == Approx(expected).epsilon(1e-5));
      for (size_t i = 0; i < 4; ++i) CHECK(grad[i] == Approx(wide_grad[i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("a link without negatives costs its own term, and scores that are no numbers show") {
  const std::vector<float> scores = {1.5F, 7.0F};
  const std::vector<uint8_t> left_out = {0, 1};
  for (const LinkLoss loss : kLosses) {
    CAPTURE(static_cast<int>(loss));
    std::vector<float> grad(2, 5.0F);
    const bool has_own = loss == LinkLoss::kBce || loss == LinkLoss::kBceBalanced;
    const double found = LossOfLink<float>({loss, 1}, {scores, 0, left_out.data()}, grad.data());
    CHECK(found == Approx(has_own ? -std::log(Sigmoid(1.5)) : 0.0).epsilon(1e-6));
    CHECK(grad[1] == 0.0F);
    for (const size_t at : {0, 1}) {
      std::vector<float> broken = {1, 1};
      broken[at] = std::numeric_limits<float>::quiet_NaN();
      CHECK(std::isnan(LossOfLink<float>({loss, 1}, {broken, 0, nullptr}, nullptr)));
    }
  }
}

}  // namespace
}  // namespace gnnd
