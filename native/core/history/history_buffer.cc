#include "core/history/history_buffer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/base/prefetch.h"

namespace gnnd {
namespace {

// Nodes whose memory is prefetched together: first their entries, then their places.
constexpr size_t kLookUpAtOnce = 32;

// Offsets of the arrays before the rows.
struct Places {
  uint64_t places_at;
  uint64_t rows_at;
  uint64_t total_bytes;
};

Places PlacesOf(const HistoryShape& shape) {
  Places at{};
  at.places_at = RoundUp(uint64_t{shape.levels} * shape.num_nodes * sizeof(uint32_t), kPageBytes);
  const uint64_t places = HistoryBuffer::MostPlaces(shape) * sizeof(HistoryBuffer::Place);
  at.rows_at = RoundUp(at.places_at + places, kPageBytes);
  at.total_bytes = at.rows_at + HistoryBuffer::RowsBytes(shape);
  return at;
}

// Size of the rows that embeddings and features share.
uint64_t SharedBytes(const HistoryShape& shape) {
  return std::max(shape.bytes, shape.feature_rows * shape.feature_bytes);
}

}  // namespace

HistoryVerdict JudgeByGradient(std::span<const float> norms, std::span<const uint8_t> from_history,
                               double share) {
  GNND_CHECK(norms.size() == from_history.size() && share >= 0 && share <= 1);
  const size_t rows = norms.size();
  // Adds 1e-9 because a share such as 0.29 is stored slightly too small.
  const auto kept = static_cast<size_t>(std::floor(share * static_cast<double>(rows) + 1e-9));
  // Bits of non-negative floats sort like the floats; the row decides ties.
  std::vector<uint64_t> keys(rows);
  for (size_t row = 0; row < rows; ++row) {
    const float norm = std::isnan(norms[row]) ? std::numeric_limits<float>::infinity() : norms[row];
    keys[row] = uint64_t{std::bit_cast<uint32_t>(norm)} << 32 | row;
  }
  uint64_t first_beyond = UINT64_MAX;
  if (kept < rows) {
    std::vector<uint64_t> order = keys;
    const auto nth = order.begin() + static_cast<std::ptrdiff_t>(kept);
    std::nth_element(order.begin(), nth, order.end());
    first_beyond = *nth;
  }
  HistoryVerdict verdict;
  for (uint32_t row = 0; row < rows; ++row) {
    const bool is_kept = keys[row] < first_beyond;
    if (is_kept && from_history[row] == 0) verdict.admitted.push_back(row);
    if (!is_kept && from_history[row] != 0) verdict.evicted.push_back(row);
  }
  return verdict;
}

uint64_t HistoryBuffer::Pitch(uint32_t row_bytes) { return RoundUp(row_bytes, 16); }

uint64_t HistoryBuffer::MostPlaces(const HistoryShape& shape) {
  GNND_CHECK(shape.embedding_bytes > 0);
  if (shape.t_stale == 0) return 0;
  // Places have 32 bits, and one number means "none".
  return std::min<uint64_t>(shape.bytes / Pitch(shape.embedding_bytes), kNoEmbedding - 1);
}

uint64_t HistoryBuffer::BytesOf(const HistoryShape& shape) { return PlacesOf(shape).total_bytes; }

uint64_t HistoryBuffer::RowsAt(const HistoryShape& shape) { return PlacesOf(shape).rows_at; }

uint64_t HistoryBuffer::FeatureSlack(const HistoryShape& shape) {
  return shape.feature_rows == 0 ? 0 : RoundUp(shape.feature_bytes, kPageBytes);
}

uint64_t HistoryBuffer::RowsBytes(const HistoryShape& shape) {
  return RoundUp(std::max<uint64_t>(1, SharedBytes(shape)), kPageBytes) + FeatureSlack(shape);
}

HistoryBuffer::HistoryBuffer(const HistoryShape& shape) : HistoryBuffer(shape, nullptr) {
  own_ = AnonymousOrThrow(BytesOf(shape));
  UseMemory(own_.data());
}

HistoryBuffer::HistoryBuffer(const HistoryShape& shape, std::byte* memory)
    : shape_(shape),
      embedding_pitch_(Pitch(shape.embedding_bytes)),
      most_places_(MostPlaces(shape)) {
  if (memory != nullptr) UseMemory(memory);
}

void HistoryBuffer::UseMemory(std::byte* memory) {
  const Places at = PlacesOf(shape_);
  place_of_ = reinterpret_cast<uint32_t*>(memory);
  places_ = reinterpret_cast<Place*>(memory + at.places_at);
  rows_ = memory + at.rows_at;
  embeddings_end_ = memory + at.total_bytes;
}

uint64_t HistoryBuffer::features() const {
  if (shape_.feature_rows == 0) return 0;
  const uint64_t left = SharedBytes(shape_) - state_.extent * embedding_pitch_;
  return std::min(shape_.feature_rows, left / shape_.feature_bytes);
}

std::byte* HistoryBuffer::features_at(uint64_t skew) {
  GNND_CHECK(skew < FeatureSlack(shape_));
  return rows_ + skew;
}

std::byte* HistoryBuffer::EmbeddingAt(uint32_t place) const {
  GNND_CHECK(place < state_.extent);
  return embeddings_end_ - (uint64_t{place} + 1) * embedding_pitch_;
}

std::span<std::byte> HistoryBuffer::embedding_to_write(uint32_t place) {
  return {EmbeddingAt(place), shape_.embedding_bytes};
}

std::span<const std::byte> HistoryBuffer::embedding(uint32_t place) const {
  return {EmbeddingAt(place), shape_.embedding_bytes};
}

uint32_t& HistoryBuffer::PlaceOf(uint32_t level, uint32_t node) const {
  GNND_CHECK(level < shape_.levels && node < shape_.num_nodes);
  return place_of_[uint64_t{level} * shape_.num_nodes + node];
}

bool HistoryBuffer::IsFresh(const Place& place, uint64_t version) const {
  return version - place.version <= shape_.t_stale;
}

std::optional<uint32_t> HistoryBuffer::Held(uint32_t level, uint32_t node) const {
  const uint32_t named = PlaceOf(level, node);
  if (named == 0) return std::nullopt;
  const Place& place = places_[named - 1];
  // Another node may have been written there since.
  if (place.node != node || place.level != level) return std::nullopt;
  return named - 1;
}

std::optional<uint32_t> HistoryBuffer::Find(uint32_t level, uint32_t node, uint64_t version) const {
  const std::optional<uint32_t> held = Held(level, node);
  if (!held) return std::nullopt;
  const Place& place = places_[*held];
  if (version < place.version || !IsFresh(place, version)) return std::nullopt;
  return held;
}

void HistoryBuffer::FindAll(uint32_t level, std::span<const uint32_t> nodes, uint64_t version,
                            std::span<uint32_t> found) const {
  const PrefetchLevel nearest = BestPrefetchLevel();
  for (size_t begin = 0; begin < nodes.size(); begin += kLookUpAtOnce) {
    const size_t end = std::min(nodes.size(), begin + kLookUpAtOnce);
    for (size_t i = begin; i < end; ++i) Prefetch(nearest, &PlaceOf(level, nodes[i]));
    for (size_t i = begin; i < end; ++i) {
      const uint32_t named = PlaceOf(level, nodes[i]);
      if (named != 0) Prefetch(nearest, &places_[named - 1]);
    }
    for (size_t i = begin; i < end; ++i) {
      found[i] = Find(level, nodes[i], version).value_or(kNoEmbedding);
    }
  }
}

void HistoryBuffer::Evict(uint32_t level, uint32_t node) { PlaceOf(level, node) = 0; }

// Prefetches what Store touches next for these nodes: their entries, and those of the nodes that
// they replace.
void HistoryBuffer::AskForStored(uint32_t level, std::span<const uint32_t> nodes,
                                 uint64_t begin) const {
  const PrefetchLevel nearest = BestPrefetchLevel();
  const uint64_t end = std::min<uint64_t>(nodes.size(), begin + kLookUpAtOnce);
  for (uint64_t i = begin; i < end; ++i) {
    Prefetch(nearest, &PlaceOf(level, nodes[i]));
    const Place& before = places_[(state_.head + i) % most_places_];
    if (before.level >= shape_.levels || before.node >= shape_.num_nodes) continue;
    Prefetch(nearest, &PlaceOf(before.level, before.node));
  }
}

std::vector<uint32_t> HistoryBuffer::Store(uint32_t level, std::span<const uint32_t> nodes,
                                           uint64_t version) {
  const uint64_t count = std::min<uint64_t>(nodes.size(), most_places_);
  if (count == 0 || version < shape_.start_version) return {};
  const uint64_t period = shape_.t_stale == kNoStale ? 0 : version / shape_.t_stale;
  if (period != state_.period && state_.went_round == 0) state_.head = 0;
  state_.period = period;
  // Extends the embeddings' part, which gives up feature rows, before anything is written.
  state_.extent = std::max(state_.extent, std::min(most_places_, state_.head + count));
  std::vector<uint32_t> stored;
  stored.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (i % kLookUpAtOnce == 0) AskForStored(level, nodes.first(count), i);
    const auto at = static_cast<uint32_t>((state_.head + i) % most_places_);
    const std::optional<Place> before = NamedAt(at);
    if (before && IsFresh(*before, version)) ++state_.overwritten;
    places_[at] = {nodes[i], level, version};
    PlaceOf(level, nodes[i]) = at + 1;
    stored.push_back(at);
  }
  if (state_.head + count >= most_places_) state_.went_round = 1;
  state_.head = (state_.head + count) % most_places_;
  return stored;
}

std::optional<HistoryBuffer::Place> HistoryBuffer::NamedAt(uint32_t place) const {
  const Place& holds = places_[place];
  if (holds.level >= shape_.levels || holds.node >= shape_.num_nodes) return std::nullopt;
  if (PlaceOf(holds.level, holds.node) != place + 1) return std::nullopt;
  return holds;
}

void HistoryBuffer::PutBack(uint32_t place, const Place& holds) {
  places_[place] = holds;
  PlaceOf(holds.level, holds.node) = place + 1;
}

}  // namespace gnnd
