#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/mapping.h"

// Stored embeddings (FreshGNN, PVLDB 17(6), sections 3.2 and 3.3): which to keep, and the
// allocation that they share with cached feature rows. job_history.h makes a job's memory of it.

namespace gnnd {

// --- which embeddings to keep

struct HistoryVerdict {
  std::vector<uint32_t> admitted;  // computed rows to store, ascending
  std::vector<uint32_t> evicted;   // rows that came from history and are to be forgotten, ascending
};

// Keeps those of a level's live rows whose gradients are smallest: floor(share * rows) rows, ties
// by lower row; a NaN norm counts as the largest. Of the kept rows, computed ones are admitted and
// rows from history stay with their age; other rows from history are evicted. Only the order of
// norms counts, not their scale. `from_history` has one byte a row. REQUIRES: share in [0, 1], no
// norm below 0.
HistoryVerdict JudgeByGradient(std::span<const float> norms, std::span<const uint8_t> from_history,
                               double share);

// --- where they lie

inline constexpr uint64_t kNoStale = UINT64_MAX;      // embeddings never grow too old
inline constexpr uint32_t kNoEmbedding = UINT32_MAX;  // a place number that means "none"

struct HistoryShape {
  uint64_t bytes = 0;  // available to embeddings
  uint32_t embedding_bytes = 0;
  // Cached feature rows in the same allocation, whose size is the larger of both needs: this many
  // unless embeddings need their room; 0: none.
  uint64_t feature_rows = 0;
  uint32_t feature_bytes = 0;
  uint32_t levels = 1;  // levels that keep embeddings; all have rows of the same width
  uint32_t num_nodes = 0;
  uint64_t t_stale = 0;  // largest age of a usable embedding, in versions; 0: nothing is stored
  // Versions before this one store nothing, because embeddings change too much at first.
  uint64_t start_version = 0;
};

// All mutable state apart from the arrays: the same state and the same calls give the same state.
struct HistoryState {
  uint64_t head = 0;    // the next place to write
  uint64_t extent = 0;  // places from here on were never written
  uint64_t went_round = 0;
  uint64_t period = 0;
  uint64_t overwritten = 0;  // embeddings that were still fresh, for want of places

  bool operator==(const HistoryState&) const = default;
};

// Two uses share one allocation: cached feature rows lie at its start in the order of their ranks,
// the hottest first; embeddings grow from its end towards them, and circulate in the part that they
// have reached. When they reach feature rows, the coldest of these are given up for good:
// `features()`, the first rank without a row, falls. It follows from the places that were ever
// written, so it is a function of the calls like everything else here.
//
// Feature rows lie as in a table, without gaps, and may begin some bytes later, so that they are a
// whole number of rows away from the table of all rows (FeatureStore).
//
// An embedding is found while its place still holds it and its age, in versions, is at most
// t_stale: overwritten or stale embeddings disappear without any sweep. Every t_stale versions
// writing restarts at the front, as long as it never reached the end: old places are reused before
// new ones are taken from the features. All calls are O(1) per row; the outcome depends on the
// order of calls alone.
//
// A call that changes the buffer may be interrupted and repeated from the state before it, and then
// leaves the same result (job_history.h), as long as no call stores what another one evicts.
class HistoryBuffer {
 public:
  struct Place {
    uint32_t node;
    uint32_t level;
    uint64_t version;
  };

  // The buffer may be too small for any embedding, or any feature. Throws std::bad_alloc.
  explicit HistoryBuffer(const HistoryShape& shape);
  // Uses others' memory: BytesOf bytes from a page boundary on, initially zero.
  HistoryBuffer(const HistoryShape& shape, std::byte* memory);
  static uint64_t BytesOf(const HistoryShape& shape);
  static uint64_t MostPlaces(const HistoryShape& shape);
  static uint64_t Pitch(uint32_t row_bytes);

  const HistoryShape& shape() const { return shape_; }
  const HistoryState& state() const { return state_; }
  void set_state(const HistoryState& state) { state_ = state; }

  // Offset of the rows in the memory, a multiple of a page, and their size with all gaps between
  // them.
  static uint64_t RowsAt(const HistoryShape& shape);
  static uint64_t RowsBytes(const HistoryShape& shape);
  // Upper bound (exclusive) of the bytes before the feature rows; at least a page.
  static uint64_t FeatureSlack(const HistoryShape& shape);

  // Feature rows that there is room for: ranks below it. The owner of the buffer fills them.
  uint64_t features() const;
  // Address of rank 0's row, `skew` bytes after the start. REQUIRES: skew < FeatureSlack.
  std::byte* features_at(uint64_t skew);

  // The place of a node's embedding, however old it is.
  std::optional<uint32_t> Held(uint32_t level, uint32_t node) const;
  // The place of a node's embedding if it may be used at `version`.
  std::optional<uint32_t> Find(uint32_t level, uint32_t node, uint64_t version) const;
  // Find for many nodes: kNoEmbedding where there is none. `found` is as long as `nodes`.
  void FindAll(uint32_t level, std::span<const uint32_t> nodes, uint64_t version,
               std::span<uint32_t> found) const;
  // REQUIRES: `place` was found, and nothing was stored since.
  std::span<const std::byte> embedding(uint32_t place) const;
  uint64_t AgeOf(uint32_t place, uint64_t version) const {
    return version - places_[place].version;
  }

  // Makes room for the embeddings of distinct `nodes` at `version` and returns their places, in
  // order; the caller writes them. If they exceed the places for embeddings, only the first are
  // stored. Feature rows may be given up, so read them first. REQUIRES: versions do not fall.
  std::vector<uint32_t> Store(uint32_t level, std::span<const uint32_t> nodes, uint64_t version);
  std::span<std::byte> embedding_to_write(uint32_t place);

  // Forgets an embedding if it is stored.
  void Evict(uint32_t level, uint32_t node);

  uint64_t embedding_places() const { return state_.extent; }  // number of places ever written
  uint64_t overwritten() const { return state_.overwritten; }

  // The content of a place if it can still be found at some version; `place` is below
  // embedding_places().
  std::optional<Place> NamedAt(uint32_t place) const;
  // Restores a place that NamedAt returned; the caller writes the embedding. REQUIRES: a buffer
  // with this state that is otherwise empty.
  void PutBack(uint32_t place, const Place& holds);

 private:
  void UseMemory(std::byte* memory);
  std::byte* EmbeddingAt(uint32_t place) const;
  bool IsFresh(const Place& place, uint64_t version) const;
  uint32_t& PlaceOf(uint32_t level, uint32_t node) const;
  void AskForStored(uint32_t level, std::span<const uint32_t> nodes, uint64_t begin) const;

  HistoryShape shape_;
  uint64_t embedding_pitch_;
  uint64_t most_places_;
  HistoryState state_;
  Mapping own_;
  uint32_t* place_of_ = nullptr;  // [levels][num_nodes], place + 1; 0: none
  Place* places_ = nullptr;       // [most_places]
  std::byte* rows_ = nullptr;     // [RowsBytes]
  std::byte* embeddings_end_ = nullptr;
};

}  // namespace gnnd
