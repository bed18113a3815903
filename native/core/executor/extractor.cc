#include "core/executor/extractor.h"

#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/base/contain.h"
#include "core/base/failpoint.h"
#include "core/batch/epoch_name.h"
#include "core/batch/record.h"

namespace gnnd {

Extractor::~Extractor() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status Extractor::Start(uint64_t batch) {
  GNND_CHECK(!started_);
  batch_ = batch;
  out_.buffer = (out_.buffer + 1) % kExtractBuffers;
  started_ = true;
  if (!ahead_) return Status::Ok();
  if (!thread_.joinable()) {
    GNND_TRY(Contained([this] {
      thread_ = std::thread([this] { Run(); });
      return Status::Ok();
    }));
  }
  {
    const std::lock_guard lock(mutex_);
    under_way_ = true;
  }
  changed_.notify_all();
  return Status::Ok();
}

Result<Extracted> Extractor::Finish() {
  GNND_CHECK(started_);
  if (ahead_) {
    Wait();
  } else {
    status_ = Extract();
  }
  started_ = false;
  if (!status_.ok()) return status_;
  return out_;
}

void Extractor::Discard() {
  if (started_ && ahead_ && !GNND_BROKEN("give-back-after-reads")) Wait();
  started_ = false;
}

void Extractor::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !under_way_; });
}

void Extractor::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return under_way_ || ending_; });
    if (!under_way_) return;
    lock.unlock();
    Status status = Contained([this] { return Extract(); });
    lock.lock();
    status_ = std::move(status);
    under_way_ = false;
    changed_.notify_all();
  }
}

Status Extractor::Extract() {
  const uint64_t start_ns = MonotonicNs();
  out_.sample = GNND_VALUE(SampleOf(batch_));
  out_.report = ExtractReport{};
  if (work_.keeps_history()) GNND_TRY(work_.BringHistoryTo(PointOf(batch_)));
  GNND_TRY(work_.Extract(out_.sample, out_.buffer, &out_.report));
  out_.busy_ns = MonotonicNs() - start_ns;
  GNND_FAILPOINT("extract.after");
  return Status::Ok();
}

BatchPoint Extractor::PointOf(uint64_t batch) const {
  const JobShape& shape = segment_.shape();
  const uint64_t group = shape.GroupOfBatch(batch);
  const uint64_t version = shape.RequiredVersion(group);
  return {version, static_cast<uint32_t>(batch - shape.FirstBatch(group)),
          shape.BatchesBefore(version)};
}

Result<Sample> Extractor::SampleOf(uint64_t batch) const {
  const JobShape& shape = segment_.shape();
  if (shape.born_ready) return RowsOf(batch);
  Sample sample = GNND_VALUE(OpenRecord(segment_.slot(shape.SlotOf(batch))));
  const uint32_t epoch = segment_.EpochNumber(shape.EpochOfBatch(batch));
  const uint64_t index = shape.IndexOfBatch(batch);
  if (sample.key().epoch != epoch || sample.key().batch != index) {
    return Status(Code::kShmCorrupted, "slot " + std::to_string(shape.SlotOf(batch)) +
                                           " holds batch " + std::to_string(sample.key().batch) +
                                           " of " + EpochName(sample.key().epoch) +
                                           " where batch " + std::to_string(index) + " of " +
                                           EpochName(epoch) + " must be");
  }
  if (sample.num_items() != segment_.SeedsOfBatch(index)) {
    return Status(Code::kShmCorrupted, "the record of batch " + std::to_string(index) + " has " +
                                           std::to_string(sample.num_items()) + " items, not " +
                                           std::to_string(segment_.SeedsOfBatch(index)));
  }
  if (sample.kind() != SampleKind::kBlocks) {
    return Status(Code::kInternal, "the record of batch " + std::to_string(index) +
                                       " holds rows, which have no records in this version");
  }
  return sample;
}

Sample Extractor::RowsOf(uint64_t batch) const {
  const JobShape& shape = segment_.shape();
  const uint64_t index = shape.IndexOfBatch(batch);
  const uint32_t epoch = segment_.EpochNumber(shape.EpochOfBatch(batch));
  Sample sample(SampleKind::kRows, {0, epoch, static_cast<uint32_t>(index)});
  sample.AddNodes({}, static_cast<uint32_t>(segment_.SeedsOfBatch(index)), {});
  return sample;
}

}  // namespace gnnd
