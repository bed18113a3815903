#include "core/table/edge_sorter.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/memfd.h"

namespace gnnd {
namespace {

// Runs know where each bucket begins. So many are scattered to within the second cache, and a
// bucket of some million entries in all fits into it.
constexpr uint64_t kBucketsMax = uint64_t{1} << 12;
// Rows that are given out at once: they take memory also where they are empty.
constexpr uint64_t kRowsMax = uint64_t{1} << 22;
// Fewer are sorted by comparing them.
constexpr size_t kCountedMin = 64;
// From so many on a digit of a key has more bits.
constexpr size_t kWideMin = size_t{1} << 14;

// An entry by its key: its row within the bucket above its column.
struct Plain {
  uint64_t key;
};

struct Weighted {
  uint64_t key;
  uint32_t line;
  float weight;
};

// Sorts by bits [from, from + bits) of the keys; equal ones stay in the order in which they came.
// Answers where the sorted entries are: one of the two places, which have `count` each.
template <typename Entry>
Entry* SortByKeys(Entry* entries, Entry* other, size_t count, unsigned from, unsigned bits) {
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (count < kCountedMin) {
    for (size_t at = 1; at < count; ++at) {
      const Entry entry = entries[at];
      const uint64_t key = (entry.key >> from) & mask;
      size_t place = at;
      for (; place > 0 && ((entries[place - 1].key >> from) & mask) > key; --place) {
        entries[place] = entries[place - 1];
      }
      entries[place] = entry;
    }
    return entries;
  }
  constexpr unsigned kDigitMax = 11;
  const unsigned digit_max = count < kWideMin ? 8 : kDigitMax;
  const unsigned passes = (bits + digit_max - 1) / digit_max;
  const unsigned digit = passes == 0 ? 0 : (bits + passes - 1) / passes;
  std::array<uint32_t, size_t{1} << kDigitMax> places;
  for (unsigned pass = 0; pass < passes; ++pass) {
    const unsigned shift = from + pass * digit;
    const unsigned width = std::min(digit, bits - pass * digit);
    const uint64_t digits = uint64_t{1} << width;
    std::fill_n(places.begin(), digits, 0);
    for (size_t at = 0; at < count; ++at) ++places[(entries[at].key >> shift) & (digits - 1)];
    uint32_t sum = 0;
    for (uint64_t value = 0; value < digits; ++value) {
      sum += std::exchange(places[value], sum);
    }
    for (size_t at = 0; at < count; ++at) {
      other[places[(entries[at].key >> shift) & (digits - 1)]++] = entries[at];
    }
    std::swap(entries, other);
  }
  return entries;
}

template <typename T>
std::span<const std::byte> BytesOf(const T* values, size_t count) {
  return std::as_bytes(std::span(values, count));
}

Status ReadAll(int fd, std::span<std::byte> bytes, uint64_t at) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(Code::kIo, "reading a run of edges");
    if (got == 0) return Status(Code::kIo, "a run of edges was cut off");
    done += static_cast<size_t>(got);
  }
  return Status::Ok();
}

// Gone with its last descriptor, however this process ends.
Result<UniqueFd> OpenNameless(const std::string& folder) {
  const std::string path = folder + "/.edges";
  constexpr mode_t kOwner = 0600;
  UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwner));
  if (!file.valid()) return SystemError(Code::kIo, "making " + path);
  if (unlink(path.c_str()) != 0) return SystemError(Code::kIo, "removing " + path);
  return file;
}

template <typename Entry>
class SorterOf final : public EdgeSorter {
 public:
  explicit SorterOf(EdgeSorterOptions options)
      : options_(std::move(options)),
        column_bits_(static_cast<unsigned>(std::bit_width(NumSources()))),
        span_bits_(static_cast<unsigned>(
            std::bit_width((std::max<uint64_t>(options_.num_nodes, 1) - 1) / kBucketsMax))),
        num_buckets_((options_.num_nodes + Span() - 1) >> span_bits_) {}

  bool Add(const EdgeBlock& block) override;
  uint64_t NumHeld() const override { return ends_.size() / 2 * EntriesOfEdge(); }
  Status Settle() override;
  Result<std::optional<EdgeRows>> Next() override;

 private:
  static constexpr bool kIsWeighted = std::is_same_v<Entry, Weighted>;

  struct Run {
    std::unique_ptr<Entry[]> entries;  // null: they lie in the file
    uint64_t file_at = 0;              // in entries
    std::vector<uint32_t> starts;      // [buckets + 1]
  };

  bool HasOwnSources() const { return options_.num_sources > 0; }
  uint64_t NumSources() const {
    return HasOwnSources() ? options_.num_sources : options_.num_nodes;
  }
  uint64_t Span() const { return uint64_t{1} << span_bits_; }
  uint64_t EntriesOfEdge() const { return options_.both_ways ? 2 : 1; }
  Run MakeRun();
  Status PutOnDisk(Run* run);
  Result<std::vector<const Entry*>> Fetch(uint64_t first, uint64_t end);
  void Emit(uint64_t bucket, const Entry* entries, size_t count, EdgeRows* rows);
  void SeeRepeated(const Entry& entry, const Entry& first, uint64_t row);

  const EdgeSorterOptions options_;
  const unsigned column_bits_;
  const unsigned span_bits_;  // rows of a bucket, as a power of two
  const uint64_t num_buckets_;
  std::vector<uint32_t> ends_;  // of edges that are held
  std::vector<float> weights_;
  std::vector<uint32_t> lines_;
  std::vector<Run> runs_;
  uint64_t run_bytes_ = 0;  // in memory
  UniqueFd file_;
  uint64_t file_entries_ = 0;
  uint64_t next_bucket_ = 0;
  std::unique_ptr<Entry[]> fetched_;  // of runs on the disk
  std::vector<Entry> bucket_;         // one bucket, and room to sort it
};

template <typename Entry>
bool SorterOf<Entry>::Add(const EdgeBlock& block) {
  const size_t num_edges = block.ends.size() / 2;
  uint32_t largest_source = 0;
  uint32_t largest_target = 0;
  for (size_t edge = 0; edge < num_edges; ++edge) {
    largest_source = std::max(largest_source, block.ends[2 * edge]);
    largest_target = std::max(largest_target, block.ends[2 * edge + 1]);
  }
  const bool is_within = largest_source < NumSources() && largest_target < options_.num_nodes;
  if (num_edges > 0 && !is_within) return false;
  const bool drops_loops = options_.once && !HasOwnSources();
  size_t kept = ends_.size() / 2;
  ends_.resize(2 * (kept + num_edges));
  if constexpr (kIsWeighted) {
    weights_.resize(kept + num_edges);
    lines_.resize(kept + num_edges);
  }
  const size_t before = kept;
  for (size_t edge = 0; edge < num_edges; ++edge) {
    const uint32_t source = block.ends[2 * edge];
    const uint32_t target = block.ends[2 * edge + 1];
    ends_[2 * kept] = source;
    ends_[2 * kept + 1] = target;
    if constexpr (kIsWeighted) {
      weights_[kept] = block.weights[edge];
      lines_[kept] = block.lines.empty() ? 0 : block.first_line + block.lines[edge];
    }
    kept += drops_loops && source == target ? 0 : 1;
  }
  counts_.self_loops += num_edges - (kept - before);
  ends_.resize(2 * kept);
  if constexpr (kIsWeighted) {
    weights_.resize(kept);
    lines_.resize(kept);
  }
  return true;
}

// Held edges by bucket, in the order in which they came.
template <typename Entry>
typename SorterOf<Entry>::Run SorterOf<Entry>::MakeRun() {
  Run run;
  const size_t num_edges = ends_.size() / 2;
  const unsigned shift = span_bits_;
  std::vector<uint32_t> places(num_buckets_ + 1);
  for (size_t edge = 0; edge < num_edges; ++edge) {
    ++places[(ends_[2 * edge + 1] >> shift) + 1];
    if (options_.both_ways) ++places[(ends_[2 * edge] >> shift) + 1];
  }
  for (size_t bucket = 0; bucket < num_buckets_; ++bucket) places[bucket + 1] += places[bucket];
  run.starts = places;
  run.entries = std::make_unique_for_overwrite<Entry[]>(NumHeld());
  Entry* const entries = run.entries.get();
  const uint64_t row_mask = Span() - 1;
  const auto put = [&](uint32_t row, uint32_t column, size_t edge) {
    Entry& entry = entries[places[row >> shift]++];
    entry.key = (row & row_mask) << column_bits_ | column;
    if constexpr (kIsWeighted) {
      entry.line = lines_[edge];
      entry.weight = weights_[edge];
    }
  };
  for (size_t edge = 0; edge < num_edges; ++edge) {
    const uint32_t source = ends_[2 * edge];
    const uint32_t target = ends_[2 * edge + 1];
    put(target, source, edge);
    if (options_.both_ways) put(source, target, edge);
  }
  ends_.clear();
  weights_.clear();
  lines_.clear();
  return run;
}

template <typename Entry>
Status SorterOf<Entry>::PutOnDisk(Run* run) {
  if (!file_.valid()) {
    Result<UniqueFd> opened = OpenNameless(options_.folder);
    GNND_TRY(opened.status());
    file_ = std::move(*opened);
  }
  const size_t count = run->starts.back();
  run->file_at = file_entries_;
  if (!WriteAll(file_.get(), BytesOf(run->entries.get(), count), file_entries_ * sizeof(Entry))) {
    return SystemError(Code::kIo, "writing a run of edges");
  }
  file_entries_ += count;
  run->entries.reset();
  return Status::Ok();
}

template <typename Entry>
Status SorterOf<Entry>::Settle() {
  if (ends_.empty()) return Status::Ok();
  const uint64_t bytes = NumHeld() * sizeof(Entry);
  Run run = MakeRun();
  if (run_bytes_ + bytes > options_.memory_bytes_max) {
    GNND_TRY(PutOnDisk(&run));
  } else {
    run_bytes_ += bytes;
  }
  runs_.push_back(std::move(run));
  return Status::Ok();
}

// Where each run's entries of buckets [first, end) begin.
template <typename Entry>
Result<std::vector<const Entry*>> SorterOf<Entry>::Fetch(uint64_t first, uint64_t end) {
  uint64_t on_disk = 0;
  for (const Run& run : runs_) {
    if (run.entries == nullptr) on_disk += run.starts[end] - run.starts[first];
  }
  fetched_ = std::make_unique_for_overwrite<Entry[]>(on_disk);
  Entry* place = fetched_.get();
  std::vector<const Entry*> found;
  for (const Run& run : runs_) {
    if (run.entries != nullptr) {
      found.push_back(run.entries.get() + run.starts[first]);
      continue;
    }
    const size_t count = run.starts[end] - run.starts[first];
    GNND_TRY(ReadAll(file_.get(), std::as_writable_bytes(std::span(place, count)),
                     (run.file_at + run.starts[first]) * sizeof(Entry)));
    found.push_back(place);
    place += count;
  }
  return found;
}

template <typename Entry>
void SorterOf<Entry>::SeeRepeated(const Entry& entry, const Entry& first, uint64_t row) {
  if constexpr (kIsWeighted) {
    const auto bits = [](float weight) { return std::bit_cast<uint32_t>(weight); };
    const uint64_t column = entry.key & ((uint64_t{1} << column_bits_) - 1);
    if (bits(entry.weight) != bits(first.weight)) {
      // With edges in both directions each shows twice; the smaller node's row reports it.
      if (options_.both_ways && row >= column) return;
      ++counts_.num_conflicts;
      if (counts_.conflicts.size() < kConflictsKept) {
        counts_.conflicts.push_back({entry.line, first.line});
      }
      return;
    }
  }
  ++counts_.repeated;
}

// Adds the rows of a bucket whose entries are sorted.
template <typename Entry>
void SorterOf<Entry>::Emit(uint64_t bucket, const Entry* entries, size_t count, EdgeRows* rows) {
  const uint64_t first_row = bucket << span_bits_;
  const uint64_t num_rows = std::min(Span(), options_.num_nodes - first_row);
  const uint64_t column_mask = (uint64_t{1} << column_bits_) - 1;
  const uint64_t given = counts_.entries - rows->indices.size();
  size_t kept = rows->indices.size();
  rows->indices.resize(kept + count);
  if constexpr (kIsWeighted) rows->weights.resize(kept + count);
  uint32_t* const indices = rows->indices.data();
  uint64_t row = 0;
  const Entry* previous = nullptr;
  for (const Entry* entry = entries; entry < entries + count; ++entry) {
    const uint64_t own_row = entry->key >> column_bits_;
    for (; row < own_row; ++row) rows->ends.push_back(static_cast<int64_t>(given + kept));
    if (options_.once && previous != nullptr && previous->key == entry->key) {
      SeeRepeated(*entry, *previous, first_row + own_row);
      continue;
    }
    previous = entry;
    indices[kept] = static_cast<uint32_t>(entry->key & column_mask);
    if constexpr (kIsWeighted) rows->weights[kept] = entry->weight;
    ++kept;
  }
  for (; row < num_rows; ++row) rows->ends.push_back(static_cast<int64_t>(given + kept));
  rows->indices.resize(kept);
  if constexpr (kIsWeighted) rows->weights.resize(kept);
  counts_.entries = given + kept;
}

template <typename Entry>
Result<std::optional<EdgeRows>> SorterOf<Entry>::Next() {
  if (!ends_.empty()) {
    runs_.push_back(MakeRun());
    ends_.shrink_to_fit();
  }
  if (next_bucket_ >= num_buckets_) return std::optional<EdgeRows>();
  const uint64_t first = next_bucket_;
  const auto entries_of = [this](uint64_t bucket) {
    uint64_t sum = 0;
    for (const Run& run : runs_) sum += run.starts[bucket + 1] - run.starts[bucket];
    return sum;
  };
  uint64_t end = first;
  uint64_t total = 0;
  do {
    total += entries_of(end++);
  } while (end < num_buckets_ && total + entries_of(end) <= options_.entries_max &&
           ((end + 1 - first) << span_bits_) <= kRowsMax);
  next_bucket_ = end;
  Result<std::vector<const Entry*>> found = Fetch(first, end);
  GNND_TRY(found.status());
  EdgeRows rows;
  rows.indices.reserve(total);
  rows.ends.reserve(std::min((end - first) << span_bits_, options_.num_nodes));
  if constexpr (kIsWeighted) rows.weights.reserve(total);
  for (uint64_t bucket = first; bucket < end; ++bucket) {
    const size_t count = entries_of(bucket);
    if (bucket_.size() < 2 * count) bucket_.resize(2 * count);
    Entry* place = bucket_.data();
    for (size_t run = 0; run < runs_.size(); ++run) {
      const uint32_t length = runs_[run].starts[bucket + 1] - runs_[run].starts[bucket];
      place = std::copy_n((*found)[run], length, place);
      (*found)[run] += length;
    }
    const unsigned from = options_.once ? 0 : column_bits_;
    const Entry* const sorted = SortByKeys(bucket_.data(), bucket_.data() + count, count, from,
                                           span_bits_ + column_bits_ - from);
    Emit(bucket, sorted, count, &rows);
  }
  return std::optional<EdgeRows>(std::move(rows));
}

}  // namespace

std::unique_ptr<EdgeSorter> EdgeSorter::Open(EdgeSorterOptions options) {
  GNND_CHECK(options.num_sources == 0 || !options.both_ways);
  if (options.weighted) return std::make_unique<SorterOf<Weighted>>(std::move(options));
  return std::make_unique<SorterOf<Plain>>(std::move(options));
}

}  // namespace gnnd
