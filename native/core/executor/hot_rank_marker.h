#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/executor/sample_work.h"
#include "core/feature/hot_order.h"

namespace gnnd {

// The M stage: wraps any Sampler's work and adds the hot rank of every input node to its records. A
// record holds ranks, not hits, so that one record serves Trainers with caches of any size.
class HotRankMarker final : public SampleWork {
 public:
  // `ranks_at` is the layout's offset of ranks.
  HotRankMarker(std::unique_ptr<SampleWork> work, RankTable ranks, uint64_t ranks_at);

  uint32_t depth() const override { return work_->depth(); }
  Status Start(const SampleTask& task) override { return work_->Start(task); }
  Status Finish(const SampleTask& task, SampleReport* report) override;
  void Abandon() override { work_->Abandon(); }

 private:
  std::unique_ptr<SampleWork> work_;
  RankTable ranks_;
  uint64_t ranks_at_;
};

}  // namespace gnnd
