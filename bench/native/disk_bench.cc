// Compares ways to read batches of random feature rows from a file that is not in memory.
//
//   disk_bench [FILE_MB] [ROUNDS] [FOLDER]      (4096 MB, 5 rounds, the system's temporary folder)
//   disk_bench rate FILE ROW_BYTES              random rows a second of a file that is there
//   disk_bench sequential FILE ...              bytes a second, from the first to the last, of each
//                                               file in turn, past the page cache, 4 MiB 8 at once
//
// Writes a file, then reads batches of 16,384 rows at random places, by each way in turn:
//
//   store          FeatureStore with on_disk: mapped, the pages of all rows asked for, gathered
//   vectored       the same with process_madvise, 1024 rows a call
//   faults         mapped, gathered: each missing page is a fault
//   pread          a read a row through the page cache
//   direct         a read a row past the page cache (O_DIRECT)
//   uring          io_uring with 128 reads in flight, through the page cache
//   uring_direct   the same past the page cache
//
// "cold" is with none of the file in the page cache, as with a file much larger than memory; "warm"
// reads the same rows again at once. Prints medians: a table, then one line of JSON per row size.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/base/uring.h"
#include "core/feature/feature_store.h"
#include "core/graph/features.h"

namespace gnnd::bench {
namespace {

constexpr uint32_t kRowsPerBatch = 16384;
constexpr uint64_t kPage = 4096;
constexpr uint32_t kInFlight = 128;

// A read of a row, or of the pages that hold it.
struct FileRead {
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::byte* to = nullptr;
};

// Returns false if a read came back short.
bool ReadAll(Uring* uring, int file, const std::vector<FileRead>& reads) {
  bool is_whole = true;
  const auto ended = [&](uint64_t index, int64_t result) {
    is_whole = is_whole && result == static_cast<int64_t>(reads[index].bytes);
  };
  for (size_t next = 0; next < reads.size() || uring->in_flight() > 0;) {
    for (; next < reads.size() && !uring->full(); ++next) {
      uring->Read(file, reads[next].offset, {reads[next].to, reads[next].bytes}, next);
    }
    if (!uring->Wait(ended).ok()) return false;
  }
  return is_whole;
}

double Seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void WriteFile(const std::string& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  GNND_CHECK(fd >= 0);
  std::vector<float> block(uint64_t{1} << 20);
  for (uint64_t at = 0; at < bytes; at += block.size() * sizeof(float)) {
    for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<float>((at + i) % 65521);
    GNND_CHECK(write(fd, block.data(), block.size() * sizeof(float)) ==
               static_cast<ssize_t>(block.size() * sizeof(float)));
  }
  GNND_CHECK(fsync(fd) == 0);
  close(fd);
}

// The file in the forms that all ways need, and the memory of a batch.
class Bench {
 public:
  Bench(const std::string& path, uint64_t bytes)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)),
        direct_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)),
        bytes_(bytes) {
    map_ = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0));
    GNND_CHECK(fd_ >= 0 && direct_ >= 0 && map_ != MAP_FAILED);
    pages_ = static_cast<std::byte*>(std::aligned_alloc(kPage, kRowsPerBatch * PagesOf(kPage)));
    Result<Uring> uring = Uring::Open(kInFlight);
    has_uring_ = uring.ok();
    if (has_uring_) uring_ = std::move(*uring);
    pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  }

  void Begin(uint64_t dim) {
    dim_ = dim;
    row_bytes_ = dim * sizeof(float);
    const uint64_t rows = bytes_ / row_bytes_;
    table_ = RowTable(FeatureType::kFloat32, {map_, rows * row_bytes_}, dim);
    out_.assign(kRowsPerBatch * dim, 0);
    auto store = FeatureStore::Create({table_, {}, 0, true});
    GNND_CHECK(store.ok());
    store_ = std::move(*store);
  }

  void Draw(uint64_t seed) {
    std::mt19937_64 random(seed);
    rows_.resize(kRowsPerBatch);
    for (uint32_t& row : rows_) row = static_cast<uint32_t>(random() % table_.num_rows());
  }

  // Unmaps the pages first, because a mapped page cannot be dropped.
  void DropCache() const {
    GNND_CHECK(madvise(map_, bytes_, MADV_DONTNEED) == 0);
    GNND_CHECK(posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0);
  }

  bool Store() {
    store_.Ask(rows_);
    GatherRows(table_, rows_, out_);
    return true;
  }

  bool Vectored() {
    std::vector<iovec> ranges;
    for (const uint32_t row : rows_) {
      const uint64_t at = row * row_bytes_;
      const uint64_t begin = at / kPage * kPage;
      ranges.push_back({map_ + begin, at - begin + row_bytes_});
    }
    constexpr size_t kMost = 1024;
    for (size_t from = 0; from < ranges.size(); from += kMost) {
      const size_t count = std::min(kMost, ranges.size() - from);
      if (syscall(SYS_process_madvise, pid_fd_, ranges.data() + from, count, MADV_WILLNEED, 0) <
          0) {
        return false;
      }
    }
    return Faults();
  }

  bool Faults() {
    GatherRows(table_, rows_, out_);
    return true;
  }

  bool Pread() {
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) {
      const auto at = static_cast<off_t>(rows_[i] * row_bytes_);
      if (pread(fd_, out_.data() + i * dim_, row_bytes_, at) < 0) return false;
    }
    return true;
  }

  bool Direct() {
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) {
      const FileRead read = PagesOfRow(i);
      if (pread(direct_, read.to, read.bytes, static_cast<off_t>(read.offset)) < 0) return false;
      CopyOut(i, read);
    }
    return true;
  }

  bool UringCached() {
    std::vector<FileRead> reads;
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) {
      reads.push_back({rows_[i] * row_bytes_, static_cast<uint32_t>(row_bytes_),
                       reinterpret_cast<std::byte*>(out_.data() + i * dim_)});
    }
    return has_uring_ && ReadAll(&uring_, fd_, reads);
  }

  bool UringDirect() {
    std::vector<FileRead> reads;
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) reads.push_back(PagesOfRow(i));
    if (!has_uring_ || !ReadAll(&uring_, direct_, reads)) return false;
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) CopyOut(i, reads[i]);
    return true;
  }

  bool IsRight() const {
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) {
      if (std::memcmp(out_.data() + i * dim_, table_.row(rows_[i]), row_bytes_) != 0) return false;
    }
    return true;
  }

  void Forget() { std::fill(out_.begin(), out_.end(), -1.0F); }

 private:
  // Bytes of the pages that hold a row of `bytes`, however it lies.
  static constexpr uint64_t PagesOf(uint64_t bytes) { return (bytes + 2 * kPage) / kPage * kPage; }

  FileRead PagesOfRow(uint32_t i) const {
    const uint64_t at = rows_[i] * row_bytes_;
    const uint64_t begin = at / kPage * kPage;
    const uint64_t end = std::min(bytes_, (at + row_bytes_ + kPage - 1) / kPage * kPage);
    return {begin, static_cast<uint32_t>(end - begin), pages_ + i * PagesOf(kPage)};
  }

  void CopyOut(uint32_t i, const FileRead& read) {
    const uint64_t skew = rows_[i] * row_bytes_ - read.offset;
    std::memcpy(out_.data() + i * dim_, read.to + skew, row_bytes_);
  }

  int fd_;
  int direct_;
  int pid_fd_ = -1;
  uint64_t bytes_;
  uint64_t dim_ = 0;
  uint64_t row_bytes_ = 0;
  std::byte* map_ = nullptr;
  std::byte* pages_ = nullptr;
  bool has_uring_ = false;
  Uring uring_;
  RowTable table_;
  FeatureStore store_;
  std::vector<uint32_t> rows_;
  std::vector<float> out_;
};

struct Way {
  const char* name;
  bool (Bench::*read)();
  std::vector<double> cold;
  std::vector<double> warm;
  bool works = true;
};

std::vector<Way> Ways() {
  return {{"store", &Bench::Store, {}, {}},
          {"vectored", &Bench::Vectored, {}, {}},
          {"faults", &Bench::Faults, {}, {}},
          {"pread", &Bench::Pread, {}, {}},
          {"direct", &Bench::Direct, {}, {}},
          {"uring", &Bench::UringCached, {}, {}},
          {"uring_direct", &Bench::UringDirect, {}, {}}};
}

void RunWay(Bench* bench, Way* way) {
  if (!way->works) return;
  for (std::vector<double>* times : {&way->cold, &way->warm}) {
    if (times == &way->cold) bench->DropCache();
    bench->Forget();
    const double start = Seconds();
    way->works = (bench->*way->read)();
    times->push_back(Seconds() - start);
    if (!way->works) return;
  }
  GNND_CHECK(bench->IsRight());
}

void Measure(Bench* bench, uint64_t dim, int rounds) {
  bench->Begin(dim);
  std::vector<Way> ways = Ways();
  for (int round = 0; round < rounds; ++round) {
    bench->Draw(static_cast<uint64_t>(round));
    for (Way& way : ways) RunWay(bench, &way);
  }
  std::string json;
  for (const Way& way : ways) {
    if (!way.works) {
      std::printf("%9lu %-14s %14s\n", dim * sizeof(float), way.name, "refused");
      continue;
    }
    const double cold = kRowsPerBatch / Median(way.cold);
    const double warm = kRowsPerBatch / Median(way.warm);
    std::printf("%9lu %-14s %14.1f %14.1f\n", dim * sizeof(float), way.name, cold / 1e3,
                warm / 1e3);
    json += ",\"" + std::string(way.name) +
            "\":{\"cold_rows_per_s\":" + std::to_string(static_cast<uint64_t>(cold)) +
            ",\"warm_rows_per_s\":" + std::to_string(static_cast<uint64_t>(warm)) + "}";
  }
  std::printf("{\"bench\":\"disk\",\"row_bytes\":%lu%s}\n", dim * sizeof(float), json.c_str());
}

// Measures the disk: reads rows of `row_bytes` at random places of a file, past the page cache,
// with kInFlight reads at once.
int MeasureRate(const char* path, uint64_t row_bytes) {
  constexpr double kSeconds = 4;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
  Result<Uring> uring = Uring::Open(kInFlight);
  if (fd < 0 || row_bytes == 0 || !uring.ok()) {
    std::fprintf(stderr, "%s: cannot be read past the page cache with io_uring\n", path);
    return 1;
  }
  const uint64_t pages = static_cast<uint64_t>(std::filesystem::file_size(path)) / kPage;
  const uint64_t rows = pages * kPage / row_bytes;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kPage, kRowsPerBatch * kPage));
  std::mt19937_64 random(1);
  std::vector<FileRead> reads(kRowsPerBatch);
  uint64_t done = 0;
  const double start = Seconds();
  while (Seconds() - start < kSeconds) {
    for (uint32_t i = 0; i < kRowsPerBatch; ++i) {
      // Reads the page of the row's first byte: rows of up to a page are meant.
      const uint64_t page = random() % rows * row_bytes / kPage;
      reads[i] = {page * kPage, static_cast<uint32_t>(kPage), memory + i * kPage};
    }
    if (!ReadAll(&*uring, fd, reads)) return 1;
    done += kRowsPerBatch;
  }
  const double rate = static_cast<double>(done) / (Seconds() - start);
  std::printf("{\"bench\":\"disk\",\"row_bytes\":%lu,\"rows_per_s\":%.0f}\n", row_bytes, rate);
  std::free(memory);
  close(fd);
  return 0;
}

// Measures the disk for readers that read files from one end to the other.
int MeasureSequential(int count, char** paths) {
  constexpr uint64_t kRead = uint64_t{4} << 20;
  constexpr uint64_t kAtOnce = 8;
  Result<Uring> uring = Uring::Open(kAtOnce);
  GNND_CHECK(uring.ok());
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kPage, kAtOnce * kRead));
  uint64_t done = 0;
  const double start = Seconds();
  for (int i = 0; i < count; ++i) {
    const int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_DIRECT);
    GNND_CHECK(fd >= 0);
    const auto bytes = static_cast<uint64_t>(std::filesystem::file_size(paths[i]));
    uint64_t next = 0;
    std::vector<uint64_t> idle;
    for (uint64_t slot = 0; slot < kAtOnce; ++slot) idle.push_back(slot);
    const auto ended = [&](uint64_t slot, int64_t result) {
      GNND_CHECK(result > 0);
      done += static_cast<uint64_t>(result);
      idle.push_back(slot);
    };
    while (next < bytes || uring->in_flight() > 0) {
      for (; next < bytes && !idle.empty(); next += kRead) {
        uring->Read(fd, next, {memory + idle.back() * kRead, kRead}, idle.back());
        idle.pop_back();
      }
      GNND_CHECK(uring->Wait(ended).ok());
    }
    close(fd);
  }
  const double rate = static_cast<double>(done) / (Seconds() - start);
  std::printf("{\"bench\":\"disk\",\"bytes\":%lu,\"bytes_per_s\":%.0f}\n", done, rate);
  std::free(memory);
  return 0;
}

}  // namespace
}  // namespace gnnd::bench

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "rate") {
    return gnnd::bench::MeasureRate(argv[2], std::strtoull(argv[3], nullptr, 10));
  }
  if (argc >= 3 && std::string_view(argv[1]) == "sequential") {
    return gnnd::bench::MeasureSequential(argc - 2, argv + 2);
  }
  const uint64_t file_mb = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4096;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const std::filesystem::path folder =
      argc > 3 ? std::filesystem::path(argv[3]) : std::filesystem::temp_directory_path();
  if (file_mb < 64 || file_mb > 1'000'000 || rounds < 1) {
    std::fprintf(stderr, "usage: disk_bench [FILE_MB 64..1000000] [ROUNDS] [FOLDER]\n");
    return 2;
  }
  const std::string path = folder / ("gnnd-disk-bench-" + std::to_string(getpid()));
  gnnd::bench::WriteFile(path, file_mb << 20);
  gnnd::bench::Bench bench(path, file_mb << 20);
  std::filesystem::remove(path);  // it lives while it is open
  std::printf("%lu MB, %u rows a batch, median of %d rounds\n\n", file_mb,
              gnnd::bench::kRowsPerBatch, rounds);
  std::printf("%9s %-14s %14s %14s\n", "row bytes", "way", "cold krow/s", "warm krow/s");
  for (const uint64_t dim : {uint64_t{128}, uint64_t{256}, uint64_t{1024}}) {
    gnnd::bench::Measure(&bench, dim, rounds);
  }
  return 0;
}
