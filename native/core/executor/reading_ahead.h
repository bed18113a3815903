#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/executor/sample_work.h"
#include "core/graph/row_table.h"

namespace gnnd {

// Wraps any Sampler's work when feature rows lie on disk: requests the rows of a record as soon as
// the record is made, batches before a Trainer needs them. A thread of its own asks the kernel,
// which reads many pages at once into its page cache; nothing is copied, mapped or waited for, so
// no bit can depend on it. Each batch is sampled once, and so requested once, whichever Trainer
// trains it.
//
// It runs ahead of the committed batches by a bounded number of bytes, because pages that are read
// too early would be evicted before their use. The Trainer requests the rows beyond that window
// itself, shortly before it reads them.
class ReadingAhead final : public SampleWork {
 public:
  struct Options {
    RowTable features;        // on disk, mapped; borrowed
    uint64_t cache_rows = 0;  // rows of lower hot ranks are in caches
    uint64_t window_bytes = 0;
    // Whether a batch's rows are no longer needed; called from the thread.
    std::function<bool(uint32_t epoch, uint32_t batch)> is_over;
    // Requests the pages that hold these bytes: Advise(kWillNeed), except in tests.
    std::function<void(std::span<const std::byte>)> ask;
  };

  ReadingAhead(std::unique_ptr<SampleWork> work, Options options);
  ~ReadingAhead() override;
  ReadingAhead(const ReadingAhead&) = delete;
  ReadingAhead& operator=(const ReadingAhead&) = delete;

  uint32_t depth() const override { return work_->depth(); }
  Status Start(const SampleTask& task) override { return work_->Start(task); }
  Status Finish(const SampleTask& task, SampleReport* report) override;
  void Abandon() override { work_->Abandon(); }

 private:
  struct Batch {
    uint32_t epoch = 0;
    uint32_t batch = 0;
    std::vector<uint32_t> rows;
    uint64_t bytes = 0;  // bytes of requested pages
  };

  void Run();
  void DropOver();
  uint64_t BytesAsked() const;
  void Ask(Batch* batch, uint64_t most_bytes);
  bool Goes(const Batch& batch);

  std::unique_ptr<SampleWork> work_;
  const Options options_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Batch> waiting_;
  uint64_t waiting_rows_ = 0;
  std::deque<Batch> asked_;  // without rows
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace gnnd
