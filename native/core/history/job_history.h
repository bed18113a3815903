#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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
//
// Cached feature rows may share the buffer. A batch at a version reads those below the border of
// that version (HistoryBuffer::features). Embeddings are written over rows above the next version's
// border only when that version is brought up, by when all batches before it were handed in: by
// their Trainers, or, where a Trainer is dead and reaped and so reads no more, by others. Who may
// still read a row, also one that was stopped for long, keeps its batch from being handed in, and
// so the next version from being.

namespace gnnd {

// What is frozen of a job's history; bytes 0: there is none.
struct HistoryConfig {
  uint64_t bytes = 0;  // of embeddings
  uint64_t t_stale = 0;
  uint64_t start_version = 0;
  uint32_t row_bytes = 0;  // of an embedding
  uint32_t levels = 0;
  uint32_t num_nodes = 0;
  // Cached feature rows in the same memory, as many as embeddings leave room for: no bit depends on
  // them. 0: there are none.
  uint32_t feature_bytes = 0;
  uint64_t cache_rows = 0;
};
static_assert(sizeof(HistoryConfig) == 48);

HistoryShape ShapeOf(const HistoryConfig& config);

// The same without cached feature rows: what decides a job's bits.
HistoryConfig WithoutCache(HistoryConfig config);

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
  // `near`: addresses that are wished for.
  explicit JobHistory(const HistoryConfig& config, uintptr_t near = 0);

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

  // ---- cached feature rows

  // Where the memory has them, from a page on, and bytes up to the last one's end, whatever comes
  // before the first (HistoryBuffer::FeatureSlack).
  static uint64_t FeaturesAt(const HistoryConfig& config);
  static uint64_t FeaturesBytes(const HistoryConfig& config);
  // The row of rank 0, behind so many bytes: the same of all who share it.
  std::byte* features_at(uint64_t skew) { return buffer_.features_at(skew); }

  // Reads rows of ranks begin to end - 1 into `to`.
  using ReadRanks = std::function<void(uint64_t begin, uint64_t end, std::byte* to)>;
  // When this returns, all rows are there for which there is room: the hottest first, a piece at a
  // time, together with others who do the same, or died at it. What is slow about it, reading,
  // keeps nobody's mutex. kInternal for another skew than that of others, kAborted as BringTo.
  Status FillFeatures(uint64_t skew, const ReadRanks& read);
  // The border: rows of ranks below may be read, at the version that this was brought to, until the
  // batch at hand is handed in.
  uint64_t features() const;

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
  // Where it stands: notes below `place` of `version` are carried over. Kept twice: the one of the
  // last move and the one before it.
  struct Point {
    uint64_t version;
    uint64_t place;
    HistoryState state;
  };
  static constexpr uint32_t kPointWords = sizeof(Point) / sizeof(uint64_t);
  static_assert(sizeof(Point) % sizeof(uint64_t) == 0);
  struct alignas(64) Header {
    RobustMutex mutex;
    std::atomic<uint32_t> moves;
    std::atomic<uint64_t> points[2][kPointWords];
    // Ranks of features that were filled in, or more; never falls.
    std::atomic<uint64_t> filled;
    uint64_t skew;  // of features, once there are some
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
  Status Lock();
  static uint64_t NoteBytes(const HistoryConfig& config);
  Note NoteAt(uint32_t place) const;
  Point point() const;
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
