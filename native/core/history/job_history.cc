#include "core/history/job_history.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <string>

#include "core/base/check.h"
#include "core/base/failpoint.h"

namespace gnnd {
namespace {

constexpr uint64_t kLockSliceNs = kNsPerSecond;
constexpr int kLockTries = 10;

// Bytes of features that are filled in at once under the mutex.
constexpr uint64_t kFillBytes = uint64_t{16} << 20;

// The header of an image. After it follow the saved places in order, each with the number of
// skipped places before it, a HistoryBuffer::Place, and its row.
struct SavedHeader {
  HistoryState state;
  uint64_t places;
};
struct SavedPlace {
  uint64_t at;
  HistoryBuffer::Place holds;
};
static_assert(sizeof(SavedHeader) == 48 && sizeof(SavedPlace) == 24);

template <typename T>
T Take(const std::byte*& from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  from += sizeof value;
  return value;
}

template <typename T>
void Put(std::byte*& to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  to += sizeof value;
}

}  // namespace

HistoryShape ShapeOf(const HistoryConfig& config) {
  HistoryShape shape;
  shape.bytes = config.bytes;
  shape.embedding_bytes = config.row_bytes;
  shape.levels = config.levels;
  shape.num_nodes = config.num_nodes;
  shape.t_stale = config.t_stale;
  shape.start_version = config.start_version;
  shape.feature_rows = config.cache_rows;
  shape.feature_bytes = config.feature_bytes;
  return shape;
}

HistoryConfig WithoutCache(HistoryConfig config) {
  config.feature_bytes = 0;
  config.cache_rows = 0;
  return config;
}

uint64_t JobHistory::NoteBytes(const HistoryConfig& config) {
  const uint64_t most = HistoryBuffer::MostPlaces(ShapeOf(config));
  const uint64_t entries = 2 * most * sizeof(HistoryNote::Entry);
  return RoundUp(
      RoundUp(sizeof(NoteHeader) + entries, 64) + most * HistoryBuffer::Pitch(config.row_bytes),
      kPageBytes);
}

uint64_t JobHistory::BytesOf(const HistoryConfig& config, uint32_t group) {
  if (config.bytes == 0) return 0;
  return RoundUp(sizeof(Header), kPageBytes) + HistoryBuffer::BytesOf(ShapeOf(config)) +
         group * NoteBytes(config);
}

void JobHistory::Init(std::byte* memory) { reinterpret_cast<Header*>(memory)->mutex.Init(); }

JobHistory::JobHistory(const HistoryConfig& config, uint32_t group, std::byte* memory)
    : config_(config),
      buffer_(ShapeOf(config), memory + RoundUp(sizeof(Header), kPageBytes)),
      pitch_(HistoryBuffer::Pitch(config.row_bytes)),
      most_(HistoryBuffer::MostPlaces(ShapeOf(config))),
      header_(reinterpret_cast<Header*>(memory)),
      notes_(memory + BytesOf(config, group) - group * NoteBytes(config)) {
  buffer_.set_state(point().state);
}

JobHistory::JobHistory(const HistoryConfig& config, uintptr_t near)
    : JobHistory(config, AnonymousOrThrow(BytesOf(config, 1), {.near = near})) {}

JobHistory::JobHistory(const HistoryConfig& config, Mapping own)
    : JobHistory(config, 1, own.data()) {
  own_ = std::move(own);
  Init(own_.data());
}

// May be called without the mutex. A point is overwritten only by the move after the next one, so
// the words that were read are consistent if nobody has moved meanwhile.
JobHistory::Point JobHistory::point() const {
  while (true) {
    // Acquire: pairs with MoveTo, here and below.
    const uint32_t moves = header_->moves.load(std::memory_order_acquire);
    uint64_t words[kPointWords];
    for (uint32_t i = 0; i < kPointWords; ++i) {
      words[i] = header_->points[moves % 2][i].load(std::memory_order_acquire);
    }
    if (header_->moves.load(std::memory_order_relaxed) != moves) continue;
    Point point;
    std::memcpy(&point, words, sizeof point);
    return point;
  }
}

void JobHistory::MoveTo(const Point& point) {
  const uint32_t moves = header_->moves.load(std::memory_order_relaxed) + 1;
  uint64_t words[kPointWords];
  std::memcpy(words, &point, sizeof point);
  // Release: a reader of any word of this point sees that the point before has become the newest.
  for (uint32_t i = 0; i < kPointWords; ++i) {
    header_->points[moves % 2][i].store(words[i], std::memory_order_release);
  }
  // Release: a reader that sees the new point also sees everything carried over up to it.
  header_->moves.store(moves, std::memory_order_release);
}

JobHistory::Note JobHistory::NoteAt(uint32_t place) const {
  std::byte* at = notes_ + place * NoteBytes(config_);
  const uint64_t entries = most_ * sizeof(HistoryNote::Entry);
  Note note{};
  note.header = reinterpret_cast<NoteHeader*>(at);
  note.evicted = reinterpret_cast<HistoryNote::Entry*>(at + sizeof(NoteHeader));
  note.admitted = note.evicted + most_;
  note.rows = at + RoundUp(sizeof(NoteHeader) + 2 * entries, 64);
  return note;
}

void JobHistory::Write(uint64_t version, uint32_t place, const HistoryNote& given) {
  const Note note = NoteAt(place);
  note.header->tag.store(0, std::memory_order_relaxed);
  // Release: nobody takes a note that is being rewritten for a complete one.
  std::atomic_thread_fence(std::memory_order_release);
  // Only stored embeddings can be forgotten, so evictions cannot exceed the places.
  GNND_CHECK(given.evicted.size() <= most_ && given.admitted.size() == given.rows.size());
  note.header->evicted = given.evicted.size();
  note.header->admitted = std::min<uint64_t>(given.admitted.size(), most_);
  std::copy(given.evicted.begin(), given.evicted.end(), note.evicted);
  for (uint64_t i = 0; i < note.header->admitted; ++i) {
    note.admitted[i] = given.admitted[i];
    GNND_FAILPOINT("history.noting");
    std::memcpy(note.rows + i * pitch_, given.rows[i], config_.row_bytes);
  }
  GNND_FAILPOINT("history.before_note");
  // Release: pairs with CarryAll.
  note.header->tag.store(version + 1, std::memory_order_release);
  GNND_FAILPOINT("history.after_note");
}

void JobHistory::CarryOver(const Note& note, uint64_t version) {
  for (uint64_t i = 0; i < note.header->evicted; ++i) {
    buffer_.Evict(note.evicted[i].level, note.evicted[i].node);
  }
  std::vector<uint32_t> nodes;
  for (uint64_t begin = 0; begin < note.header->admitted;) {
    const uint32_t level = note.admitted[begin].level;
    nodes.clear();
    uint64_t end = begin;
    for (; end < note.header->admitted && note.admitted[end].level == level; ++end) {
      nodes.push_back(note.admitted[end].node);
    }
    const std::vector<uint32_t> places = buffer_.Store(level, nodes, version);
    GNND_FAILPOINT("history.carrying");
    for (size_t i = 0; i < places.size(); ++i) {
      std::memcpy(buffer_.embedding_to_write(places[i]).data(), note.rows + (begin + i) * pitch_,
                  config_.row_bytes);
    }
    begin = end;
  }
}

void JobHistory::BringUp() {
  const Note note = NoteAt(0);
  const uint64_t tag = note.header->tag.load(std::memory_order_relaxed);
  if (tag == 0) return;
  CarryOver(note, tag - 1);
  note.header->tag.store(0, std::memory_order_relaxed);
}

// An owner's death needs no repair: the point says where it stood, and features count as filled
// only after they are.
Status JobHistory::Lock() {
  for (int i = 0; i < kLockTries; ++i) {
    if (header_->mutex.Lock(kLockSliceNs) != LockResult::kTimedOut) return Status::Ok();
  }
  return Status(Code::kAborted, "another process kept the history's mutex");
}

Status JobHistory::BringTo(uint64_t version, uint32_t batches_before) {
  Point at = point();
  if (at.version != version) {
    GNND_TRY(Lock());
    Status status = CarryAll(version, batches_before);
    at = point();
    header_->mutex.Unlock();
    GNND_TRY(status);
  }
  buffer_.set_state(at.state);
  return Status::Ok();
}

Status JobHistory::CarryAll(uint64_t version, uint32_t batches_before) {
  Point at = point();
  if (at.version == version) return Status::Ok();  // another process was faster
  if (at.version + 1 != version) {
    return Status(Code::kInternal, "the history is that of version " + std::to_string(at.version) +
                                       ", wanted is that of " + std::to_string(version));
  }
  if (!GNND_BROKEN("history-from-the-point")) buffer_.set_state(at.state);
  for (; at.place < batches_before; ++at.place) {
    const Note note = NoteAt(static_cast<uint32_t>(at.place));
    // Acquire: pairs with Write.
    if (note.header->tag.load(std::memory_order_acquire) != at.version + 1) {
      return Status(Code::kInternal, "a batch of version " + std::to_string(at.version) +
                                         " has left nothing for the history");
    }
    Point next = at;
    ++next.place;
    if (GNND_BROKEN("history-carries-first")) MoveTo(next);
    CarryOver(note, at.version);
    GNND_FAILPOINT("history.carried");
    next.state = buffer_.state();
    MoveTo(next);
    GNND_FAILPOINT("history.moved");
    at.state = next.state;
  }
  MoveTo({version, 0, buffer_.state()});
  GNND_FAILPOINT("history.brought");
  return Status::Ok();
}

// ---- cached feature rows ----------------------------------------------------------------------

uint64_t JobHistory::FeaturesAt(const HistoryConfig& config) {
  return RoundUp(sizeof(Header), kPageBytes) + HistoryBuffer::RowsAt(ShapeOf(config));
}

uint64_t JobHistory::FeaturesBytes(const HistoryConfig& config) {
  return config.cache_rows * config.feature_bytes + HistoryBuffer::FeatureSlack(ShapeOf(config));
}

uint64_t JobHistory::features() const {
  if (GNND_BROKEN("history-border")) return config_.cache_rows;
  // Acquire: pairs with FillFeatures.
  return std::min(header_->filled.load(std::memory_order_acquire), buffer_.features());
}

Status JobHistory::FillFeatures(uint64_t skew, const ReadRanks& read) {
  const uint64_t at_once = std::max<uint64_t>(1, kFillBytes / config_.feature_bytes);
  std::vector<std::byte> rows;
  while (true) {
    buffer_.set_state(point().state);
    // Acquire: pairs with the release below in other processes.
    const uint64_t begin = header_->filled.load(std::memory_order_acquire);
    const uint64_t wanted = std::min(begin + at_once, buffer_.features());
    if (begin > 0 && header_->skew != skew) {
      return Status(Code::kInternal, "another Trainer's features begin elsewhere in their page");
    }
    if (begin >= wanted) return Status::Ok();
    rows.resize((wanted - begin) * config_.feature_bytes);
    read(begin, wanted, rows.data());
    GNND_TRY(Lock());
    // Nobody carries notes over now, and every complete carrying-over is below the point; one that
    // died halfway is repeated later, over these rows.
    buffer_.set_state(point().state);
    const uint64_t end = std::min(wanted, buffer_.features());
    if (header_->filled.load(std::memory_order_relaxed) == begin && begin < end) {
      if (begin == 0) header_->skew = skew;
      std::memcpy(buffer_.features_at(skew) + begin * config_.feature_bytes, rows.data(),
                  (end - begin) * config_.feature_bytes);
      GNND_FAILPOINT("history.before_filled");
      // Release: pairs with `features`.
      header_->filled.store(end, std::memory_order_release);
      GNND_FAILPOINT("history.after_filled");
    }
    header_->mutex.Unlock();
  }
}

// ---- images -----------------------------------------------------------------------------------

uint64_t JobHistory::SavedBytes() const {
  uint64_t named = 0;
  for (uint32_t place = 0; place < buffer_.embedding_places(); ++place) {
    if (buffer_.NamedAt(place)) ++named;
  }
  return sizeof(SavedHeader) + named * (sizeof(SavedPlace) + config_.row_bytes);
}

uint64_t JobHistory::MostSavedBytes(const HistoryConfig& config) {
  if (config.bytes == 0) return 0;
  const uint64_t most = HistoryBuffer::MostPlaces(ShapeOf(config));
  return sizeof(SavedHeader) + most * (sizeof(SavedPlace) + config.row_bytes);
}

void JobHistory::Save(std::byte* out) const {
  std::byte* header = out;
  out += sizeof(SavedHeader);
  uint64_t named = 0;
  for (uint32_t place = 0; place < buffer_.embedding_places(); ++place) {
    const std::optional<HistoryBuffer::Place> holds = buffer_.NamedAt(place);
    if (!holds) continue;
    ++named;
    Put(out, SavedPlace{place, *holds});
    std::memcpy(out, buffer_.embedding(place).data(), config_.row_bytes);
    out += config_.row_bytes;
  }
  Put(header, SavedHeader{buffer_.state(), named});
}

bool JobHistory::Restore(std::span<const std::byte> saved, uint64_t version) {
  if (saved.size() < sizeof(SavedHeader)) return false;
  const std::byte* from = saved.data();
  const auto header = Take<SavedHeader>(from);
  const HistoryState& state = header.state;
  const uint64_t stride = sizeof(SavedPlace) + config_.row_bytes;
  if (state.extent > most_ || state.head > state.extent || header.places > state.extent ||
      saved.size() != sizeof(SavedHeader) + header.places * stride) {
    return false;
  }
  uint64_t next = 0;
  for (uint64_t i = 0; i < header.places; ++i) {
    const std::byte* place_at = saved.data() + sizeof(SavedHeader) + i * stride;
    const auto place = Take<SavedPlace>(place_at);
    if (place.at < next || place.at >= state.extent || place.holds.level >= config_.levels ||
        place.holds.node >= config_.num_nodes || place.holds.version >= version) {
      return false;
    }
    next = place.at + 1;
  }
  buffer_.set_state(state);
  for (uint64_t i = 0; i < header.places; ++i, from += config_.row_bytes) {
    const auto place = Take<SavedPlace>(from);
    const auto at = static_cast<uint32_t>(place.at);
    buffer_.PutBack(at, place.holds);
    std::memcpy(buffer_.embedding_to_write(at).data(), from, config_.row_bytes);
  }
  MoveTo({version, 0, state});
  return true;
}

}  // namespace gnnd
