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

// The history of a job as a function of its version: the changes of a group's batches take effect
// in their order, once the group is committed, and every batch of a group sees the same history. So
// it does not matter which process trains which batch, when, or again.
//
// Before a batch is handed in, its changes are written beside the buffer, into a *note* for its
// place in the group. The first process to work at the next version carries the notes over, under a
// mutex; if it dies, the next one repeats all of it with the same result (HistoryBuffer).
//
// A Trainer's private history lies in private memory; a note takes effect with its next batch.
//
// Cached feature rows may share the buffer. A batch at a version reads those below that version's
// border (HistoryBuffer::features). Embeddings overwrite rows above the next version's border only
// when that version is brought up, and by then all batches before it were handed in: by their
// Trainers or, if a Trainer is dead and reaped and so reads no more, by others. A process that may
// still read a row, even one that was stopped for long, has not handed in its batch, and so the
// next version cannot exist yet.

namespace gnnd {

// The frozen options of a job's history; bytes 0: there is none.
struct HistoryConfig {
  uint64_t bytes = 0;  // for embeddings
  uint64_t t_stale = 0;
  uint64_t start_version = 0;
  uint32_t row_bytes = 0;  // size of an embedding
  uint32_t levels = 0;
  uint32_t num_nodes = 0;
  // Cached feature rows in the same memory, as many as embeddings leave room for; they decide no
  // bit. 0: none.
  uint32_t feature_bytes = 0;
  uint64_t cache_rows = 0;
};
static_assert(sizeof(HistoryConfig) == 48);

HistoryShape ShapeOf(const HistoryConfig& config);

// The same without cached feature rows: the part that decides a job's bits.
HistoryConfig WithoutCache(HistoryConfig config);

// The changes of one batch, gathered before they take effect.
struct HistoryNote {
  struct Entry {
    uint32_t level;
    uint32_t node;
  };
  std::vector<Entry> evicted;
  // Stored in this order; if they exceed the buffer, only the first are stored.
  std::vector<Entry> admitted;
  std::vector<const std::byte*> rows;  // content of the admitted embeddings
};

class JobHistory {
 public:
  // Memory for steps of `group` batches. 0 if the config has no history.
  static uint64_t BytesOf(const HistoryConfig& config, uint32_t group);

  // Initialises zeroed memory, once, before others see it.
  static void Init(std::byte* memory);
  // Uses such memory, which must outlive the object: BytesOf bytes from a page boundary on.
  JobHistory(const HistoryConfig& config, uint32_t group, std::byte* memory);
  // A history that is private to this process. Throws std::bad_alloc. `near`: the wished-for
  // address.
  explicit JobHistory(const HistoryConfig& config, uintptr_t near = 0);

  bool is_private() const { return own_.data() != nullptr; }
  const HistoryBuffer& buffer() const { return buffer_; }

  // Brings the history to `version`, which is committed; the step before had `batches_before`
  // batches. REQUIRES: nobody works at an earlier version any more. kInternal when a note of those
  // batches is missing, kAborted when the mutex cannot be had.
  Status BringTo(uint64_t version, uint32_t batches_before);
  // For a private history: carries over the note of its last batch.
  void BringUp();

  // Writes the note of the batch at `place` of the group at `version`. Writing again replaces it.
  void Write(uint64_t version, uint32_t place, const HistoryNote& note);

  // ---- cached feature rows

  // Offset of the features in the memory, a multiple of a page, and the bytes up to the end of the
  // last row for any skew (HistoryBuffer::FeatureSlack).
  static uint64_t FeaturesAt(const HistoryConfig& config);
  static uint64_t FeaturesBytes(const HistoryConfig& config);
  // Address of rank 0's row, `skew` bytes after the start; all sharers use the same skew.
  std::byte* features_at(uint64_t skew) { return buffer_.features_at(skew); }

  // Reads rows of ranks begin to end - 1 into `to`.
  using ReadRanks = std::function<void(uint64_t begin, uint64_t end, std::byte* to)>;
  // Returns when all rows that there is room for are filled: the hottest first, piece by piece,
  // together with other processes that do the same or died doing it. The slow part, reading, holds
  // no mutex. kInternal if others used another skew, kAborted as in BringTo.
  Status FillFeatures(uint64_t skew, const ReadRanks& read);
  // The border: ranks below it may be read, at the version that the history was brought to, until
  // the present batch is handed in.
  uint64_t features() const;

  // ---- images. REQUIRES: the history was brought to the image's version.

  uint64_t SavedBytes() const;
  // Upper bound of SavedBytes for any history with this config.
  static uint64_t MostSavedBytes(const HistoryConfig& config);
  // Writes SavedBytes() bytes.
  void Save(std::byte* out) const;
  // Restores a history that is empty; false when the bytes contradict the config or themselves, and
  // then nothing is changed.
  bool Restore(std::span<const std::byte> saved, uint64_t version);

 private:
  // Progress: notes below `place` of `version` are carried over. Two are kept: that of the last
  // move and the one before it.
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
    // At least the number of ranks whose features were filled in; never falls.
    std::atomic<uint64_t> filled;
    uint64_t skew;  // skew of the features, set when the first are filled
  };
  struct NoteHeader {
    std::atomic<uint64_t> tag;  // version + 1; 0: the note is incomplete
    uint64_t evicted;
    uint64_t admitted;
  };
  // The parts of a note, each with room for all places.
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
