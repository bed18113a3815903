#include "core/executor/reading_ahead.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/mapping.h"
#include "core/batch/record.h"

namespace gnnd {
namespace {

// Most row numbers that may wait, 64 MiB of them. Trainers request the rows of later batches
// themselves when they extract.
constexpr uint64_t kWaitingRowsMax = uint64_t{16} << 20;
// Commits wake nobody here, so a full window is checked again after this time.
constexpr std::chrono::milliseconds kLookAgain{5};
// Rows between two checks whether the work is still needed.
constexpr uint64_t kRowsPerLook = 1024;
// Neighbouring rows are requested together up to this size: longer reads would delay others.
constexpr uint64_t kBytesPerAsk = 16 * kPageBytes;

}  // namespace

ReadingAhead::ReadingAhead(std::unique_ptr<SampleWork> work, Options options)
    : work_(std::move(work)), options_(std::move(options)), thread_([this] { Run(); }) {}

ReadingAhead::~ReadingAhead() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Status ReadingAhead::Finish(const SampleTask& task, SampleReport* report) {
  GNND_TRY(work_->Finish(task, report));
  const gnnd::Sample sample = OwnSample(task.slot);
  const auto nodes = sample.nodes();
  const auto ranks = sample.ranks();
  Batch made{task.epoch, task.batch, {}, 0};
  made.rows.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (ranks.empty() || ranks[i] >= options_.cache_rows) made.rows.push_back(nodes[i]);
  }
  {
    const std::lock_guard lock(mutex_);
    if (waiting_rows_ + made.rows.size() > kWaitingRowsMax && !waiting_.empty()) {
      return Status::Ok();
    }
    waiting_rows_ += made.rows.size();
    waiting_.push_back(std::move(made));
  }
  changed_.notify_all();
  return Status::Ok();
}

void ReadingAhead::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    DropOver();
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t asked = BytesAsked();
    if (asked >= options_.window_bytes) {
      changed_.wait_for(lock, kLookAgain);
      continue;
    }
    Batch next = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_rows_ -= next.rows.size();
    lock.unlock();
    Ask(&next, options_.window_bytes - asked);
    lock.lock();
    next.rows = {};
    asked_.push_back(std::move(next));
  }
}

void ReadingAhead::DropOver() {
  const auto over = [this](const Batch& batch) {
    return options_.is_over(batch.epoch, batch.batch);
  };
  while (!waiting_.empty() && over(waiting_.front())) {
    waiting_rows_ -= waiting_.front().rows.size();
    waiting_.pop_front();
  }
  std::erase_if(asked_, over);
}

uint64_t ReadingAhead::BytesAsked() const {
  uint64_t bytes = 0;
  for (const Batch& batch : asked_) bytes += batch.bytes;
  return bytes;
}

bool ReadingAhead::Goes(const Batch& batch) {
  if (options_.is_over(batch.epoch, batch.batch)) return false;
  const std::lock_guard lock(mutex_);
  return !ending_;
}

// In the order of the file: rows of one page, and of neighbouring pages, are one call.
void ReadingAhead::Ask(Batch* batch, uint64_t most_bytes) {
  std::vector<uint32_t>& rows = batch->rows;
  std::sort(rows.begin(), rows.end());
  const RowTable& table = options_.features;
  const auto page_of = [](const std::byte* byte) {
    return reinterpret_cast<uintptr_t>(byte) / kPageBytes;
  };
  for (uint64_t i = 0, looked = 0; i < rows.size() && batch->bytes < most_bytes;) {
    if (i >= looked) {
      if (!Goes(*batch)) return;
      looked = i + kRowsPerLook;
    }
    const std::byte* begin = table.row(rows[i]);
    const std::byte* end = begin + table.row_bytes();
    for (++i; i < rows.size(); ++i) {
      const std::byte* row = table.row(rows[i]);
      const std::byte* row_end = row + table.row_bytes();
      if (page_of(row) > page_of(end - 1) + 1) break;
      if (page_of(row_end - 1) != page_of(end - 1) &&
          static_cast<uint64_t>(row_end - begin) > kBytesPerAsk) {
        break;
      }
      end = row_end;
    }
    batch->bytes += (page_of(end - 1) - page_of(begin) + 1) * kPageBytes;
    options_.ask({begin, end});
  }
}

}  // namespace gnnd
