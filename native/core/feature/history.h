#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/huge_array.h"

// Stored embeddings (FreshGNN, PVLDB 17(6), sections 3.2 and 3.3): which are worth keeping, and one
// allocation that they share with cached feature rows. A Trainer's own. Nothing uses it yet.

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
// [0, 1].
HistoryVerdict JudgeByGradient(std::span<const float> norms, std::span<const uint8_t> from_history,
                               double share);

// --- where they lie

inline constexpr uint64_t kNoStale = UINT64_MAX;  // embeddings never grow too old

struct HistoryShape {
  uint64_t bytes = 0;  // of the allocation
  uint32_t embedding_bytes = 0;
  uint32_t feature_bytes = 0;
  uint32_t levels = 1;  // that keep embeddings; all equally wide
  uint32_t num_nodes = 0;
  uint64_t t_stale = 0;  // versions that an embedding may be old; 0: nothing is stored
  // Versions before this one store nothing: embeddings change too much at first.
  uint64_t start_version = 0;
  double max_share = 0.5;  // of the bytes that embeddings may take
};

// Embeddings grow from the allocation's first byte, cached feature rows lie at its end, the hottest
// last: the rank below `features()` is there. Embeddings are written behind one another, round and
// round; where they reach feature rows, the coldest of these are given up for good.
//
// An embedding is found while its place still holds it and its age, in versions, is at most
// t_stale. So whatever is overwritten or too old disappears by itself, and nobody sweeps. Every
// t_stale versions writing starts again at the front, as long as it never reached its end: old
// places are used before new ones are taken from the features. All O(1) but for the rows written;
// the outcome depends on the order of calls alone.
class HistoryBuffer {
 public:
  // A buffer may be too small for any embedding, or any feature. Throws std::bad_alloc.
  explicit HistoryBuffer(const HistoryShape& shape);

  // Feature rows there is room for: ranks below it. They begin with as many as fit at all; whoever
  // owns the buffer fills them.
  uint64_t features() const { return features_; }
  // REQUIRES: rank < features().
  std::span<std::byte> feature(uint64_t rank);

  // Where the embedding of a node lies, if it may be used at `version`.
  std::optional<uint32_t> Find(uint32_t level, uint32_t node, uint64_t version) const;
  // REQUIRES: found, and nothing stored since.
  std::span<const std::byte> embedding(uint32_t place) const;

  // Makes room for the embeddings of distinct `nodes` at `version` and returns their places, in
  // order; the caller writes them. As many as embeddings may take at once: of more the first are
  // stored. Feature rows may be given up: reads of them come first. REQUIRES: versions do not fall.
  std::vector<uint32_t> Store(uint32_t level, std::span<const uint32_t> nodes, uint64_t version);
  std::span<std::byte> embedding_to_write(uint32_t place);

  // Forgets one, if it is there.
  void Evict(uint32_t level, uint32_t node);

  uint64_t embedding_places() const { return extent_; }  // ever written
  uint64_t overwritten() const { return overwritten_; }  // still fresh, for want of places

 private:
  struct Place {
    uint32_t node;
    uint32_t level;
    uint64_t version;
  };

  bool IsFresh(const Place& place, uint64_t version) const;
  uint32_t& PlaceOf(uint32_t level, uint32_t node);

  HistoryShape shape_;
  uint64_t embedding_pitch_;
  uint64_t feature_pitch_;
  uint64_t most_places_;
  uint64_t features_ = 0;
  uint64_t head_ = 0;    // the next place to write
  uint64_t extent_ = 0;  // places from here on were never written
  bool went_round_ = false;
  uint64_t period_ = 0;
  uint64_t overwritten_ = 0;
  HugeArray<std::byte> memory_;
  std::vector<Place> places_;
  HugeArray<uint32_t> place_of_;  // [levels][num_nodes], one more than the place; 0: none
};

}  // namespace gnnd
