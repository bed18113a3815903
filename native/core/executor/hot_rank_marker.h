#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/executor/sample_work.h"
#include "core/feature/hot_order.h"

namespace gnnd {

// The M stage: wraps any Sampler's work and adds the hot rank of every input node to its records. A
// record holds ranks, not hits, so that one record serves Trainers with caches of any size.
class HotRankMarker final : public SampleWork {
 public:
  // Of one type of nodes.
  struct TypeRanks {
    RankTable ranks;
    uint64_t ranks_at;  // the layout's offset of ranks
  };

  // `types` are all types of the records, in their order.
  HotRankMarker(std::unique_ptr<SampleWork> work, std::vector<TypeRanks> types);
  // Of records of one type.
  HotRankMarker(std::unique_ptr<SampleWork> work, RankTable ranks, uint64_t ranks_at);

  uint32_t depth() const override { return work_->depth(); }
  Status Start(const SampleTask& task) override { return work_->Start(task); }
  Status Finish(const SampleTask& task, SampleReport* report) override;
  void Abandon() override { work_->Abandon(); }

 private:
  std::unique_ptr<SampleWork> work_;
  std::vector<TypeRanks> types_;
};

}  // namespace gnnd
