#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/mapping.h"

// Stored embeddings (FreshGNN, PVLDB 17(6), sections 3.2 and 3.3): which are worth keeping, and one
// allocation that they share with cached feature rows. job_history.h makes a job's memory of it.

namespace gnnd {

// --- which embeddings to keep

struct HistoryVerdict {
  std::vector<uint32_t> admitted;  // computed rows to store, ascending
  std::vector<uint32_t> evicted;   // rows that came from history and are to be forgotten, ascending
};

// Of a level's live rows those are kept whose gradients are smallest: floor(share * rows) of them,
// ties by lower row; a norm that is no number counts as the largest. Of these, computed rows are
// admitted; rows of history stay, with the age they have; other rows of history are evicted. Only
// the order of norms counts, not their scale. `from_history` has one byte a row. REQUIRES: share in
// [0, 1], no norm below 0.
HistoryVerdict JudgeByGradient(std::span<const float> norms, std::span<const uint8_t> from_history,
                               double share);

// --- where they lie

inline constexpr uint64_t kNoStale = UINT64_MAX;      // embeddings never grow too old
inline constexpr uint32_t kNoEmbedding = UINT32_MAX;  // of places: there is none

struct HistoryShape {
  uint64_t bytes = 0;  // that embeddings may take
  uint32_t embedding_bytes = 0;
  // Cached feature rows in the same allocation, which is as large as the larger of both: so many as
  // long as embeddings leave them room; 0: there are none.
  uint64_t feature_rows = 0;
  uint32_t feature_bytes = 0;
  uint32_t levels = 1;  // that keep embeddings; all equally wide
  uint32_t num_nodes = 0;
  uint64_t t_stale = 0;  // versions that an embedding may be old; 0: nothing is stored
  // Versions before this one store nothing: embeddings change too much at first.
  uint64_t start_version = 0;
};

// All that changes but what the arrays hold: the same state and the same calls give the same state.
struct HistoryState {
  uint64_t head = 0;    // the next place to write
  uint64_t extent = 0;  // places from here on were never written
  uint64_t went_round = 0;
  uint64_t period = 0;
  uint64_t overwritten = 0;  // still fresh, for want of places

  bool operator==(const HistoryState&) const = default;
};

// Two ends of one allocation: cached feature rows lie from its start on in the order of their
// ranks, the hottest first; embeddings grow from its end towards them, and round and round in what
// they have reached. Where they reach feature rows, the coldest
// of these are given up for good: `features()`, the border in rank space, falls. It follows from
// the places that were ever written, so it is a function of the calls as everything else here.
//
// Feature rows lie as in a table, without gaps, and may begin some bytes later, so that they are a
// whole number of rows away from the table of all rows (FeatureStore).
//
// An embedding is found while its place still holds it and its age, in versions, is at most
// t_stale. So whatever is overwritten or too old disappears by itself, and nobody sweeps. Every
// t_stale versions writing starts again at the front, as long as it never reached its end: old
// places are used before new ones are taken from the features. All O(1) but for the rows written;
// the outcome depends on the order of calls alone.
//
// Calls that change it may be interrupted and made again from the state before them: they then
// leave what they would have left (job_history.h), as long as none stores what another one evicts.
class HistoryBuffer {
 public:
  struct Place {
    uint32_t node;
    uint32_t level;
    uint64_t version;
  };

  // A buffer may be too small for any embedding, or any feature. Throws std::bad_alloc.
  explicit HistoryBuffer(const HistoryShape& shape);
  // In memory of others: BytesOf bytes from a page on, zero where nobody has written.
  HistoryBuffer(const HistoryShape& shape, std::byte* memory);
  static uint64_t BytesOf(const HistoryShape& shape);
  static uint64_t MostPlaces(const HistoryShape& shape);
  static uint64_t Pitch(uint32_t row_bytes);

  const HistoryShape& shape() const { return shape_; }
  const HistoryState& state() const { return state_; }
  void set_state(const HistoryState& state) { state_ = state; }

  // Where the rows begin in the memory, from a page on, and how many bytes they take with all that
  // lies between them.
  static uint64_t RowsAt(const HistoryShape& shape);
  static uint64_t RowsBytes(const HistoryShape& shape);
  // The bytes before feature rows may be fewer than this; a page at least.
  static uint64_t FeatureSlack(const HistoryShape& shape);

  // Feature rows there is room for: ranks below it. Whoever owns the buffer fills them.
  uint64_t features() const;
  // The row of rank 0, behind so many bytes. REQUIRES: skew < FeatureSlack.
  std::byte* features_at(uint64_t skew);

  // Where the embedding of a node lies, however old it is.
  std::optional<uint32_t> Held(uint32_t level, uint32_t node) const;
  // Likewise, if it may be used at `version`.
  std::optional<uint32_t> Find(uint32_t level, uint32_t node, uint64_t version) const;
  // The same of many: kNoEmbedding where there is none. As long as `nodes`.
  void FindAll(uint32_t level, std::span<const uint32_t> nodes, uint64_t version,
               std::span<uint32_t> found) const;
  // REQUIRES: found, and nothing stored since.
  std::span<const std::byte> embedding(uint32_t place) const;
  uint64_t AgeOf(uint32_t place, uint64_t version) const {
    return version - places_[place].version;
  }

  // Makes room for the embeddings of distinct `nodes` at `version` and returns their places, in
  // order; the caller writes them. As many as embeddings may take at once: of more the first are
  // stored. Feature rows may be given up: reads of them come first. REQUIRES: versions do not fall.
  std::vector<uint32_t> Store(uint32_t level, std::span<const uint32_t> nodes, uint64_t version);
  std::span<std::byte> embedding_to_write(uint32_t place);

  // Forgets one, if it is there.
  void Evict(uint32_t level, uint32_t node);

  uint64_t embedding_places() const { return state_.extent; }  // ever written
  uint64_t overwritten() const { return state_.overwritten; }

  // What a place holds, if that can still be found at some version; `place` is below
  // embedding_places().
  std::optional<Place> NamedAt(uint32_t place) const;
  // Puts back what NamedAt gave; the caller writes the embedding. REQUIRES: a buffer of this state
  // that is otherwise empty.
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
  uint32_t* place_of_ = nullptr;  // [levels][num_nodes], one more than the place; 0: none
  Place* places_ = nullptr;       // [most_places]
  std::byte* rows_ = nullptr;     // [RowsBytes]
  std::byte* embeddings_end_ = nullptr;
};

}  // namespace gnnd
