#include "core/feature/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/check.h"

namespace gnnd {
namespace {

uint64_t PitchOf(uint32_t bytes) { return (uint64_t{bytes} + 15) / 16 * 16; }

}  // namespace

HistoryVerdict JudgeByGradient(std::span<const float> norms, std::span<const uint8_t> from_history,
                               double share) {
  GNND_CHECK(norms.size() == from_history.size() && share >= 0 && share <= 1);
  const size_t rows = norms.size();
  // A share such as 0.29 is a little less than it says.
  const auto kept = static_cast<size_t>(std::floor(share * static_cast<double>(rows) + 1e-9));
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&](uint32_t row) {
    return std::isnan(norms[row]) ? std::numeric_limits<float>::infinity() : norms[row];
  };
  if (kept < rows) {
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                     [&](uint32_t one, uint32_t other) {
                       return key(one) != key(other) ? key(one) < key(other) : one < other;
                     });
  }
  HistoryVerdict verdict;
  for (size_t i = 0; i < rows; ++i) {
    const uint32_t row = order[i];
    if (i < kept && from_history[row] == 0) verdict.admitted.push_back(row);
    if (i >= kept && from_history[row] != 0) verdict.evicted.push_back(row);
  }
  std::sort(verdict.admitted.begin(), verdict.admitted.end());
  std::sort(verdict.evicted.begin(), verdict.evicted.end());
  return verdict;
}

HistoryBuffer::HistoryBuffer(const HistoryShape& shape)
    : shape_(shape),
      embedding_pitch_(PitchOf(shape.embedding_bytes)),
      feature_pitch_(PitchOf(shape.feature_bytes)) {
  GNND_CHECK(shape.embedding_bytes > 0 && shape.feature_bytes > 0);
  GNND_CHECK(shape.max_share >= 0 && shape.max_share <= 1);
  const auto most_bytes = static_cast<uint64_t>(shape.max_share * static_cast<double>(shape.bytes));
  // Places are 32 bits, one number of which says "none".
  most_places_ = std::min<uint64_t>(most_bytes / embedding_pitch_, UINT32_MAX - 1);
  if (shape.t_stale == 0) most_places_ = 0;
  features_ = std::min<uint64_t>(shape.num_nodes, shape.bytes / feature_pitch_);
  memory_ = HugeArray<std::byte>(std::max<uint64_t>(1, shape.bytes));
  place_of_ = HugeArray<uint32_t>(std::max<uint64_t>(1, uint64_t{shape.levels} * shape.num_nodes));
}

std::span<std::byte> HistoryBuffer::feature(uint64_t rank) {
  GNND_CHECK(rank < features_);
  return {memory_.data() + shape_.bytes - (rank + 1) * feature_pitch_, shape_.feature_bytes};
}

std::span<std::byte> HistoryBuffer::embedding_to_write(uint32_t place) {
  GNND_CHECK(place < extent_);
  return {memory_.data() + place * embedding_pitch_, shape_.embedding_bytes};
}

std::span<const std::byte> HistoryBuffer::embedding(uint32_t place) const {
  GNND_CHECK(place < extent_);
  return {memory_.data() + place * embedding_pitch_, shape_.embedding_bytes};
}

uint32_t& HistoryBuffer::PlaceOf(uint32_t level, uint32_t node) {
  GNND_CHECK(level < shape_.levels && node < shape_.num_nodes);
  return place_of_[uint64_t{level} * shape_.num_nodes + node];
}

bool HistoryBuffer::IsFresh(const Place& place, uint64_t version) const {
  return version - place.version <= shape_.t_stale;
}

std::optional<uint32_t> HistoryBuffer::Find(uint32_t level, uint32_t node, uint64_t version) const {
  GNND_CHECK(level < shape_.levels && node < shape_.num_nodes);
  const uint32_t named = place_of_[uint64_t{level} * shape_.num_nodes + node];
  if (named == 0) return std::nullopt;
  const Place& place = places_[named - 1];
  // Others may have been written there since.
  if (place.node != node || place.level != level) return std::nullopt;
  if (version < place.version || !IsFresh(place, version)) return std::nullopt;
  return named - 1;
}

void HistoryBuffer::Evict(uint32_t level, uint32_t node) { PlaceOf(level, node) = 0; }

std::vector<uint32_t> HistoryBuffer::Store(uint32_t level, std::span<const uint32_t> nodes,
                                           uint64_t version) {
  const uint64_t count = std::min<uint64_t>(nodes.size(), most_places_);
  if (count == 0 || version < shape_.start_version) return {};
  const uint64_t period = shape_.t_stale == kNoStale ? 0 : version / shape_.t_stale;
  if (period != period_ && !went_round_) head_ = 0;
  period_ = period;
  // Features make room before anything is written.
  extent_ = std::max(extent_, std::min(most_places_, head_ + count));
  features_ = std::min(features_, (shape_.bytes - extent_ * embedding_pitch_) / feature_pitch_);
  places_.resize(extent_, Place{UINT32_MAX, UINT32_MAX, 0});
  std::vector<uint32_t> stored;
  stored.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto at = static_cast<uint32_t>((head_ + i) % most_places_);
    Place& place = places_[at];
    const bool is_named = place.level < shape_.levels && PlaceOf(place.level, place.node) == at + 1;
    if (is_named && IsFresh(place, version)) ++overwritten_;
    place = {nodes[i], level, version};
    PlaceOf(level, nodes[i]) = at + 1;
    stored.push_back(at);
  }
  if (head_ + count >= most_places_) went_round_ = true;
  head_ = (head_ + count) % most_places_;
  return stored;
}

}  // namespace gnnd
