#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/mapping.h"
#include "core/base/robust_mutex.h"
#include "core/base/status.h"
#include "core/history/history_buffer.h"

// The history of a job as a function of its version: what batches of a group have stored and
// forgotten counts, in their order, once the group is committed, and every batch of a group sees
// the same. So it does not matter who trains which batch when, or again.
//
// A batch writes what it changes beside the buffer, into a *note* of its place in the group, before
// it is handed in. Whoever first works at the next version carries the notes over, under a mutex;
// who dies there has changed nothing that is not changed again in the same way (HistoryBuffer).
//
// A history of a Trainer's own lies in private memory; its notes count with its next batch.

namespace gnnd {

// What is frozen of a job's history; bytes 0: there is none.
struct HistoryConfig {
  uint64_t bytes = 0;  // of embeddings
  uint64_t t_stale = 0;
  uint64_t start_version = 0;
  uint32_t row_bytes = 0;  // of an embedding
  uint32_t levels = 0;
  uint32_t num_nodes = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(HistoryConfig) == 40);

HistoryShape ShapeOf(const HistoryConfig& config);

// What one batch changes, gathered before it counts.
struct HistoryNote {
  struct Entry {
    uint32_t level;
    uint32_t node;
  };
  std::vector<Entry> evicted;
  // Stored in this order; of more than the buffer takes at all, the first.
  std::vector<Entry> admitted;
  std::vector<const std::byte*> rows;  // of those that are admitted
};

class JobHistory {
 public:
  // For a step of so many batches. 0 where the config has no history.
  static uint64_t BytesOf(const HistoryConfig& config, uint32_t group);

  // Memory that was zero, once, before others see it.
  static void Init(std::byte* memory);
  // Over such memory, which must outlive it: BytesOf bytes from a page on.
  JobHistory(const HistoryConfig& config, uint32_t group, std::byte* memory);
  // Of this process alone. Throws std::bad_alloc.
  explicit JobHistory(const HistoryConfig& config);

  bool is_private() const { return own_.data() != nullptr; }
  const HistoryBuffer& buffer() const { return buffer_; }

  // Brings it to the history of `version`, which is committed; the step before had so many batches.
  // Nobody works at an earlier version any more. kInternal when it is not known by then what those
  // batches changed, kAborted when the mutex is not to be had.
  Status BringTo(uint64_t version, uint32_t batches_before);
  // Of a private one: carries over what its last batch changed.
  void BringUp();

  // What the batch at `place` of the group at `version` changes. Written again, it replaces what
  // was there.
  void Write(uint64_t version, uint32_t place, const HistoryNote& note);

  // ---- images. REQUIRES: brought to the version that they are of.

  uint64_t SavedBytes() const;
  // The most that it can be, of any history of this config.
  static uint64_t MostSavedBytes(const HistoryConfig& config);
  // Writes SavedBytes() bytes.
  void Save(std::byte* out) const;
  // Into memory that is otherwise empty; false when the bytes contradict the config or themselves,
  // and then nothing is changed.
  bool Restore(std::span<const std::byte> saved, uint64_t version);

 private:
  // Where it stands: notes below `place` of `version` are carried over. Kept twice; `which` says
  // where.
  struct Point {
    uint64_t version;
    uint64_t place;
    HistoryState state;
  };
  struct alignas(64) Header {
    RobustMutex mutex;
    std::atomic<uint32_t> which;
    Point points[2];
  };
  struct NoteHeader {
    std::atomic<uint64_t> tag;  // one more than the version; 0: not whole
    uint64_t evicted;
    uint64_t admitted;
  };
  // A note's parts, each for as many as there are places.
  struct Note {
    NoteHeader* header;
    HistoryNote::Entry* evicted;
    HistoryNote::Entry* admitted;
    std::byte* rows;
  };

  JobHistory(const HistoryConfig& config, Mapping own);
  static uint64_t NoteBytes(const HistoryConfig& config);
  Note NoteAt(uint32_t place) const;
  const Point& point() const;
  void MoveTo(const Point& point);
  void CarryOver(const Note& note, uint64_t version);
  Status CarryAll(uint64_t version, uint32_t batches_before);

  HistoryConfig config_;
  HistoryBuffer buffer_;
  uint64_t pitch_;
  uint64_t most_;
  Mapping own_;
  Header* header_ = nullptr;
  std::byte* notes_ = nullptr;
};

}  // namespace gnnd
