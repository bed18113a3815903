#include "core/kernels/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/base/cpu.h"
#include "core/graph/dataset.h"

namespace gnnd {
namespace {

// Logits of some rows, ties and numbers that are no numbers among them, and what is to come out.
struct Batch {
  static constexpr uint32_t kRows = 23;

  explicit Batch(uint32_t of) : classes(of), logits(kRows * of), labels(kRows) {
    std::mt19937 random(classes);
    std::normal_distribution<float> normal(0, 8);
    for (float& logit : logits) logit = normal(random);
    for (uint32_t& label : labels) label = static_cast<uint32_t>(random() % classes);
    for (uint32_t r = 0; r < kRows; r += 3) {  // halves, so that many are equal
      for (uint32_t c = 0; c < classes; ++c) Row(r)[c] = std::nearbyint(Row(r)[c] / 16) / 2;
    }
    Row(5)[0] = std::numeric_limits<float>::quiet_NaN();
    Row(7)[classes - 1] = std::numeric_limits<float>::quiet_NaN();
    Row(9)[classes / 2] = std::numeric_limits<float>::infinity();
    for (uint32_t c = 0; c < classes; ++c) Row(11)[c] = -std::numeric_limits<float>::infinity();
    Row(13)[classes / 2] = 120;  // the others' exponentials are 0
  }

  std::span<float> Row(uint32_t r) { return std::span(logits).subspan(r * classes, classes); }

  uint32_t classes;
  std::vector<float> logits;
  std::vector<uint32_t> labels;
};

// Any NaN is as good as another.
template <typename T>
bool SameNumbers(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0 && !(a[i] != a[i] && b[i] != b[i])) return false;
  }
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("every variant of the loss gives the definition's bits and stays in its rows") {
  for (const uint32_t classes : {1U, 2U, 7U, 15U, 16U, 17U, 31U, 40U, 47U, 64U, 173U}) {
    CAPTURE(classes);
    Batch batch(classes);
    const uint32_t rows = Batch::kRows;
    std::vector<float> wanted(rows * classes);
    std::vector<double> losses(rows);
    std::vector<uint8_t> correct(rows);
    for (uint32_t r = 0; r < rows; ++r) {
      losses[r] = CrossEntropy<float>(batch.Row(r), batch.labels[r], &wanted[r * classes]);
      correct[r] = ArgMax<float>(batch.Row(r)) == batch.labels[r] ? 1 : 0;
    }
    for (const InstructionSet set : AvailableInstructionSets()) {
      CAPTURE(NameOf(set));
      std::vector<float> grad(wanted.size() + 16, 77.0F);
      std::vector<double> found_losses(rows, -1);
      std::vector<uint8_t> found_correct(rows, 9);
      const CrossEntropyRows op{batch.logits.data(), batch.labels.data(), classes,
                                grad.data(),         found_losses.data(), found_correct.data()};
      const LossLoops& loops = LoopsFor<LossLoops>(set);
      loops.cross_entropy(op, 0, 10);
      CHECK(grad[10 * classes] == 77.0F);
      loops.cross_entropy(op, 10, rows);
      for (uint32_t i = 0; i < 16; ++i) CHECK(grad[wanted.size() + i] == 77.0F);
      grad.resize(wanted.size());
      CHECK(SameNumbers(grad, wanted));
      CHECK(SameNumbers(found_losses, losses));
      CHECK(SameNumbers(found_correct, correct));
    }
  }
}

// Values from torch 2.13 in float64: binary_cross_entropy_with_logits and mse over the known
// targets of each row, and autograd of their sum.
struct Golden {
  std::vector<float> outputs = {0.5F, -1.25F, 3.0F, -2.0F, 0.0F, 40.0F, 1.5F, -0.75F, -100.0F};
  std::vector<float> targets;
  std::vector<double> losses;
  std::vector<double> grads;
  std::vector<float> weights;
};
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

void CheckGolden(const Golden& golden, Task task) {
  for (uint32_t r = 0; r < 3; ++r) {
    CAPTURE(r);
    const std::span row = std::span(golden.outputs).subspan(r * 3, 3);
    const float* const targets = &golden.targets[r * 3];
    const float* const weights = golden.weights.empty() ? nullptr : golden.weights.data();
    const auto loss_of = [&](float* grad) {
      return task == Task::kMultiLabel ? MultiLabelLoss(row, targets, weights, grad)
                                       : SquaredErrorLoss(row, targets, grad);
    };
    float grad[3] = {7, 7, 7};
    const double loss = loss_of(grad);
    CHECK(loss == doctest::Approx(golden.losses[r]).epsilon(1e-6));
    CHECK(loss == loss_of(nullptr));
    for (uint32_t c = 0; c < 3; ++c) {
      CHECK(double{grad[c]} == doctest::Approx(golden.grads[r * 3 + c]).epsilon(1e-6));
    }
  }
}

TEST_CASE("losses of several labels and of regression are torch's over what is known") {
  Golden labels;
  labels.targets = {1, 0, 1, 0, 1, kUnknown, 1, kUnknown, 1};
  labels.losses = {0.25819780569974055, 0.410037595801459, 50.100706638991376};
  labels.grads = {-0.12584688959938178,
                  0.07423337960843628,
                  -0.01580862439252221,
                  0.05960146101105877,
                  -0.25,
                  0,
                  -0.09121276190317817,
                  0,
                  -0.5};
  CheckGolden(labels, Task::kMultiLabel);
  labels.weights = {2.0F, 0.5F, 3.0F};
  labels.losses = {0.4486150348089375, 0.23675080066147267, 150.20141327798277};
  labels.grads = {-0.25169377919876357,
                  0.07423337960843628,
                  -0.047425873177566594,
                  0.05960146101105877,
                  -0.125,
                  0,
                  -0.18242552380635635,
                  0,
                  -1.5};
  CheckGolden(labels, Task::kMultiLabel);
  Golden numbers;
  numbers.targets = {0.25F, kUnknown, 2.0F, -1.0F, 0.5F, kUnknown, 1.5F, 2.0F, -99.0F};
  numbers.losses = {0.53125, 0.625, 2.8541666666666665};
  numbers.grads = {0.25, 0, 1, -1, -0.5, 0, 0, -1.8333333333333333, -0.6666666666666666};
  CheckGolden(numbers, Task::kRegression);
}

TEST_CASE("nothing known is no loss, and an output that is no number shows") {
  const std::vector<float> outputs = {1, -2};
  const std::vector<float> nothing = {kUnknown, kUnknown};
  float grad[2] = {7, 7};
  CHECK(MultiLabelLoss(outputs, nothing.data(), nullptr, grad) == 0);
  CHECK(grad[0] == 0);
  CHECK(SquaredErrorLoss(outputs, nothing.data(), grad) == 0);
  CHECK(grad[1] == 0);
  const std::vector<float> bad = {kUnknown, 1};
  const std::vector<float> known = {1, 0};
  CHECK(std::isnan(MultiLabelLoss(bad, known.data(), nullptr, nullptr)));
  CHECK(std::isnan(SquaredErrorLoss(bad, known.data(), nullptr)));
}

}  // namespace gnnd
