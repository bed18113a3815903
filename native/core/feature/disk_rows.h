#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/base/huge_array.h"
#include "core/feature/row_reader.h"
#include "core/graph/npy.h"

namespace gnnd {

// Rows read from disk, batches ahead: a few slots of memory, each for the rows of one call, and
// threads that fill them past the page cache, so that the disk works on the next call's rows while
// this one ends. A slot is filled again only when its rows were given up, and read only when it is
// full.
class DiskRows final : public RowReader {
 public:
  // Most slots that there are.
  static constexpr uint64_t kMostSlots = 4;

  // `files` say where rows begin, and are let go of.
  static Result<std::unique_ptr<RowReader>> Open(const RowReaderOptions& options,
                                                 std::vector<NpyArray> files);
  ~DiskRows() override;

  Status Stage(std::span<const RowRun> runs, const NextRuns& next) override;
  void Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const override;
  uint64_t memory_bytes() const override;
  std::string Describe() const override;

 private:
  // A run in a slot's memory: at `at` of it the first row of the first token; the same run of the
  // next token `token_bytes` after it.
  struct Place {
    uint32_t position;  // of its first row in the call
    uint32_t count;
    uint64_t at;
    uint64_t token_bytes;
  };
  enum class State { kFree, kWanted, kReading, kRead };
  struct Slot {
    State state = State::kFree;
    std::vector<RowRun> runs;
    std::vector<Place> places;
    std::vector<BulkRead> reads;
    HugeArray<std::byte> memory;
    Status status;  // of kRead
  };

  DiskRows(const RowReaderOptions& options, uint64_t row_bytes, NpyType type, uint64_t data_at,
           std::vector<BulkReader> readers, uint64_t slot_bytes);

  Status StartThreads();
  void Run(BulkReader* reader);
  Status Fill(BulkReader* reader, Slot* slot) const;
  // Under the mutex.
  Slot* Find(std::span<const RowRun> runs);
  Slot* TakeFor(std::span<const RowRun> runs, bool at_once);
  void AskAhead(const NextRuns& next);

  const uint64_t columns_;
  const NpyType type_;
  const uint64_t data_at_;
  const uint64_t slot_bytes_;
  std::vector<BulkReader> readers_;  // one a thread
  std::vector<Slot> slots_;
  Slot* staged_ = nullptr;
  std::vector<RowRun> next_runs_;
  std::vector<const Slot*> kept_;

  mutable std::mutex mutex_;  // guards states, runs and the next three
  std::condition_variable changed_;
  std::deque<Slot*> wanted_;
  ReadWay way_;  // of whoever read last
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gnnd
