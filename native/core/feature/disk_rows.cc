#include "core/feature/disk_rows.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/base/contain.h"
#include "core/vec/convert.h"

namespace gnnd {
namespace {

// With two readers, one call's reads end while the next call's are already under way.
constexpr size_t kReaders = 2;
// DiskRows::kMostSlots slots are the staged one, one for each reader, and one that is ready when it
// is wanted. Large batches have fewer: all slots together take at most kSlotsBytes, unless the two
// that are always there take more.
constexpr uint64_t kLeastSlots = 2;
constexpr uint64_t kSlotsBytes = uint64_t{1} << 30;

constexpr uint64_t RoundDown(uint64_t value) { return value / kPageBytes * kPageBytes; }

bool IsSame(std::span<const RowRun> a, std::span<const RowRun> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RowRun& x, const RowRun& y) {
    return x.first == y.first && x.count == y.count;
  });
}

}  // namespace

Result<std::unique_ptr<RowReader>> DiskRows::Open(const RowReaderOptions& options,
                                                  std::vector<NpyArray> files) {
  const NpyType type = files[0].type();
  const uint64_t data_at = files[0].data_at();
  for (const NpyArray& file : files) {
    // Headers are all written alike, so that a run lies at the same offset in every file.
    if (file.data_at() == data_at) continue;
    return Status(Code::kDatasetCorrupt,
                  file.file() + " has another header than " + files[0].file());
  }
  const uint64_t value_bytes = type == NpyType::kFloat32 ? sizeof(float) : sizeof(Half);
  const uint64_t row_bytes = options.columns * value_bytes;
  std::vector<BulkReader> readers;
  for (size_t i = 0; i < kReaders; ++i) {
    readers.push_back(GNND_VALUE(BulkReader::Open({options.paths, options.way, options.answer})));
  }
  // A run is read in whole pages, so each may need two more.
  const uint64_t token_bytes = options.most_rows * row_bytes + 2 * kPageBytes * options.most_runs;
  const uint64_t slot_bytes = RoundUp(token_bytes, kPageBytes) * files.size();
  return Contained([&]() -> Result<std::unique_ptr<RowReader>> {
    std::unique_ptr<DiskRows> rows(
        new DiskRows(options, row_bytes, type, data_at, std::move(readers), slot_bytes));
    GNND_TRY(rows->StartThreads());
    return std::unique_ptr<RowReader>(std::move(rows));
  });
}

DiskRows::DiskRows(const RowReaderOptions& options, uint64_t row_bytes, NpyType type,
                   uint64_t data_at, std::vector<BulkReader> readers, uint64_t slot_bytes)
    : RowReader(static_cast<uint32_t>(options.paths.size()), row_bytes),
      columns_(options.columns),
      type_(type),
      data_at_(data_at),
      slot_bytes_(slot_bytes),
      readers_(std::move(readers)),
      slots_(std::clamp(kSlotsBytes / std::max<uint64_t>(1, slot_bytes), kLeastSlots, kMostSlots)),
      way_(readers_[0].way()) {
  for (Slot& slot : slots_) slot.memory = HugeArray<std::byte>(slot_bytes);
}

DiskRows::~DiskRows() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status DiskRows::StartThreads() {
  for (BulkReader& reader : readers_) threads_.emplace_back([this, &reader] { Run(&reader); });
  return Status::Ok();
}

uint64_t DiskRows::memory_bytes() const { return slots_.size() * slot_bytes_; }

std::string DiskRows::Describe() const {
  const std::lock_guard lock(mutex_);
  return std::string(NameOf(way_)) + ", " + std::to_string(slots_.size()) + " batches of memory";
}

// ---- the caller's side ----------------------------------------------------------------------

Status DiskRows::Stage(std::span<const RowRun> runs, const NextRuns& next) {
  std::unique_lock lock(mutex_);
  if (staged_ != nullptr) staged_->state = State::kFree;
  staged_ = nullptr;
  Slot* slot = Find(runs);
  while (slot == nullptr && (slot = TakeFor(runs, /*at_once=*/true)) == nullptr) {
    changed_.wait(lock);  // all of them are being read
  }
  kept_.assign(1, slot);
  AskAhead(next);
  changed_.notify_all();
  changed_.wait(lock, [slot] { return slot->state == State::kRead; });
  if (!slot->status.ok()) {
    slot->state = State::kFree;
    return slot->status;
  }
  staged_ = slot;
  return Status::Ok();
}

DiskRows::Slot* DiskRows::Find(std::span<const RowRun> runs) {
  for (Slot& slot : slots_) {
    if (slot.state != State::kFree && IsSame(slot.runs, runs)) return &slot;
  }
  return nullptr;
}

// A slot that nobody needs, reserved for these runs from now on; null if there is none.
DiskRows::Slot* DiskRows::TakeFor(std::span<const RowRun> runs, bool at_once) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    const bool is_kept = std::find(kept_.begin(), kept_.end(), &slot) != kept_.end();
    if (slot.state == State::kReading || (is_kept && !at_once)) continue;
    if (found == nullptr || slot.state == State::kFree) found = &slot;
    if (slot.state == State::kFree) break;
  }
  if (found == nullptr) return nullptr;
  if (found->state == State::kWanted) std::erase(wanted_, found);
  found->runs.assign(runs.begin(), runs.end());
  found->state = State::kWanted;
  if (at_once) {
    wanted_.push_front(found);
  } else {
    wanted_.push_back(found);
  }
  return found;
}

// Keeps or requests the runs of the next calls, as far as there are slots.
void DiskRows::AskAhead(const NextRuns& next) {
  const auto most = static_cast<uint32_t>(slots_.size());
  const auto is_known = [&](uint32_t ahead) {
    next_runs_.clear();
    if (next) next(ahead, &next_runs_);
    return !next_runs_.empty();
  };
  for (uint32_t ahead = 1; ahead < most && is_known(ahead); ++ahead) {
    Slot* const there = Find(next_runs_);
    if (there != nullptr) kept_.push_back(there);
  }
  for (uint32_t ahead = 1; ahead < most && is_known(ahead); ++ahead) {
    if (Find(next_runs_) != nullptr) continue;
    const Slot* const slot = TakeFor(next_runs_, /*at_once=*/false);
    if (slot == nullptr) return;
    kept_.push_back(slot);
  }
}

void DiskRows::Copy(uint32_t token, uint32_t begin, uint32_t end, float* out) const {
  const std::vector<Place>& places = staged_->places;
  auto place = std::upper_bound(places.begin(), places.end(), begin,
                                [](uint32_t at, const Place& each) { return at < each.position; });
  for (--place; begin < end; ++place) {
    const uint32_t skipped = begin - place->position;
    const uint32_t rows = std::min(end - begin, place->count - skipped);
    const uint64_t at = place->at + token * place->token_bytes + skipped * row_bytes();
    const std::byte* const from = staged_->memory.data() + at;
    const uint64_t values = rows * columns_;
    if (type_ == NpyType::kFloat32) {
      std::memcpy(out, from, values * sizeof(float));
    } else if (type_ == NpyType::kFloat16) {
      Convert(reinterpret_cast<const Half*>(from), values, out);
    } else {
      Convert(reinterpret_cast<const Bfloat16*>(from), values, out);
    }
    out += values;
    begin += rows;
  }
}

// ---- the readers' side ----------------------------------------------------------------------

void DiskRows::Run(BulkReader* reader) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !wanted_.empty(); });
    if (ending_) return;
    Slot* const slot = wanted_.front();
    wanted_.pop_front();
    slot->state = State::kReading;
    lock.unlock();
    Status status = Contained([&] { return Fill(reader, slot); });
    lock.lock();
    slot->status = std::move(status);
    slot->state = State::kRead;
    way_ = reader->way();
    changed_.notify_all();
  }
}

Status DiskRows::Fill(BulkReader* reader, Slot* slot) const {
  slot->places.clear();
  slot->reads.clear();
  uint64_t used = 0;
  uint32_t position = 0;
  for (const RowRun& run : slot->runs) {
    const uint64_t from = data_at_ + run.first * row_bytes();
    const uint64_t first_page = RoundDown(from);
    const uint64_t bytes = RoundUp(from + run.count * row_bytes(), kPageBytes) - first_page;
    slot->places.push_back({position, run.count, used + from - first_page, bytes});
    for (uint32_t token = 0; token < num_tokens(); ++token) {
      slot->reads.push_back({token, first_page, bytes, slot->memory.data() + used});
      used += bytes;
    }
    position += run.count;
  }
  if (used > slot_bytes_) return Status(Code::kInternal, "a batch has more rows than were told");
  return reader->Read(slot->reads);
}

}  // namespace gnnd
