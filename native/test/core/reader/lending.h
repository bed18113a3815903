#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/batch/layout.h"
#include "core/executor/lender.h"
#include "core/executor/sampler_loop.h"
#include "core/executor/trainer_loop.h"
#include "test/support/npy_files.h"

namespace gnnd::test {

// A job that lends batches, as two threads.
class Lending {
 public:
  struct Job {
    uint64_t batches = 0;
    uint32_t epochs = 1;
    uint32_t batch_size = 0;
    uint64_t feature_rows = 0;  // of one column; 0: readers get none
  };

  Lending(const Job& job, std::unique_ptr<SampleWork> work, const RecordLayout& layout)
      : segment_(MakeSegment(job, layout)), work_(std::move(work)) {
    LenderOptions lending;
    lending.socket = socket;
    if (job.feature_rows > 0) {
      lending.features_path = folder_ / "features.npy";
      const std::vector<float> rows(job.feature_rows);
      WriteFile(lending.features_path, NpyBytes<float>(rows, {job.feature_rows, 1}));
    }
    const Result<ExecutorId> trainer = segment_.RegisterExecutor(Role::kTrainer, 0);
    const Result<ExecutorId> sampler = segment_.RegisterExecutor(Role::kSampler, 1);
    REQUIRE(trainer.ok());
    REQUIRE(sampler.ok());
    auto lender = Lender::Create(segment_, *trainer, lending);
    REQUIRE_MESSAGE(lender.ok(), lender.status().message());
    lender_ = std::move(*lender);
    threads_.emplace_back([this, id = *trainer] {
      static_cast<void>(RunTrainerLoop(segment_, id, *lender_, false));
    });
    threads_.emplace_back(
        [this, id = *sampler] { static_cast<void>(RunSamplerLoop(segment_, id, *work_)); });
  }
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;
  ~Lending() {
    segment_.Abort(Code::kAborted, "the test is over");
    for (std::thread& thread : threads_) thread.join();
  }

  const std::string socket = "gnnd-loan-test-" + std::to_string(getpid());

 private:
  static Segment MakeSegment(const Job& job, const RecordLayout& layout) {
    SegmentSpec spec;
    spec.batches_per_epoch = job.batches;
    spec.epochs = job.epochs;
    spec.num_slots = 4;
    spec.slot_bytes = layout.slot_bytes();
    spec.queue_max_bytes = uint64_t{1} << 30;
    spec.parameter_floats = 16;
    spec.optimizer_floats = 16;
    spec.num_devices = 2;
    spec.max_executors = 4;
    spec.batch_size = job.batch_size;
    spec.train_nodes = job.batches * job.batch_size;
    spec.evaluate_every = 0;
    Result<UniqueFd> fd = Segment::Create(spec);
    REQUIRE_MESSAGE(fd.ok(), fd.status().message());
    Result<Segment> segment = Segment::Attach(fd->get(), Access::kReadWrite);
    REQUIRE_MESSAGE(segment.ok(), segment.status().message());
    return std::move(*segment);
  }

  TempFolder folder_;
  Segment segment_;
  std::unique_ptr<SampleWork> work_;
  std::unique_ptr<Lender> lender_;
  std::vector<std::thread> threads_;
};

}  // namespace gnnd::test
