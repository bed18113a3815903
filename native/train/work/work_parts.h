#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/executor/train_work.h"
#include "core/model/model_spec.h"
#include "train/tasks/eval_targets.h"
#include "train/tasks/judging.h"

// The parts of a TorchWork. Each kind of job has parts of its own, which are chosen where the work
// is made (block_work.cc, rows_work.cc). Their functions may throw what torch and devices throw.

namespace gnnd {

class ComputeSide;

// Trains on batches, with the functions of TrainWork.
class Training {
 public:
  virtual ~Training() = default;
  virtual bool keeps_history() const { return false; }
  virtual Status BringHistoryTo(const BatchPoint&) { return Status::Ok(); }
  virtual Status Extract(const Sample& sample, uint32_t buffer, ExtractReport* report) = 0;
  virtual Status ComputeGradient(const Sample& sample, uint32_t buffer,
                                 const ParametersView& parameters, std::span<float> gradient,
                                 BatchReport* report) = 0;
};

// The training of an inference, which has no batches.
class NoTraining final : public Training {
 public:
  Status Extract(const Sample&, uint32_t, ExtractReport*) override { return Refusal(); }
  Status ComputeGradient(const Sample&, uint32_t, const ParametersView&, std::span<float>,
                         BatchReport*) override {
    return Refusal();
  }

 private:
  static Status Refusal() { return Status(Code::kInternal, "an inference trains on no batch"); }
};

// Evaluates in chunks, with the functions of TrainWork.
class Evaluation {
 public:
  virtual ~Evaluation() = default;
  virtual Result<EvalShape> Plan(EvalNodes nodes, const Alive& alive) = 0;
  virtual Status RunChunk(const EvalTask& task, const ParametersView& parameters,
                          const Alive& alive, EvalResult* result) = 0;
  virtual void End() {}
  virtual int scratch_fd() const { return -1; }  // as in ChunkEvaluator
};

// Computes logits of nodes outside of any evaluation, with the functions of TorchWork.
class NodeLogits {
 public:
  virtual ~NodeLogits() = default;
  virtual Status Predict(std::span<const float> parameters, std::span<const uint32_t> nodes,
                         const Alive& alive, const LogitsConsumer& consume) = 0;
  double progress() const { return progress_; }

 protected:
  double progress_ = 0;  // share of the running prediction that is done
};

struct WorkParts {
  ParameterManifest manifest;
  OptimizerOptions optimizer;
  uint32_t threads = 1;
  uint32_t torch_threads = 1;      // threads of torch's own operators
  const Device* device = nullptr;  // the device whose failures torch reports; null: the CPU
  Code thrown = Code::kInternal;   // the code of other exceptions
  std::function<void(std::span<float>)> init;  // TrainWork::InitParameters
  std::shared_ptr<void> shared;                // holds what the parts below borrow
  ComputeSide* side = nullptr;                 // held by `shared`
  std::unique_ptr<Judging> judging;
  std::unique_ptr<Training> training;
  std::unique_ptr<Evaluation> evaluation;
  std::unique_ptr<NodeLogits> prediction;
};

}  // namespace gnnd
