#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "evaluate.h"
#include "test/support/record_builder.h"
#include "train/work/torch_work.h"

namespace gnnd::test {

// The segment's part of training, for one Trainer and G = 1.
class Loop {
 public:
  explicit Loop(const TrainOptions& options) : options_(options) {
    auto created = TorchWork::Create(options);
    REQUIRE(created.ok());
    work_ = std::move(*created);
    const uint64_t floats = work_->manifest().num_floats;
    parameters_.resize(floats);
    work_->InitParameters(parameters_);
    memory_.resize(work_->optimizer_floats());
    gradient_.resize(floats);
  }

  BatchReport Step(const TestRecord& record) { return Step(record.view()); }
  BatchReport Step(const Sample& sample) {
    const auto buffer = static_cast<uint32_t>(step_ % kExtractBuffers);
    if (work_->keeps_history()) REQUIRE(work_->BringHistoryTo({step_, 0, 1}).ok());
    extracted_ = ExtractReport();
    REQUIRE(work_->Extract(sample, buffer, &extracted_).ok());
    return Compute(sample, buffer);
  }

  void StepAhead(const std::vector<const TestRecord*>& records) {
    std::vector<Sample> samples;
    for (const TestRecord* record : records) samples.push_back(record->view());
    std::vector<const Sample*> each;
    for (const Sample& sample : samples) each.push_back(&sample);
    StepAhead(each);
  }
  // Every sample in turn; each but the first is extracted on a thread of its own while the gradient
  // of the one before is computed.
  void StepAhead(const std::vector<const Sample*>& samples) {
    REQUIRE(work_->Extract(*samples[0], 0, &extracted_).ok());
    for (size_t i = 0; i < samples.size(); ++i) {
      Status status;
      std::thread ahead([&] {
        if (i + 1 == samples.size()) return;
        const auto buffer = static_cast<uint32_t>((i + 1) % kExtractBuffers);
        status = work_->Extract(*samples[i + 1], buffer, &extracted_);
      });
      Compute(*samples[i], static_cast<uint32_t>(i % kExtractBuffers));
      ahead.join();
      REQUIRE(status.ok());
    }
  }

  // Goes on from what another loop has reached after as many steps.
  void Follow(const Loop& other) {
    parameters_ = other.parameters_;
    memory_ = other.memory_;
  }

  const ExtractReport& extracted() const { return extracted_; }

  EvalReport Evaluate() {
    EvalReport report;
    REQUIRE(test::Evaluate(*work_, {step_, 0, parameters_}, [] { return true; }, &report).ok());
    return report;
  }

  TorchWork& work() { return *work_; }
  uint64_t step() const { return step_; }
  const std::vector<float>& parameters() const { return parameters_; }
  const std::vector<float>& gradient() const { return gradient_; }

 private:
  BatchReport Compute(const Sample& sample, uint32_t buffer) {
    BatchReport report;
    REQUIRE(
        work_->ComputeGradient(sample, buffer, {step_, 0, parameters_}, gradient_, &report).ok());
    std::vector<float> next_parameters(parameters_.size());
    std::vector<float> next_memory(memory_.size());
    const GradientView gradients[] = {{step_, true, gradient_}};
    work_->Apply({step_++, report.sums.items, gradients, parameters_, memory_, next_parameters,
                  next_memory});
    parameters_ = std::move(next_parameters);
    memory_ = std::move(next_memory);
    return report;
  }

  TrainOptions options_;
  std::unique_ptr<TorchWork> work_;
  std::vector<float> parameters_;
  std::vector<float> memory_;
  std::vector<float> gradient_;
  ExtractReport extracted_;
  uint64_t step_ = 0;
};

inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace gnnd::test
