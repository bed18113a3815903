#include "core/kernels/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/base/cpu.h"

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

}  // namespace gnnd
