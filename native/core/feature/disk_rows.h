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

// Reads rows from disk, batches ahead. A few slots of memory each hold the rows of one call, and
// threads fill them past the page cache, so that the disk reads the next call's rows while this
// call's are used. A slot is filled again only after its rows were released, and used only when it
// is full.
class DiskRows final : public RowReader {
 public:
  // Largest number of slots.
  static constexpr uint64_t kMostSlots = 4;

  // `files` give the offset of the rows, and are closed afterwards.
  static Result<std::unique_ptr<RowReader>> Open(const RowReaderOptions& options,
                                                 std::vector<NpyArray> files);
  ~DiskRows() override;

  Status Stage(std::span<const RowRun> runs, const NextRuns& next) override;
  void Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const override;
  uint64_t memory_bytes() const override;
  std::string Describe() const override;

 private:
  // A run in a slot's memory: its first token's rows begin at `at`, those of each next token
  // `token_bytes` further.
  struct Place {
    uint32_t position;  // number of its first row within the call
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
    Status status;  // how the read ended, in state kRead
  };

  DiskRows(const RowReaderOptions& options, uint64_t row_bytes, NpyType type, uint64_t data_at,
           std::vector<BulkReader> readers, uint64_t slot_bytes);

  Status StartThreads();
  void Run(BulkReader* reader);
  Status Fill(BulkReader* reader, Slot* slot) const;
  // The next three are called with the mutex held.
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
  ReadWay way_;  // the way of the latest read
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gnnd
